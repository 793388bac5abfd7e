//! What every operation works on: the settings, the scopes and their live indexes.

use std::path::Path;
use std::sync::Arc;

use super::error::Error;
use crate::config::Config;
use crate::live::LiveIndexes;
use crate::scope::resolve::{Selection, select};
use crate::scope::{Registry, Scope};

/// The service over one configuration.
#[derive(Debug)]
pub struct Service {
    /// The settings in force.
    pub config: Config,
    /// The scopes.
    pub registry: Registry,
    /// The live index of each scope.
    pub(crate) indexes: LiveIndexes,
}

impl Service {
    /// A service. Nothing is opened or read until the first request.
    pub fn new(config: Config) -> Self {
        let registry = Registry::new(&config);
        let indexes = LiveIndexes::new(config.resident.value as usize);
        Self {
            config,
            registry,
            indexes,
        }
    }

    /// A service that lives as long as the process. Taking a large index apart at the end would only delay the exit; what
    /// must go, the private copies of stores, [`Service::close`] removes.
    pub fn for_the_process(config: Config) -> &'static Self {
        Box::leak(Box::new(Self::new(config)))
    }

    /// Removes what lies outside the process's memory.
    pub fn close(&self) {
        self.registry.close();
    }

    /// About how many bytes the index of a scope takes in memory; 0 where there is none.
    pub fn index_bytes(&self, scope: &Arc<Scope>) -> usize {
        self.indexes.of(scope).bytes()
    }

    pub(crate) fn select(
        &self,
        named: Option<&str>,
        folder: Option<&Path>,
    ) -> Result<Selection, Error> {
        let selection = select(&self.config, &self.registry, named, folder)?;
        let bound = usize::try_from(self.config.memory.value)
            .map_or(usize::MAX, |mebibytes| mebibytes << 20);
        self.indexes.keep_within(bound, &selection.scopes);
        Ok(selection)
    }
}
