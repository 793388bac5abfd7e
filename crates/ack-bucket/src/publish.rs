//! Publishes a version: it is built in a local folder, uploaded under unique names, and made
//! visible to readers by replacing one object.
//!
//! If a publisher is killed at any moment, readers keep the previous version. Two publishers cannot
//! both replace the same head: the second one gets a conflict and builds its version again.

mod history;
mod plan;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ack_api::remote::RemoteSettings;
use ack_lance::Extent;
use ack_lance::build::{self, EncoderChoice, Target};
use ack_lance::indexes::will_search_on_disk;
use ack_lance::records;
use ack_search::encoder::Encoder;
use ack_store::links::Link;
use ack_store::{Access, READ_TIMEOUT};
use object_store::{PutMode, UpdateVersion};
use serde::Serialize;
use tempfile::TempDir;

pub use self::history::{PrunePlan, RollbackChanges, VersionSummary};
use self::plan::Published;
pub use self::plan::{Base, DesiredState, Item, Plan};
use crate::BucketError;
use crate::address::Address;
use crate::cache::{self, Cache};
use crate::client::{Client, ReadOutcome, upload_requests};
use crate::fetch::{self, Progress};
use crate::format::{FORMAT, FileEntry, HEAD, Head, LINKS, Version, sha256};
use crate::mirror::{self, Writer};

/// How long reading a small object may take, and waiting for another process.
const SMALL_OBJECT_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct Publisher {
    client: Client,
    cache: Cache,
}

pub struct PublicationTerms<'a> {
    pub scope: &'a str,
    pub by: &'a str,
    /// The largest table, in rows, that readers keep in memory.
    pub resident: usize,
    pub rebuild: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Fetching(Progress),
    /// Builds the table: rows that are added, and those that will be.
    Building(usize, usize),
    Uploading(Progress),
}

/// A version that was built locally and is not uploaded yet.
pub struct BuiltVersion {
    version: Version,
    name: String,
    work: TempDir,
    /// The files that are not in the bucket yet.
    uploads: Vec<FileEntry>,
    _lock: Option<fs::File>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UploadCost {
    pub upload_bytes: u64,
    pub write_requests: u64,
    /// Bytes of the whole version.
    pub version_bytes: u64,
}

impl Publisher {
    pub fn new(
        folder: &Path,
        address: &Address,
        settings: &RemoteSettings,
    ) -> Result<Self, BucketError> {
        Ok(Self {
            client: Client::new(address, settings, SMALL_OBJECT_TIMEOUT)?,
            cache: Cache::new(folder, address),
        })
    }

    /// The version that is published now, fetched if it is not in the cache. `may_replace` says
    /// whether the memories of a scope may be replaced.
    pub fn fetch_base(
        &self,
        may_replace: impl Fn(&str) -> bool,
        step: &mut dyn FnMut(Step),
    ) -> Result<Base, BucketError> {
        let Some((head, state)) = self.head()? else {
            return Ok(Base::default());
        };
        let version = fetch::fetch_version(&self.client, &head)?;
        // Memories that another scope published would all be removed.
        if !may_replace(&version.scope) {
            return Err(BucketError::OtherScope {
                address: self.client.address().to_string(),
                published: version.scope,
                rows: version.rows,
                by: version.by,
                at: version.published_at,
            });
        }
        let _lock = self.lock()?;
        // What is published follows what this machine knows, even if the bucket was set back.
        let known = self.cache.version().filter(|it| version.contradiction(it).is_some());
        let folder = fetch::install(&self.client, &self.cache, &head, &version, &mut |progress| {
            step(Step::Fetching(progress))
        })?;
        if let Some(known) = &known {
            self.cache.remember(&folder, &version, known)?;
        }
        let mut base = Base { known, ..Base::default() };
        mirror::store(&folder).read(Access::FullScan, READ_TIMEOUT, |snapshot| {
            base.records.clear();
            snapshot.visit_curated(&|_| true, &mut |curated| {
                let record = curated.memory.without_marks();
                base.records.insert(record.id.clone(), record);
            })
        })?;
        base.published = Some(Published { head, state, version, folder });
        Ok(base)
    }

