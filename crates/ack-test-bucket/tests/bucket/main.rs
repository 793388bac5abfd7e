//! The bucket asked by other people's clients: ureq for plain HTTP, and the S3 client of
//! `object_store`.

mod client;
mod http;
mod trouble;
mod web;
