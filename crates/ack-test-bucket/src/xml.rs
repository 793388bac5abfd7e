//! The XML of requests and answers, as S3 writes it.

use hyper::body::Bytes;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// The namespace of every answer.
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// An answer as XML, with the XML declaration.
pub(crate) fn to_xml(root: &str, answer: &impl Serialize) -> Bytes {
    let declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    let text = quick_xml::se::to_string_with_root(root, answer).unwrap_or_default();
    Bytes::from(format!("{declaration}{text}"))
}

/// Parses a request's body as XML.
///
/// # Errors
/// It does not have the expected form.
pub(crate) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Refusal> {
    let text = std::str::from_utf8(body).map_err(|_| Refusal::MalformedXml)?;
    quick_xml::de::from_str(text).map_err(|_| Refusal::MalformedXml)
}

/// The body of an error.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Error<'a> {
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) request_id: &'a str,
}

/// A page of a list.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ListBucketResult {
    #[serde(rename = "@xmlns")]
    pub(crate) namespace: Namespace,
    pub(crate) name: String,
    pub(crate) prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delimiter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) continuation_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_continuation_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) encoding_type: Option<&'static str>,
    pub(crate) key_count: usize,
    pub(crate) max_keys: usize,
    pub(crate) is_truncated: bool,
    pub(crate) contents: Vec<Contents>,
    pub(crate) common_prefixes: Vec<CommonPrefix>,
}

/// An object in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Contents {
    pub(crate) key: String,
    pub(crate) last_modified: String,
    #[serde(rename = "ETag")]
    pub(crate) etag: String,
    pub(crate) size: usize,
    pub(crate) storage_class: &'static str,
}

/// A common prefix of keys in a list, up to the delimiter.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct CommonPrefix {
    pub(crate) prefix: String,
}

/// The answer to a copy, of an object or a part.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct CopyResult {
    #[serde(rename = "@xmlns")]
    pub(crate) namespace: Namespace,
    pub(crate) last_modified: String,
    #[serde(rename = "ETag")]
    pub(crate) etag: String,
}

/// The answer to the beginning of an upload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct InitiateMultipartUploadResult<'a> {
    #[serde(rename = "@xmlns")]
    pub(crate) namespace: Namespace,
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
    pub(crate) upload_id: String,
}

/// The answer to the completion of an upload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct CompleteMultipartUploadResult<'a> {
    #[serde(rename = "@xmlns")]
    pub(crate) namespace: Namespace,
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
    #[serde(rename = "ETag")]
    pub(crate) etag: String,
}

/// The answer to deleting many objects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DeleteResult {
    #[serde(rename = "@xmlns")]
    pub(crate) namespace: Namespace,
    pub(crate) deleted: Vec<Deleted>,
}

/// A deleted object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Deleted {
    pub(crate) key: String,
}

/// The attribute that names the namespace.
#[derive(Debug, Default)]
pub(crate) struct Namespace;

impl Serialize for Namespace {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(NAMESPACE)
    }
}

/// A request to delete many objects.
#[derive(Debug, Deserialize)]
pub(crate) struct Delete {
    #[serde(rename = "Object", default)]
    pub(crate) objects: Vec<ObjectToDelete>,
    #[serde(rename = "Quiet", default)]
    pub(crate) quiet: bool,
}

/// An object to delete.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ObjectToDelete {
    pub(crate) key: String,
}

/// A request to complete an upload.
#[derive(Debug, Deserialize)]
pub(crate) struct CompleteMultipartUpload {
    #[serde(rename = "Part", default)]
    pub(crate) parts: Vec<Part>,
}

/// A part of an upload to be completed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Part {
    pub(crate) part_number: u32,
    #[serde(rename = "ETag")]
    pub(crate) etag: String,
}
