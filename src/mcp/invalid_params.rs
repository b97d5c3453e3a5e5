//! Answers requests that have a known method and invalid parameters.
//!
//! The library takes such requests for requests of an unknown method, and would tell the host that the method does
//! not exist.

use rmcp::model::{
    CallToolRequestParams, CancelTaskParams, CompleteRequestParams, CustomRequest, ErrorCode, ErrorData,
    GetPromptRequestParams, GetTaskParams, InitializeRequestParams, PaginatedRequestParams,
    ReadResourceRequestParams, SubscribeRequestParams, UnsubscribeRequestParams, UpdateTaskParams,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use provost_base::limits::MCP_WHY_CHARS_MAX;

/// Returns the error for the host. Some methods do not exist for hosts of the newer era.
pub(super) fn fault(request: CustomRequest, is_newer: bool) -> ErrorData {
    let CustomRequest { method, params, .. } = request;
    let params = params.unwrap_or_default();
    let why = match method.as_str() {
        "initialize" if !is_newer => wrong::<InitializeRequestParams>(params),
        "tools/call" => wrong::<CallToolRequestParams>(params),
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
            wrong::<PaginatedRequestParams>(params)
        }
        "prompts/get" => wrong::<GetPromptRequestParams>(params),
        "resources/read" => wrong::<ReadResourceRequestParams>(params),
        "resources/subscribe" if !is_newer => wrong::<SubscribeRequestParams>(params),
        "resources/unsubscribe" if !is_newer => wrong::<UnsubscribeRequestParams>(params),
        "completion/complete" => wrong::<CompleteRequestParams>(params),
        "tasks/get" => wrong::<GetTaskParams>(params),
        "tasks/update" => wrong::<UpdateTaskParams>(params),
        "tasks/cancel" => wrong::<CancelTaskParams>(params),
        "server/discover" | "subscriptions/listen" => "they do not have its shape".into(),
        _ => {
            let method: String = method.chars().take(MCP_WHY_CHARS_MAX).collect();
            let why = format!("there is no method {method}");
            return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None);
        }
    };
    ErrorData::invalid_params(format!("the parameters of {method}: {why}"), None)
}

fn wrong<T: DeserializeOwned>(params: Value) -> String {
    match serde_path_to_error::deserialize::<_, T>(params) {
        Ok(_) => "they do not have its shape".into(),
        // The error may quote the request.
        Err(error) => error.to_string().chars().take(MCP_WHY_CHARS_MAX).collect(),
    }
}
