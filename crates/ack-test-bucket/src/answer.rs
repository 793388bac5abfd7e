//! Answers requests to the bucket.

use hyper::body::Bytes;
use hyper::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE,
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, EXPIRES, HeaderName, HeaderValue,
    LAST_MODIFIED, RANGE,
};
use hyper::{HeaderMap, StatusCode};
use jiff::fmt::rfc2822::DateTimePrinter;
use percent_encoding::percent_decode_str;
use serde::Serialize;

use crate::condition;
use crate::dialect::{Dialect, GENERATION};
use crate::list::list;
use crate::objects::{Object, Store};
use crate::range;
use crate::refusal::Refusal;
use crate::route::{COPY_SOURCE, Call, Operation};
use crate::server::Shared;
use crate::switches::Access;
use crate::uploads::NamedPart;
use crate::xml;

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    fn new(status: StatusCode) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    fn xml(root: &str, answer: &impl Serialize) -> Self {
        let mut reply = Self::new(StatusCode::OK);
        reply.body = xml::to_xml(root, answer);
        reply.with(CONTENT_TYPE, "application/xml")
    }

    fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// The answer to a refused request.
    pub(crate) fn refused(refusal: Refusal, call: &Call, request_id: &str) -> Self {
        let error = xml::Error {
            code: refusal.code(),
            message: refusal.message(),
            resource: &format!("/{}/{}", call.bucket, call.key),
            request_id,
        };
        let mut reply = Self::xml("Error", &error);
        reply.status = refusal.status();
        if reply.status == StatusCode::NOT_MODIFIED || call.method == hyper::Method::HEAD {
            reply.body = Bytes::new();
        }
        match refusal {
            Refusal::InvalidRange { size } => reply.with(CONTENT_RANGE, &format!("bytes */{size}")),
            _ => reply,
        }
    }
}

/// Executes a request.
///
/// # Errors
/// An S3 error.
pub(crate) fn answer(shared: &Shared, call: &Call, body: Bytes) -> Result<Reply, Refusal> {
    if shared.switches.change(|switches| switches.failures.fires()) {
        return Err(Refusal::SlowDown);
    }
    check_access(shared, call)?;
    if call.bucket != shared.name {
        return Err(Refusal::NoSuchBucket);
    }
    if call
        .header("x-amz-content-sha256")
        .is_some_and(|sum| sum.starts_with("STREAMING-"))
    {
        return Err(Refusal::NotImplemented);
    }
    let mut store = shared.store.lock();
    let reply = match call.operation {
        Operation::Get | Operation::Head => read(&store, call),
        Operation::Put => put(shared, &mut store, call, body),
        Operation::Copy => copy(shared, &mut store, call),
        Operation::Delete => delete(shared, &mut store, call),
        Operation::DeleteMany => delete_many(&mut store, &body),
        Operation::List => {
            if shared.switches.change(|switches| switches.deny_list) {
                return Err(Refusal::AccessDenied);
            }
            let page = shared.switches.change(|switches| switches.page);
            let mut result = list(&store.objects, &call.query, page)?;
            result.name.clone_from(&shared.name);
            Ok(Reply::xml("ListBucketResult", &result))
        }
        Operation::HeadBucket => Ok(Reply::new(StatusCode::OK)),
        Operation::BeginUpload => {
            let upload_id = store
                .uploads
                .begin(&call.key, stored_headers(&call.headers));
            let result = xml::InitiateMultipartUploadResult {
                namespace: xml::Namespace,
                bucket: &call.bucket,
                key: &call.key,
                upload_id,
            };
            Ok(Reply::xml("InitiateMultipartUploadResult", &result))
        }
        Operation::PutPart => put_part(&mut store, call, body),
        Operation::CompleteUpload => complete(shared, &mut store, call, &body),
        Operation::AbortUpload => {
            store.uploads.end(&call.key, upload_id(call))?;
            Ok(Reply::new(StatusCode::NO_CONTENT))
        }
        Operation::Other => Err(Refusal::NotImplemented),
    }?;
    match (shared.dialect, store.objects.get(&call.key)) {
        (Dialect::Google, Some(object)) => Ok(reply.with(
            HeaderName::from_static(GENERATION),
            &object.generation.to_string(),
        )),
        _ => Ok(reply),
    }
}

