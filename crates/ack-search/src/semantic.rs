//! Semantic search: the cosine of two texts' vectors is a measure of how near they are in meaning.
//!
//! Vectors are signed bytes in memory, a quarter of the size of single precision. Each is scaled by
//! the inverse of its own norm, so the cosine of two quantized vectors is exact and at most 1.
//!
//! The norm of a text's vector, at most 1, is a measure of how well the encoder knows its words: a
//! text that is mostly unknown is near to nothing ([`QuantizedVector::nearness`]).

use multiversion::multiversion;
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

/// From this many documents on, work is spread over several threads.
pub const MIN_PARALLEL_DOCS: usize = 20_000;

/// How many vectors a thread compares at a time: 2 MiB with 384 components.
const CHUNK_VECTORS: usize = 5_461;
const BLOCK: usize = 64;

/// A vector as signed bytes. Times `scale`, it has the norm of the original vector, at most 1.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantizedVector {
    pub components: Box<[i8]>,
    /// The norm of the vector, divided by that of the components.
    pub scale: f32,
}

/// From this norm on, a vector counts as having norm 1.
const MIN_IDENTICAL_COSINE: f64 = 0.9999;

impl QuantizedVector {
    /// `None` if the vector has no direction: no components, all zero, or not finite.
    pub fn quantize(vector: &[f32]) -> Option<Self> {
        let max = vector.iter().fold(0f32, |max, value| max.max(value.abs()));
        let has_nan = vector.iter().any(|value| value.is_nan());
        if !max.is_finite() || max <= f32::MIN_POSITIVE || has_nan {
            return None;
        }
        let components = rounded(vector, max);
        let norm = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1")]
        let norm = if norm < MIN_IDENTICAL_COSINE { norm as f32 } else { 1.0 };
        Some(Self { scale: unit_scale(&components) * norm, components })
    }

    #[must_use]
    pub fn into_unit(self) -> Self {
        Self { scale: unit_scale(&self.components), ..self }
    }

    /// Whether the encoder knows the words of the text: its vector has norm 1.
    pub fn is_unit(&self) -> bool {
        f64::from(self.scale) >= MIN_IDENTICAL_COSINE * f64::from(unit_scale(&self.components))
    }

    pub fn to_f32(&self) -> Vec<f32> {
        self.components.iter().map(|byte| f32::from(*byte) * self.scale).collect()
    }

    /// Serializes the vector: the scale (little endian), then the components.
    pub fn to_bytes(&self) -> Vec<u8> {
        let components = self.components.iter().map(|byte| byte.cast_unsigned());
        self.scale.to_le_bytes().into_iter().chain(components).collect()
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (scale, components) = bytes.split_first_chunk::<4>()?;
        let scale = f32::from_le_bytes(*scale);
        (scale.is_finite() && scale > 0.0).then(|| Self {
            components: components.iter().map(|byte| byte.cast_signed()).collect(),
            scale,
        })
    }

    /// The cosine of two vectors; 0 if their dimensions differ.
    pub fn cosine(&self, other: &Self) -> f32 {
        self.product(other) * unit_scale(&self.components) * unit_scale(&other.components)
    }

    /// The cosine of two vectors, times the norm of each; 0 if their dimensions differ.
    pub fn nearness(&self, other: &Self) -> f32 {
        self.product(other) * self.scale * other.scale
    }

    fn product(&self, other: &Self) -> f32 {
        if self.components.len() == other.components.len() {
            dot(&self.components, &other.components)
        } else {
            0.0
        }
    }
}

/// Components rounded to steps of 1/127 of the largest.
#[expect(clippy::cast_possible_truncation, reason = "between -127 and 127")]
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2", "aarch64+neon"))]
fn rounded(vector: &[f32], max: f32) -> Box<[i8]> {
    let mut components = vec![0; vector.len()].into_boxed_slice();
    for (component, value) in components.iter_mut().zip(vector) {
        *component = (value / max * 127.0).round() as i8;
    }
    components
}

/// The inverse of the norm of components that are not all 0.
#[expect(clippy::cast_precision_loss, reason = "dimension times 127 squared")]
fn unit_scale(components: &[i8]) -> f32 {
    let square: i64 = components.iter().map(|byte| i64::from(*byte).pow(2)).sum();
    1.0 / (square as f32).sqrt()
}

/// The vector of a query, for each kind of vector that memories have.
#[derive(Debug, Clone)]
pub struct QueryVector {
    /// For static vectors: the static encoder's, and a little of the small transformer's.
    pub plain: QuantizedVector,
    /// For contextual vectors: both encoders' in equal parts; `None` if no memory has such a vector.
    pub contextual: Option<QuantizedVector>,
}

impl QueryVector {
    pub fn to_compare(&self, are_contextual: bool) -> &QuantizedVector {
        self.contextual.as_ref().filter(|_| are_contextual).unwrap_or(&self.plain)
    }
}

