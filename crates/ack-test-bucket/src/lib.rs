//! An S3 bucket in memory, for tests and benchmarks. It is a real server on a loopback address:
//! clients reach it over HTTP, path-style (`http://127.0.0.1:PORT/BUCKET/KEY`).
//!
//! [`Bucket`] starts it on its own threads, so that blocking tests can use it, and stops it when it
//! is dropped. Tests read and change the objects without a request, inspect the request log, and
//! inject faults while it runs: delays, low bandwidth, errors, bodies that end early, a server that
//! never answers, or one that ignores conditions.
//!
//! Conditions, ranges, multipart uploads and lists behave as on Amazon S3; with
//! [`Dialect::Google`], conditions are those of Google's XML API. Signatures are not verified; only
//! the id of the signing key, or the token, is read. There are no versions, tags or access lists;
//! such requests get `NotImplemented`.

mod answer;
mod body;
mod bucket;
mod condition;
mod dialect;
mod list;
mod log;
mod objects;
mod range;
mod refusal;
mod route;
mod server;
mod switches;
mod uploads;
mod xml;

pub use bucket::Bucket;
pub use dialect::Dialect;
pub use hyper::body::Bytes;
pub use log::{Request, Traffic};
pub use route::Operation;
pub use switches::{Access, Action, FaultRule};
