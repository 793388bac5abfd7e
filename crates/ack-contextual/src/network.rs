//! The network: token vectors, layers of attention and a projection, from front to back.

use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

use pulp::{Simd, WithSimd};

use crate::kernel::{self, LANES, Linear};

/// The components of a token's vector.
pub const WIDTH: usize = 384;
/// The attention heads of a layer, and the components of each.
const HEADS: usize = 12;
const HEAD: usize = WIDTH / HEADS;
/// The smallest variance that [`Norm`] divides by.
const EPSILON: f32 = 1e-12;

/// The weights.
#[derive(Debug)]
pub struct Network {
    pub tokens: TokenTable,
    /// One row for each position in a text.
    pub positions: Vec<f32>,
    pub norm: Norm,
    pub layers: Vec<Layer>,
    pub head: Linear,
}

/// The tokens' vectors as a product quantization: each is put together from pieces, rotated, and
/// moved by a mean.
#[derive(Debug)]
pub struct TokenTable {
    /// For each token, the entry of each piece.
    pub codes: &'static [u8],
    /// For each piece, its 256 possible values.
    pub books: Vec<f32>,
    /// The number of pieces.
    pub pieces: usize,
    /// The rotation, with the mean as its bias, row by row.
    pub turn: Vec<f32>,
    pub mean: Vec<f32>,
}

/// One layer: attention, then two matrices with a gate between them.
#[derive(Debug)]
pub struct Layer {
    /// Queries, keys and values of all heads.
    pub qkv: Linear,
    pub out: Linear,
    pub norm: Norm,
    pub up: Linear,
    pub down: Linear,
    pub last_norm: Norm,
}

/// Layer normalization (Ba, Kiros and Hinton 2016).
#[derive(Debug)]
pub struct Norm {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

/// Encodes texts, given by their tokens with the special ones, as vectors with norm 1.
pub struct Forward<'a> {
    pub network: &'a Network,
    pub texts: &'a [Vec<u16>],
}

/// Buffers that are used again for every layer.
#[derive(Default)]
struct Buffers {
    weights: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    scores: Vec<f32>,
}

impl WithSimd for Forward<'_> {
    type Output = Vec<Vec<f32>>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self { network, texts } = self;
        let mut buffers = Buffers::default();
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        let count: usize = lengths.iter().sum();
        let mut states = network.embed(simd, texts);
        let (mut wide, mut narrow) = (Vec::new(), vec![0.0; count * WIDTH]);
        for layer in &network.layers {
            wide.clear();
            wide.resize(count * layer.qkv.outputs(), 0.0);
            layer
                .qkv
                .apply(simd, &states, &mut wide, &mut buffers.weights);
            let mut attended = vec![0.0; count * WIDTH];
            let (mut from, mut to) = (&*wide, &mut *attended);
            for length in &lengths {
                let (qkv, other) = from.split_at(length * 3 * WIDTH);
                let (out, rest) = to.split_at_mut(length * WIDTH);
                attend(simd, qkv, *length, out, &mut buffers);
                (from, to) = (other, rest);
            }
            layer
                .out
                .apply(simd, &attended, &mut narrow, &mut buffers.weights);
            add(&mut states, &narrow);
            layer.norm.apply(&mut states);
            wide.clear();
            wide.resize(count * layer.up.outputs(), 0.0);
            layer
                .up
                .apply(simd, &states, &mut wide, &mut buffers.weights);
            for value in &mut wide {
                *value = gelu(*value);
            }
            layer
                .down
                .apply(simd, &wide, &mut narrow, &mut buffers.weights);
            add(&mut states, &narrow);
            layer.last_norm.apply(&mut states);
        }
        let mut rows = &*states;
        let means: Vec<f32> = lengths
            .iter()
            .flat_map(|length| {
                let (text, other) = rows.split_at(length * WIDTH);
                rows = other;
                mean(text)
            })
            .collect();
        let dimension = network.head.outputs();
        let mut vectors = vec![0.0; texts.len() * dimension];
        network
            .head
            .apply(simd, &means, &mut vectors, &mut buffers.weights);
        let rows = vectors.chunks_exact_mut(dimension);
        rows.map(|row| {
            to_unit(row);
            row.to_vec()
        })
        .collect()
    }
}

impl Network {
    /// The normalized vectors of all tokens at their positions.
    #[inline(always)]
    fn embed<S: Simd>(&self, simd: S, texts: &[Vec<u16>]) -> Vec<f32> {
        let table = &self.tokens;
        let size = WIDTH / table.pieces.max(1);
        let mut pieces = Vec::new();
        for token in texts.iter().flatten() {
            let start = usize::from(*token) * table.pieces;
            let codes = table.codes.get(start..start + table.pieces);
            let books = table.books.chunks_exact(256 * size);
            for (code, book) in codes.unwrap_or_default().iter().zip(books) {
                let entry = usize::from(*code) * size;
                pieces.extend_from_slice(book.get(entry..entry + size).unwrap_or_default());
            }
        }
        let mut states = vec![0.0; pieces.len()];
        let product = (&*pieces, &*table.turn, WIDTH);
        kernel::dot_products(simd, product, &mut states, (WIDTH, 0, WIDTH));
        let positions = texts
            .iter()
            .flat_map(|text| self.positions.chunks_exact(WIDTH).take(text.len()));
        for (row, position) in states.chunks_exact_mut(WIDTH).zip(positions) {
            for ((value, mean), position) in row.iter_mut().zip(&table.mean).zip(position) {
                *value += mean + position;
            }
        }
        self.norm.apply(&mut states);
        states
    }
}

