//! Asks the person at the host about an approval, if the host can show a question.
//!
//! The rule that demanded the approval decides whether the answer counts; if it does not, the daemon refuses it
//! (decision 0042). This module words the question, and accepts an answer to that question only. A host that began
//! with `initialize` is asked while the call is open. A later host gets a sealed state to send back, which is valid
//! for one call and one approval.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequests, InputRequiredResult, JsonObject, RequestMetaObject, RequestStateCodec,
    SealOptions, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::Call;
use super::tool::ToolError;
use super::{handles, legacy_tasks, task_revisions};
use provost_api::wire;
use provost_base::Digest;
use provost_base::limits::{HOST_DIALOG_MS_MAX, MCP_FORM_CHARS_MAX};
use provost_client::Client;
use provost_client::approvals::{facts, words};

/// An approval about which the host can ask its person.
pub(super) struct Question {
    approval: wire::Approval,
    way: ElicitationMode,
}

/// The form in which the host asks.
enum ElicitationMode {
    /// A form, whose answer the rule accepts.
    Form,
    /// A page, which shows the question; the answer comes by another way.
    Page(String),
}

/// The person's answer.
enum ElicitationAnswer {
    Yes(Option<String>),
    No(Option<String>),
    /// No answer: the form was closed, or the page was opened.
    Nothing,
}

/// Returns the question about the approval that a task waits for, if the host can ask it.
pub(super) async fn about(
    client: &Client,
    task: &wire::Task,
    context: &RequestContext<RoleServer>,
) -> Option<Question> {
    let id = task.approval.filter(|_| task.state == "awaiting")?;
    let (forms, pages) = shown_by(context)?;
    let approval = client.approvals().await.ok()?.into_iter().find(|it| it.id == id)?;
    if forms && approval.host && fits(&approval) {
        return Some(Question { approval, way: ElicitationMode::Form });
    }
    if !pages {
        return None;
    }
    Some(Question { way: ElicitationMode::Page(page(client, id).await?), approval })
}

/// Returns the address of the page that shows an approval, if the door with that page is open.
pub(super) async fn page(client: &Client, id: u64) -> Option<String> {
    let door = client.about().await.ok()?.doors.into_iter().find(|it| it.door == "mcp")?;
    let base = door.address.strip_suffix("/mcp").unwrap_or(&door.address);
    let base = if base.starts_with("http") { base.to_owned() } else { format!("http://{base}") };
    Some(format!("{base}/approvals/{id}"))
}

/// Returns whether the host shows forms, and pages. A host that declares only that it asks shows forms.
fn shown_by(context: &RequestContext<RoleServer>) -> Option<(bool, bool)> {
    let shows = context.client_capabilities()?.elicitation?;
    Some((shows.form.is_some() || shows.url.is_none(), shows.url.is_some()))
}

impl Question {
    /// Returns the name of the question. It changes with the content.
    fn name(&self) -> String {
        format!("approval-{}-{}", self.approval.id, self.approval.digest.get(..12).unwrap_or_default())
    }

    /// Returns the parameters with which the host is asked.
    fn params(&self, meta: Option<RequestMetaObject>) -> ElicitRequestParams {
        let message = in_words(&self.approval);
        match &self.way {
            ElicitationMode::Form => {
                ElicitRequestParams::FormElicitationParams { meta, message, requested_schema: form() }
            }
            ElicitationMode::Page(url) => ElicitRequestParams::UrlElicitationParams {
                meta,
                message,
                url: url.clone(),
                elicitation_id: self.name(),
            },
        }
    }

    /// Returns the question in the form for a task, and for an answer that asks back.
    pub(super) fn requests(&self) -> InputRequests {
        let asked = InputRequest::Elicitation(ElicitRequest::new(self.params(None)));
        InputRequests::from([(self.name(), asked)])
    }

    /// Reads the person's answer to the question.
    fn read(&self, answer: ElicitResult) -> Result<ElicitationAnswer, ToolError> {
        if matches!(self.way, ElicitationMode::Page(_)) {
            return Ok(ElicitationAnswer::Nothing);
        }
        let content: Content = match answer.content {
            Some(content) if answer.action == ElicitationAction::Accept => serde_json::from_value(content)
                .map_err(|error| ToolError::new(format!("the form is not filled in as it asks: {error}")))?,
            _ => Content::default(),
        };
        let reason = content.reason.filter(|it| !it.trim().is_empty());
        Ok(match answer.action {
            ElicitationAction::Accept if content.approve => ElicitationAnswer::Yes(reason),
            ElicitationAction::Accept | ElicitationAction::Decline => ElicitationAnswer::No(reason),
            _ => ElicitationAnswer::Nothing,
        })
    }

