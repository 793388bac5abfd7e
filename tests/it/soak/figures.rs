//! What a server process takes, read from `/proc` while it works, and whether that grows.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Time between two samples.
const PERIOD: Duration = Duration::from_millis(200);
/// The part of the answers after which a server counts as warm.
const WARM: f64 = 0.4;
/// What memory may grow by from the first warm sample to the last, in addition to a tenth of
/// itself: allocators and caches fluctuate.
const NOISE_MIB: f64 = 12.0;
/// Descriptors and threads may differ by so many from one part of the run to the next.
const MIN_SAMPLES: usize = 12;

/// One sample of a process.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Answers so far, to all clients.
    answers: usize,
    /// Resident and private memory, in MiB.
    resident: f64,
    private: f64,
    descriptors: usize,
    threads: usize,
}

/// The samples of one process.
pub struct Figures {
    name: String,
    samples: Vec<Sample>,
}

/// Samples processes until `over`; one that has ended is passed over.
pub fn watch(
    processes: &[(String, u32)],
    answers: &AtomicUsize,
    over: &AtomicBool,
) -> Vec<Figures> {
    let empty = |(name, _): &(String, u32)| Figures { name: name.clone(), samples: Vec::new() };
    let mut figures: Vec<Figures> = processes.iter().map(empty).collect();
    while !over.load(Ordering::Relaxed) {
        for ((_, pid), figures) in processes.iter().zip(&mut figures) {
            figures.samples.extend(sample(*pid, answers.load(Ordering::Relaxed)));
        }
        std::thread::sleep(PERIOD);
    }
    figures
}

fn sample(pid: u32, answers: usize) -> Option<Sample> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kibibytes = |key: &str| -> f64 {
        let line = rollup.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
    };
    let entries =
        |folder: &str| fs::read_dir(format!("/proc/{pid}/{folder}")).map_or(0, Iterator::count);
    Some(Sample {
        answers,
        resident: kibibytes("Rss:") / 1024.0,
        private: (kibibytes("Private_Clean:") + kibibytes("Private_Dirty:")) / 1024.0,
        descriptors: entries("fd"),
        threads: entries("task"),
    })
}

/// Processor time of a process so far, in ticks.
pub fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name is in parentheses and may contain anything; user and system time are the 12th and
    // 13th values behind it.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace().skip(11).take(2).filter_map(|value| value.parse::<u64>().ok()).sum()
}

impl Figures {
    /// The samples after the warm-up.
    fn warm(&self) -> &[Sample] {
        let last = self.samples.last().map_or(0, |sample| sample.answers);
        let from = (last as f64 * WARM) as usize;
        let start = self.samples.partition_point(|sample| sample.answers < from);
        &self.samples[start..]
    }

    /// One line of figures, and what grew that should not have.
    pub fn verdict(&self) -> (String, Vec<String>) {
        let warm = self.warm();
        let mut grown = Vec::new();
        let (name, all) = (&self.name, self.samples.len());
        let mut text = format!("{name}: {all} samples, {} warm", warm.len());
        if warm.len() < 10 {
            grown.push(format!("{}: too few samples to tell", self.name));
            return (text, grown);
        }
        for (what, of) in [
            ("resident", (|sample| sample.resident) as fn(&Sample) -> f64),
            ("private", |sample| sample.private),
        ] {
            let values: Vec<f64> = warm.iter().map(of).collect();
            let (middle, growth) = (median(values.clone()), growth(&values));
            text += &format!(", {what} {middle:.1} MiB {growth:+.1}");
            if growth > NOISE_MIB + middle / 10.0 {
                let by = format!("memory grew by {growth:.1} MiB at {middle:.1}");
                grown.push(format!("{name}: {what} {by}"));
            }
        }
        for (what, of) in [
            ("descriptors", (|sample| sample.descriptors) as fn(&Sample) -> usize),
            ("threads", |sample| sample.threads),
        ] {
            let (early, late) = warm.split_at(warm.len() / 2);
            let most = |samples: &[Sample]| samples.iter().map(of).max().unwrap_or_default();
            let (early, late) = (most(early), most(late));
            text += &format!(", {what} at most {early}, then {late}");
            if late > early + MIN_SAMPLES {
                grown.push(format!("{name}: {what} grew from {early} to {late}"));
            }
        }
        (text, grown)
    }

    /// Most descriptors and threads at any moment.
    pub fn maxima(&self) -> (usize, usize) {
        let most = |of: fn(&Sample) -> usize| self.samples.iter().map(of).max();
        let descriptors = most(|sample| sample.descriptors).unwrap_or_default();
        (descriptors, most(|sample| sample.threads).unwrap_or_default())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The growth from the first value to the last by the median of the slopes between all pairs (Theil
/// 1950, Sen 1968), which a spike, or a sawtooth of caches, moves little.
fn growth(values: &[f64]) -> f64 {
    let step = values.len().div_ceil(400);
    let values: Vec<f64> = values.iter().copied().step_by(step).collect();
    let mut slopes = Vec::new();
    for (early, first) in values.iter().enumerate() {
        for (later, second) in values.iter().enumerate().skip(early + 1) {
            slopes.push((second - first) / (later - early) as f64);
        }
    }
    median(slopes) * values.len().saturating_sub(1) as f64
}

#[test]
fn a_leak_is_distinguished_from_noise() {
    let noise = |n: usize| ((n * 7_919) % 97) as f64 / 20.0;
    let flat: Vec<f64> =
        (0..500).map(|n| 60.0 + noise(n) + if n % 50 == 0 { 40.0 } else { 0.0 }).collect();
    assert!(growth(&flat).abs() < 1.0, "{}", growth(&flat));
    let leaking: Vec<f64> =
        flat.iter().enumerate().map(|(n, value)| value + n as f64 * 0.05).collect();
    let grown = growth(&leaking);
    assert!((grown - 25.0).abs() < 2.0, "{grown}");
}
