//! A tool: its name, texts and schemas for hosts, and the function that carries it out.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::call::Call;
use super::places::Files;
use super::words::{marked, one_line};
use super::{advice, places, shape};
use provost_base::limits::{MCP_ANSWER_BYTES_MAX, MCP_ARGUMENTS_BYTES_MAX};
use provost_client::ClientError;

/// A tool as hosts see it, and the function that carries it out.
pub(super) struct Entry {
    pub(super) tool: Tool,
    pub(super) run: ToolHandler,
}

type ToolHandler = Box<dyn Fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// The answer for a host. Only tools whose clients expect errors of the protocol return them.
pub(super) type Answer = Result<CallToolResponse, ErrorData>;

/// The answer of a tool: a text for people and models, and the same as data.
pub(super) struct Said<T> {
    pub(super) text: String,
    pub(super) answer: T,
}

/// The reason why a tool has failed, with the next step.
pub(super) struct ToolError(String);

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl ToolError {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl From<ClientError> for ToolError {
    fn from(error: ClientError) -> Self {
        let hint = match &error {
            ClientError::Refused { fault, .. } => advice::next_step(fault),
            ClientError::NotRunning(_) => Some("a person starts it with `provost up`".into()),
            _ => None,
        };
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        Self(format!("{}{hint}", advice::for_models(&error.to_string())))
    }
}

/// The kind of effect that a tool has, as hosts classify tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// It only reads, and changes no state.
    Reads,
    /// It adds or releases; a repeated call has the same effect.
    Steady,
    /// It begins new work with each call.
    Begins,
    /// It ends work or removes data for good.
    Ends,
}

impl Kind {
    fn annotations(self, title: &str, open_world: bool) -> ToolAnnotations {
        let mut hints = ToolAnnotations::with_title(title);
        hints.read_only_hint = Some(self == Kind::Reads);
        hints.destructive_hint = Some(self == Kind::Ends);
        hints.idempotent_hint = Some(matches!(self, Kind::Reads | Kind::Steady | Kind::Ends));
        hints.open_world_hint = Some(open_world);
        hints
    }
}

/// The description of a tool for hosts.
pub(super) struct About {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) kind: Kind,
}

impl About {
    /// Makes the tool that calls `act`, and answers with its result.
    pub(super) fn does<In, Out, Doing>(
        self,
        act: impl Fn(Call, In) -> Doing + Send + Sync + Clone + 'static,
    ) -> Entry
    where
        In: DeserializeOwned + JsonSchema + Send + 'static,
        Out: Serialize + JsonSchema + Send + 'static,
        Doing: Future<Output = Result<Said<Out>, ToolError>> + Send + 'static,
    {
        self.answers::<In, Out, _>(move |call, asked| {
            let act = act.clone();
            async move { act(call, asked).await.map(|said| done(&said).into()) }
        })
    }

    /// Makes the tool that calls `act`. In place of a result, it may answer that the call has become a task, or
    /// that an approver must decide first. Its results are `Out`.
    pub(super) fn answers<In, Out, Doing>(
        self,
        act: impl Fn(Call, In) -> Doing + Send + Sync + Clone + 'static,
    ) -> Entry
    where
        In: DeserializeOwned + JsonSchema + Send + 'static,
        Out: JsonSchema,
        Doing: Future<Output = Result<CallToolResponse, ToolError>> + Send + 'static,
    {
        let hints = self.kind.annotations(self.title, self.name == "delegate");
        let (taken, answered) = (shape::taken::<In>(), shape::answered::<Out>());
        let tool = Tool::new(self.name, self.description, taken.clone())
            .with_title(self.title)
            .with_raw_output_schema(answered.clone())
            .with_annotations(hints);
        let answered = Arc::new(Value::Object((*answered).clone()));
        let run: ToolHandler = Box::new(move |call| {
            let (act, taken, answered) = (act.clone(), taken.clone(), answered.clone());
            Box::pin(async move {
                let (asked, files) = match taken_from::<In>(&call, &taken).await {
                    Ok(taken) => taken,
                    Err(fault) => return Ok(failed(fault).into()),
                };
                let age = call.age();
                let call = call.about_files_in(files);
                let mut said = act(call, asked).await.unwrap_or_else(|fault| failed(fault).into());
                if let CallToolResponse::Complete(result) = &mut said
                    && let Some(answer) = &mut result.structured_content
                {
                    shape::fit(answer, &answered);
                }
                if let (CallToolResponse::Complete(result), Some(words)) = (&mut said, age.in_words()) {
                    result.content.push(ContentBlock::text(words));
                }
                Ok(said)
            })
        });
        Entry { tool, run }
    }

