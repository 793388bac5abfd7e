//! `model fetch`: the one command that downloads anything, and only when a person runs it.

use hf_hub::api::sync::ApiBuilder;

use super::args::{ModelArgs, ModelCommand};
use super::write_out;
use crate::encoder::Encoder;
use crate::encoder::transformer::{Transformer, WEIGHTS};
use crate::error::Error;

/// The model's name on the hub.
const MODEL: &str = "sentence-transformers/all-MiniLM-L6-v2";

pub fn run(args: &ModelArgs) -> Result<(), Error> {
    let ModelCommand::Fetch { to } = &args.command;
    let io = |action: &'static str| {
        let path = to.clone();
        move |source| Error::Io { action, path, source }
    };
    std::fs::create_dir_all(to).map_err(io("make"))?;
    let fetch = |error: hf_hub::api::sync::ApiError| Error::Fetch(ack_api::text::line(&error.to_string(), 300));
    // Downloads go to a folder of their own, so that what stands in `to` is whole or not there.
    let partial = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(to)
        .map_err(io("write into"))?;
    let builder = ApiBuilder::from_env().with_cache_dir(partial.path().to_owned()).with_progress(true);
    let api = builder.build().map_err(fetch)?;
    let file = api.model(MODEL.to_owned()).get(WEIGHTS).map_err(fetch)?;
    let whole = file.canonicalize().map_err(io("find the download in"))?;
    std::fs::rename(&whole, to.join(WEIGHTS)).map_err(io("write into"))?;
    if let Some(encoder) = Encoder::embedded() {
        Transformer::load(to, encoder)?;
    }
    write_out(&format!(
        "{}\nIt gives the reference vectors. Now: ack-memory index --all --model {}\n",
        to.join(WEIGHTS).display(),
        to.display()
    ))
}
