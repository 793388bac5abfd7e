//! The server over standard input and output. A request that panics is answered with an error: otherwise it would
//! never be answered and would stay open forever. Errors are made safe to print.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use rmcp::ErrorData;
use rmcp::model::{ClientNotification, ClientRequest, ProtocolVersion, ServerConfig, ServerResult};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, Service};

use super::Server;
use super::message::sanitize_error;

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
