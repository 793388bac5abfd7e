//! Statistics of the review queue: how much waits, how old it is, and whether people keep up.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;

use jiff::{RoundMode, Timestamp, TimestampRound, ToSpan, Unit};

use crate::memory::Status;
use crate::number::count;

pub const PACE_DAYS: i64 = 7;
/// A queue of at most this length never counts as outrun.
const MIN_ALERT_QUEUE: u64 = 50;
/// A queue is outrun if at least this many times as many memories arrive as are decided.
const ALERT_FACTOR: u64 = 3;
const SECONDS_PER_DAY: i64 = 86_400;

pub fn pace_start(now: Timestamp) -> Timestamp {
    let start = now.checked_sub((PACE_DAYS * 24).hours()).unwrap_or(now);
    // Down to whole hours, so that what was counted a minute ago need not be counted again.
    let hours = TimestampRound::new().smallest(Unit::Hour).mode(RoundMode::Floor);
    start.round(hours).unwrap_or(start)
}

/// How many memories entered the queue and left it in the last [`PACE_DAYS`] days.
///
/// A memory entered if it was written in that period and either waits or was reviewed. It left if
/// it was reviewed in that period and does not wait. A memory that waits again because its text
/// changed did not leave, and counts as entered when it was written: no store records when the text
/// changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    pub entered: u64,
    pub decided: u64,
}

impl Flow {
    /// Counts a memory by its status, when it was written and when it was reviewed.
    pub fn count(
        &mut self,
        status: Status,
        created: Option<Timestamp>,
        reviewed: Option<Timestamp>,
        began: Timestamp,
    ) {
        let waits = status == Status::Staging;
        let is_recent = |time: Option<Timestamp>| time.is_some_and(|time| time >= began);
        self.entered += u64::from(is_recent(created) && (waits || reviewed.is_some()));
        self.decided += u64::from(is_recent(reviewed) && !waits);
    }

    /// `last 7 days: 12 new, 26 decided`; `None` if both are zero.
    pub fn describe(self) -> Option<String> {
        let Self { entered, decided } = self;
        (entered > 0 || decided > 0)
            .then(|| format!("last {}: {entered} new, {decided} decided", days(PACE_DAYS)))
    }

    /// Whether the queue grows too fast.
    pub const fn outruns(self, waiting: u64) -> bool {
        waiting > MIN_ALERT_QUEUE && self.entered > 0 && self.entered >= self.decided * ALERT_FACTOR
    }
}

impl Sum for Flow {
    fn sum<I: Iterator<Item = Self>>(flows: I) -> Self {
        flows.fold(Self::default(), |all, flow| Self {
            entered: all.entered + flow.entered,
            decided: all.decided + flow.decided,
        })
    }
}

/// The statistics of a queue. [`fmt::Display`] writes them, the pace in a second line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueNumbers {
    pub waiting: u64,
    /// How many of them a newer memory replaces, according to their store.
    pub replaced: u64,
    pub put_off: u64,
    /// The median age of those that wait, in days. Memories without a date have no age.
    pub median_days: Option<i64>,
    pub oldest_days: Option<i64>,
    pub flow: Flow,
}

impl QueueNumbers {
    /// The rest of the summary: how many are replaced, how many are snoozed and, on a second line,
    /// the pace. Empty if there is nothing to report.
    pub fn describe_pace(&self) -> String {
        let mut words = String::new();
        if self.replaced > 0 {
            words.push_str(&format!("; {} of them replaced by newer ones", self.replaced));
        }
        if self.put_off > 0 {
            words.push_str(&format!("; {} snoozed", self.put_off));
        }
        let Some(flow) = self.flow.describe().filter(|_| self.waiting > 0) else {
            return words;
        };
        // If memories keep arriving and being decided at the recent rate.
        let Flow { entered, decided } = self.flow;
        let pace = match decided.cmp(&entered) {
            Ordering::Greater => {
                let left = self.waiting * PACE_DAYS.unsigned_abs();
                let left = count(left.div_ceil(decided - entered), "day");
                format!("at this pace the rest takes {left}")
            }
            Ordering::Equal => "at this pace it stays as long as it is".to_owned(),
            // The pace is that of seven days.
            Ordering::Less => format!("growing by {} a week", entered - decided),
        };
        words.push_str(&format!("\n{flow}; {pace}"));
        words
    }
}

impl fmt::Display for QueueNumbers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.waiting {
            0 => out.write_str("nothing waits for review")?,
            1 => out.write_str("1 memory waits for review")?,
            many => write!(out, "{many} memories wait for review")?,
        }
        if let (Some(median), Some(oldest)) = (self.median_days, self.oldest_days) {
            write!(out, "; median age {}, oldest {}", days(median), days(oldest))?;
        }
        out.write_str(&self.describe_pace())
    }
}

fn days(days: i64) -> String {
    count(days.unsigned_abs(), "day")
}

#[derive(Debug, Clone)]
pub struct QueueCount {
    now: Timestamp,
    began: Timestamp,
    ages: Vec<i64>,
    numbers: QueueNumbers,
}

impl QueueCount {
    pub fn new(now: Timestamp) -> Self {
        Self { now, began: pace_start(now), ages: Vec::new(), numbers: QueueNumbers::default() }
    }

    pub fn count(
        &mut self,
        status: Status,
        created: Option<Timestamp>,
        reviewed: Option<Timestamp>,
        is_put_off: bool,
    ) {
        let numbers = &mut self.numbers;
        numbers.flow.count(status, created, reviewed, self.began);
        if status != Status::Staging {
            return;
        }
        if is_put_off {
            numbers.put_off += 1;
            return;
        }
        numbers.waiting += 1;
        let age = |created: Timestamp| {
            let seconds = self.now.as_second() - created.as_second();
            (seconds / SECONDS_PER_DAY).max(0)
        };
        self.ages.extend(created.map(age));
    }

    /// Counts memories that wait although newer ones replace them.
    pub const fn count_replaced(&mut self, replaced: u64) {
        self.numbers.replaced += replaced;
    }

    pub fn numbers(mut self) -> QueueNumbers {
        self.ages.sort_unstable();
        QueueNumbers {
            median_days: self.ages.get(self.ages.len() / 2).copied(),
            oldest_days: self.ages.last().copied(),
            ..self.numbers
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_the_outflow_less_the_inflow() {
        for (waiting, entered, decided, pace) in [
            (14, 0, 7, "; at this pace the rest takes 14 days"),
            (10, 3, 6, "; at this pace the rest takes 24 days"),
            (10, 6, 6, "; at this pace it stays as long as it is"),
            (10, 9, 2, "; growing by 7 a week"),
            (10, 0, 0, ""),
        ] {
            let flow = Flow { entered, decided };
            let numbers = QueueNumbers { waiting, flow, ..QueueNumbers::default() };
            assert!(numbers.describe_pace().ends_with(pace), "{}", numbers.describe_pace());
        }
    }

    #[test]
    fn a_queue_outruns_its_curator_at_three_times_the_outflow_and_more_than_fifty() {
        let outrun = |waiting, entered, decided| Flow { entered, decided }.outruns(waiting);
        assert!(outrun(51, 30, 10) && outrun(51, 1, 0));
        assert!(!outrun(50, 30, 10) && !outrun(51, 29, 10) && !outrun(51, 0, 0));
    }
}
