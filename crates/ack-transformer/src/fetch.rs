//! Downloads the model. Nothing else in ack-memory downloads a model, and this only runs when a
//! person asks for it.

use std::io;
use std::path::{Path, PathBuf};

use ack_api::Hint;
use ack_search::encoder::Encoder;
use hf_hub::api::sync::{ApiBuilder, ApiError};

use crate::{ModelError, Transformer, WEIGHTS};

/// The model's name on the hub.
const MODEL: &str = "sentence-transformers/all-MiniLM-L6-v2";

/// Why the model cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The download failed.
    #[error("cannot fetch the model: {}", ack_api::text::line(&.0.to_string(), 300))]
    Download(#[from] Box<ApiError>),
    /// A file cannot be written.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error from the system.
        source: io::Error,
    },
    /// The download is not the model.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl FetchError {
    /// What to do about it.
    pub fn hints(&self) -> Vec<Hint> {
        let advice = match self {
            Self::Download(_) => {
                "this needs a network; any copy of the model's `model.safetensors` in a folder works as well"
            }
            Self::Io { .. } => "check that the folder can be written",
            Self::Model(error) => return error.hints(),
        };
        vec![Hint::advice(advice)]
    }
}

/// Downloads the model into `folder`, checks it, and returns the path of its file.
///
/// # Errors
/// [`FetchError`].
pub fn fetch(folder: &Path) -> Result<PathBuf, FetchError> {
    let io = |action: &'static str| {
        let path = folder.to_owned();
        move |source| FetchError::Io {
            action,
            path,
            source,
        }
    };
    let download = |error: ApiError| FetchError::Download(Box::new(error));
    std::fs::create_dir_all(folder).map_err(io("make"))?;
    // The download has its own folder, so that the file in `folder` is complete or absent.
    let partial = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(folder)
        .map_err(io("write into"))?;
    let builder = ApiBuilder::from_env()
        .with_cache_dir(partial.path().to_owned())
        .with_progress(true);
    let api = builder.build().map_err(download)?;
    let file = api.model(MODEL.to_owned()).get(WEIGHTS).map_err(download)?;
    let complete = file.canonicalize().map_err(io("find the download in"))?;
    let path = folder.join(WEIGHTS);
    std::fs::rename(&complete, &path).map_err(io("write into"))?;
    if let Some(encoder) = Encoder::embedded() {
        Transformer::load(folder, encoder)?;
    }
    Ok(path)
}
