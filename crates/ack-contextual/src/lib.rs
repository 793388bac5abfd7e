//! A small transformer inside the binary: it reads a text in context, where the static encoder adds
//! up its tokens. Its vector is in the static encoder's space, and the sum of both is the text's.
//!
//! A text has the same vector in every batch and with any number of threads. On another kind of
//! processor it can differ a little, because sums of floats have another order there: with AVX2
//! and with AVX-512, 3,000 texts have cosines above 0.999, and so have the Python reference's.
//!
//! `index --encoder contextual` encodes memories with it, and a question is encoded with it if it
//! is compared with such memories. `encoder/contextual.py` trains it and writes the artifact;
//! `encoder/MODEL_CARD.md` describes both, with the accuracy.

mod kernel;
mod network;

use std::sync::OnceLock;

use ack_search::analysis::letters::plain;
use ack_search::encoder::Encoder;
use ack_search::encoder::wordpiece::TokenId;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use rten_gemm::GemmError;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

use self::kernel::Linear;
use self::network::{Layer, Network, Norm, TokenTable, WIDTH};

/// The artifact that `encoder/contextual.py` wrote.
static ARTIFACT: &[u8] = include_bytes!("../../../encoder/contextual.safetensors");

/// Special tokens: the start of a text and its end.
const CLS: TokenId = 101;
const SEP: TokenId = 102;
/// The most tokens of a question and of a window of a memory, with the special ones.
const MAX_QUESTION_TOKENS: usize = 64;
const MAX_WINDOW_TOKENS: usize = 128;
/// The most tokens of a memory.
const MAX_MEMORY_TOKENS: usize = 512;
/// How much each window counts after the first one, which counts 1. Memories begin with what they
/// are about.
const LATER_WEIGHT: f32 = 0.3;
/// Counts the versions of the computation that give the same text another vector.
const ARITHMETIC: u64 = 1;
/// A thread encodes texts together until they have this many tokens.
const BATCH_TOKENS: usize = 256;

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct EncodeError(#[from] GemmError);

pub struct Contextual {
    network: Network,
    encoder: &'static Encoder,
}

impl Contextual {
    /// The transformer inside the binary, or `None` if it is damaged (a test ensures that it is
    /// not).
    pub fn embedded() -> Option<&'static Self> {
        static CONTEXTUAL: OnceLock<Option<Contextual>> = OnceLock::new();
        CONTEXTUAL.get_or_init(|| Self::read(ARTIFACT, Encoder::embedded()?)).as_ref()
    }

    /// Identifies the weights and how they are used, without reading them.
    pub fn weights_hash() -> &'static str {
        static HASH: OnceLock<String> = OnceLock::new();
        HASH.get_or_init(|| {
            let hash = xxhash_rust::xxh3::xxh3_64_with_seed(ARTIFACT, ARITHMETIC);
            format!("{hash:016x}")
        })
    }

    /// Reads an artifact for the tokens and the space of `encoder`; `None` if a part of it is missing.
    fn read(artifact: &'static [u8], encoder: &'static Encoder) -> Option<Self> {
        let artifact = Artifact(SafeTensors::deserialize(artifact).ok()?);
        let has_layer =
            |number: &usize| artifact.tensor(&format!("layers.{number}.qkv.weight")).is_some();
        let layers = (0..).take_while(has_layer).map(|number| artifact.layer(number));
        let network = Network {
            tokens: artifact.token_table()?,
            positions: artifact.scaled("pos", WIDTH)?,
            norm: artifact.norm("n0")?,
            layers: layers.collect::<Option<_>>()?,
            head: artifact.linear("head")?,
        };
        Some(Self { network, encoder })
    }

    /// The vector of a question, with norm 1, in the static encoder's space. It is computed by one
    /// thread, which does nothing else: among the threads that encode memories, a question would
    /// wait for these.
    pub fn question(&self, text: &str) -> Option<Vec<f32>> {
        static THREAD: OnceLock<Option<ThreadPool>> = OnceLock::new();
        let start = || ThreadPoolBuilder::new().num_threads(1).build().ok();
        let texts = [window(&self.tokens(text, MAX_QUESTION_TOKENS - 2))];
        let encode = || self.network.encode(&texts);
        let vectors = match THREAD.get_or_init(start) {
            Some(thread) => thread.install(encode),
            None => encode(),
        };
        vectors.ok()?.pop()
    }

    /// The vectors of memories, with norm 1, in the static encoder's space.
    pub fn memories(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let memories: Vec<_> = texts.par_iter().map(|text| self.windows(text)).collect();
        let windows = memories.concat();
        let mut batches: Vec<&[Vec<TokenId>]> = Vec::new();
        let (mut rest, mut count, mut tokens) = (&*windows, 0, 0);
        for window in &windows {
            if count > 0 && tokens + window.len() > BATCH_TOKENS {
                let (batch, other) = rest.split_at(count);
                batches.push(batch);
                (rest, count, tokens) = (other, 0, 0);
            }
            count += 1;
            tokens += window.len();
        }
        batches.push(rest);
        let vectors: Result<Vec<_>, GemmError> =
            batches.par_iter().map(|batch| self.network.encode(batch)).collect();
        let vectors = vectors?.concat();
        let mut rest = &*vectors;
        let sums = memories.iter().map(|windows| {
            let (vectors, other) = rest.split_at(windows.len());
            rest = other;
            weighted_sum(vectors)
        });
        Ok(sums.collect())
    }

    /// The first tokens of a text, without the special ones.
    fn tokens(&self, text: &str, most: usize) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        self.encoder.english_tokens(&plain(text), &mut tokens);
        tokens.truncate(most);
        tokens
    }

    /// The windows of a memory: as few as possible, and of equal size.
    fn windows(&self, text: &str) -> Vec<Vec<TokenId>> {
        let tokens = self.tokens(text, MAX_MEMORY_TOKENS);
        let count = tokens.len().div_ceil(MAX_WINDOW_TOKENS - 2);
        match count {
            0 => vec![window(&[])],
            _ => tokens.chunks(tokens.len().div_ceil(count)).map(window).collect(),
        }
    }
}

