//! How much each token of a text counts, given what the text is about.
//!
//! A word counts more if it belongs to the subject: `table` in a text about databases, less in one
//! about furniture. A token's weight is multiplied by `exp(unit(token) · A · mean)`, where `mean`
//! is the direction of the plain sum of the text's tokens and `A` was trained with the table.

use multiversion::multiversion;

use super::norm;

/// The exponent is kept within this range, so that no token dominates the others.
const MAX_EXPONENT: f32 = 3.0;

#[derive(Debug)]
pub(super) struct Attention {
    /// How each component of the mean contributes to the subject: one row for each.
    rows: Vec<i8>,
    /// The size of a step of each component of the subject.
    scales: Vec<f32>,
}

/// Values in 127 steps on each side of 0, and the size of a step.
#[derive(Debug)]
pub(super) struct Quantized {
    values: Vec<i16>,
    scale: f32,
}

#[expect(clippy::cast_possible_truncation, reason = "at most 127 by the scale")]
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2", "aarch64+neon"))]
fn quantized(exact: &[f32]) -> Quantized {
    let (eights, rest) = exact.as_chunks::<8>();
    let mut max = [1e-12f32; 8];
    for eight in eights.iter().map(<[f32; 8]>::as_slice).chain([rest]) {
        for (max, value) in max.iter_mut().zip(eight) {
            *max = max.max(value.abs());
        }
    }
    let max = max.into_iter().fold(0.0, f32::max);
    let mut values = vec![0; exact.len()];
    for (quantized, value) in values.iter_mut().zip(exact) {
        *quantized = (value * (127.0 / max)).round_ties_even() as i16;
    }
    Quantized { values, scale: max / 127.0 }
}

impl Attention {
    #[expect(clippy::cast_possible_truncation, reason = "at most 127 by the scale")]
    /// `None` if `matrix` does not have this dimension.
    pub(super) fn new(matrix: &[f32], dimension: usize) -> Option<Self> {
        if matrix.len() != dimension * dimension || dimension == 0 {
            return None;
        }
        let mut rows = vec![0; matrix.len()];
        let mut scales = Vec::with_capacity(dimension);
        for at in 0..dimension {
            let column: Vec<f32> = matrix.iter().skip(at).step_by(dimension).copied().collect();
            let column = quantized(&column);
            let places = rows.iter_mut().skip(at).step_by(dimension);
            for (place, value) in places.zip(&column.values) {
                *place = *value as i8;
            }
            scales.push(column.scale);
        }
        Some(Self { rows, scales })
    }

    /// The subject of a text, from the plain sum of its tokens; `None` if it has no direction.
    pub(super) fn subject(&self, sum: &[f32]) -> Option<Quantized> {
        let norm = norm(sum);
        if norm < 1e-9 {
            return None;
        }
        let mean = quantized(sum);
        let mut sums = vec![0; self.scales.len()];
        add_products(&self.rows, &mean.values, &mut sums);
        let scale = mean.scale / norm;
        #[expect(clippy::cast_precision_loss, reason = "dimension times 127 squared")]
        let components: Vec<f32> =
            sums.iter().zip(&self.scales).map(|(sum, step)| *sum as f32 * step * scale).collect();
        Some(quantized(&components))
    }
}

impl Quantized {
    /// The weight of a token in a text with this subject.
    #[expect(clippy::cast_precision_loss, reason = "at most 127 squared for each component")]
    pub(super) fn weight(&self, row: &[u8]) -> f32 {
        let (dot, norm_squared) = dot_and_norm_squared(row, &self.values);
        if norm_squared == 0 {
            return 1.0;
        }
        let dot = dot as f32 * self.scale / (norm_squared as f32).sqrt();
        dot.clamp(-MAX_EXPONENT, MAX_EXPONENT).exp()
    }
}

/// Adds the product of a matrix and a vector, both in 127 steps, to `sums`. The matrix has one row
/// for each component of the vector.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2", "aarch64+neon"))]
fn add_products(rows: &[i8], vector: &[i16], sums: &mut [i32]) {
    let count = sums.len();
    let (pairs, last) = vector.as_chunks::<2>();
    for (rows, [one, other]) in rows.chunks_exact(2 * count).zip(pairs) {
        let (row, other_row) = rows.split_at(count);
        for ((sum, a), b) in sums.iter_mut().zip(row).zip(other_row) {
            // Two products of steps fit in 16 bits.
            *sum += i32::from(i16::from(*a) * one + i16::from(*b) * other);
        }
    }
    if let [last] = last {
        let row = rows.rchunks_exact(count).next().unwrap_or_default();
        for (sum, a) in sums.iter_mut().zip(row) {
            *sum += i32::from(i16::from(*a) * last);
        }
    }
}

#[multiversion(targets("x86_64+avx512f", "x86_64+avx2", "aarch64+neon"))]
fn dot_and_norm_squared(row: &[u8], subject: &[i16]) -> (i32, i32) {
    let (mut dot, mut norm_squared) = (0, 0);
    for (byte, other) in row.iter().zip(subject) {
        // Widened to 16 bits, so that processors multiply and add pairs in one step.
        let value = i16::from(byte.cast_signed());
        dot += i32::from(value) * i32::from(*other);
        norm_squared += i32::from(value) * i32::from(value);
    }
    (dot, norm_squared)
}
