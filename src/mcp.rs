//! The Model Context Protocol. Only this module of the package names rmcp; `ack-gateway` uses it
//! for the other side, as a client.
//!
//! The tools come from a [`crate::toolset`]: the built-in four, unless the owner configured others.
//! A call is translated and decoded here, then passed to [`ack_service`] on a blocking thread.
//! The answer (`answer.rs`) has structured content, and the same content as Markdown (`markdown.rs`). A client
//! that shows its model both gets one of the two (`client.rs`). A failure is an error
//! result whose text is the error body. A panic is caught and answered, because rmcp would leave
//! the client waiting. Resources and prompts (`resources.rs`, `prompts.rs`) work the
//! same way, but a failure there is a protocol error. Calls of upstream tools go to `ack_gateway`,
//! whose results are passed on.

mod answer;
mod client;
mod handler;
pub mod http;
mod markdown;
mod message;
mod prompts;
mod resources;
mod roots;
pub mod signals;
mod stdio;
mod trouble;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rmcp::model::{CallToolResult, ContentBlock, MetaObject, Tool as ListedTool, ToolAnnotations};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::io::stdio_pipes;
use rmcp::{ErrorData, ServiceExt};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::answer::{Answer, error_result, protocol_error, to_json};
use self::client::Quirks;
use self::handler::CatchingServer;
use self::roots::Roots;
pub use self::trouble::Start;
use self::trouble::Trouble;
use crate::offer::Offer;
use crate::toolset::call::Call;
use crate::toolset::{OfferedTool as Own, Place, Tool, Toolset, schema};
use ack_api::cancel::{self, CancelFlag, CancelOnDrop, Stopped};
use ack_api::{ContextRequest, GetRequest, ListScopesRequest, QueryRequest};
use ack_gateway::server::{Report, Upstreams};
use ack_service::service_state::{CachedServiceState, ServiceState};
use ack_service::{Error, Service, arguments};

const MAX_CONCURRENT_REQUESTS: usize = 8;
/// How long running requests may still take after standard input is closed. Without any, the
/// process ends immediately.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(700);
/// The same if the requests were piped in: the caller is waiting for the answers.
const PIPED_GRACE: Duration = Duration::from_secs(30);
/// How long after its deadline a request may still answer by itself.
const DEADLINE_GRACE: Duration = Duration::from_millis(200);

/// The server's instructions for an agent, with the default configuration.
pub static INSTRUCTIONS: LazyLock<String> =
    LazyLock::new(|| Toolset::default().instructions(&ServiceState::default()));

/// The key of a tool's `_meta` that saves Claude Code's model a call to ask for the tool's schema.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

pub const TOOLS: [&str; 4] = ["get_context", "get_memory", "list_scopes", "query_memories"];

/// Serves MCP on standard input and output until standard input is closed or a signal arrives.
/// Returns the signal's number. Messages about upstream servers go to `report`. With `start`, the
/// settings cannot be used: nothing is answered from `service` until `start` finds others.
pub fn serve_stdio(
    service: &'static Service,
    offer: Offer,
    report: Report,
    start: Option<Box<Start>>,
) -> std::io::Result<Option<i32>> {
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let mut signals = signals::EndSignals::new()?;
        let (reader, writer) = stdio_pipes();
        let trouble = start.map(|start| Arc::new(Trouble::new(start, Arc::clone(&report))));
        let server = Server { trouble, ..Server::new(service, offer, report, true) };
        serve_offer(server, reader, writer, signals.wait(), stdio::is_closed).await
    });
    // A request that is still running must not keep the process alive.
    runtime.shutdown_background();
    result
}

/// Serves MCP with the four tools on a pair of streams, one message per line, until the first one
/// ends. It needs a tokio runtime with time and blocking threads.
pub async fn serve_lines(
    service: &'static Service,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> std::io::Result<()> {
    let server = Server::new(service, Offer::default(), Arc::new(|_: &str| {}), true);
    let never = std::future::pending();
    serve_offer(server, reader, writer, never, || false).await.map(|_| ())
}

/// Serves until the first stream or `stop` ends, or until `is_closed` says that the other end of
/// the first stream is closed, which is checked while that stream is not being read.
async fn serve_offer(
    server: Server,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = i32>,
    is_closed: fn() -> bool,
) -> std::io::Result<Option<i32>> {
    let upstreams = Arc::clone(&server.upstreams);
    let trouble = server.trouble.clone();
    let (transport, mut input) = stdio::transport(reader, writer, is_closed);
    let serving = async {
        match CatchingServer(server).serve(transport).await {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(std::io::Error::other),
            // The stream was closed before the handshake, so there was no request.
            Err(_) => Ok(()),
        }
    };
    tokio::pin!(serving);
    let result = tokio::select! {
        result = &mut serving => result.map(|()| None),
        was_piped = stdio::end_of(&mut input) => {
            let grace = if was_piped { PIPED_GRACE } else { SHUTDOWN_GRACE };
            timeout(grace, serving).await.unwrap_or(Ok(())).map(|()| None)
        }
        signal = stop => Ok(Some(signal)),
    };
    upstreams.end().await;
    if let Some(upstreams) = trouble.and_then(|trouble| trouble.upstreams()) {
        upstreams.end().await;
    }
    result
}