    /// Submits the answer. The daemon knows which approvals a host may answer, and which dialogs were used already.
    async fn count(
        &self,
        client: &Client,
        word: ElicitationAnswer,
        dialog: Option<String>,
    ) -> Result<(), ToolError> {
        let (grant, note) = match word {
            ElicitationAnswer::Yes(note) => (Some(true), note),
            ElicitationAnswer::No(note) => (Some(false), note),
            ElicitationAnswer::Nothing => (None, None),
        };
        if grant.is_none() && dialog.is_none() {
            return Ok(());
        }
        let (approval, digest) = (self.approval.id, self.approval.digest.clone());
        client.host_answer(&wire::HostAnswer { approval, grant, note, digest, dialog }).await?;
        Ok(())
    }
}

/// The fields of a filled-in form.
#[derive(Deserialize, Default)]
struct Content {
    approve: bool,
    reason: Option<String>,
}

fn form() -> ElicitationSchema {
    let fields = json!({
        "type": "object",
        "properties": {
            "approve": { "type": "boolean", "title": "Approve", "description": "Yes lets it run; no ends it.", "default": false },
            "reason": { "type": "string", "title": "Reason", "description": "Why; the agent reads it.", "maxLength": 1000 },
        },
        "required": ["approve"],
    });
    serde_json::from_value(fields).expect("a form of this shape")
}

/// Words the question: facts and the asker's texts. Each line of those begins with a bar, so that none can pass for Provost's.
fn in_words(it: &wire::Approval) -> String {
    let mut said = format!("Provost: {} asks for approval {}.", it.asked_by, it.id);
    for (name, fact) in facts(it, str::to_owned) {
        let fact = fact.replace('\n', " ");
        said.push_str(&match name {
            "" => format!("\n  {fact}"),
            name => format!("\n{name}: {fact}"),
        });
    }
    for (says, text) in words(it) {
        said.push('\n');
        said.push_str(says);
        for line in text.split('\n') {
            said.push_str("\n| ");
            said.push_str(line);
        }
    }
    said
}

/// Returns whether a form can show the whole request. A person answers for all of it.
fn fits(it: &wire::Approval) -> bool {
    words(it).iter().map(|(_, text)| text.chars().count()).sum::<usize>() <= MCP_FORM_CHARS_MAX
}

/// The state that a host keeps until the person has answered.
#[derive(Serialize, Deserialize)]
struct Carried {
    task: String,
    approval: u64,
    digest: String,
    dialog: String,
}

/// Returns the other data that a state is bound to: the user, the agent, the tool and its arguments.
fn bound_to(me: &wire::DialogKey, tool: &str, arguments: &JsonObject) -> Vec<u8> {
    let arguments = serde_json::to_vec(arguments).unwrap_or_default();
    let digest = Digest::of(&arguments).to_string();
    json!([me.user, me.agent, tool, digest]).to_string().into_bytes()
}

fn codec(me: &wire::DialogKey) -> Result<RequestStateCodec, ToolError> {
    RequestStateCodec::try_new(me.key.as_bytes())
        .map_err(|error| ToolError::new(format!("questions cannot be sealed: {error}")))
}

/// Asks back, in an answer that the host completes with a second call.
pub(super) async fn ask_back(
    call: &Call,
    task: &wire::Task,
    question: &Question,
) -> Result<InputRequiredResult, ToolError> {
    let me = call.client().dialog_key().await?;
    let carried = Carried {
        task: task.id.clone(),
        approval: question.approval.id,
        digest: question.approval.digest.clone(),
        dialog: uuid::Uuid::new_v4().to_string(),
    };
    let bound = bound_to(&me, &call.request().name, &call.arguments());
    let options = SealOptions::new().associated_data(&bound).ttl(Duration::from_millis(HOST_DIALOG_MS_MAX));
    let state = codec(&me)?.seal_json_with(&carried, &options);
    let state = state.map_err(|error| ToolError::new(error.to_string()))?;
    Ok(InputRequiredResult::new(Some(question.requests()), Some(state)))
}

