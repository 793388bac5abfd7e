//! From text to a vector, without a model file: the static encoder that the binary carries.
//!
//! The space is that of the sentence transformer all-MiniLM-L6-v2, centred (and projected, where the artifact says so). The
//! encoder is a table of one vector a WordPiece token, trained so that the sum over a text's tokens points where the
//! transformer puts the text; the length of a token's vector is its weight. `encoder/MODEL_CARD.md` says how it was trained,
//! on what, and how near it comes.
//!
//! [`wordpiece`] cuts text into tokens.

pub mod wordpiece;

use std::sync::OnceLock;

use multiversion::multiversion;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

use self::wordpiece::{TokenId, Vocabulary};

/// The artifact, as `encoder/export.py` wrote it.
static ARTIFACT: &[u8] = include_bytes!("../../../encoder/static.safetensors");

/// Tokens of a memory that are encoded; what stands behind them says little about its subject.
const LONGEST: usize = 512;
/// Weight of a memory's title beside the rest of it.
const TITLE: f32 = 0.3;
/// Tokens of a query that are encoded.
const LONGEST_QUERY: usize = 256;

/// What went wrong with the artifact: the binary was built from a broken one.
#[derive(Debug, thiserror::Error)]
#[error("the encoder inside this binary is damaged: {0}")]
pub struct DamagedEncoder(String);

/// A network that turns texts into vectors of the space that the static encoder was trained for.
pub trait Embedder: Send + Sync {
    /// What identifies its weights.
    fn hash(&self) -> &str;

    /// The vectors of texts, of norm 1, in the network's own space.
    ///
    /// # Errors
    /// When the network fails.
    fn encode(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// A network failed on a text.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct EmbedError(pub Box<dyn std::error::Error + Send + Sync>);

/// The static encoder.
#[derive(Debug)]
pub struct Encoder {
    vocabulary: Vocabulary,
    dimension: usize,
    /// One row a token, `dimension` components each.
    rows: &'static [u8],
    /// What a token's components are multiplied by; 0 for a token without a row.
    scales: Vec<f32>,
    /// The row of each token.
    places: Vec<u32>,
    damping: Damping,
    name: String,
    weights: String,
    /// The mean of the transformer's vectors, and what projects them into this space: one row a component.
    mean: Vec<f32>,
    projection: Vec<f32>,
}

/// How a token that occurs several times in a text counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damping {
    /// As often as it occurs.
    Count,
    /// By the square root of that.
    Root,
    /// 1 + ln(count).
    Logarithm,
}

impl Damping {
    #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
    fn of(self, count: usize) -> f32 {
        let count = count as f32;
        match self {
            Self::Count => count,
            Self::Root => count.sqrt(),
            Self::Logarithm => 1.0 + count.ln(),
        }
    }
}

impl Encoder {
    /// The encoder that the binary carries, or `None` where it is damaged (a test holds that it is not).
    pub fn embedded() -> Option<&'static Self> {
        static ENCODER: OnceLock<Option<Encoder>> = OnceLock::new();
        ENCODER.get_or_init(|| Self::read(ARTIFACT).ok()).as_ref()
    }

