//! A tool: what hosts are told of it, and what it does.

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
use crate::base::limits::{MCP_ANSWER_BYTES_MAX, MCP_ARGUMENTS_BYTES_MAX};
use crate::client::ClientError;

/// A tool.
pub(super) struct Entry {
    pub(super) tool: Tool,
    pub(super) run: Run,
}

type Run = Box<dyn Fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// What a host gets. Errors of the protocol are for tools whose clients look for them.
pub(super) type Answer = Result<CallToolResponse, ErrorData>;

/// What a tool answers: a sentence for people and models, and the same with a shape.
pub(super) struct Said<T> {
    pub(super) text: String,
    pub(super) answer: T,
}

/// Why a tool did not do it, and what to do next.
pub(super) struct Fault(String);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Fault {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        let hint = match &error {
            ClientError::Refused { fault, .. } => fault.hint.clone(),
            ClientError::NotRunning(_) => Some("`provost up` starts it".into()),
            _ => None,
        };
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        Self(format!("{error}{hint}"))
    }
}

/// What kind of thing a tool does, as far as hosts want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// It looks.
    Reads,
    /// It adds or gives back; once more is the same as once.
    Steady,
    /// It begins something new each time.
    Begins,
    /// It ends something for good.
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

/// What hosts are told of a tool.
pub(super) struct About {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) kind: Kind,
}

impl About {
    /// The tool that does this, and answers with what came of it.
    pub(super) fn does<In, Out, Doing>(
        self,
        act: impl Fn(Call, In) -> Doing + Send + Sync + Clone + 'static,
    ) -> Entry
    where
        In: DeserializeOwned + JsonSchema + Send + 'static,
        Out: Serialize + JsonSchema + Send + 'static,
        Doing: Future<Output = Result<Said<Out>, Fault>> + Send + 'static,
    {
        self.answers::<In, Out, _>(move |call, asked| {
            let act = act.clone();
            async move { act(call, asked).await.map(|said| done(&said).into()) }
        })
    }

    /// The tool that does this, and may answer with something else than a result: that it has become a task, or that
    /// it needs somebody's word first. Its results are `Out`.
    pub(super) fn answers<In, Out, Doing>(
        self,
        act: impl Fn(Call, In) -> Doing + Send + Sync + Clone + 'static,
    ) -> Entry
    where
        In: DeserializeOwned + JsonSchema + Send + 'static,
        Out: JsonSchema,
        Doing: Future<Output = Result<CallToolResponse, Fault>> + Send + 'static,
    {
        let hints = self.kind.annotations(self.title, self.name == "delegate");
        let tool = Tool::new(self.name, self.description, schema::<In>())
            .with_title(self.title)
            .with_raw_output_schema(schema::<Out>())
            .with_annotations(hints);
        let run: Run = Box::new(move |call| {
            let act = act.clone();
            Box::pin(async move {
                let asked = match read::<In>(call.arguments()) {
                    Ok(asked) => asked,
                    Err(fault) => return Ok(failed(fault).into()),
                };
                Ok(act(call, asked).await.unwrap_or_else(|fault| failed(fault).into()))
            })
        });
        Entry { tool, run }
    }

    /// The tool by a name that other clients know, which answers as they expect it: with content of any form, and what
    /// goes wrong as an error of the protocol.
    pub(super) fn alias<In, Doing>(
        self,
        act: impl Fn(Call, In) -> Doing + Send + Sync + Clone + 'static,
    ) -> Entry
    where
        In: DeserializeOwned + JsonSchema + Send + 'static,
        Doing: Future<Output = Result<CallToolResult, AliasFault>> + Send + 'static,
    {
        let hints = self.kind.annotations(self.title, self.name == "devit_delegate");
        let tool = Tool::new(self.name, self.description, schema::<In>())
            .with_title(self.title)
            .with_annotations(hints);
        let run: Run = Box::new(move |call| {
            let act = act.clone();
            Box::pin(async move {
                let asked = read::<In>(call.arguments()).map_err(|Fault(why)| AliasFault::invalid(why).0)?;
                Ok(act(call, asked).await.map_err(|fault| fault.0)?.into())
            })
        });
        Entry { tool, run }
    }
}

/// What goes wrong with an alias, in the words that its clients know. DevIt 1.15.
pub(super) struct AliasFault(ErrorData);

impl AliasFault {
    /// What was asked makes no sense, or is refused.
    pub(super) fn invalid(why: impl std::fmt::Display) -> Self {
        let code = "E_VALIDATION";
        Self(ErrorData::invalid_params(format!("{code}: {why}"), Some(json!({ "code": code }))))
    }

    /// It is the daemon's fault, or the way's to it.
    fn internal(why: impl std::fmt::Display) -> Self {
        let code = "E_INTERNAL";
        Self(ErrorData::internal_error(format!("{code}: {why}"), Some(json!({ "code": code }))))
    }
}

impl From<ClientError> for AliasFault {
    fn from(error: ClientError) -> Self {
        let theirs = matches!(&error, ClientError::Refused { status, .. } if (400..500).contains(status));
        let Fault(why) = error.into();
        if theirs { Self::invalid(why) } else { Self::internal(why) }
    }
}

/// Reads what a tool is called with. A model that gets it wrong is told which member, and can try again.
fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, Fault> {
    let arguments = Value::Object(arguments);
    if arguments.to_string().len() > MCP_ARGUMENTS_BYTES_MAX {
        return Err(Fault::new(
            "the arguments have more than 1 MiB; put what is long into a file, and name it",
        ));
    }
    serde_path_to_error::deserialize(arguments).map_err(|err| {
        let path = err.path().to_string();
        let at = if path == "." { String::new() } else { format!("`{path}`: ") };
        Fault::new(format!("{at}{}", err.inner()))
    })
}

/// A result with what was said.
pub(super) fn done<T: Serialize>(said: &Said<T>) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(said.text.clone())]);
    match serde_json::to_value(&said.answer) {
        Ok(answer) if said.text.len() + answer.to_string().len() > MCP_ANSWER_BYTES_MAX => {
            return failed(Fault::new("the answer is larger than hosts take; ask for less at once"));
        }
        Ok(answer) => result.structured_content = Some(answer),
        Err(error) => return failed(Fault::new(format!("the answer cannot be written: {error}"))),
    }
    result
}

fn failed(Fault(why): Fault) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// A type as hosts want to have it described: without names of formats that JSON does not know.
fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

fn plain(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let foreign = |value: &Value| {
                value.as_str().is_some_and(|it| it.starts_with("uint") || it.starts_with("int"))
            };
            if members.get("format").is_some_and(foreign) {
                members.remove("format");
            }
            members.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}
