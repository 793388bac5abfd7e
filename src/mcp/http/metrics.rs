//! The server's metrics as OpenMetrics text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::request_record::RequestRecord;
use super::tokens::TokenClient;
use ack_service::Service;
use ack_service::scope::Registry as Scopes;

/// The media type of OpenMetrics.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the histogram in seconds. A typical answer takes some milliseconds.
const BOUNDS: [f64; 13] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 30.0,
];

/// The counters of one server.
pub struct Metrics {
    max_total: Counters,
    by_client: Mutex<BTreeMap<String, Counters>>,
    running: Gauge,
    clients: Gauge,
    tokens_broken: Gauge,
    start: Gauge<f64, AtomicU64>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Metrics")
    }
}

/// The requests of one client, or of all.
#[derive(Clone)]
struct Counters {
    requests: Family<RequestLabels, Counter>,
    seconds: Family<CallLabels, Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    client: String,
    method: &'static str,
    tool: String,
    outcome: &'static str,
    status: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    method: &'static str,
    tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ScopeLabels {
    scope: String,
}

impl Metrics {
    /// Counters that start at zero.
    pub fn new() -> Self {
        let start = Gauge::<f64, AtomicU64>::default();
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        start.set(since.map_or(0.0, |since| since.as_secs_f64()));
        Self {
            max_total: Counters::new(),
            by_client: Mutex::default(),
            running: Gauge::default(),
            clients: Gauge::default(),
            tokens_broken: Gauge::default(),
            start,
        }
    }

    /// Counts a request as running until the returned value is dropped.
    pub fn begin(&self) -> RunningRequestGauge {
        self.running.inc();
        RunningRequestGauge(self.running.clone())
    }

    /// Counts a finished request.
    pub fn count(&self, record: &RequestRecord) {
        self.max_total.count(record);
        if let Some(client) = &record.client {
            self.of_client(client).count(record);
        }
    }

    /// Records the state of the token file.
    pub fn set_tokens(&self, clients: usize, is_broken: bool) {
        self.clients.set(i64::try_from(clients).unwrap_or(i64::MAX));
        self.tokens_broken.set(i64::from(is_broken));
    }

    /// The metrics as text, with the present state of each scope. A client that may see only some
    /// scopes gets these and its own requests: nothing of other clients, nor of the whole server.
    pub fn text(&self, service: &Service, client: Option<&TokenClient>) -> String {
        let mut registry = Registry::with_prefix("ack_memory");
        let limited = client.and_then(|client| Some((client, client.entry.scopes.as_ref()?)));
        if let Some((client, names)) = limited {
            self.of_client(&client.name).register(&mut registry);
            register_scopes(
                &mut registry,
                service,
                &service.registry.limited(names.clone()),
            );
        } else {
            self.max_total.register(&mut registry);
            self.register_server(&mut registry);
            register_scopes(&mut registry, service, &service.registry);
        }
        registry.register_with_unit(
            "start_time",
            "When the server started, since 1970",
            Unit::Seconds,
            self.start.clone(),
        );
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of the program", build);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }

    fn of_client(&self, name: &str) -> Counters {
        let mut clients = self
            .by_client
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let counters = clients.entry(name.to_owned()).or_insert_with(Counters::new);
        counters.clone()
    }

    fn register_server(&self, registry: &mut Registry) {
        registry.register(
            "requests_under_way",
            "Requests not yet answered",
            self.running.clone(),
        );
        registry.register(
            "clients",
            "Clients in the file of tokens",
            self.clients.clone(),
        );
        registry.register(
            "tokens_broken",
            "1 while the file of tokens cannot be used as it is now",
            self.tokens_broken.clone(),
        );
        let resident = Gauge::<f64, AtomicU64>::default();
        resident.set(resident_bytes());
        registry.register_with_unit(
            "resident_memory",
            "Resident memory of the process; 0 if the system does not report it",
            Unit::Bytes,
            resident,
        );
    }
}

impl Counters {
    fn new() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
        }
    }

    fn count(&self, record: &RequestRecord) {
        let labels = RequestLabels {
            client: record.client.clone().unwrap_or_default(),
            method: record.method,
            tool: record.tool.clone(),
            outcome: record.outcome.as_str(),
            status: u32::from(record.status.as_u16()),
        };
        self.requests.get_or_create(&labels).inc();
        if record.method.is_empty() {
            return;
        }
        let labels = CallLabels {
            method: record.method,
            tool: record.tool.clone(),
        };
        self.seconds
            .get_or_create(&labels)
            .observe(record.seconds());
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(
            "requests",
            "Requests that were answered or refused",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "request_duration",
            "Time from the head of a request to its answer",
            Unit::Seconds,
            self.seconds.clone(),
        );
    }
}

/// Registers the present state of each scope.
fn register_scopes(registry: &mut Registry, service: &Service, scopes: &Scopes) {
    let readable = Family::<ScopeLabels, Gauge>::default();
    let index_bytes = Family::<ScopeLabels, Gauge>::default();
    let tables = Family::<ScopeLabels, Gauge>::default();
    let versions = Family::<ScopeLabels, Gauge>::default();
    for scope in scopes.discover().scopes {
        let labels = ScopeLabels {
            scope: scope.name.clone(),
        };
        let is_readable = scope.problem.is_none() && scope.store.file_state().is_ok();
        let bytes = i64::try_from(service.index_bytes(&scope)).unwrap_or(i64::MAX);
        let set = |family: &Family<ScopeLabels, Gauge>, value: i64| {
            family.get_or_create(&labels).set(value);
        };
        set(&readable, i64::from(is_readable));
        set(&index_bytes, bytes);
        set(&tables, i64::from(service.uses_table(&scope)));
        if let Some(remote) = &scope.remote {
            set(
                &versions,
                i64::try_from(remote.number()).unwrap_or(i64::MAX),
            );
        }
    }
    registry.register(
        "scope_readable",
        "1 if the scope's store can be read, else 0",
        readable,
    );
    registry.register_with_unit(
        "index",
        "Memory of a scope's index; 0 while there is none",
        Unit::Bytes,
        index_bytes,
    );
    registry.register(
        "table_in_use",
        "1 if the scope's index uses the vector table, else 0",
        tables,
    );
    registry.register(
        "published_version",
        "The version of a bucket that a scope serves; 0 if this machine has none yet",
        versions,
    );
}

/// A request that is not answered yet.
#[derive(Debug)]
pub struct RunningRequestGauge(Gauge);

impl Drop for RunningRequestGauge {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The resident memory of this process in bytes.
fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() * 1024.0
}