    /// What is published now, with the state of its object.
    fn head(&self) -> Result<Option<(Head, UpdateVersion)>, BucketError> {
        match self.client.read(HEAD, None)? {
            ReadOutcome::Found(bytes, state) => {
                Ok(Some((fetch::parse_head(&self.client, &bytes)?, state)))
            }
            ReadOutcome::Unchanged | ReadOutcome::Missing => Ok(None),
        }
    }

    fn lock(&self) -> Result<Option<fs::File>, BucketError> {
        self.cache.wait_for_lock(SMALL_OBJECT_TIMEOUT, || true)
    }

    /// Builds the version of a plan. Nothing is uploaded yet.
    pub fn build(
        &self,
        base: &Base,
        plan: &Plan,
        terms: &PublicationTerms<'_>,
        step: &mut dyn FnMut(Step),
    ) -> Result<BuiltVersion, BucketError> {
        let made = self.make_version(base, plan, terms, step);
        // The table is built from the local copy of the previous version.
        let (Err(BucketError::Build(_) | BucketError::Table(_)), Some(published)) =
            (&made, &base.published)
        else {
            return made;
        };
        let _lock = self.lock()?;
        let folder = &published.folder;
        if !self.cache.remove_damaged(Some(folder), &published.version) {
            return made;
        }
        cache::mark_damaged(folder);
        Err(BucketError::Copy { path: folder.clone() })
    }

    fn make_version(
        &self,
        base: &Base,
        plan: &Plan,
        terms: &PublicationTerms<'_>,
        step: &mut dyn FnMut(Step),
    ) -> Result<BuiltVersion, BucketError> {
        let lock = self.lock()?;
        let work = self.cache.temporary_folder()?;
        copy_base(base, work.path())?;
        let database = mirror::database_path(work.path());
        let rows = write_records(base, plan, &database).map_err(mirror::unwritable(&database))?;
        write_links(&plan.links, work.path())?;
        let store = mirror::store(work.path());
        let target = Target {
            scope: terms.scope,
            folder: mirror::table_folder(work.path()),
            store: &store,
            extent: Extent::Records { on_disk: will_search_on_disk(rows, terms.resident) },
            resident: terms.resident,
        };
        let options = build::Options {
            rebuild: terms.rebuild,
            encoder: EncoderChoice::Static,
            dry_run: false,
        };
        build::build(&target, options, &mut |added, all| step(Step::Building(added, all)))?;
        drop(store);
        let number = base.newest_number() + 1;
        let name = format!("{number}-{}", random_name()?);
        let files = list_files(base, work.path(), &name)?;
        let version = Version {
            format: FORMAT,
            version: number,
            scope: terms.scope.to_owned(),
            published_at: ack_api::time::to_rfc3339(jiff::Timestamp::now()),
            by: terms.by.to_owned(),
            rows: rows as u64,
            added: plan.added.len() as u64,
            changed: plan.changed.len() as u64,
            withdrawn: plan.withdrawn.len() as u64,
            before: base.published.as_ref().map(|it| it.head.log.clone()),
            restores: None,
            held_back: plan.withdrawals.clone(),
            restored: plan.restored.clone(),
            encoder: Encoder::embedded().map(|it| it.name.clone()).unwrap_or_default(),
            files,
        };
        let there: HashSet<&str> = base.files().map(|file| file.object.as_str()).collect();
        let mut uploads = version.files.clone();
        uploads.retain(|file| !there.contains(file.object.as_str()));
        Ok(BuiltVersion { version, name, work, uploads, _lock: lock })
    }

