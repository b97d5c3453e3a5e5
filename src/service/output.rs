//! Follows the output of a running worker.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::Provost;
use provost_base::TaskId;
use provost_engine::Woken;
use provost_jail::{Chunk, Page, Stream, Transcript};

impl Provost {
    /// What a task's worker has said since `from`, waiting up to `patience` for something new. `None` when
    /// nothing will come any more: the task is over and its output has left memory.
    pub async fn output(&self, task: &TaskId, from: u64, patience: Duration) -> Option<Page> {
        let until = Instant::now() + patience;
        let mut events = self.engine().subscribe();
        loop {
            if let Some(live) = self.outputs().get(task) {
                return Some(follow(&live, from, until).await);
            }
            let found = self.task(task).await;
            if found.as_ref().map_or(true, |task| task.state.is_finished()) {
                // It may have been put there and have ended between the two looks.
                let here = self.outputs().read_from(task, from);
                let is_away = found.is_ok_and(|it| it.commit_away().is_some());
                return if here.is_none() && is_away { self.output_left(task, from).await } else { here };
            }
            let nothing_yet = Page { chunks: Vec::new(), next: from, finished: false };
            match events.change(until, |_| true).await {
                Woken::Changed => {}
                Woken::Late => return Some(nothing_yet),
                Woken::Stopped => {
                    sleep_until(until).await;
                    return Some(nothing_yet);
                }
            }
        }
    }
}

impl Provost {
    /// The output that the run of a task has left which was on another host.
    async fn output_left(&self, task: &TaskId, from: u64) -> Option<Page> {
        let (artifacts, task) = (self.artifacts(), task.clone());
        let read = tokio::task::spawn_blocking(move || artifacts.output_of(&task)).await.ok()?;
        let read = read
            .inspect_err(|error| tracing::warn!(%error, "the output of a run elsewhere is not to be had"));
        let bytes = read.ok()??.into_bytes();
        let at = usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len());
        let (next, rest) = (bytes.len() as u64, bytes.get(at..).unwrap_or_default().to_vec());
        let chunk = Chunk { at: at as u64, stream: Stream::Out, bytes: rest };
        let chunks = if chunk.bytes.is_empty() { Vec::new() } else { vec![chunk] };
        Some(Page { chunks, next, finished: true })
    }

    /// Lets a transcript catch up with what its agent has said by now, without waiting. `false` when nothing will come
    /// any more, or nothing is to be had.
    pub fn catch_up(&self, task: &TaskId, transcript: &mut Transcript) -> bool {
        let Some(live) = self.outputs().get(task) else { return false };
        for _ in 0..PAGES_AT_ONCE {
            let page = live.read_from(transcript.at());
            if page.chunks.is_empty() {
                return !page.finished;
            }
            transcript.read(&page);
        }
        true
    }
}

/// Pages after which the rest has to wait: more than is kept at any moment, but a worker can go on writing.
const PAGES_AT_ONCE: usize = 32;

async fn follow(live: &provost_jail::LiveOutput, from: u64, until: Instant) -> Page {
    timeout_at(until, live.follow(from)).await.unwrap_or_else(|_| live.read_from(from))
}
