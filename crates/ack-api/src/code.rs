//! The stable codes of errors, as `docs/tools.md` lists them.

use std::fmt;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident => $code:literal,)*) => {
        /// The kind of an error. Programs compare this; messages may change between versions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
        }

        impl ErrorCode {
            /// Every code, in alphabetical order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code as it appears in `code`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }
        }
    };
}

error_codes! {
    /// A bucket cannot be read or published to.
    BucketFailed => "bucket_failed",
    /// The client cancelled the request or disconnected.
    Cancelled => "cancelled",
    /// The server cannot listen on HTTP.
    CannotServe => "cannot_serve",
    /// The request exceeded its time limit.
    DeadlineExceeded => "deadline_exceeded",
    /// Only a person, or a script with their token, may decide about memories.
    DecisionRefused => "decision_refused",
    /// An import was refused.
    ImportRefused => "import_refused",
    /// The vector table of a scope cannot be built.
    IndexFailed => "index_failed",
    /// A bug in this program.
    InternalError => "internal_error",
    /// An argument has a value that is not allowed.
    InvalidArgument => "invalid_argument",
    /// A cursor does not belong to its request.
    InvalidCursor => "invalid_cursor",
    /// A settings file cannot be used.
    InvalidSettings => "invalid_settings",
    /// A file or stream cannot be read or written.
    IoError => "io_error",
    /// No scope contains the memory.
    MemoryNotFound => "memory_not_found",
    /// The status filter does not allow the memory.
    MemoryNotServed => "memory_not_served",
    /// There are no scopes.
    NoScopes => "no_scopes",
    /// The scope does not exist.
    ScopeNotFound => "scope_not_found",
    /// The server is pinned to another scope.
    ScopeRefused => "scope_refused",
    /// The scope's manifest is broken.
    ScopeUnusable => "scope_unusable",
    /// The store is damaged.
    StoreCorrupt => "store_corrupt",
    /// The store's file is empty.
    StoreEmpty => "store_empty",
    /// The database has no table of memories.
    StoreForeign => "store_foreign",
    /// Another program holds a lock on the store.
    StoreLocked => "store_locked",
    /// The database does not exist.
    StoreNotFound => "store_not_found",
    /// The file is not an SQLite database.
    StoreNotSqlite => "store_not_sqlite",
    /// The store cannot be read for another reason.
    StoreUnreadable => "store_unreadable",
    /// The store changed during every attempt to read it.
    StoreUnsteady => "store_unsteady",
    /// The tool does not have this argument.
    UnknownArgument => "unknown_argument",
    /// An upstream server answered with an error.
    UpstreamFailed => "upstream_failed",
    /// An upstream server does not offer the tool.
    UpstreamRefused => "upstream_refused",
    /// An upstream server did not answer in time.
    UpstreamTimeout => "upstream_timeout",
    /// An upstream server is not running.
    UpstreamUnavailable => "upstream_unavailable",
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