/// Reads a host's second call after a question, and returns its task; `None` for a first call.
pub(super) async fn answered(call: &Call) -> Result<Option<String>, ToolError> {
    let request = call.request();
    let Some(state) = &request.request_state else {
        return match &request.input_responses {
            Some(_) => Err(ToolError::new("answers to questions come with the requestState that asked them")),
            None => Ok(None),
        };
    };
    let me = call.client().dialog_key().await?;
    let bound = bound_to(&me, &request.name, &call.arguments());
    let carried: Carried = codec(&me)?.open_json_with(state, &bound).map_err(|_| {
        ToolError::new(
            "this requestState is not one that was given for this call to this agent, or it is too old; \
             call the tool again with the task's id as task_id and without requestState",
        )
    })?;
    let query = wire::MyTaskQuery { id: carried.task.clone(), ..wire::MyTaskQuery::default() };
    let task = call.client().my_task(&query).await?;
    let question = about(call.client(), &task, call.context()).await;
    let question = question
        .filter(|it| it.approval.id == carried.approval && it.approval.digest == carried.digest)
        .ok_or_else(|| {
            let why = format!(
                "approval {} does not wait any more for this host's answer; task_wait says what has become of task {}",
                carried.approval, carried.task
            );
            ToolError::new(why)
        })?;
    let answer = request.input_responses.as_ref().and_then(|all| all.get(&question.name()));
    let answer =
        answer.ok_or_else(|| ToolError::new(format!("the answer to {} is missing", question.name())))?;
    let word = question.read(elicited(answer)?)?;
    question.count(call.client(), word, Some(carried.dialog)).await?;
    Ok(Some(carried.task))
}

fn elicited(answer: &Value) -> Result<ElicitResult, ToolError> {
    serde_json::from_value(answer.clone())
        .map_err(|error| ToolError::new(format!("the answer is not one to a question: {error}")))
}

/// Asks a host that began with `initialize` while the call is open, and waits at most `patience`, or until the
/// approval is answered elsewhere. An error of the dialog decides nothing.
pub(super) async fn ask_now(
    client: &Client,
    task: &wire::Task,
    question: &Question,
    patience: Duration,
    context: &RequestContext<RoleServer>,
) -> Result<(), ToolError> {
    let mut meta = RequestMetaObject::default();
    if let Value::Object(related) = legacy_tasks::related(&task.id) {
        meta.0.0.extend(related);
    }
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(question.params(Some(meta))));
    let sent = context.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let Ok(mut asked) = sent else { return Ok(()) };
    let answer = tokio::select! {
        answer = &mut asked.rx => answer,
        () = decided(client, task) => {
            let _ = asked.cancel(Some("it has been decided elsewhere".into())).await;
            return Ok(());
        }
        () = tokio::time::sleep(patience) => {
            let _ = asked.cancel(Some("no answer has come in time".into())).await;
            return Ok(());
        }
    };
    match answer {
        Ok(Ok(ClientResult::ElicitResult(answer))) => {
            question.count(client, question.read(answer)?, None).await
        }
        _ => Ok(()),
    }
}

/// Returns when the task waits no longer.
async fn decided(client: &Client, task: &wire::Task) {
    let mut now = task.clone();
    while now.state == "awaiting" {
        match handles::changed(client, &now).await {
            Ok(next) => now = next,
            Err(_) => std::future::pending().await,
        }
    }
}

/// Handles `tasks/update`: the answers to a task's question. Other answers are ignored.
pub(super) async fn update(
    client: &Client,
    task: &wire::Task,
    answers: &std::collections::BTreeMap<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let refused = |fault: ToolError| ErrorData::invalid_params(fault.to_string(), None);
    let Some(question) = about(client, task, context).await else {
        let named = task.approval.map(|id| format!("approval-{id}-"));
        let meant = named.is_some_and(|name| answers.keys().any(|it| it.starts_with(&name)));
        return match task.approval.filter(|_| meant) {
            Some(id) => Err(refused(ToolError::new(format!(
                "approval {id} is not for the host to answer: the rule that asks wants a person at a terminal, or an \
                 approver; task {} goes on waiting",
                task.id
            )))),
            None => Ok(()),
        };
    };
    let Some(answer) = answers.get(&question.name()) else { return Ok(()) };
    let word = elicited(answer).and_then(|answer| question.read(answer)).map_err(refused)?;
    question.count(client, word, None).await.map_err(refused)
}

/// Returns whether a call may be answered with a question, which only later hosts understand.
pub(super) fn may_ask_back(context: &RequestContext<RoleServer>) -> bool {
    !task_revisions::is_older(context)
}
