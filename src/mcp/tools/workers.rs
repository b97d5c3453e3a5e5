//! Lists the workers that accept tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::tool::{About, Entry, Kind, Said, ToolError};
use crate::words::{listed, one_line};
use provost_api::wire;

/// The longest reason that is shown, in characters.
const WHY_CHARS: usize = 300;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "workers_list",
            title: "List workers",
            description: "Lists workers that delegate can give work to. Call it once before you delegate.",
            kind: Kind::Reads,
        }
        .does(list),
    ]
}

/// The tool takes no arguments.
#[derive(Deserialize, JsonSchema)]
struct Asked {}

/// A worker that accepts tasks.
#[derive(Serialize, JsonSchema)]
struct Worker {
    /// The name that identifies it in delegate.
    worker: String,
    /// `cli`, `mcp`, `polling` (collects its tasks); `agent` for an agent that is present and not configured.
    kind: String,
    /// The reason why it accepts no work now.
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<String>,
}

/// The existing workers.
#[derive(Serialize, JsonSchema)]
struct Workers {
    /// Workers of the configuration first, then agents that collect work.
    workers: Vec<Worker>,
}

/// Returns the workers of the configuration, and the agents that have registered to collect work.
async fn all(call: &Call) -> Result<(Vec<Worker>, Vec<wire::Agent>), ToolError> {
    let (about, agents) = tokio::try_join!(call.client().about(), call.client().agents())?;
    let configured = about.workers.into_iter().map(|it| Worker {
        worker: it.id,
        kind: it.kind,
        unusable: it.broken.or(it.switched).map(|why| one_line(&why, WHY_CHARS)),
    });
    let mut all: Vec<Worker> = configured.collect();
    for agent in agents.iter().filter(|it| it.registered_at.is_some()) {
        if all.iter().all(|it| it.worker != agent.id) {
            all.push(Worker { worker: agent.id.clone(), kind: "agent".into(), unusable: None });
        }
    }
    Ok((all, agents))
}

/// Checks that a worker or a known agent has this name. A task for an unknown name would wait for ever.
pub(super) async fn has(call: &Call, name: &str) -> Result<(), ToolError> {
    let (workers, agents) = all(call).await?;
    if workers.iter().any(|it| it.worker == name) || agents.iter().any(|it| it.id == name) {
        return Ok(());
    }
    let names: Vec<&str> = workers.iter().map(|it| it.worker.as_str()).collect();
    let (name, names) = (one_line(name, 100), names.join(", "));
    Err(ToolError::new(format!("there is no worker {name}; there are: {names} (workers_list says more)")))
}

async fn list(call: Call, _asked: Asked) -> Result<Said<Workers>, ToolError> {
    let (workers, _) = all(&call).await?;
    let lines = workers.iter().map(|it| {
        let why = it.unusable.as_deref().map(|why| format!(", cannot be used: {why}")).unwrap_or_default();
        format!("{} ({}){why}", it.worker, it.kind)
    });
    let text = listed(&format!("{} workers.", workers.len()), lines);
    Ok(Said { text, answer: Workers { workers } })
}
