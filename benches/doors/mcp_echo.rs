//! The least that answers over MCP: one tool of rmcp's that says what it always says, over either transport.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};
use serde_json::json;
use tokio::net::TcpListener;

use crate::http::publish_port;

/// The words by which this executable is started as the echo.
pub(crate) const STDIO_ROLE: &str = "floor-mcp-stdio";
pub(crate) const HTTP_ROLE: &str = "floor-mcp-http";

#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![Tool::new("echo", "Answers.", Arc::new(JsonObject::new()))]))
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut result = CallToolResult::success(vec![ContentBlock::text("No locks.")]);
        result.structured_content = Some(json!({ "locks": [] }));
        Ok(result.into())
    }
}

/// Over standard input and output.
pub(crate) fn serve_stdio() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        Echo.serve(rmcp::transport::stdio()).await?.waiting().await?;
        Ok(())
    })
}

/// Over HTTP; writes down its port.
pub(crate) fn serve_http(port_file: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        publish_port(port_file, &listener)?;
        let config = StreamableHttpServerConfig::default().with_json_response(true);
        let service = StreamableHttpService::new(|| Ok(Echo), Arc::<LocalSessionManager>::default(), config);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let service = hyper_util::service::TowerToHyperService::new(service.clone());
            let stream = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, service));
        }
    })
}