impl Norm {
    #[inline(always)]
    fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(WIDTH) {
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let count = WIDTH as f32;
            let mean = sum(row, |value| value) / count;
            let variance = sum(row, |value| (value - mean) * (value - mean)) / count;
            let factor = 1.0 / (variance + EPSILON).sqrt();
            for ((value, weight), bias) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
                *value = (*value - mean) * factor * weight + bias;
            }
        }
    }
}

/// Attention within one text of `length` tokens. `qkv` has the queries, keys and values of each.
#[inline(always)]
fn attend<S: Simd>(simd: S, qkv: &[f32], length: usize, out: &mut [f32], buffers: &mut Buffers) {
    let padded = length.next_multiple_of(LANES);
    let resize = |buffer: &mut Vec<f32>, size: usize| {
        buffer.clear();
        buffer.resize(size, 0.0);
    };
    resize(&mut buffers.query, length * HEAD);
    resize(&mut buffers.key, kernel::padded(length) * HEAD);
    resize(&mut buffers.value, kernel::padded(HEAD) * padded);
    resize(&mut buffers.scores, length * padded);
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let scale = 1.0 / (HEAD as f32).sqrt();
    for head in 0..HEADS {
        let part = |row: usize, which: usize| {
            let start = row * 3 * WIDTH + which * WIDTH + head * HEAD;
            qkv.get(start..start + HEAD).unwrap_or_default()
        };
        let heads = buffers.query.chunks_exact_mut(HEAD);
        let heads = heads.zip(buffers.key.chunks_exact_mut(HEAD));
        for (row, (query, key)) in heads.enumerate() {
            for (value, from) in query.iter_mut().zip(part(row, 0)) {
                *value = from * scale;
            }
            key.copy_from_slice(part(row, 1));
            for (column, from) in buffers.value.chunks_exact_mut(padded).zip(part(row, 2)) {
                if let Some(value) = column.get_mut(row) {
                    *value = *from;
                }
            }
        }
        let product = (&*buffers.query, &*buffers.key, HEAD);
        kernel::dot_products(simd, product, &mut buffers.scores, (padded, 0, length));
        for row in buffers.scores.chunks_exact_mut(padded) {
            let (row, rest) = row.split_at_mut(length);
            softmax(row);
            rest.fill(0.0);
        }
        let product = (&*buffers.scores, &*buffers.value, padded);
        kernel::dot_products(simd, product, out, (WIDTH, head * HEAD, HEAD));
    }
}

#[inline(always)]
fn softmax(row: &mut [f32]) {
    let most = row
        .iter()
        .fold(f32::NEG_INFINITY, |most, value| most.max(*value));
    for value in row.iter_mut() {
        *value = exp(*value - most);
    }
    let factor = 1.0 / sum(row, |value| value);
    for value in row {
        *value *= factor;
    }
}

/// The mean of a text's rows, with norm 1.
#[inline(always)]
fn mean(rows: &[f32]) -> Vec<f32> {
    let mut total = vec![0.0; WIDTH];
    for row in rows.chunks_exact(WIDTH) {
        add(&mut total, row);
    }
    to_unit(&mut total);
    total
}

#[inline(always)]
fn add(values: &mut [f32], others: &[f32]) {
    for (value, other) in values.iter_mut().zip(others) {
        *value += other;
    }
}

#[inline(always)]
fn to_unit(row: &mut [f32]) {
    let norm = sum(row, |value| value * value).sqrt();
    let factor = 1.0 / norm.max(f32::MIN_POSITIVE);
    for value in row {
        *value *= factor;
    }
}

/// The sum of a function of each value, in an order that vectors can follow.
#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (lanes, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for lane in lanes {
        for (sum, value) in sums.iter_mut().zip(lane) {
            *sum += of(*value);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|value| of(*value)).sum::<f32>()
}

/// The Gaussian error linear unit: `x` times the normal distribution's share below `x`. Its error
/// function is formula 7.1.26 of Abramowitz and Stegun, *Handbook of Mathematical Functions*, with
/// an error of at most 1.5e-7.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let terms = [
        1.061_405_4,
        -1.453_152_1,
        1.421_413_8,
        -0.284_496_72,
        0.254_829_6,
    ];
    let polynomial = terms.iter().fold(0.0, |sum, term| sum * t + term) * t;
    let erf = 1.0 - polynomial * exp(-z * z);
    0.5 * x * (1.0 + erf.copysign(x))
}

/// e to the power of `x`, which is at most 0, with a relative error below 1e-6: a power of two in the
/// exponent's bits, times a polynomial for the rest (it meets 2^x at six Chebyshev nodes).
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the exponent of a normal float"
)]
fn exp(x: f32) -> f32 {
    let power = (x * LOG2_E).max(-126.0);
    let whole = power.floor();
    let rest = power - whole;
    let terms = [
        0.001893754,
        0.008_949_591,
        0.055_860_337,
        0.240_141_82,
        0.693_154_5,
        0.999_999_9,
    ];
    let part = terms.iter().fold(0.0, |sum, term| sum * rest + term);
    f32::from_bits(((whole as i32 + 127) << 23) as u32) * part
}
