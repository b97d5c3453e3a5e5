//! Keeps editors' turns: a task reads the output of the run and writes it to the disk, for editors that resume the session.
//!
//! The agent never waits for it. If an agent speaks faster than the disk writes, the output loses its middle, and so does the turn. A turn
//! goes on without its file if that cannot be written.

use std::io;

use provost_base::acp;
use provost_domain::Task;
use provost_jail::{Conversations, LiveOutput, OutputBoard, SessionTurn};

/// Begins to write the output of a run to the disk, if its task is a turn of an editor's session.
pub(super) fn keep(outputs: &OutputBoard, task: &Task, live: &LiveOutput) {
    let Some((conversations, turn)) = outputs.conversations().cloned().zip(turn_of(task)) else { return };
    let (live, from) = (live.clone(), live.total());
    tokio::spawn(async move {
        if let Err(err) = write(conversations, &turn, &live, from).await {
            tracing::warn!(%err, task = %turn.task, "a turn of an editor's session is not kept whole");
        }
    });
}

fn turn_of(task: &Task) -> Option<SessionTurn> {
    let context = task.order.context.as_ref()?.value();
    let session = acp::editor_session(&context)?.into();
    Some(SessionTurn { owner: task.asked_by.clone(), session, task: task.id().clone() })
}

async fn write(
    conversations: Conversations,
    turn: &SessionTurn,
    live: &LiveOutput,
    mut at: u64,
) -> io::Result<()> {
    if let Some(mut earlier) = conversations.written_of(&turn.task) {
        // If the agent's process was started again, the keeper of the earlier process may still write.
        while earlier.changed().await.is_ok() {}
    }
    let begun = turn.clone();
    let mut keeper = apart(move || conversations.keep(&begun)).await?;
    loop {
        let page = live.follow(at).await;
        let (is_over, before) = (page.finished && page.chunks.is_empty(), at);
        at = page.next;
        let taken = apart(move || keeper.take(&page, before).map(|()| keeper)).await?;
        if is_over {
            return apart(|| taken.end()).await;
        }
        keeper = taken;
    }
}

/// Runs blocking work on another thread.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