    /// Reads an artifact.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn read(artifact: &'static [u8]) -> Result<Self, DamagedEncoder> {
        let damaged = |what: &str| DamagedEncoder(what.to_owned());
        let (_, header) = SafeTensors::read_metadata(artifact).map_err(|error| DamagedEncoder(error.to_string()))?;
        let tensors = SafeTensors::deserialize(artifact).map_err(|error| DamagedEncoder(error.to_string()))?;
        let tensor = |name: &str| tensors.tensor(name).map_err(|error| DamagedEncoder(error.to_string()));
        let rows = tensor("rows")?;
        let [count, dimension] = *rows.shape() else {
            return Err(damaged("`rows` is not a matrix"));
        };
        let lines = match tensor("all_vocab") {
            Ok(all) => text(&all)?,
            Err(_) => text(&tensor("vocab")?)?,
        };
        let tokens = lines.split('\n').count();
        let row_scales = floats(&tensor("scales")?);
        let mut scales = vec![0.0; tokens];
        let mut places = vec![0; tokens];
        let kept: Vec<usize> = match tensor("kept") {
            Ok(kept) => kept
                .data()
                .chunks_exact(2)
                .map(|pair| {
                    usize::from(u16::from_le_bytes([
                        pair.first().copied().unwrap_or(0),
                        pair.last().copied().unwrap_or(0),
                    ]))
                })
                .collect(),
            Err(_) => (0..tokens).collect(),
        };
        if kept.len() != count || row_scales.len() != count || rows.data().len() != count * dimension {
            return Err(damaged("rows, scales and tokens differ in number"));
        }
        for ((token, scale), row) in kept.into_iter().zip(row_scales).zip(0u32..) {
            if let (Some(slot), Some(place)) = (scales.get_mut(token), places.get_mut(token)) {
                (*slot, *place) = (scale, row);
            }
        }
        let described = |key: &str| {
            let metadata = header.metadata().as_ref();
            metadata.and_then(|metadata| metadata.get(key)).cloned().unwrap_or_default()
        };
        let damping = match described("damping").as_str() {
            "sqrt" => Damping::Root,
            "log" => Damping::Logarithm,
            _ => Damping::Count,
        };
        let vocabulary = Vocabulary::parse(lines);
        if let Some(unknown) = scales.get_mut(usize::from(vocabulary.unknown())) {
            *unknown = 0.0;
        }
        Ok(Self {
            vocabulary,
            dimension,
            rows: rows.data(),
            scales,
            places,
            damping,
            mean: floats(&tensor("mean")?),
            projection: floats(&tensor("projection")?),
            name: described("name"),
            weights: format!("{:016x}", xxhash_rust::xxh3::xxh3_64(artifact)),
        })
    }

    /// The encoder's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// XXH3 of the artifact: vectors of encoders with another one do not compare.
    pub fn weights(&self) -> &str {
        &self.weights
    }

    /// Number of components of a vector.
    pub const fn dimension(&self) -> usize {
        self.dimension
    }

    /// The tokenizer's vocabulary.
    pub const fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The vector of a query, of norm 1; `None` where no token of it is known.
    pub fn query(&self, text: &str) -> Option<Vec<f32>> {
        let mut tokens = Vec::new();
        self.vocabulary.tokenize(text, &mut tokens);
        tokens.truncate(LONGEST_QUERY);
        self.sum(&mut tokens)
    }

    /// The vector of a memory, of norm 1. The tokens of its title count for themselves, beside those of everything else:
    /// subtitle, facts, narrative, tags, in this order.
    pub fn memory(&self, title: &mut Vec<TokenId>, rest: &mut Vec<TokenId>) -> Option<Vec<f32>> {
        title.truncate(LONGEST);
        rest.truncate(LONGEST);
        match (self.sum(title), self.sum(rest)) {
            (Some(title), Some(mut rest)) => {
                rest.iter_mut().zip(&title).for_each(|(rest, title)| *rest += TITLE * title);
                normalize(rest)
            }
            (title, rest) => title.or(rest),
        }
    }

    /// A memory's vector from both encoders: its static vector plus the transformer's of the same text, brought into this
    /// space, each of norm 1.
    pub fn with_transformer(&self, own: Option<&[f32]>, transformer: &[f32]) -> Option<Vec<f32>> {
        let centred: Vec<f32> = transformer.iter().zip(&self.mean).map(|(value, mean)| value - mean).collect();
        let rows = self.projection.chunks_exact(self.mean.len().max(1));
        let projected: Vec<f32> = rows.map(|row| row.iter().zip(&centred).map(|(a, b)| a * b).sum()).collect();
        let mut vector = normalize(projected)?;
        if let Some(own) = own {
            vector.iter_mut().zip(own).for_each(|(value, own)| *value += own);
        }
        normalize(vector)
    }

    /// What a word weighs in the vector of a text, about 1 for an ordinary noun; `None` for one without a token of its own.
    pub fn weight(&self, word: &str) -> Option<f32> {
        let mut tokens = Vec::new();
        self.vocabulary.tokenize(word, &mut tokens);
        let [token] = *tokens else { return None };
        let (scale, place) = (self.scales.get(usize::from(token))?, self.places.get(usize::from(token))?);
        let start = *place as usize * self.dimension;
        let row = self.rows.get(start..start + self.dimension)?.iter();
        let square: f32 = row.map(|byte| f32::from(byte.cast_signed())).map(|value| value * value).sum();
        (*scale > 0.0).then(|| scale * square.sqrt())
    }

    /// The vector of tokens, of norm 1, whatever their order.
    pub fn encode_tokens(&self, tokens: &mut [TokenId]) -> Option<Vec<f32>> {
        self.sum(tokens)
    }

    fn sum(&self, tokens: &mut [TokenId]) -> Option<Vec<f32>> {
        tokens.sort_unstable();
        let mut sum = vec![0f32; self.dimension];
        for run in tokens.chunk_by(|a, b| a == b) {
            let Some(token) = run.first().map(|token| usize::from(*token)) else {
                continue;
            };
            let (Some(scale), Some(place)) = (self.scales.get(token), self.places.get(token)) else {
                continue;
            };
            if *scale == 0.0 {
                continue;
            }
            let start = *place as usize * self.dimension;
            if let Some(row) = self.rows.get(start..start + self.dimension) {
                add(&mut sum, row, scale * self.damping.of(run.len()));
            }
        }
        normalize(sum)
    }
}

/// A vector of norm 1; `None` for one that has no direction.
fn normalize(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let norm = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
    if norm < 1e-9 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "components of a vector of norm 1")]
    vector.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
    Some(vector)
}

#[multiversion(targets("x86_64+avx2", "aarch64+neon"))]
fn add(sum: &mut [f32], row: &[u8], factor: f32) {
    for (value, byte) in sum.iter_mut().zip(row) {
        *value += f32::from(byte.cast_signed()) * factor;
    }
}

fn text(tensor: &TensorView<'static>) -> Result<&'static str, DamagedEncoder> {
    std::str::from_utf8(tensor.data()).map_err(|error| DamagedEncoder(error.to_string()))
}

fn floats(tensor: &TensorView<'_>) -> Vec<f32> {
    let bytes = tensor.data().chunks_exact(4);
    bytes.filter_map(|four| four.try_into().ok().map(f32::from_le_bytes)).collect()
}
