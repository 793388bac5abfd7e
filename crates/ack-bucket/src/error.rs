//! What can go wrong with a bucket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ack_api::number::count;
use ack_api::remote::SettingProblem;
use ack_api::shell::quoted;
use ack_api::{Diagnostic, ErrorCode, Hint, text};
use ack_lance::TableError;
use ack_lance::build::BuildError;
use ack_store::StoreError;
use object_store::Error;

/// Why a bucket cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    #[error("`{value}` is not the address of a bucket: {problem}")]
    Address { value: String, problem: &'static str },
    #[error(transparent)]
    InvalidSetting(#[from] SettingProblem),
    #[error("there are no credentials for {address}: {problem}")]
    Credentials { address: String, problem: String },
    #[error("{address} refuses to {action}: {reason}")]
    Refused { address: String, action: String, reason: String, refusal: Refusal },
    #[error("cannot {action} in {address}: {reason}")]
    Unreachable { address: String, action: String, reason: String },
    #[error("{address} did not answer within {} s", .waited.as_secs_f32())]
    Timeout { address: String, waited: Duration },
    #[error("there is no bucket `{bucket}` ({address})")]
    NoSuchBucket { address: String, bucket: String },
    #[error("{address} has no `{key}`")]
    Missing { address: String, key: String },
    #[error("nothing is published in {address}")]
    NothingPublished { address: String },
    #[error("what is published in {address} is damaged: {problem}")]
    Damaged { address: String, problem: String },
    /// The published version cannot have been published after the one that is here.
    #[error("version {version} in {address} does not follow version {known}: {problem}")]
    NotSuccessor { address: String, version: u64, known: u64, problem: String, path: PathBuf },
    #[error("{address} was published in format {found}; this program reads format {known}")]
    OtherFormat { address: String, found: u32, known: u32 },
    #[error(
        "version {version} takes up to {} on this machine, and only {} may be used: a quarter of \
         the free space",
        size(*needed), size(*allowed)
    )]
    TooLarge { version: u64, needed: u64, allowed: u64 },
    /// The server acknowledges conditional writes but ignores the condition.
    #[error("{address} cannot be published to safely: {problem}")]
    Unsafe { address: String, problem: String },
    #[error("version {version} was published in {address} in the meantime, and now {problem}")]
    Conflict { address: String, version: u64, problem: String },
    #[error(
        "{address} holds {} of scope `{}`, published by {} at {}",
        count(*rows, "memory"), text::line(published, 100), text::line(by, 100), text::line(at, 40)
    )]
    OtherScope { address: String, published: String, rows: u64, by: String, at: String },
    #[error("{address} has no version {version}")]
    NoSuchVersion { address: String, version: u64 },
    #[error("{address} no longer has version {version}: `--prune` removed it")]
    PrunedVersion { address: String, version: u64, oldest: u64 },
    #[error("version {version} has memories that were withdrawn since: {}", ids.join(", "))]
    RestoresWithdrawn { version: u64, ids: Vec<String> },
    #[error("`{id}` is not published in {address}")]
    NotPublished { address: String, id: String },
    #[error("another ack-memory is working on `{}`", path.display())]
    Busy { path: PathBuf },
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a file in `{}` is damaged", path.display())]
    Copy { path: PathBuf },
    #[error("the published table cannot be read: {0}")]
    Table(#[from] TableError),
    #[error("the table cannot be made: {0}")]
    Build(#[from] BuildError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The access key lacks the permission, or is unknown.
    Denied,
    Expired,
    /// The clocks of this machine and of the server differ too much.
    Clock,
    Region,
}

impl Refusal {
    /// Texts that S3's error responses contain:
    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>. The last is how the
    /// library reports a redirect to another region.
    const SIGNS: [(&'static str, Self); 7] = [
        ("<Code>ExpiredToken</Code>", Self::Expired),
        ("<Code>TokenRefreshRequired</Code>", Self::Expired),
        ("<Code>RequestTimeTooSkewed</Code>", Self::Clock),
        ("<Code>AuthorizationHeaderMalformed</Code>", Self::Region),
        ("<Code>PermanentRedirect</Code>", Self::Region),
        ("<Code>IllegalLocationConstraintException</Code>", Self::Region),
        ("incorrectly configured region", Self::Region),
    ];

    /// Why the server refused, if it did. The library has no specific error for refused listings,
    /// nor for some reasons.
    pub(crate) fn of(error: &Error) -> Option<Self> {
        let text = error.to_string();
        let is_denied =
            matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
                || text.contains("status code: 403")
                || text.contains("status code: 401");
        let sign = Self::SIGNS.iter().find(|(sign, _)| text.contains(sign));
        sign.map(|(_, refusal)| *refusal).or(is_denied.then_some(Self::Denied))
    }

    fn advice(self, address: &str) -> &'static str {
        match self {
            Self::Denied if address.starts_with("az://") => {
                "readers need the role Storage Blob Data Reader, publishers Storage Blob Data \
                 Contributor; check the key, the account and the container"
            }
            Self::Denied if address.starts_with("gs://") => {
                "readers need the role Storage Object Viewer, publishers Storage Object User; check \
                 the credentials and the bucket's permissions"
            }
            Self::Denied => {
                "readers need GetObject; publishers GetObject, PutObject, ListBucket and \
                 DeleteObject; check the key, the region and the bucket's policy"
            }
            Self::Expired => {
                "get new credentials, for instance with `aws sso login`, and set them where the old \
                 ones are"
            }
            Self::Clock => "set the clock of this machine",
            Self::Region => {
                "name the bucket's region: `--region`, or `region` under [remote] of scope.toml"
            }
        }
    }
}

impl BucketError {
    pub(crate) fn damaged(address: &impl std::fmt::Display, problem: impl Into<String>) -> Self {
        Self::Damaged { address: address.to_string(), problem: problem.into() }
    }

    pub(crate) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl Fn(std::io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// The error in one line, for a note.
    pub fn line(&self) -> String {
        text::line(&self.to_string(), 300)
    }

    /// What to do about an error for which that is always the same.
    fn advice(&self) -> &'static str {
        match self {
            Self::Address { .. } => {
                "write `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`"
            }
            Self::InvalidSetting(_) => "docs/buckets.md lists what [remote] may hold",
            Self::Credentials { .. } => {
                "set them in the environment (docs/buckets.md names the variables), or write \
                 `credentials = \"anonymous\"` or \"instance\" under [remote]"
            }
            Self::Refused { refusal, address, .. } => refusal.advice(address),
            Self::Unreachable { .. } | Self::Timeout { .. } => {
                "check the network, and the endpoint and the region (`--endpoint` and `--region`, or \
                 [remote] of scope.toml)"
            }
            Self::NoSuchBucket { .. } => {
                "correct the address and the endpoint, or create the bucket: publishing does not"
            }
            Self::OtherFormat { .. } => {
                "install the newest ack-memory; if you have it, publish the scope to an empty address"
            }
            Self::Unsafe { .. } => {
                "two publishers could destroy each other's work there; use a server that honours \
                 If-Match and If-None-Match"
            }
            Self::Conflict { .. } => "run the same command again to see the new plan",
            Self::NoSuchVersion { .. } => "`--list` shows the versions",
            Self::RestoresWithdrawn { .. } => "add `--restore ID` for each that may come back",
            Self::Busy { .. } => "wait until it has finished",
            Self::Copy { .. } => "run the command again: what is damaged is fetched again",
            Self::Table(_) => {
                "its files are as they were published: install the newest ack-memory, or have it \
                 published again with `--reindex`"
            }
            Self::Build(_) => "run the command again with `--reindex`",
            _ => "check the folder's permissions and the free space",
        }
    }

    /// Whether a version cannot be kept on this machine.
    pub const fn is_about_disk(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::TooLarge { .. })
    }

    /// Whether trying again later can help, without any change on this machine.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Timeout { .. })
    }
}

