//! What `serve` offers: our own tools, configured in `[tools]`, and the upstream servers of
//! `[upstream]`.

use std::ffi::OsString;

use ack_api::settings::Problem;
use ack_gateway::settings::{self, Connection, Upstream};
use ack_sys::files;

use crate::toolset::{Toolset, ToolsetPreset};
use ack_service::config::{
    Config, ConfigFile, MAX_SETTINGS_BYTES, Part, SettingsError, line_of, load_toml,
};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Offer {
    pub toolset: Toolset,
    pub upstreams: Vec<Upstream>,
}

impl Offer {
    /// Removes the upstream servers that this program reaches over HTTP. Returns their names.
    pub fn without_network(&mut self) -> Vec<String> {
        let over_http =
            |upstream: &mut Upstream| matches!(upstream.connection, Connection::Http { .. });
        self.upstreams.extract_if(.., over_http).map(|upstream| upstream.name).collect()
    }

    /// Reads and checks `[tools]` and `[upstream]` of `config.toml`. A preset from the command line
    /// replaces `[tools]` completely. `variable` reads the environment.
    pub fn load(
        config: &Config,
        preset: Option<ToolsetPreset>,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SettingsError> {
        let Some(path) = &config.file else {
            let toolset = Toolset::of(preset.unwrap_or_default());
            return Ok(Offer { toolset, upstreams: Vec::new() });
        };
        let file: ConfigFile = load_toml(path, ack_api::settings::keys::<ConfigFile>)
            .map_err(SettingsError::as_offer_error)?;
        let wrong = |table: &str, problem: Problem| {
            let problem = problem.below_path(&[table]);
            let text = files::read_text(path, MAX_SETTINGS_BYTES).unwrap_or_default();
            let (line, key) = (line_of(&text, &problem.path), problem.path.join("."));
            SettingsError::Invalid {
                path: path.clone(),
                message: format!("line {line}: `{key}`: {}", problem.message),
                part: Part::Offer,
                nearest: problem.nearest,
                known: problem.known,
            }
        };
        let toolset = match preset {
            Some(preset) => Toolset::of(preset),
            None => Toolset::build(&file.tools).map_err(|problem| wrong("tools", problem))?,
        };
        let taken = toolset.tools().iter().map(|tool| tool.name.clone()).collect();
        let upstreams = settings::build(&file.upstream, taken, config.home.as_deref(), variable);
        Ok(Offer { upstreams: upstreams.map_err(|problem| wrong("upstream", problem))?, toolset })
    }
}
