//! The tables of each program whose databases can be read.

pub mod ack;
pub mod claude_mem;
pub mod mcp_memory_service;

use crate::layout::{Layout, Table};

pub fn recognise(tables: &[Table]) -> Option<Layout> {
    claude_mem::recognise(tables)
        .or_else(|| ack::recognise(tables))
        .or_else(|| claude_mem::recognise_v3(tables))
        .or_else(|| mcp_memory_service::recognise(tables))
}