/// The cause of an error, without the layers around it.
pub(crate) fn reason(error: &Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(next) = last.source() {
        last = next;
    }
    let (error_text, root) = (error.to_string(), last.to_string());
    // The library prints the address, the time and its settings before the cause.
    let between = |tag: &str| {
        let (_, rest) = error_text.split_once(&format!("<{tag}>"))?;
        let (text, _) = rest.split_once(&format!("</{tag}>"))?;
        Some(text)
    };
    let cause = match (between("Code"), between("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        (None, _) if root.is_empty() => error_text,
        (None, _) => root,
    };
    text::line(&cause, 300)
}

/// A size for people, in whole units, rounded up.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        0x10_0000..0x4000_0000 => format!("{} MiB", bytes.div_ceil(1 << 20)),
        _ => format!("{} GiB", bytes.div_ceil(1 << 30)),
    }
}

impl Diagnostic for BucketError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Address { .. }
            | Self::NoSuchVersion { .. }
            | Self::PrunedVersion { .. }
            | Self::NotPublished { .. }
            | Self::OtherScope { .. } => ErrorCode::InvalidArgument,
            Self::InvalidSetting(_) => ErrorCode::InvalidSettings,
            Self::Io { .. } | Self::Copy { .. } => ErrorCode::IoError,
            Self::Store(error) => error.code(),
            _ => ErrorCode::BucketFailed,
        }
    }

    fn hints(&self) -> Vec<Hint> {
        const AGAIN: &str = "publish SCOPE --to ADDRESS";
        match self {
            Self::Missing { .. } | Self::Damaged { .. } => vec![
                Hint::command(AGAIN, "publishes it again"),
                Hint::command(
                    "publish SCOPE --to ADDRESS --list",
                    "shows the versions to go back to with --rollback",
                ),
            ],
            Self::NothingPublished { .. } => vec![
                Hint::advice("check the address"),
                Hint::command(AGAIN, "publishes a scope there"),
            ],
            Self::NotSuccessor { known, path, .. } => vec![
                Hint::advice(format!(
                    "version {known} is still served; if the bucket was started over on purpose, \
                     remove {}",
                    path.display()
                )),
                Hint::command(
                    AGAIN,
                    "repairs the bucket, if run on a machine that has the newest version",
                ),
            ],
            Self::TooLarge { .. } => vec![
                Hint::advice("make room on this disk"),
                Hint::command("serve --http", "on another machine can search it for all"),
            ],
            Self::OtherScope { published, .. } => vec![Hint::advice(format!(
                "publish to another address; to remove those memories for all readers and publish \
                 these instead, add `--replace {}`",
                quoted(&text::line(published, 100))
            ))],
            Self::PrunedVersion { oldest, .. } => vec![Hint::advice(format!(
                "the oldest that is left is v-{oldest}; `--list` shows all of them"
            ))],
            Self::NotPublished { .. } => vec![Hint::command(
                "query WORDS",
                "finds the ids, in a scope that follows the bucket",
            )],
            Self::Store(error) => error.hints(),
            _ => vec![Hint::advice(self.advice())],
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Io { path, .. }
            | Self::Busy { path }
            | Self::NotSuccessor { path, .. }
            | Self::Copy { path } => Some(path),
            Self::Store(error) => Some(&error.path),
            _ => None,
        }
    }
}