    /// Uploads a version and makes it visible to readers. After an error, they keep the previous
    /// one.
    pub fn publish(
        &self,
        base: &Base,
        built: BuiltVersion,
        step: &mut dyn FnMut(Step),
    ) -> Result<Head, BucketError> {
        self.check_conditional_writes()?;
        self.upload(&built, step)?;
        let BuiltVersion { version, name, work, uploads, _lock } = built;
        let before = base.published.as_ref().map(|it| (&it.head, &it.state));
        let (head, state) = self.commit_version(before, &version, &name)?;
        // The rest only avoids fetching what was built here.
        let result = uploads.iter().try_for_each(|file| {
            let result = self.cache.file(&file.sha256);
            if result.exists() {
                return Ok(());
            }
            cache::link(&cache::file_path(work.path(), &file.path), &result)
        });
        if result.is_ok() && self.cache.install(work, &name, &version).is_ok() {
            let _ = self.cache.save_state(&cache::State {
                address: self.client.address().to_string(),
                head: Some(head.clone()),
                tag: state.e_tag,
                asked_at: jiff::Timestamp::now().as_millisecond(),
                ..cache::State::default()
            });
            let before = base.published.as_ref().map(|it| &it.version);
            self.cache.clean(Cache::retention(before, &version));
        }
        Ok(head)
    }

    /// Uploads the files of a version that the bucket lacks.
    fn upload(&self, built: &BuiltVersion, step: &mut dyn FnMut(Step)) -> Result<(), BucketError> {
        let total = built.uploads.iter().map(|file| file.bytes).sum();
        let mut sent = Progress { fetched: 0, total };
        step(Step::Uploading(sent));
        for file in &built.uploads {
            let path = cache::file_path(built.work.path(), &file.path);
            self.client.upload(&file.object, &path, file.bytes, |bytes| {
                sent.fetched += bytes;
                step(Step::Uploading(sent));
            })?;
        }
        Ok(())
    }

    /// Writes the description of a version, and then the head.
    fn commit_version(
        &self,
        before: Option<(&Head, &UpdateVersion)>,
        version: &Version,
        name: &str,
    ) -> Result<(Head, UpdateVersion), BucketError> {
        let log = format!("log/{name}.json");
        let described = serde_json::to_vec_pretty(version).unwrap_or_default();
        let head = Head {
            format: FORMAT,
            version: version.version,
            log: log.clone(),
            sha256: sha256(&described),
            rows: version.rows,
            published_at: version.published_at.clone(),
            by: version.by.clone(),
            previous: before.map(|(head, _)| head.version),
        };
        self.client.put(&log, described, PutMode::Overwrite)?;
        let condition = before.map_or(PutMode::Create, |(_, state)| PutMode::Update(state.clone()));
        let text = serde_json::to_vec_pretty(&head).unwrap_or_default();
        let outcome = self.client.put(HEAD, text, condition);
        if let Ok(Some(state)) = outcome {
            return Ok((head, state));
        }
        let conflict = |version, problem: &str| BucketError::Conflict {
            address: self.client.address().to_string(),
            version,
            problem: problem.to_owned(),
        };
        // A lost response looks like a failure: reading the head shows whether it was one.
        match (self.head(), outcome) {
            (Ok(Some((published, state))), _) if published == head => Ok((head, state)),
            (Ok(Some((published, _))), Ok(_)) => {
                Err(conflict(published.version, "what you were publishing is not based on it"))
            }
            (_, Ok(_)) => Err(conflict(version.version, "the bucket cannot be read")),
            (_, Err(error)) => Err(error),
        }
    }

