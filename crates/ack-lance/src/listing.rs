//! The listing of a store's rows, as the last build found it. As long as the files of the store are
//! in the same state, a reader need not list them.

use std::hash::{Hash, Hasher};
use std::path::Path;

use ack_search::inverted::sync::Listing;
use ack_store::Store;
use ack_store::open::FileState;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::TableError;
use super::columns::COLUMNS_VERSION;

const FILE_NAME: &str = "listing";
const MAX_BYTES: u64 = 1 << 30;

/// Identifies what a listing depends on: the files of the store, its policy, and this program.
pub fn key(store: &Store, state: &FileState) -> u64 {
    let mut hasher = Xxh3Default::new();
    (env!("CARGO_PKG_VERSION"), COLUMNS_VERSION).hash(&mut hasher);
    store.unreviewed().status().as_str().hash(&mut hasher);
    state.hash(&mut hasher);
    hasher.finish()
}

/// Writes the listing of a state. The file is the key, the hash of the listing, and the listing.
pub fn write(folder: &Path, key: u64, listing: &Listing) -> Result<(), TableError> {
    let listing = listing.to_bytes();
    let hash = xxh3_64(&listing).to_le_bytes();
    // One build at a time writes it.
    let (new, path) = (folder.join(format!("{FILE_NAME}.new")), folder.join(FILE_NAME));
    std::fs::write(&new, [&key.to_le_bytes()[..], &hash, &listing].concat())
        .and_then(|()| std::fs::rename(&new, &path))
        .map_err(TableError::io("write", &path))
}

/// The listing of a store that is still in the state of the last build.
pub fn read(folder: &Path, key: u64) -> Option<Listing> {
    let bytes = ack_sys::files::read(&folder.join(FILE_NAME), MAX_BYTES).ok()?;
    let (known, rest) = bytes.split_first_chunk::<8>()?;
    let (hash, listing) = rest.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*known) != key || u64::from_le_bytes(*hash) != xxh3_64(listing) {
        return None;
    }
    Listing::from_bytes(listing)
}
