//! Matrix products: rows of numbers times rows of weights.
//!
//! Weights are signed bytes with a factor for each row. The other side is rounded to seven bits, row
//! by row, so that the sum of two products fits into 16 bits: without an instruction for such sums
//! (VNNI), AVX2 adds them in pairs.

use rten_gemm::{GemmError, GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_simd::SimdOp;
use rten_tensor::NdTensorView;
use rten_vecmath::MinMax;

/// The largest byte that a number is rounded to.
const MAX_BYTE: f32 = 127.0;
/// 3 times 2 to the power of 22. Floats of this size are 1 apart, so adding a number to it rounds the
/// number, and leaves it in the lowest bits.
const ROUNDING_SHIFT: f32 = 12_582_912.0;
/// A matrix of weights with a bias: a row for each output.
pub struct Linear {
    /// In the order in which the processor reads them.
    weights: PackedBMatrix<i8>,
    sums: Vec<f32>,
    /// The factor of each row.
    scales: Vec<f32>,
    /// Added to each output.
    bias: Vec<f32>,
}

/// What products are computed with: the fastest code for this processor, and buffers.
#[derive(Default)]
pub struct Workspace {
    f32_gemm: GemmExecutor,
    int8_gemm: GemmExecutor<u8, i8, i32>,
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
        Self { weights, sums: sums.collect(), scales, bias }
    }

    pub const fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Multiplies rows with a component for each input; `out` becomes a row of outputs for each.
    pub fn apply(
        &self,
        rows: &[f32],
        out: &mut Vec<f32>,
        workspace: &mut Workspace,
    ) -> Result<(), GemmError> {
        let inputs = self.weights.rows();
        workspace.round(rows, inputs);
        let count = workspace.steps.len();
        workspace.sums.resize(count * self.outputs(), 0);
        let bytes = NdTensorView::from_data([count, inputs], &*workspace.bytes);
        let bytes = GemmInputA::Unpacked(bytes);
        let weights = GemmInputB::Packed(&self.weights);
        let options = GemmOptions::default();
        let sums = &mut workspace.sums;
        workspace.int8_gemm.gemm(sums, bytes, weights, options)?;
        out.clear();
        let rows = sums.chunks(self.outputs()).zip(&workspace.zeros);
        for ((sums, zero), step) in rows.zip(&workspace.steps) {
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

impl Workspace {
    /// Writes the product of two matrices of floats, times a factor.
    pub fn product(
        &self,
        left: NdTensorView<'_, f32, 2>,
        right: NdTensorView<'_, f32, 2>,
        factor: f32,
        out: &mut [f32],
    ) -> Result<(), GemmError> {
        let options = GemmOptions { alpha: factor, ..GemmOptions::default() };
        let (left, right) = (GemmInputA::Unpacked(left), GemmInputB::Unpacked(right));
        self.f32_gemm.gemm(out, left, right, options)
    }

    /// Rounds each row to the bytes from 0 to [`MAX_BYTE`]. One of them stands for exactly 0, and
    /// together they reach from the row's smallest number to its largest, give or take half a step.
    fn round(&mut self, rows: &[f32], size: usize) {
        self.bytes.clear();
        self.zeros.clear();
        self.steps.clear();
        self.bytes.reserve(rows.len());
        for row in rows.chunks_exact(size) {
            let (least, most) = MinMax::new(row).dispatch();
            let (least, most) = (least.min(0.0), most.max(0.0));
            let step = ((most - least) / MAX_BYTE).max(f32::MIN_POSITIVE);
            let (zero, factor) = ((-least / step).round_ties_even(), 1.0 / step);
            let shift = zero + ROUNDING_SHIFT;
            let shifted = row.iter().map(|number| number * factor + shift);
            // The largest and the smallest can be rounded to one more or one less. Unlike `clamp`,
            // this makes 0 of what is not a number.
            let not_below = shifted.map(|number| number.max(ROUNDING_SHIFT));
            let shifted = not_below.map(|number| number.min(ROUNDING_SHIFT + MAX_BYTE));
            #[expect(clippy::cast_possible_truncation, reason = "the lowest bits")]
            self.bytes.extend(shifted.map(|number| number.to_bits() as u8));
            self.zeros.push(zero);
            self.steps.push(step);
        }
    }
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
mod tests {
    use super::*;

    fn round(row: &[f32]) -> Vec<f32> {
        let mut workspace = Workspace::default();
        workspace.round(row, row.len());
        let (zero, step) = (workspace.zeros[0], workspace.steps[0]);
        workspace.bytes.iter().map(|byte| (f32::from(*byte) - zero) * step).collect()
    }

    #[test]
    fn numbers_at_the_ends_are_not_rounded_to_the_other_end() {
        // Rounded to one below 0, and to one above 127.
        let below = -(96.5 - 2.0_f32.powi(-17));
        for (row, step) in [([below, 30.5], 1.0), ([-1.5, 125.5], 1.0), ([-3.0, 0.0], 3.0 / 127.0)]
        {
            for (number, rounded) in row.iter().zip(round(&row)) {
                assert!((number - rounded).abs() < step, "{number} {rounded}");
            }
        }
        assert_eq!(round(&[0.0, 0.0]), [0.0, 0.0]);
        assert_eq!(round(&[f32::NAN, 127.0])[1], 127.0);
    }

    #[test]
    fn the_largest_products_do_not_overflow() {
        let (count, inputs, outputs) = (40, 768, 130);
        for weight in [127_i8, -127] {
            let bytes = vec![weight.cast_unsigned(); inputs * outputs];
            let linear = Linear::new(&bytes, vec![1.0; outputs], vec![0.0; outputs]);
            let (mut out, mut workspace) = (Vec::new(), Workspace::default());
            for number in [127.0, -127.0] {
                linear.apply(&vec![number; count * inputs], &mut out, &mut workspace).unwrap();
                let exact = number * f32::from(weight) * inputs as f32;
                assert!(out.iter().all(|sum| *sum == exact), "{exact} {}", out[0]);
            }
        }
        let linear = Linear::new(&[1; 384], vec![1.0], vec![0.5]);
        let mut out = vec![1.0];
        linear.apply(&[], &mut out, &mut Workspace::default()).unwrap();
        assert!(out.is_empty());
    }
}
