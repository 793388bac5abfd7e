//! As much of the protocol of S3 as the program needs, and the conditions and states of Google's.

use std::collections::HashMap;

use bytes::Bytes;
use futures::TryStreamExt;
use hyper::Method;
use hyper::http::request::Parts;
use object_store::memory::InMemory;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, UpdateVersion,
};
use percent_encoding::percent_decode_str;

use crate::{NAME, Operation, Request};

/// Google's name for the state of an object, and its condition.
const GENERATION: &str = "x-goog-generation";
const IF_GENERATION: &str = "x-goog-if-generation-match";
/// The headers that make a request conditional.
const CONDITIONS: [&str; 3] = ["if-match", "if-none-match", IF_GENERATION];
/// Generations begin above this number: 0 means at Google that there is no object.
const FIRST_GENERATION: u64 = 1_000;

pub(crate) struct Call {
    pub(crate) request: Request,
    method: Method,
    bucket: String,
    query: HashMap<String, String>,
    body: Bytes,
    pub(crate) conditions: HashMap<&'static str, String>,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl Reply {
    fn new(status: u16, headers: Vec<(&'static str, String)>, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let length = ("content-length", body.len().to_string());
        Self { status, headers: headers.into_iter().chain([length]).collect(), body }
    }

    fn empty(status: u16) -> Self {
        Self::new(status, Vec::new(), Bytes::new())
    }

    fn xml(text: &str) -> Self {
        let kind = ("content-type", "application/xml".to_owned());
        Self::new(200, vec![kind], text.to_owned())
    }

    pub(crate) fn refusal(status: u16, code: &str) -> Self {
        let text = format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>");
        Self::new(status, Vec::new(), text)
    }
}

impl From<Error> for Reply {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound { .. } => Self::refusal(404, "NoSuchKey"),
            Error::AlreadyExists { .. } | Error::Precondition { .. } => {
                Self::refusal(412, "PreconditionFailed")
            }
            Error::NotModified { .. } => Self::empty(304),
            _ => Self::refusal(400, "InvalidRequest"),
        }
    }
}

