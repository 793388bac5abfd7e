//! `scopes add`: a manifest for a store that lies elsewhere. Shown first, written with `--yes`, nothing overwritten.

use std::path::Path;

use crate::cli::args::AddArgs;
use crate::cli::error::CliError;
use crate::cli::write_plain;
use crate::config::Config;
use crate::config::SettingsError;
use crate::import::check_name;
use crate::import::write::make_private;
use crate::scope::manifest::Manifest;
use crate::scope::project::Projects;
use crate::scope::resolve::find;
use crate::scope::{DATABASE_NAMES, Registry};
use crate::service::Error;
use ack_api::memory::{Unreviewed, Visibility};
use ack_store::Store;
use ack_sys::files::expand_home;

/// Runs `scopes add`.
pub fn run(config: &Config, args: &AddArgs) -> Result<(), CliError> {
    check_name(&args.name)?;
    if let Some(known) = find(&Registry::new(config).discover().scopes, &args.name) {
        return Err(CliError::invalid(
            "NAME",
            &args.name,
            format!(
                "a name that is not taken; scope `{}` is there and is not overwritten",
                known.name
            ),
        ));
    }
    let store = expand_home(&args.store, config.home.as_deref());
    let store = std::path::absolute(&store).map_err(|source| CliError::Io {
        action: "find",
        path: store.clone(),
        source,
    })?;
    // A folder is taken for the database in it.
    let store = DATABASE_NAMES
        .iter()
        .map(|name| store.join(name))
        .find(|path| path.is_file())
        .unwrap_or(store);
    let unreviewed = args.unreviewed.unwrap_or_default();
    let (profile, counts, has_status) =
        Store::new(store.clone(), unreviewed).snapshot(|snapshot| {
            Ok((
                snapshot.layout.profile,
                snapshot.counts()?,
                snapshot.layout.has_status(),
            ))
        })?;
    let manifest = Manifest {
        description: args.description.clone(),
        projects: Projects::of(args.projects.iter().cloned()),
        paths: args.paths.clone(),
        remotes: args.remotes.clone(),
        visibility: if args.private {
            Visibility::Private
        } else {
            Visibility::Shared
        },
        store: Some(store.clone()),
        unreviewed,
        overviews: None,
    };
    let path = config
        .root
        .value
        .join("scopes")
        .join(&args.name)
        .join("scope.toml");
    let text = toml::to_string(&manifest).map_err(|error| SettingsError::Invalid {
        path: path.clone(),
        message: error.to_string(),
        nearest: Vec::new(),
        known: Vec::new(),
    })?;
    let shown = counts.approved + counts.promoted;
    let mut out = format!(
        "{} is a {} store: {shown} memories are approved, {} wait for review\n",
        store.display(),
        profile.as_str(),
        counts.staging
    );
    if !has_status && unreviewed == Unreviewed::Staging {
        out += "it keeps no review status, so its memories are shown only with status staging or all;\n\
                --unreviewed approved makes them all count as approved\n";
    }
    out += &format!("\n{}\n{}\n", path.display(), indent(&text));
    if !args.yes {
        write_plain(&(out + "nothing was written; run the same command with --yes to write it\n"))?;
        return occupied(&path);
    }
    occupied(&path)?;
    let io = |source| CliError::Io {
        action: "create",
        path: path.clone(),
        source,
    };
    make_private(path.parent().unwrap_or(Path::new("."))).map_err(io)?;
    let mut file = std::fs::File::create_new(&path).map_err(io)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(io)?;
    write_plain(&format!(
        "{out}written; try: ack-memory query --scope {} --all\n",
        args.name
    ))
}

fn occupied(path: &Path) -> Result<(), CliError> {
    let taken = path.parent().filter(|folder| {
        folder.join("scope.toml").exists()
            || DATABASE_NAMES.iter().any(|name| folder.join(name).exists())
    });
    match taken {
        Some(folder) => Err(CliError::Request(Error::InvalidArgument {
            argument: "NAME".to_owned(),
            value: folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            allowed: format!(
                "a name that is not taken (`{}` is there and is not overwritten)",
                folder.display()
            ),
            nearest: Vec::new(),
            example: None,
        })),
        None => Ok(()),
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
