//! The semantic leg: how near two texts are in meaning, as the cosine of their vectors.
//!
//! Vectors lie in memory as signed bytes, a quarter of what single precision takes. A code's scale is the inverse of its
//! own norm, so that the cosine of two codes is exact and never beyond 1.

use multiversion::multiversion;
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::retrieve::SIDE_BY_SIDE;

/// Vectors that one thread compares at a time: 2 MiB of them.
const ROWS: usize = 5_461;

/// One vector as signed bytes, of norm 1 once multiplied by `scale`.
#[derive(Debug, Clone, PartialEq)]
pub struct Code {
    /// The components.
    pub bytes: Box<[i8]>,
    /// What makes the norm 1.
    pub scale: f32,
}

impl Code {
    /// Quantizes a vector. `None` where it has no direction: no components, all zero, or not finite.
    pub fn quantize(vector: &[f32]) -> Option<Self> {
        let largest = vector.iter().fold(0f32, |largest, value| largest.max(value.abs()));
        if !largest.is_finite() || largest <= f32::MIN_POSITIVE || vector.iter().any(|value| value.is_nan()) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "between -127 and 127")]
        let bytes: Box<[i8]> = vector.iter().map(|value| (value / largest * 127.0).round() as i8).collect();
        let square: i64 = bytes.iter().map(|byte| i64::from(*byte) * i64::from(*byte)).sum();
        #[expect(clippy::cast_precision_loss, reason = "dimension times 127 squared")]
        let scale = 1.0 / (square as f32).sqrt();
        Some(Self { bytes, scale })
    }

    /// The vector itself, of norm 1.
    pub fn vector(&self) -> Vec<f32> {
        self.bytes.iter().map(|byte| f32::from(*byte) * self.scale).collect()
    }

    /// The factor (little endian), then the components.
    pub fn to_bytes(&self) -> Vec<u8> {
        let components = self.bytes.iter().map(|byte| byte.cast_unsigned());
        self.scale.to_le_bytes().into_iter().chain(components).collect()
    }

    /// Reads what [`Code::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (scale, components) = bytes.split_first_chunk::<4>()?;
        let scale = f32::from_le_bytes(*scale);
        (scale.is_finite() && scale > 0.0).then(|| Self {
            bytes: components.iter().map(|byte| byte.cast_signed()).collect(),
            scale,
        })
    }

    /// The cosine of two vectors; 0 where they are of different dimension.
    pub fn cosine(&self, other: &Self) -> f32 {
        similarity(&self.bytes, self.scale, &other.bytes, other.scale)
    }
}

/// The vectors of an index, one a document; a document may have none.
#[derive(Debug, Default)]
pub struct Vectors {
    dimension: usize,
    bytes: Vec<i8>,
    /// 0 where a document has no vector.
    scales: Vec<f32>,
}

impl Vectors {
    /// Makes room for so many more vectors of a dimension.
    pub fn reserve(&mut self, vectors: usize, dimension: usize) {
        self.bytes.reserve_exact(vectors * dimension);
        self.scales.reserve_exact(vectors);
    }

    /// Appends the vector of the next document.
    pub fn push(&mut self, code: Option<&Code>) {
        if self.dimension == 0
            && let Some(code) = code
        {
            self.dimension = code.bytes.len();
            self.bytes.resize(self.scales.len() * self.dimension, 0);
        }
        match code.filter(|code| code.bytes.len() == self.dimension) {
            Some(code) => {
                self.bytes.extend_from_slice(&code.bytes);
                self.scales.push(code.scale);
            }
            None => {
                self.bytes.resize(self.bytes.len() + self.dimension, 0);
                self.scales.push(0.0);
            }
        }
    }

    /// The vector of a document.
    pub fn get(&self, number: u32) -> Option<Code> {
        let number = number as usize;
        let scale = *self.scales.get(number).filter(|scale| **scale > 0.0)?;
        let start = number * self.dimension;
        let bytes = self.bytes.get(start..start + self.dimension)?;
        Some(Code {
            bytes: bytes.into(),
            scale,
        })
    }

    /// Whether a document has a vector.
    pub fn has(&self, number: u32) -> bool {
        self.scales.get(number as usize).is_some_and(|scale| *scale > 0.0)
    }

    /// The cosine of every document with a query, in the order of the documents; 0 for one without a vector.
    pub fn cosines(&self, query: &Code) -> Vec<f32> {
        if self.dimension == 0 || query.bytes.len() != self.dimension {
            return vec![0.0; self.scales.len()];
        }
        // Widened once, so that a pair of products is one instruction.
        let wide: Vec<i16> = query.bytes.iter().map(|byte| i16::from(*byte)).collect();
        let mut cosines = vec![0.0; self.scales.len()];
        if self.scales.len() < SIDE_BY_SIDE {
            scan(&self.bytes, &self.scales, &wide, query.scale, &mut cosines);
        } else {
            let rows = self.bytes.par_chunks(ROWS * self.dimension).zip(self.scales.par_chunks(ROWS));
            rows.zip(cosines.par_chunks_mut(ROWS))
                .for_each(|((bytes, scales), cosines)| scan(bytes, scales, &wide, query.scale, cosines));
        }
        cosines
    }

    /// How many bytes of memory they take.
    pub const fn bytes(&self) -> usize {
        self.bytes.capacity() + self.scales.capacity() * size_of::<f32>()
    }

    /// Gives back memory that growth left over.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.scales.shrink_to_fit();
    }
}

fn similarity(a: &[i8], a_scale: f32, b: &[i8], b_scale: f32) -> f32 {
    if a.len() == b.len() {
        product(a, b) * a_scale * b_scale
    } else {
        0.0
    }
}

#[expect(clippy::cast_precision_loss, reason = "dimension times 127 squared")]
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn scan(bytes: &[i8], scales: &[f32], query: &[i16], scale: f32, cosines: &mut [f32]) {
    for ((row, row_scale), cosine) in bytes.chunks_exact(query.len()).zip(scales).zip(cosines) {
        let mut sum = 0i32;
        for (a, b) in row.iter().zip(query) {
            sum += i32::from(*a) * i32::from(*b);
        }
        *cosine = sum as f32 * row_scale * scale;
    }
}

#[expect(clippy::cast_precision_loss, reason = "dimension times 127 squared")]
fn product(a: &[i8], b: &[i8]) -> f32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>() as f32
}
