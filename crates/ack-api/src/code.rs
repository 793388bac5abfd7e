//! The stable codes of errors, as `docs/tools.md` lists them.

use std::fmt;

/// The kind of an error. Programs compare this; messages may change between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    /// A bucket cannot be read or published to.
    BucketFailed,
    /// The client cancelled the request or disconnected.
    Cancelled,
    /// The server cannot listen on HTTP.
    CannotServe,
    /// The request exceeded its time limit.
    DeadlineExceeded,
    /// Only a person, or a script with their token, may decide about memories.
    DecisionRefused,
    /// An import was refused.
    ImportRefused,
    /// The vector table of a scope cannot be built.
    IndexFailed,
    /// A bug in this program.
    InternalError,
    /// An argument has a value that is not allowed.
    InvalidArgument,
    /// A cursor does not belong to its request.
    InvalidCursor,
    /// A settings file cannot be used.
    InvalidSettings,
    /// A file or stream cannot be read or written.
    IoError,
    /// No scope contains the memory.
    MemoryNotFound,
    /// The status filter does not allow the memory.
    MemoryNotServed,
    /// There are no scopes.
    NoScopes,
    /// The scope does not exist.
    ScopeNotFound,
    /// The server is pinned to another scope.
    ScopeRefused,
    /// The scope's manifest is broken.
    ScopeUnusable,
    /// The store is damaged.
    StoreCorrupt,
    /// The store's file is empty.
    StoreEmpty,
    /// The database has no table of memories.
    StoreForeign,
    /// Another program holds a lock on the store.
    StoreLocked,
    /// The database does not exist.
    StoreNotFound,
    /// The file is not an SQLite database.
    StoreNotSqlite,
    /// The store cannot be read for another reason.
    StoreUnreadable,
    /// The store changed during every attempt to read it.
    StoreUnsteady,
    /// The tool does not have this argument.
    UnknownArgument,
    /// An upstream server answered with an error.
    UpstreamFailed,
    /// An upstream server does not offer the tool.
    UpstreamRefused,
    /// An upstream server did not answer in time.
    UpstreamTimeout,
    /// An upstream server is not running.
    UpstreamUnavailable,
}

impl ErrorCode {
    /// Every code, in alphabetical order.
    pub const ALL: [Self; 31] = [
        Self::BucketFailed,
        Self::Cancelled,
        Self::CannotServe,
        Self::DeadlineExceeded,
        Self::DecisionRefused,
        Self::ImportRefused,
        Self::IndexFailed,
        Self::InternalError,
        Self::InvalidArgument,
        Self::InvalidCursor,
        Self::InvalidSettings,
        Self::IoError,
        Self::MemoryNotFound,
        Self::MemoryNotServed,
        Self::NoScopes,
        Self::ScopeNotFound,
        Self::ScopeRefused,
        Self::ScopeUnusable,
        Self::StoreCorrupt,
        Self::StoreEmpty,
        Self::StoreForeign,
        Self::StoreLocked,
        Self::StoreNotFound,
        Self::StoreNotSqlite,
        Self::StoreUnreadable,
        Self::StoreUnsteady,
        Self::UnknownArgument,
        Self::UpstreamFailed,
        Self::UpstreamRefused,
        Self::UpstreamTimeout,
        Self::UpstreamUnavailable,
    ];

    /// The code as it appears in `code`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BucketFailed => "bucket_failed",
            Self::Cancelled => "cancelled",
            Self::CannotServe => "cannot_serve",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::DecisionRefused => "decision_refused",
            Self::ImportRefused => "import_refused",
            Self::IndexFailed => "index_failed",
            Self::InternalError => "internal_error",
            Self::InvalidArgument => "invalid_argument",
            Self::InvalidCursor => "invalid_cursor",
            Self::InvalidSettings => "invalid_settings",
            Self::IoError => "io_error",
            Self::MemoryNotFound => "memory_not_found",
            Self::MemoryNotServed => "memory_not_served",
            Self::NoScopes => "no_scopes",
            Self::ScopeNotFound => "scope_not_found",
            Self::ScopeRefused => "scope_refused",
            Self::ScopeUnusable => "scope_unusable",
            Self::StoreCorrupt => "store_corrupt",
            Self::StoreEmpty => "store_empty",
            Self::StoreForeign => "store_foreign",
            Self::StoreLocked => "store_locked",
            Self::StoreNotFound => "store_not_found",
            Self::StoreNotSqlite => "store_not_sqlite",
            Self::StoreUnreadable => "store_unreadable",
            Self::StoreUnsteady => "store_unsteady",
            Self::UnknownArgument => "unknown_argument",
            Self::UpstreamFailed => "upstream_failed",
            Self::UpstreamRefused => "upstream_refused",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamUnavailable => "upstream_unavailable",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl PartialEq<&str> for ErrorCode {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_names_each_code_once() {
        assert!(ErrorCode::ALL.is_sorted());
        assert!(
            ErrorCode::ALL
                .windows(2)
                .all(|pair| pair[0].as_str() < pair[1].as_str())
        );
    }
}