/// The threads of a server. Few are enough, because they only move messages.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(MAX_CONCURRENT_REQUESTS + 4)
        .enable_all()
        .build()
}

/// The handler behind the protocol. Clones share all of it.
#[derive(Clone)]
struct Server {
    service: &'static Service,
    request_slots: Arc<Semaphore>,
    surface: Arc<Toolset>,
    upstreams: Arc<Upstreams>,
    service_state: Arc<CachedServiceState>,
    /// Whether the server can notify clients that the list of tools has changed.
    sends_notifications: bool,
    /// Whether clients may be on other machines. They do not get paths of this one.
    is_shared: bool,
    /// Why nothing can be answered, if the settings cannot be used.
    trouble: Option<Arc<Trouble>>,
    roots: Arc<Roots>,
}

impl Server {
    fn new(service: &'static Service, offer: Offer, report: Report, channel: bool) -> Self {
        Self {
            service,
            request_slots: Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS)),
            service_state: Arc::default(),
            surface: Arc::new(offer.toolset),
            sends_notifications: channel && !offer.upstreams.is_empty(),
            is_shared: !channel,
            trouble: None,
            roots: Arc::default(),
            upstreams: Arc::new(Upstreams::new(offer.upstreams, report)),
        }
    }

    /// The same server for a client of a token file: perhaps only some scopes, and no upstream
    /// servers. It shares the request slots. The service lives as long as the process.
    fn limited(&self, scopes: Option<&BTreeSet<String>>) -> Self {
        let service = self.service.limited(scopes);
        Self {
            service: Box::leak(Box::new(service)),
            service_state: Arc::default(),
            upstreams: Arc::new(Upstreams::new(Vec::new(), Arc::new(|_: &str| {}))),
            sends_notifications: false,
            ..self.clone()
        }
    }

    async fn call(&self, tool: &Own, values: Map<String, Value>, quirks: Quirks) -> CallToolResult {
        let mut call = match tool.translate(values) {
            Ok(call) => call,
            Err(body) => return error_result(&body),
        };
        let reader = self.reader(Place::call(tool, &call));
        let answer = match self.resolve(&mut call).await {
            Ok(()) => {
                let arguments = std::mem::take(&mut call.arguments);
                let answer = self.run_tool(tool.operation, arguments.clone()).await;
                self.retry_with_alternate_ids(tool.operation, &call, &arguments, answer).await
            }
            Err(error) => Err(error),
        };
        match answer {
            Ok(mut answer) => {
                answer.notes().extend(call.notes);
                self.for_reader(&mut answer, &reader);
                let text = if quirks.prints_both {
                    "See the structured content.".to_owned()
                } else {
                    answer.to_markdown(self.surface.name_of(Tool::GetMemory))
                };
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = (!quirks.text_only).then(|| to_json(&answer));
                result
            }
            Err(error) => error_result(&tool.body(&call, self.body(&error, &reader))),
        }
    }

    /// The answer for the same ids in their other form, if it finds memories that `answer` lacks.
    async fn retry_with_alternate_ids(
        &self,
        operation: Tool,
        call: &Call,
        arguments: &Map<String, Value>,
        answer: Result<Answer, Error>,
    ) -> Result<Answer, Error> {
        let missing: Vec<&str> = match &answer {
            Ok(answer) => answer.missing().collect(),
            Err(Error::MemoryNotFound { .. }) => {
                arguments.get("id").and_then(Value::as_str).into_iter().collect()
            }
            Err(_) => Vec::new(),
        };
        let Some(arguments) = call.alternate_arguments(arguments, &missing) else {
            return answer;
        };
        match self.run_tool(operation, arguments).await {
            Ok(second) if second.missing().count() < missing.len() => Ok(second),
            _ => answer,
        }
    }

    /// Replaces a question with the id of the memory it means, if the call has a question in place
    /// of an id.
    async fn resolve(&self, call: &mut Call) -> Result<(), Error> {
        let Some(question) = call.question.take() else {
            return Ok(());
        };
        let mut values =
            Map::from_iter([("query".to_owned(), json!(question)), ("limit".to_owned(), json!(1))]);
        for name in ["scope", "status"] {
            values.extend(call.arguments.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        let best = match self.run_tool(Tool::QueryMemories, values).await? {
            Answer::Query(found) => found.results.into_iter().next(),
            _ => None,
        };
        let best = best.ok_or_else(|| {
            let question = ack_api::text::line(&question, 120);
            Error::invalid("id", question, "words that find a memory; these find none")
        })?;
        call.arguments.insert("id".to_owned(), Value::from(best.id));
        call.arguments.insert("scope".to_owned(), Value::from(best.scope));
        Ok(())
    }

    async fn run_tool(&self, operation: Tool, values: Map<String, Value>) -> Result<Answer, Error> {
        let name = operation.name();
        let work = move |service: &Service| {
            Ok(match operation {
                Tool::QueryMemories => {
                    let request = QueryRequest { by_agent: true, ..arguments(name, values)? };
                    Answer::Query(service.query_memories(&request)?)
                }
                Tool::GetMemory => {
                    let request = GetRequest { by_agent: true, ..arguments(name, values)? };
                    Answer::Get(service.get_memory(&request)?)
                }
                Tool::ListScopes => {
                    let request = ListScopesRequest { by_agent: true, ..arguments(name, values)? };
                    Answer::Scopes(service.list_scopes(&request)?)
                }
                Tool::GetContext => {
                    let request = ContextRequest { by_agent: true, ..arguments(name, values)? };
                    Answer::Context(service.get_context(&request)?)
                }
            })
        };
        self.run_blocking(name, work).await
    }

    async fn run_blocking<A>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Service) -> Result<A, Error> + Send + 'static,
    ) -> Result<A, Error>
    where
        A: Send + 'static,
    {
        // A caller that stops waiting drops this, which raises the flag; see `until_cancelled`.
        let limit = Duration::from_secs(u64::from(self.service.config.seconds.value));
        let flag = CancelFlag::with_timeout(limit);
        let _cancel_on_drop = CancelOnDrop(flag.clone());
        let slot = Arc::clone(&self.request_slots).acquire_owned();
        let slot = match timeout(limit, slot).await {
            Ok(Ok(slot)) => slot,
            Ok(Err(_)) => return Err(Stopped::Cancelled.into()),
            Err(_) => return Err(Stopped::DeadlineExceeded { timeout: limit }.into()),
        };
        let service = self.service;
        let internal = |message: String| Error::Internal { operation: name.to_owned(), message };
        let remaining = flag.remaining();
        let outcome = tokio::task::spawn_blocking(move || {
            let _place = slot;
            cancel::run_with(&flag, || work(service))
        });
        // The work checks its flag itself, except in steps that it always finishes.
        match timeout(remaining + DEADLINE_GRACE, outcome).await {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => Err(internal(match error.try_into_panic() {
                Ok(panic) => describe(&*panic),
                Err(error) => error.to_string(),
            })),
            Err(_) => Err(Stopped::DeadlineExceeded { timeout: limit }.into()),
        }
    }
}