    /// Checks that the server honours conditional writes: many acknowledge them and ignore the
    /// condition.
    fn check_conditional_writes(&self) -> Result<(), BucketError> {
        let name = format!("probe-{}", random_name()?);
        let put = |condition| {
            let text = "ack-memory asks whether conditional writes work here\n";
            self.client.put(&name, text, condition)
        };
        let answer = |problem: &str| {
            Err(BucketError::Unsafe {
                address: self.client.address().to_string(),
                problem: problem.to_owned(),
            })
        };
        let Some(state) = put(PutMode::Create)? else {
            return answer("it did not create an object that was to be created only if missing");
        };
        let again = put(PutMode::Create)?;
        let changed = put(PutMode::Update(UpdateVersion {
            e_tag: state.e_tag.as_ref().map(|_| format!("\"{}\"", "0".repeat(32))),
            version: state.version.as_ref().map(|_| "1".to_owned()),
        }))?;
        let conflicting = put(PutMode::Update(state))?;
        // A publisher without the permission to delete leaves a small object.
        let _ = self.client.delete(&[name]);
        match (again, changed, conflicting) {
            (Some(_), ..) => answer("it replaced an object that was to be created only if missing"),
            (_, Some(_), _) => answer("it replaced an object although another state was required"),
            (_, _, None) => answer("it did not replace an object in the state that was required"),
            (None, None, Some(_)) => Ok(()),
        }
    }
}

impl BuiltVersion {
    pub fn cost(&self) -> UploadCost {
        let parts = |file: &FileEntry| upload_requests(file.bytes);
        UploadCost {
            upload_bytes: self.uploads.iter().map(|file| file.bytes).sum(),
            // Every version also needs the probe, the description and the head.
            write_requests: self.uploads.iter().map(parts).sum::<u64>() + 7,
            version_bytes: self.version.bytes(),
        }
    }
}

/// Fills a folder with the version that a plan is based on.
fn copy_base(base: &Base, work: &Path) -> Result<(), BucketError> {
    let Some(Published { folder, version, .. }) = &base.published else {
        return Ok(());
    };
    let from = mirror::database_path(folder);
    fs::copy(&from, mirror::database_path(work)).map_err(BucketError::io("copy", &from))?;
    for file in version.files.iter().filter(|file| file.path != LINKS) {
        cache::link(&cache::file_path(folder, &file.path), &cache::file_path(work, &file.path))?;
    }
    mirror::tag_version(work, version)
}

/// Applies a plan to the records in a database, and returns how many there are.
fn write_records(base: &Base, plan: &Plan, database: &Path) -> rusqlite::Result<usize> {
    let mut writer = Writer::open(database, base.published.is_none())?;
    let mut withdrawn_rows = Vec::new();
    for item in &plan.withdrawn {
        withdrawn_rows.extend(writer.find_row(&item.id)?);
    }
    let mut last = writer.last_row()?;
    writer.remove(&withdrawn_rows)?;
    for record in &plan.upserts {
        let known = writer.find_row(&record.id)?;
        last += i64::from(known.is_none());
        writer.upsert(known.unwrap_or(last), record)?;
    }
    writer.set_links(&plan.links)?;
    writer.finish()?;
    Ok(plan.unchanged + plan.added.len() + plan.changed.len())
}

fn write_links(links: &[Link], work: &Path) -> Result<(), BucketError> {
    let lines = links.iter().filter_map(|link| Some(serde_json::to_string(link).ok()? + "\n"));
    let path = work.join(LINKS);
    fs::write(&path, lines.collect::<String>()).map_err(BucketError::io("write", &path))
}

/// The files of a new version. Files of the previous version keep their objects.
fn list_files(base: &Base, work: &Path, name: &str) -> Result<Vec<FileEntry>, BucketError> {
    let known: HashMap<&str, &FileEntry> =
        base.files().map(|file| (file.path.as_str(), file)).collect();
    let listed = records::published_files(&mirror::table_folder(work))?;
    let paths = listed.iter().map(|path| path.to_string_lossy().into_owned());
    let mut files = Vec::new();
    for path in paths.chain([LINKS.to_owned()]) {
        let path_in_work = cache::file_path(work, &path);
        let failed = BucketError::io("read", &path_in_work);
        let bytes = fs::metadata(&path_in_work).map_err(&failed)?.len();
        let object = if path == LINKS {
            format!("links/{name}.jsonl")
        } else if path.ends_with(".manifest") {
            format!("manifests/{name}.manifest")
        } else {
            path.clone()
        };
        let known = known.get(path.as_str()).filter(|known| known.bytes == bytes);
        // Lance never writes a data file twice. The list of fragments and the links are the same
        // only if their contents are.
        let sha256 = match known {
            Some(known) if object == path => known.sha256.clone(),
            _ => cache::file_digest(&path_in_work).map_err(&failed)?,
        };
        files.push(match known {
            Some(known) if known.sha256 == sha256 => (*known).clone(),
            _ => FileEntry { path, object, bytes, sha256 },
        });
    }
    Ok(files)
}

fn random_name() -> Result<String, BucketError> {
    let number = getrandom::u32().map_err(|error| BucketError::Io {
        action: "ask the system for random numbers",
        path: PathBuf::from("getrandom"),
        source: error.into(),
    })?;
    Ok(format!("{number:08x}"))
}
