//! Results that go out as they came in. The handler of rmcp knows only results of its own types; here a result that holds
//! another one, as JSON, is replaced by it on its way out.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ClientNotification, ClientRequest, CustomResult, MetaObject, ProtocolVersion, ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, Service};
use serde_json::{Map, Value};

use super::Server;

/// The key of `_meta` that holds a result.
const HELD: &str = "ack-memory/held";

/// A result that stands for another one.
pub fn holding(result: Value) -> CallToolResult {
    let mut holder = CallToolResult::default();
    holder.meta = Some(MetaObject(Map::from_iter([(HELD.to_owned(), result)])));
    holder
}

/// The server as rmcp talks to it.
#[derive(Clone)]
pub struct Front(pub Server);

impl Service<RoleServer> for Front {
    async fn handle_request(&self, request: ClientRequest, context: RequestContext<RoleServer>) -> Result<ServerResult, ErrorData> {
        let result = Service::<RoleServer>::handle_request(&self.0, request, context).await?;
        let ServerResult::CallToolResult(mut holder) = result else {
            return Ok(result);
        };
        let Some(Value::Object(mut held)) = holder.meta.as_mut().and_then(|meta| meta.0.shift_remove(HELD)) else {
            return Ok(ServerResult::CallToolResult(holder));
        };
        // Only one of the two eras knows the kinds of results.
        held.shift_remove("resultType");
        if let Some(kind) = holder.result_type.and_then(|kind| serde_json::to_value(kind).ok()) {
            held.insert("resultType".to_owned(), kind);
        }
        Ok(ServerResult::CustomResult(CustomResult(Value::Object(held))))
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
