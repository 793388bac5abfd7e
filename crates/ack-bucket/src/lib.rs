//! Approved memories in a bucket: publishing them, and following what is published.
//!
//! A publication is one Lance table with whole records, and one object that names its current
//! version ([`mod@format`]). [`publish`] builds a version and makes it visible in one step. A
//! reader fetches the files of a version (`fetch`) into a folder that all processes of a user
//! share (`cache`), and builds a native store from its records (`mirror`). From then on, a
//! bucket is read like any other scope: by the same code, without the network. [`follow`] decides
//! when to ask the bucket for a newer version, and never makes a request wait for long.
//!
//! `client` is the only place that talks to a server.

pub mod address;
mod cache;
mod client;
mod credentials;
mod error;
mod fetch;
pub mod follow;
pub mod format;
mod mirror;
pub mod publish;
mod servers;

pub use self::error::{BucketError, Refusal};
