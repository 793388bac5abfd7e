//! Publishing to a bucket. Unlike a folder, a bucket also gets the memories that newer ones
//! replace, so that readers get the same answers as from the scope itself.

use std::sync::Arc;

use ack_api::memory::Memory;
use ack_api::remote::RemoteSettings;
use ack_bucket::BucketError;
use ack_bucket::address::Address;
use ack_bucket::format::Head;
use ack_bucket::publish::{
    Base, BuiltVersion, DesiredState, Item, Origin, Plan, PublicationTerms, Publisher, Step,
    UploadCost,
};
use jiff::civil::Date;
use serde::Serialize;

use super::{HeldItem, PublishError, Superseded, approved, check_texts, may_publish};
use ack_service::scope::Scope;

/// How many times to build a version again because someone else published meanwhile.
const MAX_ATTEMPTS: usize = 5;

#[derive(Debug, Clone, Default)]
pub struct BucketOptions {
    /// Only memories with the status `promoted`.
    pub only_promoted: bool,
    /// Leave out memories whose text must not be published, instead of failing.
    pub skip_held: bool,
    /// Memories to withdraw, whatever the scope says. Nothing else changes.
    pub withdraw: Vec<String>,
    /// Memories that were withdrawn by hand and may be published again.
    pub restore: Vec<String>,
    /// Another scope that was published there, whose memories are replaced.
    pub replace: Option<String>,
    pub rebuild: bool,
    pub by: String,
    /// Readers hold tables with at most this many rows in memory.
    pub resident: usize,
    /// Memories that are snoozed until a later day do not wait for review.
    pub today: Date,
}

#[derive(Debug, thiserror::Error)]
pub enum BucketPublishError {
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Bucket(#[from] BucketError),
}

#[derive(Debug, Serialize)]
pub struct BucketPlan {
    pub scope: String,
    pub to: String,
    #[serde(flatten)]
    pub plan: Plan,
    /// Memories that are held back because of their text.
    pub held: Vec<HeldItem>,
    pub warnings: Vec<HeldItem>,
    /// If no memory of the scope is approved: how many wait for review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<usize>,
    /// If some are approved: how many others wait for review.
    #[serde(skip)]
    pub also_waiting: usize,
    #[serde(skip)]
    base: Base,
}

impl BucketPlan {
    pub fn next_number(&self) -> u64 {
        self.base.newest_number() + 1
    }
}

#[derive(Debug)]
pub struct Publication {
    scope: Arc<Scope>,
    address: Address,
    publisher: Publisher,
    options: BucketOptions,
}

impl Publication {
    /// Prepares a publication. Does not contact the bucket.
    pub fn new(
        scope: &Arc<Scope>,
        address: Address,
        settings: &RemoteSettings,
        options: BucketOptions,
    ) -> Result<Self, BucketPublishError> {
        Ok(Self {
            publisher: Publisher::new(&scope.folder, &address, settings)?,
            scope: Arc::clone(scope),
            address,
            options,
        })
    }

    pub const fn publisher(&self) -> &Publisher {
        &self.publisher
    }

    /// Plans the publication. Only reads from the bucket.
    pub fn plan(&self, step: &mut dyn FnMut(Step)) -> Result<BucketPlan, BucketPublishError> {
        let mut held = Vec::new();
        let mut warnings = Vec::new();
        let (mut waiting, mut also_waiting) = (None, 0);
        // Check what must not be published before any network access.
        may_publish(&self.scope)?;
        let wanted = if self.options.withdraw.is_empty() {
            let BucketOptions { only_promoted, today, .. } = self.options;
            let approved = approved(&self.scope, Superseded::Kept, only_promoted, today)?;
            (waiting, also_waiting) = (approved.waiting, approved.also_waiting);
            Some(self.desired_state(approved.memories, &mut held, &mut warnings)?)
        } else {
            None
        };
        // Withdrawing changes nothing else, so any scope may do it.
        let origin = wanted
            .as_ref()
            .map(|_| Origin { scope: &self.scope.name, replaces: self.options.replace.as_deref() });
        let base = self.publisher.fetch_base(origin, step)?;
        let plan = match wanted {
            Some(wanted) => base.plan(wanted, &self.options.restore)?,
            None => {
                base.plan_withdrawal(&self.address, &self.options.withdraw, &self.options.by)?
            }
        };
        Ok(BucketPlan {
            scope: self.scope.name.clone(),
            to: self.address.to_string(),
            plan,
            held,
            warnings,
            waiting,
            also_waiting,
            base,
        })
    }

    fn desired_state(
        &self,
        memories: Vec<Memory>,
        held: &mut Vec<HeldItem>,
        warnings: &mut Vec<HeldItem>,
    ) -> Result<DesiredState, BucketPublishError> {
        let memories = check_texts(memories, held, warnings);
        if !held.is_empty() && !self.options.skip_held {
            return Err(PublishError::Held { held: held.clone() }.into());
        }
        let links = self
            .scope
            .store
            .snapshot(|snapshot| snapshot.all_links())
            .map_err(PublishError::Store)?;
        Ok(DesiredState {
            records: memories.into_iter().map(Memory::without_marks).collect(),
            links,
        })
    }

    /// Builds the version locally, and returns the cost of uploading it.
    pub fn make(
        &self,
        planned: &BucketPlan,
        step: &mut dyn FnMut(Step),
    ) -> Result<(BuiltVersion, UploadCost), BucketPublishError> {
        let published = planned.base.scope();
        let terms = PublicationTerms {
            scope: match published {
                Some(published) if !self.options.withdraw.is_empty() => published,
                _ => &self.scope.name,
            },
            by: &self.options.by,
            resident: self.options.resident,
            rebuild: self.options.rebuild,
        };
        let built = self.publisher.build(&planned.base, &planned.plan, &terms, step)?;
        let cost = built.cost();
        Ok((built, cost))
    }

    /// Uploads the version and makes it visible to readers. If someone else published meanwhile,
    /// builds the version again on top of theirs, unless that would withdraw memories that the plan
    /// did not.
    ///
    /// # Errors
    /// The bucket failed. Readers still see the previous version.
    pub fn publish(
        &self,
        planned: &BucketPlan,
        built: BuiltVersion,
        step: &mut dyn FnMut(Step),
    ) -> Result<Head, BucketPublishError> {
        let mut result = self.publisher.publish(&planned.base, built, step);
        for _ in 1..MAX_ATTEMPTS {
            let Err(BucketError::Conflict { version, .. }) = result else {
                break;
            };
            let again = self.plan(step)?;
            let agreed =
                |item: &&Item| !planned.plan.withdrawn.iter().any(|known| known.id == item.id);
            let others: Vec<String> =
                again.plan.withdrawn.iter().filter(agreed).map(|item| item.id.clone()).collect();
            if !others.is_empty() {
                let file_names = others.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
                return Err(BucketError::Conflict {
                    address: self.address.to_string(),
                    version,
                    problem: format!("publishing would remove what it added: {file_names}"),
                }
                .into());
            }
            if again.plan.is_empty() {
                let head = self.publisher.current()?;
                return head.ok_or_else(|| {
                    BucketError::NothingPublished { address: self.address.to_string() }.into()
                });
            }
            let (built, _) = self.make(&again, step)?;
            result = self.publisher.publish(&again.base, built, step);
        }
        Ok(result?)
    }
}
