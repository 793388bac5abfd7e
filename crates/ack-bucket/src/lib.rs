//! Approved memories in a bucket: publishing them, and following what was published.
//!
//! What is published is one Lance table, which has whole records, and one object that names the
//! current version of it ([`mod@format`]). [`publish`] makes a version and shows it in one step. A reader
//! fetches the files of a version ([`fetch`]) into a folder that all processes of a user share
//! ([`cache`]), and makes a native store of its records ([`mirror`]). From there on a bucket is read
//! as any other scope is: by the same code, without the network. [`follow`] decides when the bucket
//! is asked for news, and never lets a question wait for long.
//!
//! [`client`] is the only place that talks to a server.

pub mod address;
pub mod cache;
pub mod client;
mod error;
pub mod fetch;
pub mod follow;
pub mod format;
pub mod mirror;
pub mod publish;
mod servers;

pub use self::error::BucketError;