/// The vectors of an index: one row per document, which may be empty.
#[derive(Debug, Default)]
pub struct Vectors {
    dimension: usize,
    /// Row-major: `dimension` components per document.
    components: Vec<i8>,
    /// 0 for a document without a vector.
    scales: Vec<f32>,
}

impl Vectors {
    pub fn reserve(&mut self, additional: usize, dimension: usize) {
        self.components.reserve_exact(additional * dimension);
        self.scales.reserve_exact(additional);
    }

    /// Appends the vector of the next document. The first vector determines the dimension; vectors
    /// of another dimension are dropped.
    pub fn push(&mut self, vector: Option<&QuantizedVector>) {
        if self.dimension == 0
            && let Some(vector) = vector
        {
            self.dimension = vector.components.len();
            self.components.resize(self.scales.len() * self.dimension, 0);
        }
        match vector.filter(|vector| vector.components.len() == self.dimension) {
            Some(vector) => {
                self.components.extend_from_slice(&vector.components);
                self.scales.push(vector.scale);
            }
            None => {
                self.components.resize(self.components.len() + self.dimension, 0);
                self.scales.push(0.0);
            }
        }
    }

    pub fn get(&self, row: u32) -> Option<QuantizedVector> {
        let row = row as usize;
        let scale = *self.scales.get(row).filter(|scale| **scale > 0.0)?;
        let start = row * self.dimension;
        let components = self.components.get(start..start + self.dimension)?;
        Some(QuantizedVector { components: components.into(), scale })
    }

    pub fn has(&self, row: u32) -> bool {
        self.scales.get(row as usize).is_some_and(|scale| *scale > 0.0)
    }

    /// The nearness of every row to a query; 0 for an empty row.
    pub fn cosines(&self, query: &QuantizedVector) -> Vec<f32> {
        let mut cosines = vec![0.0; self.scales.len()];
        if self.dimension == 0 || query.components.len() != self.dimension {
            return cosines;
        }
        // Widened to 16 bits, so one instruction multiplies and adds pairs of components.
        let wide: Vec<i16> = query.components.iter().map(|byte| i16::from(*byte)).collect();
        if self.scales.len() < MIN_PARALLEL_DOCS {
            scan(&self.components, &self.scales, &wide, query.scale, &mut cosines);
        } else {
            let components = self.components.par_chunks(CHUNK_VECTORS * self.dimension);
            components
                .zip(self.scales.par_chunks(CHUNK_VECTORS))
                .zip(cosines.par_chunks_mut(CHUNK_VECTORS))
                .for_each(|((components, scales), cosines)| {
                    scan(components, scales, &wide, query.scale, cosines)
                });
        }
        cosines
    }

    pub const fn bytes(&self) -> usize {
        self.components.capacity() + self.scales.capacity() * size_of::<f32>()
    }

    pub fn shrink(&mut self) {
        self.components.shrink_to_fit();
        self.scales.shrink_to_fit();
    }
}

/// The products of quantized rows with a quantized vector.
#[expect(clippy::cast_precision_loss, reason = "dimension times 127 squared")]
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2", "aarch64+neon"))]
fn scan(components: &[i8], scales: &[f32], query: &[i16], scale: f32, cosines: &mut [f32]) {
    let (query_blocks, query_rest) = query.as_chunks::<BLOCK>();
    for ((row, row_scale), cosine) in components.chunks_exact(query.len()).zip(scales).zip(cosines)
    {
        let (blocks, rest) = row.as_chunks::<BLOCK>();
        let mut sum = 0i32;
        for (block, query) in blocks.iter().zip(query_blocks) {
            let mut part = 0i32;
            for (a, b) in block.iter().zip(query) {
                part += i32::from(*a) * i32::from(*b);
            }
            sum += part;
        }
        for (a, b) in rest.iter().zip(query_rest) {
            sum += i32::from(*a) * i32::from(*b);
        }
        *cosine = sum as f32 * row_scale * scale;
    }
}

#[expect(clippy::cast_precision_loss, reason = "dimension times 127 squared")]
fn dot(a: &[i8], b: &[i8]) -> f32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "small sums")]
    fn a_scan_in_blocks_gives_what_one_component_after_the_other_does() {
        let mut state = 1u32;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            i8::try_from(state >> 24).unwrap_or(-127)
        };
        for dimension in [1, BLOCK - 1, BLOCK, BLOCK + 1, 256, 384] {
            let components: Vec<i8> = (0..7 * dimension).map(|_| byte()).collect();
            let query: Vec<i16> = (0..dimension).map(|_| i16::from(byte())).collect();
            let scales = [0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007];
            let product = |row: &[i8]| -> i32 {
                row.iter().zip(&query).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
            };
            let rows = components.chunks(dimension).zip(scales);
            let expected: Vec<f32> =
                rows.map(|(row, scale)| product(row) as f32 * scale * 0.01).collect();
            let mut cosines = [0.0; 7];
            scan(&components, &scales, &query, 0.01, &mut cosines);
            assert_eq!(cosines.as_slice(), expected, "{dimension} components");
        }
    }
}
