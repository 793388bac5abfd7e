//! The transformer all-MiniLM-L6-v2, with which `index --model` can embed memories. Queries are
//! never embedded with it: the static encoder uses the same vector space, so a server needs no
//! model file.
//!
//! Text is tokenized as for the static encoder, between `[CLS]` and `[SEP]`, with at most 256
//! tokens. The vector is the mean of all tokens' outputs, with norm 1 (Reimers and Gurevych 2019,
//! "Sentence-BERT").

mod fetch;

pub use self::fetch::{FetchError, fetch};

use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, HiddenAct, PositionEmbeddingType};
use serde::Deserialize;

use ack_api::Hint;
use ack_search::encoder::wordpiece::TokenId;
use ack_search::encoder::{EmbedError, Embedder, Encoder, Space};

/// The file in a model's folder.
pub const WEIGHTS: &str = "model.safetensors";
/// The most tokens of a text, including special tokens.
const MAX_TOKENS: usize = 256;
/// How many texts go through the network together.
const BATCH_TEXTS: usize = 32;
/// Special tokens: the start of a text, its end, and padding.
const CLS: u32 = 101;
const SEP: u32 = 102;
const PAD: u32 = 0;
/// Minimum cosine with the reference vectors.
const MIN_REFERENCE_COSINE: f32 = 0.999;

/// Vectors that the network must reproduce, made with its original implementation.
static REFERENCES: &str = include_str!("../../../encoder/reference/teacher.json");

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Its file cannot be read.
    #[error("cannot read `{}`: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds another network, or the network failed.
    #[error("`{}` is not all-MiniLM-L6-v2: {}", .path.display(), ack_api::text::line(.reason, 300))]
    WrongModel {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl ModelError {
    /// What to do about it.
    pub fn hints(&self) -> Vec<Hint> {
        vec![
            Hint::command("model fetch --to DIR", "gets the right one"),
            Hint::advice("without `--model` the static encoder is used"),
        ]
    }
}

/// The network with its weights.
pub struct Transformer {
    model: BertModel,
    path: PathBuf,
    hash: String,
    encoder: &'static Encoder,
}

#[derive(Deserialize)]
struct Reference {
    text: String,
    vector: Vec<f32>,
}

impl Transformer {
    /// Loads the weights from a folder and checks them against reference vectors.
    ///
    /// # Errors
    /// [`ModelError`].
    pub fn load(folder: &Path, encoder: &'static Encoder) -> Result<Self, ModelError> {
        let path = folder.join(WEIGHTS);
        let bytes = std::fs::read(&path).map_err(|source| ModelError::Read {
            path: path.clone(),
            source,
        })?;
        let hash = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes));
        let other = |error: candle_core::Error| ModelError::WrongModel {
            path: path.clone(),
            reason: error.to_string(),
        };
        let builder = VarBuilder::from_buffered_safetensors(bytes, DType::F32, &Device::Cpu)
            .map_err(other)?;
        let model = BertModel::load(builder, &config()).map_err(other)?;
        let transformer = Self {
            model,
            path,
            hash,
            encoder,
        };
        transformer.check()?;
        Ok(transformer)
    }

    fn check(&self) -> Result<(), ModelError> {
        let references: Vec<Reference> = serde_json::from_str(REFERENCES).unwrap_or_default();
        let texts: Vec<String> = references
            .iter()
            .map(|reference| reference.text.clone())
            .collect();
        for (reference, vector) in references.iter().zip(self.vectors(&texts)?) {
            let cosine: f32 = vector
                .iter()
                .zip(&reference.vector)
                .map(|(a, b)| a * b)
                .sum();
            if vector.len() != reference.vector.len() || cosine < MIN_REFERENCE_COSINE {
                return Err(self.wrong_model(&format!(
                    "its vector for a reference text has a cosine of {cosine:.4} with the right one"
                )));
            }
        }
        Ok(())
    }

    fn wrong_model(&self, reason: &str) -> ModelError {
        ModelError::WrongModel {
            path: self.path.clone(),
            reason: reason.to_owned(),
        }
    }

    fn vectors(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let tokens: Vec<Vec<u32>> = texts.iter().map(|text| self.tokens(text)).collect();
        // Texts of similar length are batched together to reduce padding.
        let mut order: Vec<usize> = (0..tokens.len()).collect();
        order.sort_by_key(|position| tokens.get(*position).map_or(0, Vec::len));
        let mut vectors: Vec<Vec<f32>> = vec![Vec::new(); texts.len()];
        for positions in order.chunks(BATCH_TEXTS) {
            let batch: Vec<&[u32]> = positions
                .iter()
                .filter_map(|position| tokens.get(*position).map(Vec::as_slice))
                .collect();
            let outputs = self
                .forward(&batch)
                .map_err(|error| self.wrong_model(&error.to_string()))?;
            for (position, vector) in positions.iter().zip(outputs) {
                if let Some(slot) = vectors.get_mut(*position) {
                    *slot = vector;
                }
            }
        }
        Ok(vectors)
    }

    fn tokens(&self, text: &str) -> Vec<u32> {
        let mut pieces: Vec<TokenId> = Vec::new();
        self.encoder.vocabulary().tokenize(text, &mut pieces);
        pieces.truncate(MAX_TOKENS - 2);
        let inner = pieces.into_iter().map(u32::from);
        std::iter::once(CLS).chain(inner).chain([SEP]).collect()
    }

    fn forward(&self, batch: &[&[u32]]) -> candle_core::Result<Vec<Vec<f32>>> {
        let longest = batch
            .iter()
            .map(|tokens| tokens.len())
            .max()
            .unwrap_or_default();
        let shape = (batch.len(), longest);
        let filled = |filler: u32, value: &dyn Fn(u32) -> u32| -> Vec<u32> {
            let row = |tokens: &&[u32]| -> Vec<u32> {
                let rest = std::iter::repeat_n(filler, longest - tokens.len());
                tokens
                    .iter()
                    .map(|token| value(*token))
                    .chain(rest)
                    .collect()
            };
            batch.iter().flat_map(row).collect()
        };
        let ids = Tensor::from_vec(filled(PAD, &|token| token), shape, &Device::Cpu)?;
        let mask = Tensor::from_vec(filled(0, &|_| 1), shape, &Device::Cpu)?;
        let outputs = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let sums = outputs.broadcast_mul(&mask)?.sum(1)?;
        let means = sums.broadcast_div(&mask.sum(1)?)?;
        let norms = means.sqr()?.sum_keepdim(1)?.sqrt()?;
        means.broadcast_div(&norms)?.to_vec2::<f32>()
    }
}

impl Embedder for Transformer {
    fn hash(&self) -> &str {
        &self.hash
    }

    fn space(&self) -> Space {
        Space::Teacher
    }

    fn encode(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.vectors(texts)
            .map_err(|error| EmbedError(Box::new(error)))
    }
}

/// The shape of all-MiniLM-L6-v2.
fn config() -> Config {
    Config {
        vocab_size: 30_522,
        hidden_size: 384,
        num_hidden_layers: 6,
        num_attention_heads: 12,
        intermediate_size: 1_536,
        hidden_act: HiddenAct::Gelu,
        hidden_dropout_prob: 0.0,
        max_position_embeddings: 512,
        type_vocab_size: 2,
        initializer_range: 0.02,
        layer_norm_eps: 1e-12,
        pad_token_id: 0,
        position_embedding_type: PositionEmbeddingType::Absolute,
        use_cache: false,
        classifier_dropout: None,
        model_type: None,
    }
}
