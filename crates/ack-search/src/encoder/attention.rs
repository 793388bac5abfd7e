//! How much each token of a text counts, given what the text is about.
//!
//! The same word is worth more where it belongs to the subject: `table` in a text about databases,
//! less so in one about furniture. A token's weight is multiplied by `exp(unit(token) · A · mean)`,
//! where `mean` is the direction of the plain sum of the text's tokens and `A` was trained together
//! with the table.

use multiversion::multiversion;

/// The exponent is kept within this range, so that no token silences the others.
const STEEPEST: f32 = 3.0;
/// Sums are made in this many lanes, in an order that does not depend on the processor.
const LANES: usize = 16;

/// The trained matrix.
#[derive(Debug)]
pub(super) struct Attention {
    dimension: usize,
    /// One row for each component of the mean.
    matrix: Vec<f32>,
}

impl Attention {
    pub(super) fn new(matrix: Vec<f32>, dimension: usize) -> Result<Self, &'static str> {
        if matrix.len() != dimension * dimension || dimension == 0 {
            return Err("`attention` does not fit the rows");
        }
        Ok(Self { dimension, matrix })
    }

    /// What tokens are compared with, from the direction of a text's plain sum.
    pub(super) fn subject(&self, mean: &[f32]) -> Vec<f32> {
        let mut subject = vec![0.0; self.dimension];
        for (row, value) in self.matrix.chunks_exact(self.dimension).zip(mean) {
            add(&mut subject, row, *value);
        }
        subject
    }

    /// The factor of a token's weight.
    pub(super) fn weight(&self, row: &[u8], subject: &[f32]) -> f32 {
        let (product, square) = product_and_square(row, subject);
        if square <= 0.0 {
            return 1.0;
        }
        (product / square.sqrt()).clamp(-STEEPEST, STEEPEST).exp()
    }
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn add(sum: &mut [f32], row: &[f32], factor: f32) {
    for (value, other) in sum.iter_mut().zip(row) {
        *value += other * factor;
    }
}

/// A row's product with the subject, and with itself.
#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn product_and_square(row: &[u8], subject: &[f32]) -> (f32, f32) {
    let (mut products, mut squares) = ([0f32; LANES], [0f32; LANES]);
    for (bytes, others) in row.chunks(LANES).zip(subject.chunks(LANES)) {
        let lanes = products.iter_mut().zip(&mut squares);
        for ((product, square), (byte, other)) in lanes.zip(bytes.iter().zip(others)) {
            let value = f32::from(byte.cast_signed());
            *product += value * other;
            *square += value * value;
        }
    }
    (products.iter().sum(), squares.iter().sum())
}
