//! Standard retrieval measures (binary relevance; Järvelin and Kekäläinen 2002 for nDCG).

use std::collections::BTreeSet;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measures {
    pub recall_5: f64,
    pub recall_10: f64,
    /// 1 / rank of the first relevant id among the first ten, or 0.
    pub reciprocal_rank: f64,
    pub ndcg_10: f64,
}

impl Measures {
    /// Measures a ranking; `None` if nothing is relevant.
    pub fn of(ranked: &[String], relevant: &BTreeSet<&str>) -> Option<Self> {
        if relevant.is_empty() {
            return None;
        }
        let hits = ranked.iter().enumerate().filter(|(_, id)| relevant.contains(id.as_str()));
        let hits: Vec<usize> = hits.map(|(place, _)| place).collect();
        let gain = |place: usize| 1.0 / (count(place) + 2.0).log2();
        let within = |depth: usize| hits.iter().copied().filter(move |place| *place < depth);
        let ideal: f64 = (0..relevant.len().min(10)).map(gain).sum();
        let all = count(relevant.len());
        Some(Self {
            recall_5: count(within(5).count()) / all,
            recall_10: count(within(10).count()) / all,
            reciprocal_rank: within(10).next().map_or(0.0, |place| 1.0 / (count(place) + 1.0)),
            ndcg_10: within(10).map(gain).fold(0.0, |sum, gain| sum + gain) / ideal,
        })
    }
}

/// A mean with its 95 % interval (normal approximation: mean ± 1.96 standard errors).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Estimate {
    pub mean: f64,
    pub margin: f64,
}

impl Estimate {
    pub fn of(values: &[f64]) -> Self {
        let n = count(values.len());
        if values.is_empty() {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / n;
        if values.len() == 1 {
            return Self { mean, margin: 0.0 };
        }
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Self { mean, margin: 1.96 * (variance / n).sqrt() }
    }
}

/// The percentile by the nearest-rank method.
pub fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the list"
    )]
    let place = ((count(values.len()) * share).ceil() as usize).max(1) - 1;
    values.get(place).copied().unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "counts of results and questions")]
pub const fn count(number: usize) -> f64 {
    number as f64
}
