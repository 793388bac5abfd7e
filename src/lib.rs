//! work in progress
pub mod api;
pub mod cli;
pub mod config;
pub mod context;
pub mod demo;
pub mod error;
pub mod import;
pub mod mcp;
pub mod memory;
pub mod query;
pub mod scope;
pub mod service;
pub mod store;
pub mod text;
pub mod time;