/// Waits for an answer until the client cancels the request. Then the future is dropped, which
/// tells the work to stop. The protocol has no answer to a cancelled request, so rmcp discards this
/// one.
async fn until_cancelled<A>(
    context: &RequestContext<RoleServer>,
    answer: impl Future<Output = Result<A, ErrorData>>,
) -> Result<A, ErrorData> {
    tokio::select! {
        answer = answer => answer,
        () = context.ct.cancelled() => {
            let error = Error::from(Stopped::Cancelled);
            Err(protocol_error(&error, &error.body()))
        }
    }
}

fn describe(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

pub fn tools(surface: &Toolset) -> Vec<ListedTool> {
    let search = surface.name_of(Tool::QueryMemories);
    let listed = surface.tools().iter().map(|offered| {
        let mut tool = ListedTool::new(
            offered.name.clone(),
            offered.description.clone(),
            Arc::new(offered.input()),
        );
        let is_search = search == Some(offered.name.as_str());
        tool.output_schema = Some(Arc::new(schema::output(offered.operation, is_search)));
        tool.annotations = Some(
            ToolAnnotations::new()
                .read_only(true)
                .destructive(false)
                .idempotent(true)
                .open_world(false),
        );
        if is_search {
            tool.meta = Some(MetaObject(Map::from_iter([(ALWAYS_LOAD.to_owned(), json!(true))])));
        }
        tool
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ack_service::config::{Config, Inputs, Setting};

    #[tokio::test]
    async fn a_panic_in_a_handler_is_answered() {
        let root = Some(Setting::flag("--root", std::env::temp_dir()));
        let inputs = Inputs { root, ..Inputs::default() };
        let service = Service::new(Config::load(inputs).unwrap()).leak();
        let server = Server::new(service, Offer::default(), Arc::new(|_| {}), true);
        let work = |_: &Service| -> Result<(), Error> { panic!("on purpose") };
        let body = server.run_blocking("query_memories", work).await.unwrap_err().body();
        assert!(body.code == "internal_error" && body.message.contains("on purpose"), "{body:?}");
        let result = error_result(&body);
        assert_eq!((result.is_error, result.structured_content), (Some(true), None));
        let tool = server.surface.find("list_scopes").unwrap();
        let next = server.call(tool, Map::new(), Quirks::default()).await;
        assert_eq!(next.is_error, Some(false));
    }
}
