//! Addresses of published memories.

use std::fmt;
use std::str::FromStr;

use crate::BucketError;
use crate::format::sha256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Amazon S3, or a server that speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Gcs,
    Azure,
}

/// Where memories are published: `s3://bucket/prefix`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    pub kind: Provider,
    /// The bucket; with Azure, the container.
    pub bucket: String,
    /// The prefix of all object names. It is not empty, and does not begin or end with a slash.
    pub prefix: String,
}

impl Address {
    /// The full key of an object.
    pub fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    /// A name for the local folder of what is fetched from this address.
    pub fn folder_name(&self) -> String {
        let mut digest = sha256(self.to_string().as_bytes());
        digest.truncate(12);
        digest
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.kind {
            Provider::S3 => "s3",
            Provider::Gcs => "gs",
            Provider::Azure => "az",
        };
        write!(out, "{scheme}://{}/{}", self.bucket, self.prefix)
    }
}

impl FromStr for Address {
    type Err = BucketError;

    fn from_str(value: &str) -> Result<Self, BucketError> {
        let refused =
            |problem| BucketError::Address { value: ack_api::text::line(value, 200), problem };
        let (scheme, rest) = value.trim().split_once("://").unwrap_or_default();
        let kind = match scheme {
            "s3" => Provider::S3,
            "gs" => Provider::Gcs,
            "az" => Provider::Azure,
            _ => return Err(refused("it does not begin with `s3://`, `gs://` or `az://`")),
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_matches('/');
        let is_plain = |text: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
            !text.is_empty() && text.chars().all(plain)
        };
        let is_path = prefix.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !bucket.is_empty() && prefix.is_empty() {
            return Err(refused("it names no prefix in the bucket"));
        }
        if !is_plain(bucket) || !is_plain(prefix) || !is_path {
            return Err(refused(
                "a bucket and a prefix have letters, digits, `-`, `_` and `.`, and single slashes",
            ));
        }
        Ok(Self { kind, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_bucket_and_a_prefix() {
        let address: Address = "s3://acme-memory/platform/".parse().unwrap();
        assert_eq!(address.to_string(), "s3://acme-memory/platform");
        assert_eq!(address.key("HEAD.json"), "platform/HEAD.json");
        for invalid in "s3://acme | s3:///x | http://acme/x | s3://acme/a/../b | s3://acme/a//b | \
            s3://acme/a b | acme/x | s3://acme/x?y"
            .split(" | ")
        {
            assert!(invalid.parse::<Address>().is_err(), "{invalid}");
        }
    }
}
