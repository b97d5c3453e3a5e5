//! A call of a tool: its caller, and the ways to reach the host meanwhile.

use hyper::http::request::Parts;
use rmcp::model::{CallToolRequestParams, JsonObject};
use rmcp::service::{RequestContext, RoleServer};

use super::keepalive::Keepalive;
use super::places::Files;
use super::{Mcp, task_revisions};
use provost_client::{Age, Client};

/// A call of a tool, with everything that its handler needs. Clones are the same call.
#[derive(Clone)]
pub(super) struct Call {
    client: Client,
    age: Age,
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
        let age = Age::default();
        let client = mcp.client(&context).noting(age.clone());
        Self { client, age, request, context, worktree: mcp.worktree.clone() }
    }

    /// Returns the greatest age of the answers to this call's client.
    pub(super) fn age(&self) -> Age {
        self.age.clone()
    }

    /// Returns the client that speaks to the daemon as the caller.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the same call about files in this work tree, else in the host's own.
    pub(super) fn about_files_in(self, files: Files) -> Self {
        let worktree = match files {
            Files::Unsaid => self.worktree,
            Files::Main => None,
            Files::Linked(top) => Some(top),
        };
        Self { worktree, ..self }
    }

    /// Returns the linked work tree of the call's files: the one that the call names, else that of its absolute
    /// paths, else the host's own.
    pub(super) fn worktree(&self, named: Option<String>) -> Option<String> {
        named.or_else(|| self.worktree.clone())
    }

    /// Returns the arguments of the call; empty if the host has sent none.
    pub(super) fn arguments(&self) -> JsonObject {
        self.request.arguments.clone().unwrap_or_default()
    }

    /// Returns the request as it was received.
    pub(super) fn request(&self) -> &CallToolRequestParams {
        &self.request
    }

    /// Returns the context of the request: the host, its capabilities, and whether it has cancelled the call.
    pub(super) fn context(&self) -> &RequestContext<RoleServer> {
        &self.context
    }

    /// Returns whether the host follows this call as a task: later hosts say so with each request, older ones ask
    /// for a task with the call.
    pub(super) fn becomes_task(&self) -> bool {
        task_revisions::follows(&self.context) || task_revisions::asks_for_task(&self.context)
    }

    /// Returns the `traceparent` of the call: that of its request, else that of the header over HTTP. A program that the host has started takes it
    /// from its environment.
    pub(super) fn trace(&self) -> Option<String> {
        let said = self.context.meta.0.0.get("traceparent").and_then(|it| it.as_str()).map(str::to_owned);
        said.or_else(|| match self.context.extensions.get::<Parts>() {
            Some(head) => Some(head.headers.get("traceparent")?.to_str().ok()?.to_owned()),
            None => std::env::var("TRACEPARENT").ok(),
        })
    }

    /// Makes signs of life for a waiting host.
    pub(super) fn beat(&self) -> Keepalive {
        Keepalive::of(&self.context)
    }
}
