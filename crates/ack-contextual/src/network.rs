//! The network: token vectors, layers of attention and a projection, from front to back.

use rten_gemm::GemmError;
use rten_simd::{SimdOp, SimdUnaryOp};
use rten_tensor::NdTensorView;
use rten_vecmath::{Gelu, Normalize, NormalizeOptions, Softmax, Sum, SumSquare, SumSquareSub};

use crate::kernel::{Linear, Workspace};

/// The components of a token's vector.
pub const WIDTH: usize = 384;
/// The attention heads of a layer, and the components of each.
const HEADS: usize = 12;
const HEAD: usize = WIDTH / HEADS;
const EPSILON: f32 = 1e-12;

pub struct Network {
    pub tokens: TokenTable,
    /// One row for each position in a text.
    pub positions: Vec<f32>,
    pub norm: Norm,
    pub layers: Vec<Layer>,
    pub head: Linear,
}

/// The tokens' vectors as a product quantization: each is put together from pieces, rotated, and
/// shifted by the mean.
pub struct TokenTable {
    /// For each token, the entry of each piece.
    pub codes: &'static [u8],
    /// For each piece, its 256 possible values.
    pub books: Vec<f32>,
    pub pieces: usize,
    /// The rotation, with the mean as its bias.
    pub turn: Linear,
}

/// One layer: attention, then two matrices with the Gaussian error linear unit between them.
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
pub struct Norm {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

#[derive(Default)]
struct Buffers {
    workspace: Workspace,
    scores: Vec<f32>,
    head: Vec<f32>,
}

impl Network {
    /// Encodes texts, given by their tokens with the special ones, as vectors with norm 1. A text has
    /// at least one token, and at most as many as there are positions.
    pub fn encode(&self, texts: &[Vec<u16>]) -> Result<Vec<Vec<f32>>, GemmError> {
        let mut buffers = Buffers::default();
        let mut states = self.embed(texts, &mut buffers.workspace)?;
        let mut attended = vec![0.0; states.len()];
        let (mut wide, mut narrow) = (Vec::new(), Vec::new());
        for layer in &self.layers {
            let workspace = &mut buffers.workspace;
            layer.qkv.apply(&states, &mut wide, workspace)?;
            let (mut from, mut to) = (&*wide, &mut *attended);
            for length in texts.iter().map(Vec::len) {
                let (qkv, other) = from.split_at(length * 3 * WIDTH);
                let (out, rest) = to.split_at_mut(length * WIDTH);
                attend(qkv, length, out, &mut buffers)?;
                (from, to) = (other, rest);
            }
            let workspace = &mut buffers.workspace;
            layer.out.apply(&attended, &mut narrow, workspace)?;
            add(&mut states, &narrow);
            layer.norm.apply(&mut states);
            layer.up.apply(&states, &mut wide, workspace)?;
            Gelu {}.map_mut(&mut wide);
            layer.down.apply(&wide, &mut narrow, workspace)?;
            add(&mut states, &narrow);
            layer.last_norm.apply(&mut states);
        }
        let mut rows = &*states;
        let means = texts.iter().flat_map(|text| {
            let (text, other) = rows.split_at(text.len() * WIDTH);
            rows = other;
            mean(text)
        });
        let means: Vec<f32> = means.collect();
        self.head.apply(&means, &mut wide, &mut buffers.workspace)?;
        let vectors = wide.chunks_exact_mut(self.head.outputs()).map(|row| {
            to_unit(row);
            row.to_vec()
        });
        Ok(vectors.collect())
    }

    /// The normalized vectors of all tokens at their positions.
    fn embed(&self, texts: &[Vec<u16>], workspace: &mut Workspace) -> Result<Vec<f32>, GemmError> {
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
        let mut states = Vec::new();
        table.turn.apply(&pieces, &mut states, workspace)?;
        let positions =
            texts.iter().flat_map(|text| self.positions.chunks_exact(WIDTH).take(text.len()));
        for (row, position) in states.chunks_exact_mut(WIDTH).zip(positions) {
            add(row, position);
        }
        self.norm.apply(&mut states);
        Ok(states)
    }
}

impl Norm {
    fn apply(&self, rows: &mut [f32]) {
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let count = WIDTH as f32;
        for row in rows.chunks_exact_mut(WIDTH) {
            let mean = Sum::new(row).dispatch() / count;
            let variance = SumSquareSub::new(row, mean).dispatch() / count;
            let options = NormalizeOptions {
                pre_scale_bias: mean,
                scale: 1.0 / (variance + EPSILON).sqrt(),
                element_scale: Some(&self.weight),
                element_bias: Some(&self.bias),
                ..NormalizeOptions::default()
            };
            Normalize::new_mut(row, options).dispatch();
        }
    }
}

/// Attention within one text of `length` tokens. `qkv` has the queries, keys and values of each.
fn attend(
    qkv: &[f32],
    length: usize,
    out: &mut [f32],
    buffers: &mut Buffers,
) -> Result<(), GemmError> {
    let Buffers { workspace, scores, head } = buffers;
    scores.resize(length * length, 0.0);
    head.resize(length * HEAD, 0.0);
    let qkv = NdTensorView::from_data([length, 3, HEADS, HEAD], qkv);
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let factor = 1.0 / (HEAD as f32).sqrt();
    for number in 0..HEADS {
        let part = |which: usize| qkv.slice((.., which, number));
        let (queries, keys, values) = (part(0), part(1), part(2));
        workspace.product(queries, keys.transposed(), factor, scores)?;
        for row in scores.chunks_exact_mut(length) {
            Softmax::new_mut(row).dispatch();
        }
        let scores = NdTensorView::from_data([length, length], &**scores);
        workspace.product(scores, values, 1.0, head)?;
        for (out, head) in out.chunks_exact_mut(WIDTH).zip(head.chunks_exact(HEAD)) {
            out.iter_mut().skip(number * HEAD).zip(head).for_each(|(out, value)| *out = *value);
        }
    }
    Ok(())
}

/// The mean of a text's rows, with norm 1.
fn mean(rows: &[f32]) -> Vec<f32> {
    let mut total = vec![0.0; WIDTH];
    for row in rows.chunks_exact(WIDTH) {
        add(&mut total, row);
    }
    to_unit(&mut total);
    total
}

fn add(values: &mut [f32], others: &[f32]) {
    for (value, other) in values.iter_mut().zip(others) {
        *value += other;
    }
}

/// Gives a row norm 1.
pub fn to_unit(row: &mut [f32]) {
    let factor = 1.0 / SumSquare::new(row).dispatch().sqrt().max(f32::MIN_POSITIVE);
    for value in row {
        *value *= factor;
    }
}
