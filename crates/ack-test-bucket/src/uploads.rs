//! Multipart uploads.

use std::collections::BTreeMap;

use hyper::HeaderMap;
use hyper::body::Bytes;

use crate::objects::etag;
use crate::refusal::Refusal;

/// The smallest size of a part that is not the last.
const MIN_PART_BYTES: usize = 5 << 20;
/// The highest part number.
const MAX_PART_NUMBER: u32 = 10_000;

/// A part in the request that completes an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPart {
    pub(crate) number: u32,
    pub(crate) etag: String,
}

#[derive(Debug)]
struct Upload {
    key: String,
    headers: HeaderMap,
    parts: BTreeMap<u32, Bytes>,
}

/// An object assembled from its parts.
#[derive(Debug)]
pub(crate) struct CompletedUpload {
    pub(crate) bytes: Bytes,
    pub(crate) headers: HeaderMap,
    pub(crate) etag: String,
}

/// Every unfinished upload by its id.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    begun: u64,
    unfinished: BTreeMap<String, Upload>,
}

impl Uploads {
    /// Starts an upload and returns its id.
    pub(crate) fn begin(&mut self, key: &str, headers: HeaderMap) -> String {
        self.begun += 1;
        let id = format!("upload-{:08}", self.begun);
        let upload = Upload {
            key: key.to_owned(),
            headers,
            parts: BTreeMap::new(),
        };
        self.unfinished.insert(id.clone(), upload);
        id
    }

    /// Stores a part and returns its `ETag`.
    pub(crate) fn put(
        &mut self,
        key: &str,
        id: &str,
        number: u32,
        bytes: Bytes,
    ) -> Result<String, Refusal> {
        if !(1..=MAX_PART_NUMBER).contains(&number) {
            return Err(Refusal::InvalidArgument);
        }
        let upload = self.unfinished.get_mut(id);
        let upload = upload
            .filter(|upload| upload.key == key)
            .ok_or(Refusal::NoSuchUpload)?;
        let etag = etag(&bytes);
        upload.parts.insert(number, bytes);
        Ok(etag)
    }

    /// The object assembled from the given parts. The upload stays until [`Self::end`].
    pub(crate) fn complete(
        &self,
        key: &str,
        id: &str,
        requested: &[NamedPart],
    ) -> Result<CompletedUpload, Refusal> {
        let upload = self.unfinished.get(id).filter(|upload| upload.key == key);
        let upload = upload.ok_or(Refusal::NoSuchUpload)?;
        if requested.is_empty() {
            return Err(Refusal::MalformedXml);
        }
        if !requested.is_sorted_by(|one, next| one.number < next.number) {
            return Err(Refusal::InvalidPartOrder);
        }
        let parts = requested
            .iter()
            .map(|part| {
                let bytes = upload.parts.get(&part.number);
                bytes.filter(|bytes| etag(bytes).trim_matches('"') == part.etag.trim_matches('"'))
            })
            .collect::<Option<Vec<&Bytes>>>()
            .ok_or(Refusal::InvalidPart)?;
        let (_, all_but_last) = parts.split_last().ok_or(Refusal::MalformedXml)?;
        if all_but_last.iter().any(|part| part.len() < MIN_PART_BYTES) {
            return Err(Refusal::EntityTooSmall);
        }
        let count = parts.len();
        let bytes = Bytes::from(concat(parts));
        let etag = format!("\"{}-{count}\"", etag(&bytes).trim_matches('"'));
        let headers = upload.headers.clone();
        Ok(CompletedUpload {
            bytes,
            headers,
            etag,
        })
    }

    /// Ends an upload and discards its parts.
    pub(crate) fn end(&mut self, key: &str, id: &str) -> Result<(), Refusal> {
        if self
            .unfinished
            .get(id)
            .is_none_or(|upload| upload.key != key)
        {
            return Err(Refusal::NoSuchUpload);
        }
        self.unfinished.remove(id);
        Ok(())
    }

    /// The keys of the unfinished uploads, in the order in which they were started.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.unfinished
            .values()
            .map(|upload| upload.key.clone())
            .collect()
    }

    /// The bytes of every part.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Bytes> {
        self.unfinished
            .values()
            .flat_map(|upload| upload.parts.values())
    }
}

/// Concatenates bytes.
pub(crate) fn concat<'a>(pieces: impl IntoIterator<Item = &'a Bytes>) -> Vec<u8> {
    pieces.into_iter().fold(Vec::new(), |mut all, bytes| {
        all.extend_from_slice(bytes);
        all
    })
}
