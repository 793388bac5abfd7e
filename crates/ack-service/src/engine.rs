//! The shared state of every operation: the settings, the scopes and their live indexes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::context::outlines::OutlineCache;
use super::error::Error;
use crate::config::Config;
use crate::live::evict_to_fit;
use crate::scope::Registry;
use crate::scope::resolve::{Selection, select};
use ack_api::memory::Visibility;
use ack_api::remote::WaitPolicy;
use ack_store::READ_TIMEOUT;

/// The service for one configuration. Clones share the scopes, their indexes and their outlines.
#[derive(Debug, Clone)]
pub struct Service {
    pub config: Config,
    pub registry: Registry,
    pub wait_policy: WaitPolicy,
    /// The store outlines that `get_context` read last.
    pub outlines: Arc<OutlineCache>,
}

const OUTLINES_SHARE: usize = 8;

impl Service {
    pub fn new(config: Config) -> Self {
        Self {
            registry: Registry::new(&config),
            wait_policy: if config.offline { WaitPolicy::None } else { WaitPolicy::Brief },
            outlines: Arc::new(OutlineCache::new(config.index_bytes / OUTLINES_SHARE)),
            config,
        }
    }

    /// The same service without waiting for a bucket: it uses only the existing local copies.
    #[must_use]
    pub fn without_bucket_wait(mut self) -> Self {
        self.wait_policy = WaitPolicy::None;
        self
    }

    /// The same service for a caller that sees only some scopes. The indexes are shared.
    #[must_use]
    pub fn limited(&self, scopes: Option<&BTreeSet<String>>) -> Self {
        let mut limited = self.clone();
        if let Some(scopes) = scopes {
            // An error would reveal its name if it does not exist.
            let default = &mut limited.config.default_scope;
            default.take_if(|default| !scopes.contains(&default.value));
            limited.registry = self.registry.limited(scopes.clone());
        }
        limited
    }

    /// The same service with other settings. What it holds is shared, and its limit stays.
    #[must_use]
    pub fn configured(&self, config: Config) -> Self {
        Self { config, ..self.clone() }
    }

    /// Freeing a large index at the end would only delay the exit; see [`Service::close`].
    pub fn leak(self) -> &'static Self {
        Box::leak(Box::new(self))
    }

    pub fn close(&self) {
        self.registry.close();
    }

    pub fn outlines_bytes(&self) -> usize {
        self.outlines.bytes()
    }

    /// Builds the index of each shared scope, so that the first question does not wait for it.
    pub fn warm(&self) {
        for scope in self.registry.discover().scopes {
            if scope.problem.is_none() && scope.manifest.visibility == Visibility::Shared {
                if let Some(remote) = &scope.remote {
                    let _ = remote.prepare(self.wait_policy);
                }
                // Answers have a note about a store that cannot be read.
                let _ = scope.live.current(&scope, READ_TIMEOUT);
            }
        }
    }

    /// Begins to ask the buckets that are searched unnamed, so that the first question is fast.
    pub fn ask_buckets(&self) {
        if self.wait_policy == WaitPolicy::None {
            return;
        }
        let pinned = self.config.pinned.as_ref().map(|pinned| pinned.value.trim());
        for scope in self.registry.discover().scopes {
            let is_searched = match pinned {
                Some(pinned) => scope.name == pinned,
                None => scope.manifest.visibility == Visibility::Shared,
            };
            if let Some(remote) = &scope.remote
                && scope.problem.is_none()
                && is_searched
            {
                remote.begin();
            }
        }
    }

    /// The folder of the current project: of several, the first that belongs to a scope.
    pub fn project_folder(&self) -> Option<String> {
        self.select(None, None).ok()?.current.folder.to_str().map(str::to_owned)
    }

    pub fn select(&self, named: Option<&str>, folder: Option<&Path>) -> Result<Selection, Error> {
        self.select_with(named, folder, true)
    }

    pub(crate) fn select_with(
        &self,
        named: Option<&str>,
        folder: Option<&Path>,
        reads_stores: bool,
    ) -> Result<Selection, Error> {
        let selection = select(&self.config, &self.registry, named, folder, reads_stores)?;
        let bound = self.config.index_bytes.saturating_sub(self.outlines_bytes());
        evict_to_fit(bound, &self.registry.known(), &selection.scopes);
        Ok(selection)
    }
}
