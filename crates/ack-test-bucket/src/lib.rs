//! An S3 bucket in memory, for tests and benchmarks. It is a real server on a loopback address:
//! clients reach it over HTTP, path-style (`http://127.0.0.1:PORT/BUCKET/KEY`).
//!
//! [`Bucket`] starts it on threads of its own, so that blocking tests can use it, and stops it when
//! it is dropped. Tests read and change the objects without a request, ask the log what was
//! requested, and switch trouble on and off while it runs: delay, a narrow line, errors, bodies
//! that end early, a server that never answers, one that ignores conditions.
//!
//! Conditions, ranges, uploads in parts and lists behave as Amazon's do. Signatures are not
//! verified, only which key signed. There are no versions, no tags and no access lists; such
//! requests are answered `NotImplemented`.

mod answer;
mod body;
mod bucket;
mod condition;
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
pub use hyper::body::Bytes;
pub use log::{Request, Traffic};
pub use route::Operation;
pub use switches::{Access, Action, Which};
