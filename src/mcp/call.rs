//! One call of a tool: who calls, and how the host can be talked to meanwhile.

use rmcp::model::{CallToolRequestParams, JsonObject};
use rmcp::service::{RequestContext, RoleServer};

use super::Mcp;
use crate::client::Client;

/// A call.
#[derive(Clone)]
pub(super) struct Call {
    client: Client,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
}

impl Call {
    pub(super) fn new(
        mcp: &Mcp,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Self {
        Self { client: mcp.client(&context), request, context }
    }

    /// The way to the daemon, as whoever calls.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// What it is called with.
    pub(super) fn arguments(&self) -> JsonObject {
        self.request.arguments.clone().unwrap_or_default()
    }

    /// The request as it came.
    pub(super) fn request(&self) -> &CallToolRequestParams {
        &self.request
    }

    /// What came with it: the host, what the host can do, and whether it has given the call up.
    pub(super) fn context(&self) -> &RequestContext<RoleServer> {
        &self.context
    }

    /// Whether the host follows tasks by itself, as it says with each request.
    pub(super) fn follows_tasks(&self) -> bool {
        // In the older era some hosts say so and take no handle all the same.
        self.context.meta.protocol_version().is_some()
            && self.context.client_capabilities().is_some_and(|it| it.supports_tasks())
    }
}
