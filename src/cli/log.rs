//! Logs the resolved settings to standard error if `-v` or `ACK_MEM_LOG` is set. Standard output is
//! for answers.

use super::output::write_err;
use crate::config::Config;
use ack_api::text;

/// Logs the settings that decide which scopes are searched.
pub fn settings(config: &Config) {
    let file = config.file.as_ref().map_or_else(
        || "no config.toml".to_owned(),
        |_| "config.toml read".to_owned(),
    );
    write_line(&format!(
        "root {} ({}); {file}",
        config.root.value.display(),
        config.root.source
    ));
    if let Some(db) = &config.db {
        write_line(&format!(
            "single database {} ({})",
            db.value.display(),
            db.source
        ));
    }
    match &config.pinned {
        Some(pinned) => write_line(&format!(
            "pinned to scope `{}` ({})",
            pinned.value, pinned.source
        )),
        None => write_line("not pinned to a scope"),
    }
    if let Some(current) = &config.current_scope {
        write_line(&format!(
            "current scope `{}` ({})",
            current.value, current.source
        ));
    }
    write_line(&format!(
        "project {} ({})",
        config.project.value.display(),
        config.project.source
    ));
}

fn write_line(line: &str) {
    write_err(&format!("ack-memory: {}\n", text::line(line, 1_000)));
}
