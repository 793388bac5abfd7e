//! The bucket asked by other people's clients: ureq for plain HTTP, and the S3 client of
//! `object_store`.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod client;
mod http;
mod trouble;
mod web;
