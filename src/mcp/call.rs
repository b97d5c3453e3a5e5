//! One call of a tool: who calls, and how the host can be talked to meanwhile.

use rmcp::model::{CallToolRequestParams, JsonObject};
use rmcp::service::{RequestContext, RoleServer};

use super::keepalive::Keepalive;
use super::places::Files;
use super::{Mcp, task_revisions};
use provost_client::Client;

/// One call of a tool, with all that its handler needs. Clones are the same call.
#[derive(Clone)]
pub(super) struct Call {
    client: Client,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
    worktree: Option<String>,
}

impl Call {
    pub(super) fn new(
        mcp: &Mcp,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Self {
        Self { client: mcp.client(&context), request, context, worktree: mcp.worktree.clone() }
    }

    /// The client that speaks to the daemon as the caller.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The same about files in this work tree, else in the host's own.
    pub(super) fn about_files_in(self, files: Files) -> Self {
        let worktree = match files {
            Files::Unsaid => self.worktree,
            Files::Main => None,
            Files::Linked(top) => Some(top),
        };
        Self { worktree, ..self }
    }

    /// The linked work tree in which the call's files are: the one that it names, else that of its absolute paths, else the
    /// host's own.
    pub(super) fn worktree(&self, named: Option<String>) -> Option<String> {
        named.or_else(|| self.worktree.clone())
    }

    /// The arguments of the call; empty when the host has sent none.
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

    /// Whether the host follows what becomes of this call by itself: later ones say so with each request, older ones ask
    /// for a task with the call.
    pub(super) fn becomes_task(&self) -> bool {
        task_revisions::follows(&self.context) || task_revisions::asks_for_task(&self.context)
    }

    /// Signs of life for a host that waits.
    pub(super) fn beat(&self) -> Keepalive {
        Keepalive::of(&self.context)
    }
}
