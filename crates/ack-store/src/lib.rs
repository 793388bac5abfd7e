//! Reads memory stores: SQLite databases of several programs, opened without changing anything.
//!
//! A [`Store`] provides [`Snapshot`]s. Everything read from one belongs to one state of the store.
//!
//! - Records come from a `database`, or from notes in a [`folder`]. `store` joins them with people's
//!   decisions.
//! - [`open`] decides how to open a database, [`vfs`] ensures that SQLite cannot write. [`copies`]
//!   are of databases that cannot be read in place, `idle_connections` stay open between reads.
//! - [`quick_state`] and [`table_version`] detect changes without opening anything.
//! - [`layout`] finds the tables and columns, and [`profiles`] knows those of each program.
//!   [`record`] and [`values`] decode rows.
//! - [`decisions`] joins the rows with what people decided about them, and `flags` holds back what
//!   only a person may approve.
//! - [`read`] answers queries about memories, `curated` about decisions, `replaced` about what a
//!   newer memory hides. [`outline`] scans a whole store that has no index yet.
//! - [`StoreError`] says why a store cannot be read, and [`hint`] what to do about it.

pub mod copies;
mod curated;
mod database;
pub mod decisions;
mod error;
mod flags;
pub mod folder;
pub mod hint;
mod idle_connections;
pub mod layout;
pub mod links;
pub mod open;
pub mod outline;
mod parallel_scan;
pub mod profiles;
pub mod projects;
pub mod prompts;
pub mod quick_state;
pub mod read;
pub mod record;
mod replaced;
mod rows_by_id;
pub mod sessions;
mod snapshot;
mod store;
pub mod table_version;
pub mod values;
pub mod vfs;

pub use self::database::Access;
pub use self::error::{NamedBy, StoreError, StoreProblem};
pub use self::snapshot::Snapshot;
pub use self::store::{READ_TIMEOUT, Store, StoreSettings};
