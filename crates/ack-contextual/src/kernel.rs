//! Matrix products: rows of numbers times rows of weights.
//!
//! Weights are signed bytes with a factor for each row. What they are multiplied with is rounded to
//! bytes, row by row: seven bits, so that the sum of two products fits into sixteen, which is what
//! processors without an instruction for such sums have.

use std::fmt;

use rten_gemm::{GemmError, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_simd::SimdOp;
use rten_tensor::NdTensorView;
use rten_vecmath::MinMax;

/// The largest byte that a number is rounded to.
const MOST: f32 = 127.0;
/// 3 times 2 to the power of 22, where neighbouring floats are 1 apart.
const SHIFT: f32 = 12_582_912.0;

/// A matrix of weights with a bias: a row for each output.
pub struct Linear {
    /// In the order in which the processor reads them.
    weights: PackedBMatrix<i8>,
    /// The sum of each row.
    sums: Vec<f32>,
    /// The factor of each row.
    scales: Vec<f32>,
    /// Added to each output.
    bias: Vec<f32>,
}

impl fmt::Debug for Linear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linear({} x {})", self.outputs(), self.weights.rows())
    }
}

/// What products are computed with: the instructions of this processor, and buffers.
#[derive(Default)]
pub struct Kernel {
    floats: GemmExecutor,
    byte_sums: GemmExecutor<u8, i8, i32>,
    bytes: Vec<u8>,
    /// The byte of each row that stands for 0.
    zeros: Vec<f32>,
    /// The difference between two neighbouring bytes of each row.
    steps: Vec<f32>,
    sums: Vec<i32>,
}

impl Linear {
    /// `rows` are signed bytes: for each bias, a row with a component for each input.
    pub fn new(rows: &[u8], scales: Vec<f32>, bias: Vec<f32>) -> Self {
        let rows: Vec<i8> = rows.iter().map(|byte| byte.cast_signed()).collect();
        let shape = [bias.len(), rows.len() / bias.len().max(1)];
        let matrix = NdTensorView::from_data(shape, &*rows);
        let weights = GemmExecutor::<u8, i8, i32>::new().prepack_b(matrix.transposed());
        let sums = rows.chunks(shape[1].max(1));
        let sums = sums.map(|row| row.iter().map(|weight| f32::from(*weight)).sum());
        Self {
            weights,
            sums: sums.collect(),
            scales,
            bias,
        }
    }

    /// The number of outputs.
    pub const fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Multiplies rows with a component for each input; `out` becomes a row of outputs for each.
    pub fn apply(
        &self,
        rows: &[f32],
        out: &mut Vec<f32>,
        kernel: &mut Kernel,
    ) -> Result<(), GemmError> {
        let inputs = self.weights.rows();
        kernel.round(rows, inputs);
        let count = kernel.steps.len();
        kernel.sums.resize(count * self.outputs(), 0);
        let bytes = NdTensorView::from_data([count, inputs], &*kernel.bytes);
        let bytes = GemmInputA::Unpacked(bytes);
        let weights = GemmInputB::Packed(&self.weights);
        let options = GemmOptions::default();
        let sums = &mut kernel.sums;
        kernel.byte_sums.gemm(sums, bytes, weights, options)?;
        out.clear();
        let rows = sums.chunks(self.outputs()).zip(&kernel.zeros);
        for ((sums, zero), step) in rows.zip(&kernel.steps) {
            let weights = self.sums.iter().zip(&self.scales).zip(&self.bias);
            let each = sums.iter().zip(weights);
            #[expect(clippy::cast_precision_loss, reason = "the sums are below 2^24")]
            out.extend(each.map(|(sum, ((weights, scale), bias))| {
                (*sum as f32 - zero * weights) * (step * scale) + bias
            }));
        }
        Ok(())
    }
}

impl Kernel {
    /// Writes the product of two matrices of floats, times a factor.
    pub fn product(
        &self,
        left: NdTensorView<'_, f32, 2>,
        right: NdTensorView<'_, f32, 2>,
        factor: f32,
        out: &mut [f32],
    ) -> Result<(), GemmError> {
        let options = GemmOptions {
            alpha: factor,
            ..GemmOptions::default()
        };
        let (left, right) = (GemmInputA::Unpacked(left), GemmInputB::Unpacked(right));
        self.floats.gemm(out, left, right, options)
    }

    /// Rounds each row to the bytes from 0 to [`MOST`]; its smallest and largest number, and 0, are
    /// among what they can stand for.
    fn round(&mut self, rows: &[f32], size: usize) {
        self.bytes.clear();
        self.zeros.clear();
        self.steps.clear();
        self.bytes.reserve(rows.len());
        for row in rows.chunks_exact(size) {
            let (least, most) = MinMax::new(row).dispatch();
            let (least, most) = (least.min(0.0), most.max(0.0));
            let step = ((most - least) / MOST).max(f32::MIN_POSITIVE);
            let (zero, factor) = ((-least / step).round_ties_even(), 1.0 / step);
            // Numbers of this size have no fraction, and their last byte is the rounded number.
            let shift = zero + SHIFT;
            let bytes = row.iter().map(|number| number * factor + shift);
            #[expect(clippy::cast_possible_truncation, reason = "the last byte")]
            self.bytes
                .extend(bytes.map(|number| number.to_bits() as u8));
            self.zeros.push(zero);
            self.steps.push(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between -1 and 1 that follow no pattern.
    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        std::iter::repeat_with(&mut next).take(count).collect()
    }

    #[test]
    fn products_are_those_of_the_rounded_numbers() {
        for (count, inputs, outputs) in [(1, 384, 96), (7, 384, 1152), (300, 768, 384)] {
            let bytes: Vec<u8> = numbers(inputs * outputs, 1)
                .iter()
                .map(|number| ((number * 127.0) as i8).cast_unsigned())
                .collect();
            let (scales, bias) = (numbers(outputs, 2), numbers(outputs, 3));
            let linear = Linear::new(&bytes, scales.clone(), bias.clone());
            let rows = numbers(count * inputs, 4);
            let (mut out, mut kernel) = (Vec::new(), Kernel::default());
            linear.apply(&rows, &mut out, &mut kernel).unwrap();
            let rounded = kernel.bytes.chunks(inputs).zip(&kernel.zeros);
            let rounded = rounded.zip(&kernel.steps);
            let rounded: Vec<f32> = rounded
                .flat_map(|((row, zero), step)| {
                    row.iter().map(move |byte| (f32::from(*byte) - zero) * step)
                })
                .collect();
            for (row, (rounded, step)) in rows.iter().zip(
                rounded.iter().zip(
                    kernel
                        .steps
                        .iter()
                        .flat_map(|step| std::iter::repeat_n(step, inputs)),
                ),
            ) {
                assert!((row - rounded).abs() <= step * 0.51, "{row} {rounded}");
            }
            for (index, (row, out)) in rounded.chunks(inputs).zip(out.chunks(outputs)).enumerate() {
                let each = bytes.chunks(inputs).zip(&scales).zip(&bias).zip(out);
                for (((weights, scale), bias), out) in each {
                    let products = row.iter().zip(weights);
                    let products = products.map(|(a, b)| a * f32::from(b.cast_signed()));
                    let exact = products.sum::<f32>() * scale + bias;
                    assert!(
                        (exact - out).abs() < 0.05,
                        "{count} {index} {inputs} {outputs} {exact} {out}"
                    );
                }
            }
        }
    }
}
