//! `model fetch` in a build without the `table` feature: there is nothing that could use a model, so nothing is fetched.

use super::args::ModelArgs;
use crate::encoder::transformer::ModelError;
use crate::error::Error;

pub fn run(_args: &ModelArgs) -> Result<(), Error> {
    Err(ModelError::Disabled.into())
}
