//! Where programs keep their stores.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ack_service::scope::known::own_folder;
use ack_store::folder::Dialect;
use ack_sys::files::{self, expand_home};
use serde_json::Value;

use super::{FoundStore, StoreKind, at, notes_kind};

const MAX_ENTRIES: usize = 20_000;
const MAX_TOP_FOLDERS: usize = 200;
const MAX_SETTINGS_BYTES: u64 = 16 << 20;

/// Where to look: folders of this user, the current project, and variables that move a store.
pub struct StorePlaces<'a> {
    pub home: PathBuf,
    /// The system's folder for data (`~/.local/share`, `~/Library/Application Support`).
    pub data: PathBuf,
    /// The system's folder for settings (`~/.config`, `~/Library/Application Support`).
    pub settings: PathBuf,
    pub project: Option<PathBuf>,
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl StorePlaces<'_> {
    /// The folder that a variable names, or else one in the home folder.
    fn own(&self, variable: &str, usual: &str) -> PathBuf {
        self.path_in(variable).unwrap_or_else(|| self.home.join(usual))
    }

    fn path_in(&self, name: &str) -> Option<PathBuf> {
        let value = (self.variable)(name).filter(|value| !value.is_empty())?;
        Some(expand_home(Path::new(&value), Some(&self.home)))
    }
}

/// Where a program keeps a store. A `*` stands for the rest of a folder's name.
struct Place {
    kind: StoreKind,
    base: Base,
    path: &'static str,
}

enum Base {
    /// The one that a variable names, or this one in the home folder.
    Own(&'static str, &'static str),
    Home,
    Settings,
    /// `~/.config`, also on macOS.
    DotConfig,
    Project,
}

const CLAUDE: Base = Base::Own("CLAUDE_CONFIG_DIR", ".claude");
const HERMES: Base = Base::Own("HERMES_HOME", ".hermes");
const QWEN: Base = Base::Own("QWEN_HOME", ".qwen");
const CODEX: Base = Base::Own("CODEX_HOME", ".codex");
const SERENA: Base = Base::Own("SERENA_HOME", ".serena");

const PLACES: [Place; 27] = [
    place(StoreKind::AutoMemory, CLAUDE, "projects/*/memory"),
    place(StoreKind::AgentMemory, CLAUDE, "agent-memory/*"),
    place(StoreKind::AgentMemory, Base::Project, ".claude/agent-memory/*"),
    place(StoreKind::AgentMemory, Base::Project, ".claude/agent-memory-local/*"),
    place(StoreKind::Codex, CODEX, "memories"),
    place(
        StoreKind::Copilot,
        Base::Settings,
        "Code/User/globalStorage/github.copilot-chat/memory-tool/memories",
    ),
    place(
        StoreKind::Copilot,
        Base::Settings,
        "Code/User/workspaceStorage/*/GitHub.copilot-chat/memory-tool/memories/repo",
    ),
    place(StoreKind::Gemini, Base::Home, ".gemini/GEMINI.md"),
    place(StoreKind::Gemini, Base::Home, ".gemini/tmp/*/memory"),
    place(StoreKind::Qwen, QWEN, "QWEN.md"),
    place(StoreKind::Qwen, QWEN, "memories"),
    place(StoreKind::Qwen, QWEN, "projects/*/memory"),
    place(StoreKind::Qwen, Base::Project, "QWEN.md"),
    place(StoreKind::Qwen, Base::Project, ".qwen/memory"),
    place(StoreKind::Qwen, Base::Project, ".qwen/team-memory"),
    place(StoreKind::Goose, Base::DotConfig, "goose/memory"),
    place(StoreKind::Goose, Base::Project, ".goose/memory"),
    place(StoreKind::MemoryBank, Base::Project, "memory-bank"),
    place(StoreKind::MemoryBank, Base::Project, ".kilocode/rules/memory-bank"),
    place(StoreKind::MemoryBank, Base::Project, ".kilo/rules/memory-bank"),
    place(StoreKind::Hermes, HERMES, "memories"),
    place(StoreKind::Hermes, HERMES, "profiles/*/memories"),
    place(StoreKind::OpenClaw, Base::Home, ".openclaw/workspace"),
    place(StoreKind::OpenClaw, Base::Home, ".openclaw/workspace-*"),
    place(StoreKind::Serena, SERENA, "memories/global"),
    place(StoreKind::Serena, Base::Project, ".serena/memories"),
    place(StoreKind::Solutions, Base::Project, "docs/solutions"),
];

