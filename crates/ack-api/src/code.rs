//! The stable codes of errors, as `docs/tools.md` lists them.

use std::fmt;

macro_rules! error_codes {
    ($($name:ident => $code:literal,)*) => {
        /// The kind of an error. Programs compare this; messages may change between versions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode {
            $($name,)*
        }

        impl ErrorCode {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }
        }
    };
}

error_codes! {
    BucketFailed => "bucket_failed",
    Cancelled => "cancelled",
    CannotServe => "cannot_serve",
    DeadlineExceeded => "deadline_exceeded",
    DecisionRefused => "decision_refused",
    ImportRefused => "import_refused",
    IndexFailed => "index_failed",
    InternalError => "internal_error",
    InvalidArgument => "invalid_argument",
    InvalidCursor => "invalid_cursor",
    InvalidSettings => "invalid_settings",
    IoError => "io_error",
    MemoryNotFound => "memory_not_found",
    MemoryNotServed => "memory_not_served",
    NoScopes => "no_scopes",
    ScopeNotFound => "scope_not_found",
    ScopeRefused => "scope_refused",
    ScopeUnusable => "scope_unusable",
    StoreCorrupt => "store_corrupt",
    StoreEmpty => "store_empty",
    StoreForeign => "store_foreign",
    StoreLocked => "store_locked",
    StoreNotFound => "store_not_found",
    StoreNotSqlite => "store_not_sqlite",
    StoreUnreadable => "store_unreadable",
    StoreUnsteady => "store_unsteady",
    UnknownArgument => "unknown_argument",
    UpstreamFailed => "upstream_failed",
    UpstreamRefused => "upstream_refused",
    UpstreamTimeout => "upstream_timeout",
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
        assert!(ErrorCode::ALL.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
    }
}
