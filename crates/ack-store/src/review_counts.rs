//! Whether anything in a store is approved, and how much waits for review.

use crate::layout::Field;
use crate::record::MemoryTable;
use crate::{Snapshot, StoreError};
use ack_api::memory::{Status, StatusFilter};
use ack_api::queue::{Flow, pace_start};
use jiff::Timestamp;
use jiff::civil::Date;

const MAX_ROWS: usize = 20_000;

const DATES: [Field; 5] =
    [Field::Status, Field::ReviewedAt, Field::CreatedEpoch, Field::Created, Field::Date];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReviewCounts {
    /// Whether a memory may be served. Rows after it were not examined.
    pub has_approved: bool,
    pub waiting: u64,
    pub is_partial: bool,
}

impl Snapshot<'_> {
    /// Looks for an approved memory and counts those that wait for review until it finds one. It
    /// reads only the status, of a bounded number of rows. Those that are snoozed `today` do not
    /// wait.
    pub fn review_counts(&self, today: Date) -> Result<ReviewCounts, StoreError> {
        let mut counts = ReviewCounts::default();
        let mut rest = MAX_ROWS;
        for table in self.tables() {
            let sql = table.query(&[Field::Status], &format!(" LIMIT {}", rest + 1));
            let is_decided = table.find(self.connection, &sql, [], |row| {
                if rest == 0 {
                    counts.is_partial = true;
                    return Ok(Some(()));
                }
                rest -= 1;
                let status = row.joined.status;
                counts.has_approved = StatusFilter::Approved.allows(status);
                let is_snoozed = row.joined.put_off_until().is_some_and(|until| today < until);
                counts.waiting += u64::from(status == Status::Staging && !is_snoozed);
                Ok(counts.has_approved.then_some(()))
            })?;
            if is_decided.is_some() {
                break;
            }
        }
        Ok(counts)
    }

    /// What entered the review queue and left it in the days before `now`.
    pub fn flow(&self, now: Timestamp) -> Result<Flow, StoreError> {
        let began = pace_start(now);
        let known = self.with_known(|it| it.flow);
        if let Some((_, flow)) = known.filter(|(since, _)| *since == began) {
            return Ok(flow);
        }
        let mut flow = Flow::default();
        for table in self.tables().map(MemoryTable::quick) {
            table.find(self.connection, &table.query(&DATES, ""), [], |row| {
                let dated = row.review_dates()?;
                flow.count(dated.status, dated.created, dated.reviewed, began);
                Ok(None::<()>)
            })?;
        }
        self.with_known(|it| it.flow = Some((began, flow)));
        Ok(flow)
    }
}