impl Call {
    pub(crate) fn new(head: &Parts, body: Bytes) -> Self {
        let header = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
        let path = decoded(head.uri.path().trim_start_matches('/'));
        let (bucket, key) = path.split_once('/').unwrap_or((&path, ""));
        let query = head.uri.query().unwrap_or_default().split('&');
        let query = query.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), decoded(value))
        });
        let query: HashMap<String, String> = query.collect();
        let operation = if head.method == Method::DELETE || query.contains_key("delete") {
            Operation::Delete
        } else if head.method != Method::GET {
            Operation::Put
        } else if key.is_empty() {
            Operation::List
        } else {
            Operation::Get
        };
        let request = Request {
            operation,
            key: key.to_owned(),
            range: header("range"),
            key_id: header("authorization").and_then(|signed| key_id(&signed)),
            bytes_in: body.len() as u64,
            bytes_out: 0,
        };
        let conditions = CONDITIONS.into_iter().filter_map(|name| Some((name, header(name)?)));
        Self {
            request,
            method: head.method.clone(),
            bucket: bucket.to_owned(),
            query,
            body,
            conditions: conditions.collect(),
        }
    }

    pub(crate) async fn answer(&self, objects: &InMemory) -> Reply {
        if self.bucket != NAME {
            return Reply::refusal(404, "NoSuchBucket");
        }
        let path = Path::from(self.request.key.as_str());
        let answered = match (self.method.as_str(), self.query.get("uploadId")) {
            ("POST" | "PUT" | "DELETE", Some(id)) => self.upload(objects, &path, id).await,
            ("POST", None) if self.query.contains_key("uploads") => {
                begin_upload(objects, &path).await
            }
            ("POST", None) => self.delete_many(objects).await,
            ("PUT", None) => self.put(objects, &path).await,
            ("DELETE", None) => objects.delete(&path).await.map(|()| Reply::empty(204)),
            _ if self.request.key.is_empty() => self.list(objects).await,
            _ => self.get(objects, &path).await,
        };
        answered.unwrap_or_else(Reply::from)
    }

    async fn get(&self, objects: &InMemory, path: &Path) -> Result<Reply, Error> {
        let range = self.request.range.as_deref().and_then(parse_range);
        let is_part = range.is_some();
        let options = GetOptions {
            if_none_match: self.conditions.get("if-none-match").cloned(),
            range,
            ..GetOptions::default()
        };
        let found = objects.get_opts(path, options).await?;
        let mut headers = state(found.meta.e_tag.as_deref());
        headers.push(("last-modified", found.meta.last_modified.to_rfc2822()));
        if is_part {
            let (range, size) = (&found.range, found.meta.size);
            let last = range.end.saturating_sub(1);
            headers.push(("content-range", format!("bytes {}-{last}/{size}", range.start)));
        }
        let status = if is_part { 206 } else { 200 };
        Ok(Reply::new(status, headers, found.bytes().await?))
    }

    async fn put(&self, objects: &InMemory, path: &Path) -> Result<Reply, Error> {
        let put = objects.put_opts(path, self.body.clone().into(), self.mode().into()).await?;
        Ok(Reply::new(200, state(put.e_tag.as_deref()), Bytes::new()))
    }

    /// How an object is written, by the conditions of the request.
    fn mode(&self) -> PutMode {
        let update =
            |e_tag: String| PutMode::Update(UpdateVersion { e_tag: Some(e_tag), version: None });
        if let Some(tag) = self.conditions.get("if-match") {
            return update(tag.clone());
        }
        if self.conditions.contains_key("if-none-match") {
            return PutMode::Create;
        }
        let generation: Option<u64> = match self.conditions.get(IF_GENERATION) {
            None => return PutMode::Overwrite,
            Some(text) => text.parse().ok(),
        };
        if generation == Some(0) {
            return PutMode::Create;
        }
        // No object has a generation that is lower, so none is in the state that it names.
        let number = generation.and_then(|number| number.checked_sub(FIRST_GENERATION));
        update(number.map_or_else(String::new, |number| format!("\"{number}\"")))
    }

    /// A part of a large object, or the end of its upload.
    async fn upload(&self, objects: &InMemory, path: &Path, id: &String) -> Result<Reply, Error> {
        match self.method.as_str() {
            "PUT" => {
                let number = self.query.get("partNumber").and_then(|text| text.parse().ok());
                let place = number.unwrap_or(1_usize).saturating_sub(1);
                objects.put_part(path, id, place, self.body.clone().into()).await?;
                Ok(Reply::new(200, state(Some("\"0\"")), Bytes::new()))
            }
            "POST" => {
                let put = objects.complete_multipart(path, id, Vec::new()).await?;
                let tag = put.e_tag.unwrap_or_default();
                Ok(Reply::xml(&format!(
                    "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
                )))
            }
            _ => {
                objects.abort_multipart(path, id).await?;
                Ok(Reply::empty(204))
            }
        }
    }

    async fn delete_many(&self, objects: &InMemory) -> Result<Reply, Error> {
        let asked = String::from_utf8_lossy(&self.body);
        let mut removed = String::new();
        for key in asked.split("<Key>").skip(1) {
            let key = key.split('<').next().unwrap_or_default();
            objects.delete(&Path::from(key)).await?;
            removed += &format!("<Deleted><Key>{key}</Key></Deleted>");
        }
        Ok(Reply::xml(&format!("<DeleteResult>{removed}</DeleteResult>")))
    }

    async fn list(&self, objects: &InMemory) -> Result<Reply, Error> {
        let prefix = self.query.get("prefix").map(|prefix| Path::from(prefix.as_str()));
        let found: Vec<ObjectMeta> = objects.list(prefix.as_ref()).try_collect().await?;
        let mut contents = String::new();
        for ObjectMeta { location, size, last_modified, .. } in found {
            let modified = last_modified.to_rfc3339();
            contents += &format!("<Contents><Key>{location}</Key><Size>{size}</Size>");
            contents += &format!("<LastModified>{modified}</LastModified></Contents>");
        }
        Ok(Reply::xml(&format!("<ListBucketResult>{contents}</ListBucketResult>")))
    }
}

async fn begin_upload(objects: &InMemory, path: &Path) -> Result<Reply, Error> {
    let id = objects.create_multipart(path).await?;
    Ok(Reply::xml(&format!(
        "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
    )))
}

/// The state of an object in the words of both protocols.
fn state(tag: Option<&str>) -> Vec<(&'static str, String)> {
    let tag = tag.unwrap_or_default();
    let number: u64 = tag.trim_matches('"').parse().unwrap_or_default();
    let generation = FIRST_GENERATION.saturating_add(number);
    vec![("etag", tag.to_owned()), (GENERATION, generation.to_string())]
}

/// The id of the key that signed a request (`AWS4-HMAC-SHA256 Credential=ID/date/…`), or the token
/// that it carries (`Bearer TOKEN`).
fn key_id(signed: &str) -> Option<String> {
    if let Some(token) = signed.strip_prefix("Bearer ") {
        return Some(token.to_owned());
    }
    let (_, credential) = signed.split_once("Credential=")?;
    credential.split('/').next().map(str::to_owned)
}

/// The range that a header `bytes=FIRST-LAST` asks for; `LAST` may be missing.
fn parse_range(header: &str) -> Option<GetRange> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let first = first.parse().ok()?;
    let range = match last.parse::<u64>() {
        Ok(last) => GetRange::Bounded(first..last.saturating_add(1)),
        Err(_) => GetRange::Offset(first),
    };
    Some(range)
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
