//! Publishing to a bucket: the same memories as to a folder, those that newer ones replace included,
//! so that readers answer as the scope itself does.

use std::sync::Arc;

use ack_api::memory::Status;
use ack_api::record::Record;
use ack_api::remote::RemoteSettings;
use ack_bucket::BucketError;
use ack_bucket::address::Address;
use ack_bucket::format::Head;
use ack_bucket::mirror::Link;
use ack_bucket::publish::{Base, Cost, Item, Made, Plan, Publisher, Step, Terms, Wanted};
use ack_store::READ_TIMEOUT;
use serde::Serialize;

use super::{LeftAlone, PublishError, Superseded, approved, checked, may_publish};
use crate::scope::Scope;

/// How often a version is made anew because somebody else published meanwhile.
const ATTEMPTS: usize = 5;

/// What is published, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only memories with the status `promoted`.
    pub only_promoted: bool,
    /// Leave out memories whose text must not be published, instead of refusing.
    pub skip_held: bool,
    /// Memories to take away, whatever the scope says; nothing else changes.
    pub withdraw: Vec<String>,
    /// Memories that were withdrawn by hand and may come back.
    pub restore: Vec<String>,
    /// Make the table anew.
    pub rebuild: bool,
    /// Who publishes.
    pub by: String,
    /// Readers keep tables of up to so many rows in memory.
    pub resident: usize,
}

/// Why a scope is not published.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It must not be, or cannot be read.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The bucket fails.
    #[error(transparent)]
    Bucket(#[from] BucketError),
}

/// What would be done.
#[derive(Debug, Serialize)]
pub struct Planned {
    /// The scope.
    pub scope: String,
    /// The bucket.
    pub to: String,
    /// What changes.
    #[serde(flatten)]
    pub plan: Plan,
    /// Memories that are not published because of their text.
    pub held: Vec<LeftAlone>,
    /// What to look at in what is published.
    pub warnings: Vec<LeftAlone>,
    #[serde(skip)]
    base: Base,
}

/// Publishes one scope to one bucket.
#[derive(Debug)]
pub struct Publication {
    scope: Arc<Scope>,
    address: Address,
    publisher: Publisher,
    options: Options,
}

impl Publication {
    /// Nothing is contacted yet.
    ///
    /// # Errors
    /// The address or the settings cannot be used.
    pub fn new(
        scope: &Arc<Scope>,
        address: Address,
        settings: &RemoteSettings,
        options: Options,
    ) -> Result<Self, Error> {
        Ok(Self {
            publisher: Publisher::new(&scope.folder, &address, settings)?,
            scope: Arc::clone(scope),
            address,
            options,
        })
    }

    /// What talks to the bucket.
    pub const fn publisher(&self) -> &Publisher {
        &self.publisher
    }

    /// Plans what publishing would do. Only reads the bucket.
    ///
    /// # Errors
    /// Why the scope must not be published, or what cannot be read.
    pub fn plan(&self, step: &mut dyn FnMut(Step)) -> Result<Planned, Error> {
        let mut held = Vec::new();
        let mut warnings = Vec::new();
        // What must not be published is refused before anything is asked of anybody.
        let wanted = if self.options.withdraw.is_empty() {
            Some(self.wanted(&mut held, &mut warnings)?)
        } else {
            may_publish(&self.scope)?;
            None
        };
        let base = self.publisher.base(step)?;
        let plan = match wanted {
            Some(wanted) => base.plan(wanted, &self.options.restore)?,
            None => {
                base.plan_withdrawal(&self.address, &self.options.withdraw, &self.options.by)?
            }
        };
        Ok(Planned {
            scope: self.scope.name.clone(),
            to: self.address.to_string(),
            plan,
            held,
            warnings,
            base,
        })
    }

    fn wanted(
        &self,
        held: &mut Vec<LeftAlone>,
        warnings: &mut Vec<LeftAlone>,
    ) -> Result<Wanted, Error> {
        may_publish(&self.scope)?;
        let mut memories = approved(&self.scope, Superseded::Kept)?;
        if self.options.only_promoted {
            memories.retain(|memory| memory.status == Status::Promoted);
        }
        let memories = checked(memories, held, warnings);
        if !held.is_empty() && !self.options.skip_held {
            return Err(PublishError::Held { held: held.clone() }.into());
        }
        let links = self
            .scope
            .store
            .snapshot_with_timeout(READ_TIMEOUT, |snapshot| snapshot.all_links())
            .map_err(PublishError::Store)?;
        Ok(Wanted {
            records: memories.iter().map(Record::from).collect(),
            links: links
                .into_iter()
                .map(|link| Link {
                    from: link.from,
                    to: link.to,
                    kind: link.kind,
                    source: link.source,
                    confidence: link.confidence,
                })
                .collect(),
        })
    }

    /// Makes the version on this machine, and says what uploading it takes.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(
        &self,
        planned: &Planned,
        step: &mut dyn FnMut(Step),
    ) -> Result<(Made, Cost), Error> {
        let terms = Terms {
            scope: &self.scope.name,
            by: &self.options.by,
            resident: self.options.resident,
            rebuild: self.options.rebuild,
        };
        let made = self
            .publisher
            .make(&planned.base, &planned.plan, &terms, step)?;
        let cost = made.cost();
        Ok((made, cost))
    }

    /// Uploads what was made and shows it to readers. Where somebody else published meanwhile, the
    /// version is made anew from theirs, as long as that takes nothing away that the plan kept.
    ///
    /// # Errors
    /// The bucket fails; readers then see what they saw before.
    pub fn publish(
        &self,
        planned: &Planned,
        made: Made,
        step: &mut dyn FnMut(Step),
    ) -> Result<Head, Error> {
        let mut result = self.publisher.publish(&planned.base, made, step);
        for _ in 1..ATTEMPTS {
            let Err(BucketError::Conflict { version, .. }) = result else {
                break;
            };
            let again = self.plan(step)?;
            let agreed = |item: &&Item| {
                !planned
                    .plan
                    .withdrawn
                    .iter()
                    .any(|known| known.id == item.id)
            };
            let others: Vec<String> = again
                .plan
                .withdrawn
                .iter()
                .filter(agreed)
                .map(|item| item.id.clone())
                .collect();
            if !others.is_empty() {
                let named = others
                    .iter()
                    .take(5)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", ");
                return Err(BucketError::Conflict {
                    address: self.address.to_string(),
                    version,
                    problem: format!("publishing would take away what it added: {named}"),
                }
                .into());
            }
            if again.plan.is_empty() {
                let head = self.publisher.current()?;
                return head.ok_or_else(|| {
                    BucketError::Unpublished {
                        address: self.address.to_string(),
                    }
                    .into()
                });
            }
            let (made, _) = self.make(&again, step)?;
            result = self.publisher.publish(&again.base, made, step);
        }
        Ok(result?)
    }
}
