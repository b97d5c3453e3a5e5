//! Blocks of content of type `json`, as DevIt's clients read them (DevIt 1.15), for which rmcp has no type.
//!
//! A tool writes such a block as a resource with an address of Provost's, which every host can read. On output over
//! standard input and output, which DevIt's clients use, the resource becomes the block.

use rmcp::ErrorData;
use rmcp::model::{ContentBlock, CustomResult, ResourceContents, ServerConfig, ServerResult};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, Service, ServiceRole};
use serde_json::{Value, json};

use super::Mcp;

/// The address that marks a block of type `json`. No other resource has it.
const JSON: &str = "provost:block/json";

/// Makes a block of type `json`.
pub(super) fn block(value: &Value) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(value.to_string(), JSON).with_mime_type("application/json"))
}

/// The server with all blocks that it returns.
#[derive(Clone)]
pub(super) struct Whole(Mcp);

impl Whole {
    /// Serves a host with all blocks, including those of type `json`.
    pub(super) fn of(mcp: Mcp) -> Self {
        Self(mcp)
    }
}

impl Service<RoleServer> for Whole {
    async fn handle_request(
        &self,
        request: <RoleServer as ServiceRole>::PeerReq,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let result = Service::handle_request(&self.0, request, context).await?;
        Ok(spelt_out(result))
    }

    async fn handle_notification(
        &self,
        notification: <RoleServer as ServiceRole>::PeerNot,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Service::handle_notification(&self.0, notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        Service::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> std::borrow::Cow<'static, [rmcp::model::ProtocolVersion]> {
        Service::supported_protocol_versions(&self.0)
    }
}

fn spelt_out(result: ServerResult) -> ServerResult {
    let ServerResult::CallToolResult(result) = result else { return result };
    if !result.content.iter().any(|it| stands_for(it).is_some()) {
        return ServerResult::CallToolResult(result);
    }
    let blocks = result.content.iter().map(|it| match stands_for(it) {
        Some(text) => {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            json!({ "type": "json", "json": value })
        }
        None => serde_json::to_value(it).unwrap_or_default(),
    });
    let blocks: Vec<Value> = blocks.collect();
    let mut whole = serde_json::to_value(&result).unwrap_or_default();
    // Some of DevIt's clients expect it beside the content.
    if let Some(metadata) = blocks.iter().find_map(|it| it["json"].get("metadata")) {
        whole["metadata"] = metadata.clone();
    }
    whole["content"] = Value::Array(blocks);
    ServerResult::CustomResult(CustomResult::new(whole))
}

/// Returns the text of a block of type `json`.
fn stands_for(block: &ContentBlock) -> Option<&str> {
    let ContentBlock::Resource(it) = block else { return None };
    match &it.resource {
        ResourceContents::TextResourceContents { uri, text, .. } if uri == JSON => Some(text),
        _ => None,
    }
}
