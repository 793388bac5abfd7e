//! Results of upstream tools, passed on unchanged. rmcp's handler knows only its own result types,
//! so an upstream result travels as JSON inside one of those and replaces it on the way out.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ClientNotification, ClientRequest, CustomResult, MetaObject, ProtocolVersion,
    ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, Service};
use serde_json::{Map, Value};

use super::Server;
use super::message::sanitize_error;

/// The key of `_meta` that holds the upstream result.
const UPSTREAM_RESULT_KEY: &str = "ack-memory/held";

/// A result of rmcp's type that carries an upstream result.
pub fn carry(result: Value) -> CallToolResult {
    let mut holder = CallToolResult::default();
    holder.meta = Some(MetaObject(Map::from_iter([(
        UPSTREAM_RESULT_KEY.to_owned(),
        result,
    )])));
    holder
}

/// The upstream result in a `_meta`. Only one of the two protocol eras has result types.
fn upstream_result(meta: &mut Map<String, Value>, kind: Option<Value>) -> Option<Value> {
    let Some(Value::Object(mut carrier)) = meta.shift_remove(UPSTREAM_RESULT_KEY) else {
        return None;
    };
    carrier.shift_remove("resultType");
    if let Some(kind) = kind {
        carrier.insert("resultType".to_owned(), kind);
    }
    Some(Value::Object(carrier))
}

/// The body of an HTTP answer from rmcp, with its carrier replaced by the upstream result. `None`
/// for any other answer.
pub fn body(answer: &[u8]) -> Option<Vec<u8>> {
    let has_key = |window: &[u8]| window == UPSTREAM_RESULT_KEY.as_bytes();
    if !answer.windows(UPSTREAM_RESULT_KEY.len()).any(has_key) {
        return None;
    }
    let mut answer: Value = serde_json::from_slice(answer).ok()?;
    let result = answer.get_mut("result")?;
    let kind = result.get("resultType").cloned();
    *result = upstream_result(result.get_mut("_meta")?.as_object_mut()?, kind)?;
    serde_json::to_vec(&answer).ok()
}

/// The server that rmcp talks to over standard input and output.
#[derive(Clone)]
pub struct RawResultServer(pub Server);

impl Service<RoleServer> for RawResultServer {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        // A request that panics would never be answered and would stay open forever.
        let result = AssertUnwindSafe(Service::<RoleServer>::handle_request(
            &self.0, request, context,
        ));
        let result = result.catch_unwind().await.unwrap_or_else(|panic| {
            let message = format!("internal error: {}", super::describe(&*panic));
            Err(ErrorData::internal_error(message, None))
        });
        let result = result.map_err(sanitize_error)?;
        Ok(match result {
            ServerResult::CallToolResult(mut holder) => {
                let kind = holder
                    .result_type
                    .as_ref()
                    .and_then(|kind| serde_json::to_value(kind).ok());
                match holder
                    .meta
                    .as_mut()
                    .and_then(|meta| upstream_result(&mut meta.0, kind))
                {
                    Some(custom) => ServerResult::CustomResult(CustomResult(custom)),
                    None => ServerResult::CallToolResult(holder),
                }
            }
            other => other,
        })
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
