//! The protocol's requests, as rmcp passes them on.

use futures::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientNotification, ClientRequest,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    NotificationContext, RequestContext, RoleServer, Service, SubscriptionContext,
};
use rmcp::{ErrorData, ServerHandler};

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use super::client::Quirks;
use super::message::sanitize_error;
use super::{Server, error_result, prompts, resources, tools, until_cancelled};
use crate::toolset::Place;
use ack_api::{Diagnostic, text};
use ack_gateway::server::CallError;

/// The longest time that a connecting client waits for the state of the stores. It takes
/// milliseconds, unless a disk hangs.
const STATE_BUDGET: Duration = Duration::from_secs(1);

impl Server {
    fn instructions(&self) -> String {
        let server = match self.ready() {
            Ok(server) => server,
            Err(body) => {
                let why = body.in_words();
                return format!(
                    "ack-memory cannot answer: {why}. Its tools will work once this is fixed."
                );
            }
        };
        let service_state = server.service_state.get(server.service, STATE_BUDGET);
        let mut instructions = server.surface.instructions(&service_state);
        let others = server.upstreams.names().join(", ");
        if !others.is_empty() {
            let others = text::line(&others, 300);
            instructions.push_str(&format!(
                "\nTools of other servers are offered too, as they are and unreviewed: {others}."
            ));
        }
        instructions
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        if let Some(tools) = capabilities.tools.as_mut().filter(|_| self.sends_notifications) {
            tools.list_changed = Some(true);
        }
        let mut info = ServerConfig::new(capabilities).with_instructions(self.instructions());
        info.server_info = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let server = self.ready().unwrap_or_else(|_| self.clone());
        let mut listed = tools(&server.surface);
        if Quirks::of(context.client_info().as_ref()).text_only {
            listed.iter_mut().for_each(|tool| tool.output_schema = None);
        }
        listed.extend(server.upstreams.list_tools().await);
        Ok(ListToolsResult::with_all_items(listed))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let server = match self.ready_for(&context.peer).await {
            Ok(server) => server,
            Err(body) => return Ok(CallToolResponse::from(error_result(&body))),
        };
        let values = request.arguments.unwrap_or_default();
        let result = match server.surface.find(&request.name) {
            Some(tool) => {
                let quirks = Quirks::of(context.client_info().as_ref());
                until_cancelled(&context, async { Ok(server.call(tool, values, quirks).await) })
                    .await?
            }
            None => match server.upstreams.call(&request.name, values, &context).await {
                Some(Ok(result)) => result,
                Some(Err(CallError::Refused(error))) => return Err(error),
                Some(Err(CallError::Upstream(error))) => {
                    let reader = server.reader(Place::Resource);
                    error_result(&error.body_for(&reader))
                }
                None => {
                    let own_names = server.surface.tools().iter().map(|tool| tool.name.as_str());
                    let known: Vec<&str> = own_names.chain(server.upstreams.names()).collect();
                    return Err(resources::unknown("tool", &request.name, &known));
                }
            },
        };
        Ok(CallToolResponse::from(result))
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        let server = self.ready().unwrap_or_else(|_| self.clone());
        server.ask_roots_again(&context.peer);
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let server = self.ready().unwrap_or_else(|_| self.clone());
        server.ask_roots(&context.peer);
        if !self.sends_notifications {
            return;
        }
        let mut changes = self.upstreams.changes();
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                if context.peer.notify_tool_list_changed().await.is_err() {
                    break;
                }
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        _requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.sends_notifications.then(|| SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.upstreams.changes();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        match self.ready_for(&context.peer).await {
            Ok(server) => server.resources(request).await,
            Err(_) => Ok(ListResourcesResult::with_all_items(Vec::new())),
        }
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates(&self.surface))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let server = self.ready_or_protocol_error(&context.peer).await?;
        let answer = until_cancelled(&context, server.resource(request.uri)).await;
        answer.map(ReadResourceResponse::from)
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list_prompts(Quirks::of(context.client_info().as_ref())))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let server = self.ready_or_protocol_error(&context.peer).await?;
        let answer = server.prompt(&request.name, request.arguments);
        let answer = until_cancelled(&context, answer).await;
        answer.map(GetPromptResponse::from)
    }
}

/// The server over standard input and output. A request that panics is answered with an error:
/// otherwise it would never be answered and would stay open forever. Errors are made safe to print.
#[derive(Clone)]
pub struct CatchingServer(pub Server);

impl Service<RoleServer> for CatchingServer {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let answer = Service::<RoleServer>::handle_request(&self.0, request, context);
        let answer = AssertUnwindSafe(answer).catch_unwind().await;
        let answer = answer.unwrap_or_else(|panic| {
            let message = format!("internal error: {}", super::describe(&*panic));
            Err(ErrorData::internal_error(message, None))
        });
        answer.map_err(sanitize_error)
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Service::<RoleServer>::handle_notification(&self.0, notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        Service::<RoleServer>::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Service::<RoleServer>::supported_protocol_versions(&self.0)
    }
}
