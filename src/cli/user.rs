//! This user: the name, and where the stores and clients are (the home folder, the system's
//! folders, environment variables).

use ack_api::text;
use ack_worktree::repository::git_user_name;
use nix::unistd::{User, geteuid};

use ack_connect::recogniser::{FoundStore, StorePlaces, survey};
use ack_service::config::Config;

const MAX_NAME_CHARS: usize = 100;

/// The stores on this machine and in the current project, most useful first. Includes those that
/// are already scopes.
pub fn stores(config: &Config) -> Vec<FoundStore> {
    let Some(home) = config.home.clone() else {
        return Vec::new();
    };
    let folders = directories::BaseDirs::new();
    let data = folders.as_ref().map(|dirs| dirs.data_local_dir().to_owned());
    let settings = folders.map(|dirs| dirs.config_dir().to_owned());
    let project = super::connect::repository(config);
    let places = StorePlaces {
        data: data.unwrap_or_else(|| home.join(".local/share")),
        settings: settings.unwrap_or_else(|| home.join(".config")),
        // A home folder is not a project and is never walked.
        project: (!project.as_os_str().is_empty() && !home.starts_with(&project))
            .then_some(project),
        home,
        variable: &|name| std::env::var_os(name),
    };
    super::progress::with_message("looking for stores", || survey(&places))
}

/// The name of the user, as git knows it, else as the system does: colleagues who read the
/// decisions know it from commits.
pub fn user_name(config: &Config) -> String {
    let of_git = name_variable("GIT_AUTHOR_NAME")
        .or_else(|| line(&git_user_name(&config.project.value, config.home.as_deref())?));
    of_git.unwrap_or_else(system_user_name)
}

/// The name that the system has for the user. Programs that run in containers or by a timer often
/// have no variable for it; then it comes from the user database.
pub fn system_user_name() -> String {
    let known = || line(&User::from_uid(geteuid()).ok().flatten()?.name);
    let named = ["USER", "LOGNAME"].into_iter().find_map(name_variable);
    named.or_else(known).unwrap_or_else(|| "unknown".to_owned())
}

fn name_variable(name: &str) -> Option<String> {
    line(&std::env::var_os(name)?.to_string_lossy())
}

/// A name in one line, if there is one.
fn line(name: &str) -> Option<String> {
    Some(text::line(name, MAX_NAME_CHARS)).filter(|name| !name.is_empty())
}
