//! Sends words to the agent that works on a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::tool::{About, Entry, Kind, Said, ToolError};
use provost_api::wire;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "task_say",
            title: "Say something to a task's agent",
            description: "Says something to the agent that works on one of your tasks, if that agent speaks ACP. It hears it when its turn ends; with now, its turn is ended first. task_status shows what was delivered.",
            kind: Kind::Begins,
        }
        .does(say),
    ]
}

/// The words, and the task whose agent gets them.
#[derive(Deserialize, JsonSchema)]
struct Say {
    /// Which task.
    task_id: String,
    /// The words, at most 16 KiB.
    text: String,
    /// Whether the agent's turn is ended first.
    #[serde(default)]
    now: bool,
}

/// The saying, which is kept and will be delivered or reported.
#[derive(Serialize, JsonSchema)]
struct Kept {
    /// The id of the task.
    task_id: String,
    /// The number of the saying.
    saying: u32,
    /// The number of sayings that wait for the agent, including this one.
    waiting: usize,
}

async fn say(call: Call, asked: Say) -> Result<Said<Kept>, ToolError> {
    let request = wire::SayToTask { task: asked.task_id, text: asked.text, now: asked.now };
    let said = call.client().say(&request).await?;
    let text =
        format!("Kept as number {} for the agent of task {}; {} wait.", said.number, said.task, said.waiting);
    Ok(Said { text, answer: Kept { task_id: said.task, saying: said.number, waiting: said.waiting } })
}
