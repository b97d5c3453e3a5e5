//! MCP over standard input and output.

use rmcp::ServiceExt as _;

use super::Mcp;

/// Why a server does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The host did not begin as the protocol says.
    #[error("the host does not speak MCP: {0}")]
    Beginning(String),
    /// Something went wrong inside.
    #[error("serving has failed: {0}")]
    Inside(String),
}

/// Serves a host until it closes our standard input.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(mcp: Mcp) -> Result<(), ServeError> {
    let (reader, writer) = rmcp::transport::stdio();
    let beginning = |error: &dyn std::fmt::Display| ServeError::Beginning(error.to_string());
    let running = mcp.serve((reader, writer)).await.map_err(|error| beginning(&error))?;
    running.waiting().await.map_err(|error| ServeError::Inside(error.to_string()))?;
    Ok(())
}
