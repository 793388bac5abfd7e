//! The integration tests: one binary, a file for each subject. Real SQLite files, the real service, the real binary.
#![allow(clippy::disallowed_methods, reason = "tests start the real binary and read where outside sets lie")]

mod support;
