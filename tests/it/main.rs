//! The integration tests: one binary, a file for each subject. Real SQLite files, the real service, the real binary.

mod support;
