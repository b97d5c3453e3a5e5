//! Lists, page by page.
//!
//! A cursor says where a page has ended. It is valid only for the tool, the agent and the query that it was made
//! for. It is no secret and proves nothing: an agent that forges one gets a page that it could have asked for.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::Serialize;

use super::call::Call;
use super::tool::ToolError;
use provost_base::Digest;
use provost_base::limits::{MCP_PAGE_BYTES_MAX, MCP_PAGE_ROWS, MCP_PAGE_ROWS_MAX};

/// The arguments that do not change the query.
const BESIDE: [&str; 3] = ["cursor", "limit", "max_wait_s"];

/// The length of a cursor's seal, in bytes.
const SEAL: usize = 8;

/// Rows of a list.
#[derive(Serialize, JsonSchema)]
pub(super) struct Page<T> {
    /// The rows of this page, in the list's own order.
    pub(super) rows: Vec<T>,
    /// The cursor of the next page; `None` on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cursor: Option<String>,
}

/// Returns the number of rows of a page: as many as the caller wants, within the bound.
pub(super) fn rows(limit: Option<usize>) -> usize {
    limit.unwrap_or(MCP_PAGE_ROWS).clamp(1, MCP_PAGE_ROWS_MAX)
}

/// Returns the page after a cursor, of rows with an order of their own: rows that come or go meanwhile move none of the others.
pub(super) async fn page<T: Serialize>(
    call: &Call,
    (cursor, limit): (Option<String>, Option<usize>),
    mut all: Vec<T>,
    place: impl Fn(&T) -> String,
) -> Result<Page<T>, ToolError> {
    let after = match cursor {
        Some(cursor) => Some(open(call, &cursor).await?),
        None => None,
    };
    all.sort_by_cached_key(&place);
    let left = all.into_iter().skip_while(|row| after.as_ref().is_some_and(|after| place(row) <= *after));
    let (rows, more) = fitting(left, rows(limit));
    let cursor = match rows.last().filter(|_| more) {
        Some(last) => Some(seal(call, &place(last)).await?),
        None => None,
    };
    Ok(Page { rows, cursor })
}

/// Returns as many rows as fit into one answer, at least one, and whether there are more.
pub(super) fn fitting<T: Serialize>(rows: impl Iterator<Item = T>, most: usize) -> (Vec<T>, bool) {
    let (mut fit, mut bytes) = (Vec::new(), 0);
    for row in rows {
        let len = serde_json::to_string(&row).map_or(0, |it| weight(&it));
        if fit.len() >= most || (!fit.is_empty() && bytes + len > MCP_PAGE_BYTES_MAX) {
            return (fit, true);
        }
        bytes += len;
        fit.push(row);
    }
    (fit, false)
}

/// Returns the length of a row in the longer of its two forms, in bytes: in the text, each line of other agents'
/// words begins with a bar, and the text must hold every row that the cursor passes.
fn weight(row: &str) -> usize {
    const BAR: usize = 3;
    row.len() + BAR * row.matches("\\n").count()
}

/// Writes a number so that places sort in its order.
pub(super) fn number(it: u64) -> String {
    format!("{it:020}")
}

/// Makes a cursor for this place.
pub(super) async fn seal(call: &Call, place: &str) -> Result<String, ToolError> {
    let seal = sealing(call, place).await?;
    Ok(URL_SAFE_NO_PAD.encode([&seal, place.as_bytes()].concat()))
}

/// Returns the place of a cursor.
pub(super) async fn open(call: &Call, cursor: &str) -> Result<String, ToolError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).unwrap_or_default();
    if let Some((seal, place)) = bytes.split_at_checked(SEAL)
        && let Ok(place) = std::str::from_utf8(place)
        && sealing(call, place).await? == seal
    {
        return Ok(place.to_owned());
    }
    let tool = &call.request().name;
    Err(ToolError::new(format!(
        "this cursor is not one that {tool} has given you for these arguments; begin without one"
    )))
}

async fn sealing(call: &Call, place: &str) -> Result<Vec<u8>, ToolError> {
    let me = call.client().who_am_i().await?.agent;
    let mut asked: Vec<String> = call
        .arguments()
        .iter()
        .filter(|(name, value)| !BESIDE.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    asked.sort_unstable();
    let fields = [&*call.request().name, &me, place].into_iter().chain(asked.iter().map(String::as_str));
    Ok(Digest::of_fields(fields.map(str::as_bytes)).as_bytes()[..SEAL].to_vec())
}
