//! What the other crates need of the operating system: opening what is certainly a file ([`files`]), keeping something
//! open for a moment ([`idle_pool`]), and giving freed memory back ([`heap`]).

pub mod files;
pub mod heap;
pub mod idle_pool;