/// The tokens between the special ones.
fn window(tokens: &[TokenId]) -> Vec<TokenId> {
    [&[CLS], tokens, &[SEP]].concat()
}

fn weighted_sum(windows: &[Vec<f32>]) -> Vec<f32> {
    let Some((first, later)) = windows.split_first() else {
        return Vec::new();
    };
    let mut sum = first.clone();
    for vector in later {
        for (sum, value) in sum.iter_mut().zip(vector) {
            *sum += LATER_WEIGHT * value;
        }
    }
    network::to_unit(&mut sum);
    sum
}

struct Artifact(SafeTensors<'static>);

impl Artifact {
    fn tensor(&self, name: &str) -> Option<TensorView<'static>> {
        self.0.tensor(name).ok()
    }

    fn floats(&self, name: &str) -> Option<Vec<f32>> {
        let (fours, _) = self.tensor(name)?.data().as_chunks::<4>();
        Some(fours.iter().map(|four| f32::from_le_bytes(*four)).collect())
    }

    fn norm(&self, name: &str) -> Option<Norm> {
        Some(Norm {
            weight: self.floats(&format!("{name}.weight"))?,
            bias: self.floats(&format!("{name}.bias"))?,
        })
    }

    fn linear(&self, name: &str) -> Option<Linear> {
        let rows = self.tensor(&format!("{name}.weight"))?;
        let scales = self.floats(&format!("{name}.weight.scale"))?;
        let bias = self.floats(&format!("{name}.bias"))?;
        Some(Linear::new(rows.data(), scales, bias))
    }

    /// Bytes with a factor for each row of `size`, as floats.
    fn scaled(&self, name: &str, size: usize) -> Option<Vec<f32>> {
        let rows = self.tensor(name)?.data().chunks_exact(size);
        let scales = self.floats(&format!("{name}.scale"))?;
        let values = rows.zip(scales).flat_map(|(row, scale)| {
            row.iter().map(move |byte| f32::from(byte.cast_signed()) * scale)
        });
        Some(values.collect())
    }

    fn layer(&self, number: usize) -> Option<Layer> {
        let name = |part: &str| format!("layers.{number}.{part}");
        Some(Layer {
            qkv: self.linear(&name("qkv"))?,
            out: self.linear(&name("out"))?,
            norm: self.norm(&name("n1"))?,
            up: self.linear(&name("up"))?,
            down: self.linear(&name("down"))?,
            last_norm: self.norm(&name("n2"))?,
        })
    }

    fn token_table(&self) -> Option<TokenTable> {
        let codes = self.tensor("token_codes")?;
        let pieces = codes.shape().last().copied().filter(|pieces| *pieces > 0)?;
        Some(TokenTable {
            codes: codes.data(),
            books: self.scaled("token_books", 256 * WIDTH / pieces)?,
            pieces,
            turn: self.linear("token_turn")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Reference {
        text: String,
        windows: Vec<usize>,
        vector: Vec<f32>,
    }

    fn references() -> Vec<Reference> {
        let text = include_str!("../../../encoder/reference/contextual.json");
        serde_json::from_str(text).unwrap()
    }

    fn contextual() -> &'static Contextual {
        Contextual::embedded().unwrap()
    }

    fn cosine(one: &[f32], other: &[f32]) -> f32 {
        one.iter().zip(other).map(|(a, b)| a * b).sum()
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    fn vectors_are_those_of_the_reference() {
        let references = references();
        let texts: Vec<String> = references.iter().map(|it| it.text.clone()).collect();
        let vectors = contextual().memories(&texts).unwrap();
        assert_eq!(vectors.len(), references.len());
        let mut similarities = Vec::new();
        for (reference, vector) in references.iter().zip(&vectors) {
            let windows = contextual().windows(&reference.text);
            let lengths: Vec<usize> = windows.iter().map(Vec::len).collect();
            assert_eq!(lengths, reference.windows, "{}", reference.text);
            similarities.push(cosine(vector, &reference.vector));
        }
        // A number at the border between two bytes falls to either side, and moves the others. With
        // numbers that are not rounded, the mean is 0.9992.
        let mean = similarities.iter().sum::<f32>() / similarities.len() as f32;
        let least = similarities.iter().copied().fold(1.0, f32::min);
        assert!(mean > 0.9997 && least > 0.999, "{similarities:?}");
    }

    #[test]
    fn a_text_has_the_same_vector_in_every_batch() {
        let texts: Vec<String> = references().into_iter().map(|it| it.text).collect();
        let alone = texts.iter().map(|text| {
            let vectors = contextual().memories(std::slice::from_ref(text)).unwrap();
            vectors.into_iter().next().unwrap()
        });
        let alone: Vec<Vec<f32>> = alone.collect();
        // Enough texts for several batches, in different places of them.
        let many: Vec<String> = texts.iter().cycle().take(100).cloned().collect();
        let together = contextual().memories(&many).unwrap();
        for (together, alone) in together.iter().zip(alone.iter().cycle()) {
            assert_eq!(together, alone);
        }
        assert_eq!(contextual().memories(&[]).unwrap().len(), 0);
        let empty = contextual().memories(&[String::new()]).unwrap();
        assert!((cosine(&empty[0], &empty[0]) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn a_short_text_is_read_in_the_same_way_as_a_question_and_as_a_memory() {
        let text = "why does the client retry?";
        let threads = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let memory = threads.install(|| contextual().memories(&[text.to_owned()]).unwrap());
        assert_eq!(contextual().question(text).unwrap(), memory[0]);
    }

    #[test]
    fn the_same_words_in_another_order_have_another_vector() {
        let one = contextual().question("the client retries the server").unwrap();
        let other = contextual().question("the server retries the client").unwrap();
        assert!(cosine(&one, &other) < 0.999);
    }
}
