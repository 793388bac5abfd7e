//! The addresses of scopes and memories as MCP resources.
//!
//! Names and ids are percent-encoded except for unreserved characters (RFC 3986, 2.3), like the
//! simple expansion of a URI template (RFC 6570, 3.2.2). No part of an address becomes a path.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

pub const SCOPES: &str = "memory://scopes";
pub const SCOPE_TEMPLATE: &str = "memory://scope/{name}";
pub const MEMORY_TEMPLATE: &str = "memory://scope/{name}/memory/{id}";

/// The characters that are encoded: everything except letters, digits, `-`, `.`, `_` and `~`.
const PERCENT_ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What an address names. [`fmt::Display`] writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Scopes,
    Scope { name: String },
    Memory { scope: String, id: String },
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
            None => Some(Self::Scope { name: decode(rest)? }),
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
                write!(out, "memory://scope/{}", utf8_percent_encode(name, PERCENT_ENCODED))
            }
            Self::Memory { scope, id } => {
                let [scope, id] =
                    [scope, id].map(|part| utf8_percent_encode(part, PERCENT_ENCODED));
                write!(out, "memory://scope/{scope}/memory/{id}")
            }
        }
    }
}

/// The path of a file on this machine from its address (RFC 8089): `file:///a%20b`, `file:/a`,
/// `file://localhost/a`. `None` if it is not the address of such a file.
pub fn file_path(uri: &str) -> Option<PathBuf> {
    let (scheme, rest) = uri.trim().split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(rest) => {
            let (host, _) = rest.split_once('/')?;
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return None;
            }
            rest.get(host.len()..)?
        }
    };
    let path: Vec<u8> = percent_decode_str(path).collect();
    (path.first() == Some(&b'/') && !path.contains(&0))
        .then(|| PathBuf::from(OsString::from_vec(path)))
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

    #[test]
    fn the_address_of_a_file_is_its_path() {
        for (uri, path) in [
            ("file:///srv/shop", Some("/srv/shop")),
            ("file:///srv/caf%C3%A9%20au%20lait/", Some("/srv/café au lait/")),
            ("FILE://localhost/srv/100%25", Some("/srv/100%")),
            ("file:/srv/shop", Some("/srv/shop")),
            ("file://other.example/srv/shop", None),
            ("file:srv/shop", None),
            ("file:///srv/%00", None),
            ("/srv/shop", None),
            ("memory://scopes", None),
        ] {
            assert_eq!(file_path(uri), path.map(PathBuf::from), "{uri}");
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
