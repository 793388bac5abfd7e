//! A server whose settings cannot be used. Most clients hide why a server does not start, so this
//! one starts: it lists its tools, and each call returns the error until the settings are fixed.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::service::{Peer, RoleServer};

use super::Server;
use crate::offer::Offer;
use ack_api::ErrorBody;
use ack_gateway::server::{Report, Upstreams};
use ack_service::Service;

/// Reads the settings again, and starts the service with them.
pub type Start = dyn Fn() -> Result<(&'static Service, Offer), Box<ErrorBody>> + Send + Sync;

/// What a server without usable settings needs to start after all.
pub(super) struct Trouble {
    start: Box<Start>,
    report: Report,
    fixed: Mutex<Option<Server>>,
}

impl Trouble {
    pub(super) fn new(start: Box<Start>, report: Report) -> Self {
        Self { start, report, fixed: Mutex::new(None) }
    }

    /// The server with the settings of now.
    fn server(&self) -> Result<Server, Box<ErrorBody>> {
        let mut fixed = self.fixed.lock();
        if let Some(server) = &*fixed {
            return Ok(server.clone());
        }
        let (service, offer) = (self.start)()?;
        let server = Server::new(service, offer, Arc::clone(&self.report), true);
        Ok(fixed.insert(server).clone())
    }

    pub(super) fn upstreams(&self) -> Option<Arc<Upstreams>> {
        self.fixed.lock().as_ref().map(|server| Arc::clone(&server.upstreams))
    }
}

impl Server {
    /// The server that answers: this one, unless its settings could not be used.
    pub(super) fn ready(&self) -> Result<Self, Box<ErrorBody>> {
        self.trouble.as_ref().map_or_else(|| Ok(self.clone()), |trouble| trouble.server())
    }

    /// The server that answers, for the client's workspace.
    pub(super) async fn ready_for(&self, peer: &Peer<RoleServer>) -> Result<Self, Box<ErrorBody>> {
        Ok(self.ready()?.in_workspace(peer).await)
    }

    /// [`Server::ready_for`], for a request that has only the protocol's errors.
    pub(super) async fn ready_or_protocol_error(
        &self,
        peer: &Peer<RoleServer>,
    ) -> Result<Self, ErrorData> {
        self.ready_for(peer).await.map_err(|body| {
            let data = serde_json::to_value(&body).ok();
            ErrorData::internal_error(body.in_words(), data)
        })
    }
}
