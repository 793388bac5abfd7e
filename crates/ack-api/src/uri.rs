//! The addresses of scopes and memories as MCP resources.
//!
//! Names and ids are percent-encoded except for unreserved characters (RFC 3986, 2.3), like the
//! simple expansion of a URI template (RFC 6570, 3.2.2). An address is a key: no part of it becomes
//! a path.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The address of the list of scopes.
pub const SCOPES: &str = "memory://scopes";
/// The template of a scope's address.
pub const SCOPE_TEMPLATE: &str = "memory://scope/{name}";
/// The template of a memory's address.
pub const MEMORY_TEMPLATE: &str = "memory://scope/{name}/memory/{id}";

/// The characters that are encoded: everything except letters, digits, `-`, `.`, `_` and `~`.
const PERCENT_ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What an address names. [`fmt::Display`] writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The list of scopes.
    Scopes,
    /// A scope.
    Scope {
        /// Its name.
        name: String,
    },
    /// A memory.
    Memory {
        /// The name of its scope.
        scope: String,
        /// Its id.
        id: String,
    },
}

impl Address {
    /// Parses an address. A `/` in an id may be unencoded.
    pub fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix("memory://")?;
        if rest == "scopes" {
            return Some(Self::Scopes);
        }
        let rest = rest.strip_prefix("scope/")?;
        match rest.split_once('/') {
            None => Some(Self::Scope {
                name: decode(rest)?,
            }),
            Some((scope, rest)) => Some(Self::Memory {
                scope: decode(scope)?,
                id: decode(rest.strip_prefix("memory/")?)?,
            }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scopes => out.write_str(SCOPES),
            Self::Scope { name } => {
                write!(
                    out,
                    "memory://scope/{}",
                    utf8_percent_encode(name, PERCENT_ENCODED)
                )
            }
            Self::Memory { scope, id } => {
                let (scope, id) = (
                    utf8_percent_encode(scope, PERCENT_ENCODED),
                    utf8_percent_encode(id, PERCENT_ENCODED),
                );
                write!(out, "memory://scope/{scope}/memory/{id}")
            }
        }
    }
}

fn decode(part: &str) -> Option<String> {
    let text = percent_decode_str(part).decode_utf8().ok()?;
    (!text.is_empty()).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_invalid_address_is_refused() {
        for uri in [
            "",
            "memory://",
            "memory://scopes/",
            "memory://scope",
            "memory://scope/",
            "memory://scope//memory/x",
            "memory://scope/a/memory/",
            "memory://scope/a/b",
            "memory://scope/%ff",
            "file:///scopes",
        ] {
            assert_eq!(Address::parse(uri), None, "{uri}");
        }
    }

    proptest! {
        #[test]
        fn every_name_and_id_round_trips(scope in "\\PC{1,40}", id in "\\PC{1,40}") {
            let memory = Address::Memory { scope: scope.clone(), id };
            prop_assert!(memory.to_string().is_ascii());
            prop_assert_eq!(Address::parse(&memory.to_string()), Some(memory));
            let scope = Address::Scope { name: scope };
            prop_assert_eq!(Address::parse(&scope.to_string()), Some(scope));
        }
    }
}
