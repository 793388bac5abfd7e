//! Parses requests: the operation, the key and the query.

use hyper::http::header::{AUTHORIZATION, RANGE};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use percent_encoding::percent_decode_str;

use crate::log::Request;

/// The header that makes a PUT a copy.
pub(crate) const COPY_SOURCE: &str = "x-amz-copy-source";

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Operation {
    /// Reading an object or a range of it.
    Get,
    /// Asking for an object's size, date and `ETag`.
    Head,
    /// Writing an object.
    Put,
    /// Copying an object to a new key.
    Copy,
    /// Deleting an object.
    Delete,
    /// Deleting up to a thousand objects.
    DeleteMany,
    /// A page of keys.
    List,
    /// Asking whether the bucket exists.
    HeadBucket,
    /// Starting a multipart upload.
    BeginUpload,
    /// A part of an upload.
    PutPart,
    /// Completing an upload.
    CompleteUpload,
    /// Aborting an upload.
    AbortUpload,
    /// Anything that this server does not support.
    Other,
}

impl Operation {
    /// Whether it changes the bucket.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::Head | Self::List | Self::HeadBucket)
    }
}

/// The query of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    fn parse(query: &str) -> Self {
        Self(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    /// The value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether a parameter asks for something that this server does not support.
    fn is_strange(&self) -> bool {
        const KNOWN: [&str; 13] = [
            "continuation-token",
            "delete",
            "delimiter",
            "encoding-type",
            "fetch-owner",
            "list-type",
            "max-keys",
            "partNumber",
            "prefix",
            "start-after",
            "uploadId",
            "uploads",
            "x-id",
        ];
        self.0
            .iter()
            .any(|(name, _)| !KNOWN.contains(&name.as_str()))
    }
}

/// A request without its body.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) operation: Operation,
    pub(crate) method: Method,
    pub(crate) bucket: String,
    /// Empty if the request is about the bucket.
    pub(crate) key: String,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    raw_query: String,
}

impl From<Parts> for Call {
    fn from(head: Parts) -> Self {
        let path = percent_decode_str(head.uri.path()).decode_utf8_lossy();
        let path = path.strip_prefix('/').unwrap_or(&path);
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let raw_query = head.uri.query().unwrap_or_default().to_owned();
        let query = Query::parse(&raw_query);
        Self {
            operation: operation(&head.method, key, &query, &head.headers),
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            method: head.method,
            query,
            headers: head.headers,
            raw_query,
        }
    }
}

impl Call {
    /// The header of this name, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The id of the key that signed the request (`AWS4-HMAC-SHA256 Credential=ID/date/…`), or the
    /// token that it carries (`Bearer TOKEN`).
    pub(crate) fn key_id(&self) -> Option<&str> {
        let signed = self.header(AUTHORIZATION.as_str())?;
        if let Some(token) = signed.strip_prefix("Bearer ") {
            return Some(token).filter(|token| !token.is_empty());
        }
        let (_, credential) = signed.split_once("Credential=")?;
        credential.split('/').next()
    }

    /// A new log entry for the request.
    pub(crate) fn logged(&self) -> Request {
        Request {
            operation: self.operation,
            method: self.method.clone(),
            key: self.key.clone(),
            query: self.raw_query.clone(),
            range: self.header(RANGE.as_str()).map(str::to_owned),
            key_id: self.key_id().map(str::to_owned),
            status: None,
            bytes_in: 0,
            bytes_out: 0,
            arrived: std::time::Duration::ZERO,
            duration: std::time::Duration::ZERO,
        }
    }
}

fn operation(method: &Method, key: &str, query: &Query, headers: &HeaderMap) -> Operation {
    if query.is_strange() {
        return Operation::Other;
    }
    let upload = query.has("uploadId");
    match (method.as_str(), key.is_empty()) {
        ("GET", true) if query.get("list-type") == Some("2") => Operation::List,
        ("HEAD", true) => Operation::HeadBucket,
        ("POST", true) if query.has("delete") => Operation::DeleteMany,
        ("GET", false) if !upload => Operation::Get,
        ("HEAD", false) => Operation::Head,
        ("PUT", false) if upload => Operation::PutPart,
        ("PUT", false) if headers.contains_key(COPY_SOURCE) => Operation::Copy,
        ("PUT", false) => Operation::Put,
        ("POST", false) if query.has("uploads") => Operation::BeginUpload,
        ("POST", false) if upload => Operation::CompleteUpload,
        ("DELETE", false) if upload => Operation::AbortUpload,
        ("DELETE", false) => Operation::Delete,
        _ => Operation::Other,
    }
}
