//! An agent's permission requests: the question for the rules, and the answer by the kind of option. ACP v1, "Requesting
//! permission".

use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};

use super::AcpRun;
use provost_base::{Json, Ttl, acp};
use provost_domain::Task;
use provost_domain::command::AskPermission;
use provost_jail::plain_text;

/// The outcome of a permission request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The tool may be used, once.
    Allowed,
    /// The tool may not be used, for this reason.
    Denied(Box<str>),
}

/// Judges a request of a task's agent; waits for a person if a rule says so. Dropping the future withdraws the request.
pub type Judge =
    Arc<dyn Fn(&Task, AskPermission) -> Pin<Box<dyn Future<Output = Verdict> + Send>> + Send + Sync>;

/// An agent's permission request.
#[derive(Debug)]
pub(super) struct PermissionRequest {
    /// The JSON-RPC id of the request.
    pub(super) id: Value,
    /// The question for the rules.
    pub(super) question: AskPermission,
    /// The title of the tool call, for people.
    pub(super) title: String,
    options: Vec<(String, String)>,
}

impl PermissionRequest {
    /// Reads a request. What an earlier `tool_call` has said of the call counts where the request is silent.
    pub(super) fn read(id: Value, params: &Value, earlier: Option<&Value>, run: &AcpRun, wait: Ttl) -> Self {
        let mut call = earlier.cloned().unwrap_or_else(|| json!({}));
        acp::merge(&mut call, &params["toolCall"]);
        let title = plain_text(&acp::title(&call));
        let tool = acp::tool(&call);
        let arguments = run.seen_from_outside(&acp::arguments(&call));
        let options = params["options"].as_array().into_iter().flatten();
        let option =
            |it: &Value| Some((it["kind"].as_str()?.to_owned(), it["optionId"].as_str()?.to_owned()));
        let question = AskPermission {
            id: format!("acp:{}:{}", run.task.id(), uuid::Uuid::new_v4()).into(),
            host: run.task.order.worker.as_str().into(),
            tool: (&*tool).into(),
            arguments: Json::from_value(&arguments),
            wait,
            folder: Some(run.stands_for.as_str().into()),
        };
        Self { id, question, title, options: options.filter_map(option).collect() }
    }

    /// Returns the outcome for the answer: the option of the kind that counts for this one use, and never an option that the
    /// agent keeps for later uses.
    pub(super) fn outcome(&self, verdict: &Verdict) -> Value {
        let kind = match verdict {
            Verdict::Allowed => "allow_once",
            Verdict::Denied(_) => "reject_once",
        };
        match self.options.iter().find(|(it, _)| it == kind) {
            Some((_, option)) => json!({ "outcome": { "outcome": "selected", "optionId": option } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        }
    }

    /// Checks whether the agent offers to allow the call once. A request that offers only to allow it for good is denied.
    pub(super) fn can_be_allowed(&self) -> bool {
        self.options.iter().any(|(kind, _)| kind == "allow_once")
    }
}

impl AcpRun {
    /// The same arguments, with the workspace's folder in place of the copy in which the agent works.
    fn seen_from_outside(&self, value: &Value) -> Value {
        match self.folder == self.stands_for {
            true => value.clone(),
            false => acp::in_place_of(value, &self.folder, &self.stands_for),
        }
    }
}
