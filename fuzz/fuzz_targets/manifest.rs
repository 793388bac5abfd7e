//! The settings files: `scope.toml` and `config.toml`. A bad one is refused with a line that
//! exists; the scope of a bad manifest is never read; a good one means the same after it was
//! written again.

#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use ack_memory::api::{ListScopesRequest, QueryRequest};
use ack_memory::{Config, SettingsError};
use ack_memory::internal::ConfigFile;
use ack_memory::internal::import::{self, ImportOptions};
use ack_api::memory::StatusFilter;
use ack_memory::internal::Manifest;
use ack_memory::Service;
use ack_memory_fuzz::{folder, inputs, now};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let root = root();
    let manifest = root.join("scopes/one/scope.toml");
    std::fs::write(&manifest, data).unwrap();
    let loaded = Manifest::load(&manifest);
    match &loaded {
        Ok(read) => {
            let again: Manifest = toml::from_str(&toml::to_string(read).unwrap()).unwrap();
            assert_eq!(&again, read);
        }
        Err(error) => check(error, data),
    }
    // A service of its own each time: this is about what is read, not about what is remembered.
    let service = Service::new(Config::load(inputs(root.clone())).unwrap());
    let listed = service.list_scopes(&ListScopesRequest::default()).unwrap();
    assert_eq!(listed.scopes.len(), 2);
    let found = service.query_memories(&QueryRequest {
        query: Some("learning".to_owned()),
        status: Some(StatusFilter::All),
        ..QueryRequest::default()
    });
    let found = found.unwrap();
    // If both have one store, the one scope's memory is folded into the other's.
    let mut shown = found
        .results
        .iter()
        .flat_map(|hit| [&hit.scope].into_iter().chain(hit.also.iter().map(|also| &also.scope)));
    assert!(shown.any(|scope| scope == "two"), "the other scope goes on");
    if loaded.is_err() {
        assert!(
            found.results.iter().all(|hit| hit.scope != "one"),
            "nobody knows who may read this one"
        );
    }

    let settings = root.join("settings");
    std::fs::write(settings.join("config.toml"), data).unwrap();
    match Config::load(inputs(settings)) {
        Ok(config) => {
            assert!((1..=50).contains(&config.limit.value) && (200..=20_000).contains(&config.tokens.value));
            assert!((16..=65_536).contains(&config.memory.value));
            // What is wrong with `[tools]` and `[upstream]` is reported where they are used.
            if let Err(error) = ack_memory::internal::Offer::load(&config, None, &|_| None) {
                return check(&error, data);
            }
            let read: ConfigFile = toml::from_str(std::str::from_utf8(data).unwrap()).unwrap();
            let again: ConfigFile = toml::from_str(&toml::to_string(&read).unwrap()).unwrap();
            assert_eq!(again, read);
        }
        Err(error) => check(&error, data),
    }
});

fn check(error: &SettingsError, data: &[u8]) {
    let said = error.to_string();
    assert!(!said.contains(char::is_control) && said.len() < 2_000, "{said:?}");
    if let SettingsError::Invalid { message, .. } | SettingsError::Offer { message, .. } = error {
        let line = message.strip_prefix("line ").and_then(|rest| rest.split(':').next()).unwrap();
        let lines = data.iter().filter(|byte| **byte == b'\n').count() + 1;
        assert!((1..=lines).contains(&line.parse().unwrap()), "{message} of {lines} lines");
    }
}

fn root() -> &'static PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let root = folder().join("manifests");
        for (scope, about) in [
            ("one", "tide tables of the harbour"),
            ("two", "gauges that show too little pressure"),
        ] {
            let folder = root.join("scopes").join(scope);
            std::fs::create_dir_all(&folder).unwrap();
            let line = format!(r#"{{"id":"{scope}","title":"A learning about {about}","status":"approved"}}"#);
            import::run(
                folder.join("memory.db"),
                &mut line.as_bytes(),
                ImportOptions::default(),
                now(),
            )
            .unwrap();
        }
        std::fs::create_dir_all(root.join("settings")).unwrap();
        root
    })
}
