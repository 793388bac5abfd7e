//! The integration tests: one binary, a file for each subject. Real SQLite files, the real service,
//! the real binary.
#![allow(
    clippy::disallowed_methods,
    reason = "tests start the real binary and read where outside sets lie"
)]

#[macro_use]
mod support;

mod add;
mod agents;
mod approvals;
mod architecture;
mod arguments;
#[cfg(feature = "bucket")]
mod bucket;
#[cfg(feature = "bucket")]
mod bucket_again;
#[cfg(feature = "bucket")]
mod bucket_clouds;
#[cfg(feature = "bucket")]
mod bucket_credentials;
#[cfg(feature = "bucket")]
mod bucket_formats;
#[cfg(feature = "bucket")]
mod bucket_mistakes;
#[cfg(feature = "bucket")]
mod bucket_proofs;
#[cfg(feature = "bucket")]
mod bucket_reading;
#[cfg(feature = "bucket")]
mod bucket_trouble;
#[cfg(feature = "bucket")]
mod bucket_unwritable;
mod cancel;
mod changes;
mod chooser;
mod cli;
mod comes_back;
mod config_command;
mod connect;
mod connect_each;
mod connect_files;
mod connect_runner;
mod context;
#[cfg(feature = "table")]
mod contextual;
mod copies;
mod counts;
mod cross_project;
mod curate;
mod curation;
mod decision_log;
mod decision_text;
mod decisions;
mod desk;
mod desk_choices;
mod desk_full_screen;
mod desk_need;
mod desk_screen;
mod desk_session;
mod desk_terminal;
mod desk_twice;
mod detection;
mod docs;
mod doctor;
mod duplicate_ids;
mod eval;
mod evidence;
mod fifo;
mod flags;
mod flows;
mod fold;
mod folders;
mod forms;
mod get;
mod held_back;
mod hints;
mod history;
mod hook;
mod hook_failures;
mod hook_files;
mod http;
mod huge;
mod import;
mod languages;
#[cfg(feature = "table")]
mod large;
mod leak_states;
mod leaks;
mod lexical;
#[cfg(not(feature = "bucket"))]
mod light_build;
mod limits;
mod locked;
mod many_scopes;
mod mcp;
mod messages;
mod mistakes;
mod mixed_languages;
mod nearest;
mod note_formats;
mod notes_kept;
mod overload;
mod program_stores;
mod progress;
mod project_folder;
mod projects;
mod publish_unreadable;
mod query;
mod questions;
mod queue;
mod read_only;
mod readers;
mod real_stores;
mod recogniser;
mod relations;
mod renamed_notes;
mod resources;
mod same_id;
mod schemas;
mod scope_commands;
mod scopes;
mod screen;
mod semantic;
mod service_state;
mod serving_many;
mod sessions;
mod setup;
mod signed;
mod soak;
mod stale;
mod stale_queue;
mod store_live_writer;
mod store_opening;
mod store_profiles;
mod store_support;
mod store_values;
mod surface;
mod symbols;
#[cfg(feature = "table")]
mod table;
mod team_check;
mod team_docs;
mod team_publish;
mod team_reference;
mod terminal;
mod tokens;
mod untracked;
mod untrusted;
mod upstream;
mod written_by_programs;
