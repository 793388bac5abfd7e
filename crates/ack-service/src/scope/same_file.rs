//! Whether two paths are the same file, including symbolic and hard links.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use super::Scope;

pub fn scope_with<'a>(scopes: &'a [Arc<Scope>], store: &Path) -> Option<&'a Arc<Scope>> {
    scopes
        .iter()
        .find(|scope| is_same(scope.store.path(), store))
}

pub fn is_same(one: &Path, other: &Path) -> bool {
    if one == other {
        return true;
    }
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}
