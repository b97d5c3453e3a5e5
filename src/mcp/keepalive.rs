//! Sends signs of life to a host whose call waits: some hosts give up a silent call.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};

use super::tools::tasks::short;
use provost_api::wire;
use provost_base::limits::{MCP_BEAT_MS, MCP_CATCH_UP_PAGES};
use provost_client::Client;
use provost_jail::plain_text;

/// The notices of one call, numbered upwards. A host that has not asked for notices gets none.
pub(super) struct Keepalive {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    told: u32,
}

impl Keepalive {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self { peer: context.peer.clone(), token: context.meta.get_progress_token(), told: 0 }
    }

    /// Returns whether the host wants notices.
    pub(super) fn is_wanted(&self) -> bool {
        self.token.is_some()
    }

    /// Returns the greatest time between two notices.
    pub(super) fn interval() -> Duration {
        Duration::from_millis(MCP_BEAT_MS)
    }

    /// Sends a notice. A host that has gone does not get it; its call ends by itself.
    pub(super) async fn tell(&mut self, what: &str) {
        let Some(token) = &self.token else { return };
        self.told = self.told.saturating_add(1);
        let notice = ProgressNotificationParam::new(token.clone(), f64::from(self.told));
        let _ = self.peer.notify_progress(notice.with_message(what)).await;
    }

    /// Waits for a future, and sends notices meanwhile.
    pub(super) async fn during<T>(&mut self, what: &str, wait: impl Future<Output = T>) -> T {
        tokio::pin!(wait);
        loop {
            tokio::select! {
                biased;
                done = &mut wait => return done,
                () = tokio::time::sleep(Self::interval()) => self.tell(what).await,
            }
        }
    }
}

/// The output of a worker from now on, one line at a time.
pub(super) struct OutputLines {
    client: Client,
    task: String,
    from: u64,
}

impl OutputLines {
    /// Skips the output so far.
    pub(super) async fn of(client: &Client, task: &str) -> Self {
        let mut heard = Self { client: client.clone(), task: task.to_owned(), from: 0 };
        for _ in 0..MCP_CATCH_UP_PAGES {
            let Some(page) = heard.page(None).await.filter(|page| !page.chunks.is_empty()) else { break };
            heard.from = page.next;
        }
        heard
    }

    async fn page(&self, wait_ms: Option<u64>) -> Option<wire::Output> {
        let query = wire::OutputQuery {
            id: self.task.clone(),
            from: self.from,
            wait_ms,
            limit: None,
            in_words: true,
        };
        self.client.output(&query).await.ok()
    }

    /// Returns the newest line, once there is one; if it is dropped before, no output is lost. Never returns when no more output comes.
    pub(super) async fn next(&mut self) -> String {
        loop {
            let page = match self.page(Some(MCP_BEAT_MS)).await {
                Some(page) if !page.done => page,
                _ => std::future::pending().await,
            };
            self.from = page.next;
            let text: String = page.chunks.iter().map(|chunk| chunk.text.as_str()).collect();
            if let Some(line) = plain_text(&text).lines().rev().find(|line| !line.trim().is_empty()) {
                return short(line);
            }
        }
    }
}