const fn place(kind: StoreKind, base: Base, path: &'static str) -> Place {
    Place { kind, base, path }
}

impl Place {
    fn stores(&self, places: &StorePlaces<'_>) -> Vec<FoundStore> {
        let base = match self.base {
            Base::Own(variable, usual) => Some(places.own(variable, usual)),
            Base::Home => Some(places.home.clone()),
            Base::DotConfig if cfg!(target_os = "macos") => Some(places.home.join(".config")),
            Base::DotConfig | Base::Settings => Some(places.settings.clone()),
            Base::Project => places.project.clone(),
        };
        let paths = base.map(|base| matching(base, self.path)).into_iter();
        paths.flatten().filter_map(|path| self.store(&path)).collect()
    }

    fn store(&self, path: &Path) -> Option<FoundStore> {
        match self.kind {
            // A folder of another program may have the same name.
            StoreKind::AutoMemory | StoreKind::Codex | StoreKind::Solutions => {
                notes_of(self.kind, path)
            }
            StoreKind::OpenClaw if Dialect::of(path) != Dialect::OpenClaw => None,
            kind => FoundStore::filled(kind, path),
        }
    }
}

fn matching(base: PathBuf, path: &str) -> Vec<PathBuf> {
    path.split('/').fold(vec![base], |found, part| {
        let Some(start) = part.strip_suffix('*') else {
            return found.iter().map(|folder| folder.join(part)).collect();
        };
        let mut inside: Vec<PathBuf> = found.iter().flat_map(|folder| entries(folder)).collect();
        inside.retain(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with(start)
        });
        inside
    })
}

pub fn find_stores(places: &StorePlaces<'_>) -> Vec<FoundStore> {
    let mut found = databases(places);
    found.extend(PLACES.iter().flat_map(|place| place.stores(places)));
    found.extend(configured_auto_memory(places));
    found.extend(server_memories(places));
    found.extend(basic_memories(places));
    if let Some(project) = &places.project {
        found.extend(in_project(project));
    }
    found
}

fn notes_of(kind: StoreKind, path: &Path) -> Option<FoundStore> {
    let is_one = path.is_dir() && notes_kind(path) == Some(kind);
    is_one.then(|| FoundStore::counted(kind, path))?
}

/// A database in a program's usual place. If it cannot be read, it is listed with the reason.
fn usual_database(kind: StoreKind, path: &Path) -> Option<FoundStore> {
    // If it is missing or not a file, there is no store.
    files::check(path).ok()?;
    if let Some(folder) = own_folder(path) {
        let problem = format!("its decisions are kept in {}", folder.display());
        return Some(FoundStore { problem: Some(problem), ..FoundStore::uncounted(kind, path) });
    }
    FoundStore::counted(kind, path)
}

fn databases(places: &StorePlaces<'_>) -> Vec<FoundStore> {
    let claude_mem = places.own("CLAUDE_MEM_DATA_DIR", ".claude-mem").join("claude-mem.db");
    let service = places.path_in("MCP_MEMORY_SQLITE_PATH").unwrap_or_else(|| {
        let base = places.path_in("MCP_MEMORY_BASE_DIR");
        base.unwrap_or_else(|| places.data.join("mcp-memory")).join("sqlite_vec.db")
    });
    let claude_mem = usual_database(StoreKind::ClaudeMem, &claude_mem);
    let service = usual_database(StoreKind::McpMemoryService, &service);
    claude_mem.into_iter().chain(service).collect()
}