    /// Makes the tool under a name that other clients know, with the answers that they expect: content of any form,
    /// and errors of the protocol.
    pub(super) fn alias<In, Doing>(
        self,
        act: impl Fn(Call, In) -> Doing + Send + Sync + Clone + 'static,
    ) -> Entry
    where
        In: DeserializeOwned + JsonSchema + Send + 'static,
        Doing: Future<Output = Result<CallToolResult, AliasError>> + Send + 'static,
    {
        let hints = self.kind.annotations(self.title, self.name == "devit_delegate");
        let tool = Tool::new(self.name, self.description, shape::taken_by_alias::<In>())
            .with_title(self.title)
            .with_annotations(hints);
        let run: ToolHandler = Box::new(move |call| {
            let act = act.clone();
            Box::pin(async move {
                let asked =
                    read::<In>(call.arguments()).map_err(|ToolError(why)| AliasError::invalid(why).0)?;
                Ok(act(call, asked).await.map_err(|fault| fault.0)?.into())
            })
        });
        Entry { tool, run }
    }
}

/// An error of an alias, in the words that its clients know. DevIt 1.15.
pub(super) struct AliasError(ErrorData);

impl AliasError {
    /// Makes the error for a request that makes no sense, or is refused.
    pub(super) fn invalid(why: impl std::fmt::Display) -> Self {
        let code = "E_VALIDATION";
        Self(ErrorData::invalid_params(format!("{code}: {why}"), Some(json!({ "code": code }))))
    }

    /// Makes the error for a failure of the daemon, or of the connection to it.
    fn internal(why: impl std::fmt::Display) -> Self {
        let code = "E_INTERNAL";
        Self(ErrorData::internal_error(format!("{code}: {why}"), Some(json!({ "code": code }))))
    }
}

impl From<ClientError> for AliasError {
    fn from(error: ClientError) -> Self {
        let theirs = matches!(&error, ClientError::Refused { status, .. } if (400..500).contains(status));
        let ToolError(why) = error.into();
        if theirs { Self::invalid(why) } else { Self::internal(why) }
    }
}

/// Checks that a tool knows all arguments of a call: a misspelt one would otherwise be ignored.
fn known(arguments: &JsonObject, taken: &JsonObject) -> Result<(), ToolError> {
    match shape::unknown(arguments, taken) {
        Some((strange, known)) => {
            let strange = one_line(strange, 60);
            Err(ToolError::new(format!("there is no argument `{strange}` here; there are: {known}")))
        }
        None => Ok(()),
    }
}

/// Reads a tool's arguments, with every path relative to the root of the repository, and the work tree of the paths.
async fn taken_from<T: DeserializeOwned>(call: &Call, taken: &JsonObject) -> Result<(T, Files), ToolError> {
    let mut arguments = call.arguments();
    bounded(&arguments)?;
    known(&arguments, taken)?;
    let files = places::from_the_root(call.client(), &mut arguments).await?;
    Ok((read(arguments)?, files))
}

/// Checks the size of the arguments.
fn bounded(arguments: &JsonObject) -> Result<(), ToolError> {
    match serde_json::to_string(arguments) {
        Ok(text) if text.len() <= MCP_ARGUMENTS_BYTES_MAX => Ok(()),
        _ => Err(ToolError::new(
            "the arguments have more than 1 MiB; put what is long into a file, and name it",
        )),
    }
}

/// Reads the arguments of a call. The error tells the model which member is wrong, so that it can try again.
fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, ToolError> {
    bounded(&arguments)?;
    let arguments = Value::Object(arguments);
    serde_path_to_error::deserialize(arguments).map_err(|err| {
        let path = err.path().to_string();
        let at = if path == "." { String::new() } else { format!("`{path}`: ") };
        ToolError::new(format!("{at}{}", err.inner()))
    })
}

/// Returns a result with its text and data.
pub(super) fn done<T: Serialize>(said: &Said<T>) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(said.text.clone())]);
    match serde_json::to_value(&said.answer).map(marked) {
        Ok(answer) if said.text.len() + answer.to_string().len() > MCP_ANSWER_BYTES_MAX => {
            return failed(ToolError::new("the answer is larger than hosts take; ask for less at once"));
        }
        Ok(answer) => result.structured_content = Some(answer),
        Err(error) => return failed(ToolError::new(format!("the answer cannot be written: {error}"))),
    }
    result
}

fn failed(ToolError(why): ToolError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}
