//! Matrix products: rows of numbers times rows of weights.
//!
//! Both sides are stored row by row, so a product is a table of dot products. They are computed in
//! tiles of three rows by three: their nine sums, with one vector of each row, fit into the sixteen
//! registers of AVX2. Weights are signed bytes, and become floats three rows at a time.

use pulp::Simd;

/// The rows of a tile, on each side.
const TILE: usize = 3;
/// How many rows are multiplied with the same weights before the next weights are read: they stay
/// in the second-level cache.
const BLOCK: usize = 96;
/// Rows have a multiple of this many components: the lanes of the widest vectors (AVX-512).
pub const LANES: usize = 16;

/// A matrix of weights with a bias: a row for each output.
#[derive(Debug)]
pub struct Linear {
    /// Signed bytes, row by row.
    pub rows: &'static [u8],
    /// The factor of each row.
    pub scales: Vec<f32>,
    /// Added to each output.
    pub bias: Vec<f32>,
    /// The number of components of a row.
    pub inputs: usize,
}

impl Linear {
    /// The number of outputs.
    pub const fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Multiplies rows of [`Linear::inputs`] components; `out` has a row of [`Linear::outputs`] for
    /// each of them.
    #[inline(always)]
    pub fn apply<S: Simd>(&self, simd: S, rows: &[f32], out: &mut [f32], scratch: &mut Vec<f32>) {
        let (inputs, outputs) = (self.inputs, self.outputs());
        scratch.clear();
        scratch.resize(TILE * inputs, 0.0);
        let blocks = rows.chunks(BLOCK * inputs);
        for (rows, out) in blocks.zip(out.chunks_mut(BLOCK * outputs)) {
            let weights = self.rows.chunks(TILE * inputs);
            let weights = weights.zip(self.scales.chunks(TILE).zip(self.bias.chunks(TILE)));
            for ((bytes, (scales, bias)), column) in weights.zip((0..outputs).step_by(TILE)) {
                let each = bytes.chunks_exact(inputs).zip(scales);
                for (floats, (bytes, scale)) in scratch.chunks_exact_mut(inputs).zip(each) {
                    for (float, byte) in floats.iter_mut().zip(bytes) {
                        *float = f32::from(byte.cast_signed()) * scale;
                    }
                }
                let to = Columns {
                    stride: outputs,
                    column,
                    bias,
                };
                multiply(simd, rows, scratch, inputs, out, to);
            }
        }
    }
}

/// The columns of a table that a product writes: as many as there are biases.
#[derive(Clone, Copy)]
struct Columns<'a> {
    /// The components of a row of the table.
    stride: usize,
    /// The first column.
    column: usize,
    bias: &'a [f32],
}

/// Writes the dot products of `rows` with `count` rows of `others` into the columns of `out` from
/// `column` on. A row has `size` components, and a row of `out` has `stride`. `others` has a
/// multiple of [`TILE`] rows.
#[inline(always)]
pub fn dot_products<S: Simd>(
    simd: S,
    (rows, others, size): (&[f32], &[f32], usize),
    out: &mut [f32],
    (stride, column, count): (usize, usize, usize),
) {
    let tiles = others.chunks_exact(TILE * size);
    for (three, first) in tiles.zip((0..count).step_by(TILE)) {
        let bias = [0.0; TILE];
        let to = Columns {
            stride,
            column: column + first,
            bias: bias.get(..count - first).unwrap_or(&bias),
        };
        multiply(simd, rows, three, size, out, to);
    }
}

/// The number of rows, rounded up to whole tiles.
pub const fn padded(rows: usize) -> usize {
    rows.next_multiple_of(TILE)
}

/// Writes the dot products of all rows with three others.
#[inline(always)]
fn multiply<S: Simd>(
    simd: S,
    rows: &[f32],
    three: &[f32],
    size: usize,
    out: &mut [f32],
    to: Columns<'_>,
) {
    let others = split(three, size).map(|row| S::as_simd_f32s(row).0);
    let mut tiles = rows.chunks_exact(TILE * size);
    let mut outs = out.chunks_exact_mut(TILE * to.stride);
    for (rows, out) in tiles.by_ref().zip(outs.by_ref()) {
        let rows = split(rows, size).map(|row| S::as_simd_f32s(row).0);
        let sums = tile(simd, rows, others);
        for (out, sums) in out.chunks_exact_mut(to.stride).zip(sums) {
            write(simd, sums, out, to);
        }
    }
    let rest = outs.into_remainder().chunks_exact_mut(to.stride);
    for (row, out) in tiles.remainder().chunks_exact(size).zip(rest) {
        let row = S::as_simd_f32s(row).0;
        let [sums, ..] = tile(simd, [row; TILE], others);
        write(simd, sums, out, to);
    }
}

#[inline(always)]
fn split(rows: &[f32], size: usize) -> [&[f32]; TILE] {
    let (first, rest) = rows.split_at(size.min(rows.len()));
    let (second, third) = rest.split_at(size.min(rest.len()));
    [first, second, third]
}

/// The sums of nine dot products, not yet added over the lanes.
#[inline(always)]
fn tile<S: Simd>(
    simd: S,
    [a0, a1, a2]: [&[S::f32s]; TILE],
    [b0, b1, b2]: [&[S::f32s]; TILE],
) -> [[S::f32s; TILE]; TILE] {
    let zero = simd.splat_f32s(0.0);
    let [mut s00, mut s01, mut s02] = [zero; 3];
    let [mut s10, mut s11, mut s12] = [zero; 3];
    let [mut s20, mut s21, mut s22] = [zero; 3];
    let all = a0.iter().zip(a1).zip(a2).zip(b0).zip(b1).zip(b2);
    for (((((a0, a1), a2), b0), b1), b2) in all {
        let (a0, a1, a2, b0, b1, b2) = (*a0, *a1, *a2, *b0, *b1, *b2);
        s00 = simd.mul_add_f32s(a0, b0, s00);
        s01 = simd.mul_add_f32s(a0, b1, s01);
        s02 = simd.mul_add_f32s(a0, b2, s02);
        s10 = simd.mul_add_f32s(a1, b0, s10);
        s11 = simd.mul_add_f32s(a1, b1, s11);
        s12 = simd.mul_add_f32s(a1, b2, s12);
        s20 = simd.mul_add_f32s(a2, b0, s20);
        s21 = simd.mul_add_f32s(a2, b1, s21);
        s22 = simd.mul_add_f32s(a2, b2, s22);
    }
    [[s00, s01, s02], [s10, s11, s12], [s20, s21, s22]]
}

#[inline(always)]
fn write<S: Simd>(simd: S, sums: [S::f32s; TILE], out: &mut [f32], to: Columns<'_>) {
    let columns = out.iter_mut().skip(to.column);
    for ((out, sum), bias) in columns.zip(sums).zip(to.bias) {
        *out = simd.reduce_sum_f32s(sum) + bias;
    }
}
