//! Whose protocol the server speaks.

/// The protocol of a cloud. Both have the same paths, ranges, lists and uploads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Amazon's S3: writes have the conditions `If-Match` and `If-None-Match`, and requests are
    /// signed with a key.
    #[default]
    Amazon,
    /// Google's XML API: each object has a generation, writes have the condition
    /// `x-goog-if-generation-match` and no other, and requests carry a token. See
    /// <https://cloud.google.com/storage/docs/xml-api/reference-headers>.
    Google,
}

/// The generation of an object, in answers of Google's API.
pub(crate) const GENERATION: &str = "x-goog-generation";
/// The generation that an object must have; 0 for an object that must not exist.
pub(crate) const IF_GENERATION: &str = "x-goog-if-generation-match";