fn check_access(shared: &Shared, call: &Call) -> Result<(), Refusal> {
    let key = match shared.switches.change(|switches| switches.access.clone()) {
        Access::Everybody => return Ok(()),
        Access::PublicRead(_) if !call.operation.writes() && call.key_id().is_none() => {
            return Ok(());
        }
        Access::Key(key) | Access::PublicRead(key) => key,
    };
    match call.key_id() {
        Some(id) if id == key => Ok(()),
        Some(_) => Err(Refusal::InvalidAccessKeyId),
        None => Err(Refusal::AccessDenied),
    }
}

/// Whether a write may happen now.
fn check_write(shared: &Shared, store: &Store, call: &Call) -> Result<(), Refusal> {
    if !condition::is_conditional(shared.dialect, &call.headers) {
        return Ok(());
    }
    let (conflict, ignore) = shared
        .switches
        .change(|switches| (switches.conflicts.fires(), switches.ignore_conditions));
    if conflict {
        return Err(Refusal::ConditionalRequestConflict);
    }
    if ignore {
        return Ok(());
    }
    let old = store.objects.get(&call.key);
    condition::check_write(shared.dialect, &call.headers, old)
}

fn read(store: &Store, call: &Call) -> Result<Reply, Refusal> {
    let object = store.objects.get(&call.key).ok_or(Refusal::NoSuchKey)?;
    condition::check_read(&call.headers, object)?;
    let size = object.bytes.len();
    let range = match call.header(RANGE.as_str()) {
        Some(header) => range::requested(header, size)?,
        None => None,
    };
    let mut reply = Reply::new(StatusCode::OK);
    reply.headers = object.headers.clone();
    reply = reply
        .with(ACCEPT_RANGES, "bytes")
        .with(ETAG, &object.etag)
        .with(LAST_MODIFIED, &http_date(object));
    reply.body = match range {
        None => object.bytes.clone(),
        Some(range) => {
            let last = range.end.saturating_sub(1);
            let range_header = format!("bytes {}-{last}/{size}", range.start);
            reply.status = StatusCode::PARTIAL_CONTENT;
            reply = reply.with(CONTENT_RANGE, &range_header);
            object.bytes.slice(range)
        }
    };
    if call.operation == Operation::Head {
        let length = reply.body.len().to_string();
        reply = reply.with(CONTENT_LENGTH, &length);
        reply.body = Bytes::new();
    }
    Ok(reply)
}

fn put(shared: &Shared, store: &mut Store, call: &Call, body: Bytes) -> Result<Reply, Refusal> {
    check_write(shared, store, call)?;
    let etag = store
        .objects
        .put(&call.key, body, stored_headers(&call.headers));
    Ok(Reply::new(StatusCode::OK).with(ETAG, &etag))
}

fn copy(shared: &Shared, store: &mut Store, call: &Call) -> Result<Reply, Refusal> {
    let source = copy_source(store, call)?;
    check_write(shared, store, call)?;
    let headers = match call.header("x-amz-metadata-directive") {
        Some("REPLACE") => stored_headers(&call.headers),
        _ => source.headers,
    };
    store
        .objects
        .put_as(&call.key, source.bytes, headers, source.etag);
    let copied = store.objects.get(&call.key).ok_or(Refusal::NoSuchKey)?;
    Ok(Reply::xml("CopyObjectResult", &copy_result(copied)))
}

/// The source object of a copy, which the header names as `/BUCKET/KEY`.
fn copy_source(store: &Store, call: &Call) -> Result<Object, Refusal> {
    let path = call.header(COPY_SOURCE).ok_or(Refusal::InvalidArgument)?;
    let path = percent_decode_str(path).decode_utf8_lossy();
    let path = path.strip_prefix('/').unwrap_or(&path);
    let (bucket, key) = path.split_once('/').ok_or(Refusal::InvalidArgument)?;
    if bucket != call.bucket {
        return Err(Refusal::NoSuchBucket);
    }
    store.objects.get(key).cloned().ok_or(Refusal::NoSuchKey)
}

