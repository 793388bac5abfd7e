//! `model fetch`: the only command that downloads anything.

use super::args::ModelArgs;
use super::error::CliError;

#[cfg(feature = "transformer")]
pub fn run(args: &ModelArgs) -> Result<(), CliError> {
    let super::args::ModelCommand::Fetch { to } = &args.command;
    let file = ack_transformer::fetch(to)?;
    super::output::write_out(&format!(
        "{}\nIt reproduces the reference vectors. Next: {}\n",
        file.display(),
        super::command::command(&format!("index --all --model {}", to.display()))
    ))
}

#[cfg(not(feature = "transformer"))]
pub fn run(_args: &ModelArgs) -> Result<(), CliError> {
    Err(not_built())
}

/// The error of a command that needs the transformer.
#[cfg(not(feature = "transformer"))]
pub fn not_built() -> CliError {
    CliError::NotBuilt {
        part: "transformer",
        code: ack_api::ErrorCode::ModelUnusable,
        hint: "searches do not need one; build with `--features transformer` to embed memories with it",
    }
}
