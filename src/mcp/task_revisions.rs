//! Serves both forms of tasks: the extension, which the library knows, and that of revision 2025-11-25, which the
//! library has dropped. It answers the requests that `deferred` has kept from the library.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, GetTaskResult,
    PaginatedRequestParams, ProtocolVersion, ServerJsonRpcMessage, ServerResult, SubscriptionFilter,
    TaskAckResult,
};
use rmcp::service::{RequestContext, RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, ServerHandler};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Mcp, deferred, dialog, handles, invalid_params, legacy_tasks, watch};

/// Marks a call that becomes a task in the older form.
#[derive(Clone)]
struct AsTask;

/// Returns whether a request comes from a host that began with `initialize`.
pub(super) fn is_older(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_none_or(|version| version < ProtocolVersion::V_2026_07_28)
}

/// Returns whether a host follows tasks in the form of the extension.
pub(super) fn follows(context: &RequestContext<RoleServer>) -> bool {
    // In the older era, some hosts declare tasks and do not accept handles.
    context.meta.protocol_version().is_some()
        && context.client_capabilities().is_some_and(|it| it.supports_tasks())
}

/// Returns whether a call asks for a task in the older form.
pub(super) fn asks_for_task(context: &RequestContext<RoleServer>) -> bool {
    context.extensions.get::<AsTask>().is_some()
}

/// Answers a request that the library does not know.
pub(super) async fn answer(
    mcp: &Mcp,
    request: CustomRequest,
    context: RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    let (client, asked) = (mcp.client(&context), request.params.clone());
    match (request.method.as_str(), is_older(&context)) {
        (deferred::TOOLS, true) => {
            let page = Some(params::<PaginatedRequestParams>(asked)?);
            Ok(legacy_tasks::tools(&mcp.list_tools(page, context).await?))
        }
        (deferred::CALL, true) => call(mcp, asked, context).await,
        (deferred::GET, true) => {
            let task = handles::find(&client, &params::<Which>(asked)?.task_id).await?;
            let asks = dialog::about(&client, &task, &context).await;
            if follows(&context) {
                let asks = asks.map(|question| question.requests());
                return whole(&GetTaskResult::new(handles::detailed(&task, asks)));
            }
            Ok(CustomResult(legacy_tasks::task(&task, asks.is_some())))
        }
        (deferred::CANCEL, true) => {
            let Which { task_id } = params(asked)?;
            if follows(&context) {
                handles::cancel(&client, &task_id).await?;
                return whole(&TaskAckResult::new());
            }
            legacy_tasks::cancel(&client, &task_id).await
        }
        ("tasks/list", true) => legacy_tasks::list(&client, params::<legacy_tasks::Page>(asked)?).await,
        ("tasks/result", true) => watch::result(&client, &params::<Which>(asked)?.task_id, &context).await,
        (deferred::LISTEN, false) => listen(mcp, asked, context).await,
        _ => Err(invalid_params::fault(request, context.meta.protocol_version().is_some())),
    }
}

/// The parameters of a request about a single task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Which {
    task_id: String,
}

fn params<T: for<'de> Deserialize<'de>>(params: Option<Value>) -> Result<T, ErrorData> {
    serde_json::from_value(params.unwrap_or_else(|| json!({})))
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

fn whole(result: &impl Serialize) -> Result<CustomResult, ErrorData> {
    let value = serde_json::to_value(result);
    value.map(CustomResult).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Handles a call that becomes a task.
async fn call(
    mcp: &Mcp,
    asked: Option<Value>,
    mut context: RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    let call: CallToolRequestParams = params(asked)?;
    if !legacy_tasks::supports(&call.name) {
        let why = format!("{} cannot become a task; call it without `task`", call.name);
        return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None));
    }
    context.extensions.insert(AsTask);
    let client = mcp.client(&context);
    match mcp.call_tool(call, context.clone()).await? {
        CallToolResponse::Task(begun) => {
            let task = handles::find(&client, &begun.task.task_id).await?;
            mcp.watches.begin(&client, &task, &context);
            Ok(legacy_tasks::begun(&task))
        }
        CallToolResponse::Complete(result) => {
            let why = result.content.first().and_then(|it| it.as_text()).map(|it| it.text.clone());
            Err(ErrorData::invalid_params(why.unwrap_or_else(|| "it has become no task".into()), None))
        }
        _ => Err(ErrorData::internal_error("the call has become no task", None)),
    }
}

/// The subscriptions that a host wants, including tasks.
#[derive(Deserialize)]
struct Listen {
    notifications: TaskSubscription,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskSubscription {
    task_ids: Vec<String>,
    #[serde(flatten)]
    also: SubscriptionFilter,
}

/// Answers `subscriptions/listen` with tasks.
async fn listen(
    mcp: &Mcp,
    asked: Option<Value>,
    context: RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    let Listen { notifications: TaskSubscription { task_ids, also } } = params(asked)?;
    if !follows(&context) {
        return Err(watch::undeclared());
    }
    watch::check(&task_ids)?;
    let there = mcp.accepted_subscription_filter(&also).unwrap_or_default();
    let also = also.intersection(&there).intersection(&also.supported_by(&mcp.get_info().capabilities));
    let client = mcp.client(&context);
    let tasks = watch::acknowledge(&client, task_ids, &also, &context).await?;
    whole(&watch::follow(&client, tasks, &also, &context).await?)
}

/// Adds the older form's capability to the answer to `initialize`; the library has no member for it.
fn with_capability(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    let ServerJsonRpcMessage::Response(mut response) = message else { return message };
    if let ServerResult::InitializeResult(said) = &response.result
        && let Ok(mut said) = serde_json::to_value(said)
        && said["capabilities"].is_object()
    {
        said["capabilities"]["tasks"] = legacy_tasks::capability();
        response.result = ServerResult::CustomResult(CustomResult(said));
    }
    ServerJsonRpcMessage::Response(response)
}

/// A transport that adds that capability.
pub(super) struct Announcing<T>(pub(super) T);

impl<T: Transport<RoleServer>> Transport<RoleServer> for Announcing<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(with_capability(message))
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.0.receive()
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.0.close().await
    }
}