fn copy_result(copied: &Object) -> xml::CopyResult {
    xml::CopyResult {
        namespace: xml::Namespace,
        last_modified: copied.modified.to_string(),
        etag: copied.etag.clone(),
    }
}

fn delete(shared: &Shared, store: &mut Store, call: &Call) -> Result<Reply, Refusal> {
    check_write(shared, store, call)?;
    store.objects.remove(&call.key);
    Ok(Reply::new(StatusCode::NO_CONTENT))
}

fn delete_many(store: &mut Store, body: &Bytes) -> Result<Reply, Refusal> {
    let delete: xml::Delete = xml::read(body)?;
    if delete.objects.is_empty() || delete.objects.len() > 1000 {
        return Err(Refusal::MalformedXml);
    }
    for object in &delete.objects {
        store.objects.remove(&object.key);
    }
    let reported = delete.objects.into_iter().filter(|_| !delete.quiet);
    let result = xml::DeleteResult {
        namespace: xml::Namespace,
        deleted: reported
            .map(|object| xml::Deleted { key: object.key })
            .collect(),
    };
    Ok(Reply::xml("DeleteResult", &result))
}

fn upload_id(call: &Call) -> &str {
    call.query.get("uploadId").unwrap_or_default()
}

fn put_part(store: &mut Store, call: &Call, body: Bytes) -> Result<Reply, Refusal> {
    let number = call
        .query
        .get("partNumber")
        .and_then(|number| number.parse().ok());
    let number = number.ok_or(Refusal::InvalidArgument)?;
    if call.headers.contains_key(COPY_SOURCE) {
        return copy_part(store, call, number);
    }
    let etag = store
        .uploads
        .put(&call.key, upload_id(call), number, body)?;
    Ok(Reply::new(StatusCode::OK).with(ETAG, &etag))
}

fn copy_part(store: &mut Store, call: &Call, number: u32) -> Result<Reply, Refusal> {
    let source = copy_source(store, call)?;
    let bytes = match call.header("x-amz-copy-source-range") {
        None => source.bytes.clone(),
        Some(header) => {
            let range = range::requested(header, source.bytes.len())?;
            source.bytes.slice(range.ok_or(Refusal::InvalidArgument)?)
        }
    };
    let etag = store
        .uploads
        .put(&call.key, upload_id(call), number, bytes)?;
    let mut result = copy_result(&source);
    result.etag = etag;
    Ok(Reply::xml("CopyPartResult", &result))
}

fn complete(
    shared: &Shared,
    store: &mut Store,
    call: &Call,
    body: &Bytes,
) -> Result<Reply, Refusal> {
    let request: xml::CompleteMultipartUpload = xml::read(body)?;
    let parts = request.parts.into_iter();
    let requested_parts: Vec<NamedPart> = parts
        .map(|part| NamedPart {
            number: part.part_number,
            etag: part.etag,
        })
        .collect();
    let completed = store
        .uploads
        .complete(&call.key, upload_id(call), &requested_parts)?;
    check_write(shared, store, call)?;
    store.objects.put_as(
        &call.key,
        completed.bytes,
        completed.headers,
        completed.etag.clone(),
    );
    store.uploads.end(&call.key, upload_id(call))?;
    let result = xml::CompleteMultipartUploadResult {
        namespace: xml::Namespace,
        bucket: &call.bucket,
        key: &call.key,
        etag: completed.etag,
    };
    Ok(Reply::xml("CompleteMultipartUploadResult", &result))
}

/// The headers of a write that are returned to readers.
fn stored_headers(headers: &HeaderMap) -> HeaderMap {
    const STORED_HEADERS: [HeaderName; 6] = [
        CACHE_CONTROL,
        CONTENT_DISPOSITION,
        CONTENT_ENCODING,
        CONTENT_LANGUAGE,
        CONTENT_TYPE,
        EXPIRES,
    ];
    let is_kept = |name: &HeaderName| {
        STORED_HEADERS.contains(name) || name.as_str().starts_with("x-amz-meta-")
    };
    let headers = headers.iter().filter(|(name, _)| is_kept(name));
    headers
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn http_date(object: &Object) -> String {
    let printer = DateTimePrinter::new();
    printer
        .timestamp_to_rfc9110_string(&object.modified)
        .unwrap_or_default()
}
