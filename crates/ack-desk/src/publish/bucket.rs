//! Publishing to a bucket. Unlike a folder, a bucket also gets the memories that newer ones
//! replace, so that readers get the same answers as from the scope itself.

use std::sync::Arc;

use ack_api::memory::Memory;
use ack_api::remote::RemoteSettings;
use ack_bucket::BucketError;
use ack_bucket::address::Address;
use ack_bucket::format::Head;
use ack_bucket::publish::{
    Base, BuiltVersion, DesiredState, Item, Plan, PublicationTerms, Publisher, Step,
};
use serde::Serialize;

use super::{Approved, PublishError, PublishOptions, Superseded, may_publish};
use ack_service::scope::Scope;

/// How many times to build a version again because someone else published meanwhile.
const MAX_ATTEMPTS: usize = 5;

#[derive(Debug, Clone, Default)]
pub struct BucketOptions {
    pub publish: PublishOptions,
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
    #[serde(flatten)]
    pub approved: Approved,
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
        let mut approved = Approved::default();
        // Check what must not be published before any network access.
        may_publish(&self.scope)?;
        let wanted = if self.options.withdraw.is_empty() {
            approved = Approved::of(&self.scope, Superseded::Kept, self.options.publish)?;
            approved.check_held(self.options.publish)?;
            Some(self.desired_state(std::mem::take(&mut approved.memories))?)
        } else {
            None
        };
        // Withdrawing changes nothing else, so any scope may do it.
        let is_any = wanted.is_none();
        let may_replace = |scope: &str| {
            is_any || scope == self.scope.name || Some(scope) == self.options.replace.as_deref()
        };
        let base = self.publisher.fetch_base(may_replace, step)?;
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
            approved,
            base,
        })
    }

    fn desired_state(&self, memories: Vec<Memory>) -> Result<DesiredState, PublishError> {
        let links = self.scope.store.snapshot(|snapshot| snapshot.all_links())?;
        let records = memories.into_iter().map(Memory::without_marks).collect();
        Ok(DesiredState { records, links })
    }

    /// Builds the version locally.
    pub fn make(
        &self,
        planned: &BucketPlan,
        step: &mut dyn FnMut(Step),
    ) -> Result<BuiltVersion, BucketPublishError> {
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
        Ok(self.publisher.build(&planned.base, &planned.plan, &terms, step)?)
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
            let built = self.make(&again, step)?;
            result = self.publisher.publish(&again.base, built, step);
        }
        Ok(result?)
    }
}