/// The folder that Claude Code's settings name in place of one for each project.
fn configured_auto_memory(places: &StorePlaces<'_>) -> Option<FoundStore> {
    let claude = places.own("CLAUDE_CONFIG_DIR", ".claude");
    let settings = settings(&claude.join("settings.json"))?;
    let folder = Path::new(settings.get("autoMemoryDirectory")?.as_str()?);
    notes_of(StoreKind::AutoMemory, &expand_home(folder, Some(&places.home)))
}

/// The files that MEMORY_FILE_PATH names, here or in the settings of clients that start the server.
fn server_memories(places: &StorePlaces<'_>) -> Vec<FoundStore> {
    const VARIABLE: &str = "MEMORY_FILE_PATH";
    let mut paths: Vec<PathBuf> = places.path_in(VARIABLE).into_iter().collect();
    let clients = [
        places.home.join(".claude.json"),
        places.home.join(".cursor/mcp.json"),
        places.settings.join("Claude/claude_desktop_config.json"),
        places.settings.join("Code/User/mcp.json"),
    ];
    let project = places.project.as_ref().map(|project| project.join(".mcp.json"));
    for settings in clients.into_iter().chain(project).filter_map(|path| settings(&path)) {
        texts_of(&settings, VARIABLE, &mut |text| {
            paths.push(expand_home(Path::new(text), Some(&places.home)));
        });
    }
    paths.retain(|path| path.is_absolute());
    paths.iter().filter_map(|path| at(path)).collect()
}

fn basic_memories(places: &StorePlaces<'_>) -> Vec<FoundStore> {
    let base = places.own("BASIC_MEMORY_CONFIG_DIR", ".basic-memory");
    let settings = settings(&base.join("config.json")).unwrap_or_default();
    let projects = settings.get("projects").and_then(Value::as_object);
    let path = |project: &Value| {
        let path = project.as_str().or_else(|| project.get("path")?.as_str())?;
        Some(expand_home(Path::new(path), Some(&places.home)))
    };
    let usual = places.own("BASIC_MEMORY_HOME", "basic-memory");
    let projects = projects.into_iter().flat_map(|projects| projects.values());
    let mut folders: Vec<PathBuf> = projects.filter_map(path).chain([usual]).collect();
    folders.sort();
    folders.dedup();
    // A project may be the home folder itself, which is never walked.
    folders.retain(|folder| *folder != places.home);
    folders.iter().filter_map(|path| notes_of(StoreKind::BasicMemory, path)).collect()
}

fn in_project(project: &Path) -> Vec<FoundStore> {
    let mut found: Vec<FoundStore> = at(&project.join("memory.jsonl")).into_iter().collect();
    let folders = knowledge_folders(project).into_iter();
    found.extend(folders.filter_map(|path| FoundStore::counted(StoreKind::KnowledgeFormat, &path)));
    found
}

/// The folders of notes in a project that say that they follow the Open Knowledge Format: itself,
/// and those at its top and in `docs`.
pub fn knowledge_folders(project: &Path) -> Vec<PathBuf> {
    let top = entries(project).into_iter().take(MAX_TOP_FOLDERS);
    let docs = entries(&project.join("docs")).into_iter().take(MAX_TOP_FOLDERS);
    let folders = [project.to_owned()].into_iter().chain(top).chain(docs);
    folders.filter(|path| Dialect::of(path) == Dialect::Knowledge).collect()
}

/// The sorted subfolders of a folder, up to a limit.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let entries = entries.take(MAX_ENTRIES).flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn settings(path: &Path) -> Option<Value> {
    serde_json::from_slice(&files::read(path, MAX_SETTINGS_BYTES).ok()?).ok()
}

fn texts_of(value: &Value, key: &str, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value.as_str() {
                    Some(text) if name == key => visit(text),
                    _ => texts_of(value, key, visit),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| texts_of(value, key, visit)),
        _ => {}
    }
}
