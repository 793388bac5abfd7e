//! The effective settings, each with its source.

use ack_service::config::{Config, Setting};
use serde::Serialize;

#[derive(Serialize)]
pub struct ShownSetting {
    pub name: &'static str,
    pub value: String,
    pub source: String,
}

pub fn settings(config: &Config) -> Vec<ShownSetting> {
    let mut settings = Vec::new();
    let mut add = |name, value: String, source: String| {
        settings.push(ShownSetting { name, value, source });
    };
    let path = |setting: &Setting<std::path::PathBuf>| setting.value.display().to_string();
    add("root", path(&config.root), config.root.source.to_string());
    let file = config.file.as_ref();
    let file = file.map_or_else(|| "none".to_owned(), |file| file.display().to_string());
    add("config.toml", file, "root".to_owned());
    if let Some(db) = &config.db {
        add("db", path(db), db.source.to_string());
    }
    for (name, setting) in [
        ("pin", &config.pinned),
        ("scope", &config.current_scope),
        ("default_scope", &config.default_scope),
    ] {
        if let Some(setting) = setting {
            add(name, setting.value.clone(), setting.source.to_string());
        }
    }
    add("project", path(&config.project), config.project.source.to_string());
    for (name, limit) in [
        ("limits.tokens", &config.tokens),
        ("limits.resident", &config.resident),
        ("limits.seconds", &config.seconds),
    ] {
        add(name, limit.value.to_string(), limit.source.to_string());
    }
    let max_status = &config.max_status;
    add("max_status", max_status.value.as_str().to_owned(), max_status.source.to_string());
    settings
}
