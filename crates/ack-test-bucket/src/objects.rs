//! The objects of the bucket.

use std::collections::BTreeMap;
use std::ops::Bound;

use hyper::HeaderMap;
use hyper::body::Bytes;
use jiff::Timestamp;

use crate::uploads::Uploads;

/// The contents of the server.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) objects: Objects,
    pub(crate) uploads: Uploads,
}

/// An object.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) bytes: Bytes,
    /// The `ETag`, in quotes.
    pub(crate) etag: String,
    pub(crate) modified: Timestamp,
    /// When it was written in microseconds, as Google's are; or more, if an earlier object of the
    /// bucket had that number.
    pub(crate) generation: u64,
    /// The headers that the writer set: content type and metadata.
    pub(crate) headers: HeaderMap,
}

impl Object {
    /// When it was written, in whole seconds, as in headers.
    pub(crate) fn second(&self) -> i64 {
        self.modified.as_second()
    }
}

/// A hash of bytes in quotes, as long as one from Amazon.
pub(crate) fn etag(bytes: &[u8]) -> String {
    format!("\"{:032x}\"", xxhash_rust::xxh3::xxh3_128(bytes))
}

/// Every object by its key.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    by_key: BTreeMap<String, Object>,
    /// The generation of the object that was written last.
    last_generation: u64,
}

impl Objects {
    pub(crate) fn keys(&self) -> Vec<String> {
        self.by_key.keys().cloned().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Object)> {
        self.by_key.iter()
    }

    /// Objects with keys after `key`, in order.
    pub(crate) fn after(&self, key: &str) -> impl Iterator<Item = (&String, &Object)> {
        let from = if key.is_empty() {
            Bound::Unbounded
        } else {
            Bound::Excluded(key)
        };
        self.by_key.range::<str, _>((from, Bound::Unbounded))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Object> {
        self.by_key.get(key)
    }

    /// Writes an object and returns its `ETag`.
    pub(crate) fn put(&mut self, key: &str, bytes: Bytes, headers: HeaderMap) -> String {
        let etag = etag(&bytes);
        self.put_as(key, bytes, headers, etag.clone());
        etag
    }

    /// Writes an object with the given `ETag`.
    pub(crate) fn put_as(&mut self, key: &str, bytes: Bytes, headers: HeaderMap, etag: String) {
        let modified = Timestamp::now();
        let microseconds = u64::try_from(modified.as_microsecond()).unwrap_or_default();
        self.last_generation = microseconds.max(self.last_generation.saturating_add(1));
        let object = Object {
            bytes,
            etag,
            modified,
            generation: self.last_generation,
            headers,
        };
        self.by_key.insert(key.to_owned(), object);
    }

    pub(crate) fn remove(&mut self, key: &str) -> bool {
        self.by_key.remove(key).is_some()
    }

    pub(crate) fn damage(&mut self, key: &str, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let Some(object) = self.by_key.get_mut(key) else {
            return false;
        };
        let mut bytes = object.bytes.to_vec();
        change(&mut bytes);
        object.bytes = bytes.into();
        true
    }
}
