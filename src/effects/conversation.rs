//! A run of a worker that speaks MCP: combines its last message with the end of its process.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::mcp::Untold;
use super::result::{End, Spoken};
use provost_jail::Running;

/// How long a worker that has answered may take to end by itself.
const MOMENT: Duration = Duration::from_secs(1);
/// How long the last words of a worker that has ended may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A conversation that is under way.
pub(super) type Conversation = Pin<Box<dyn Future<Output = Result<Value, Untold>> + Send>>;

/// The conversation of a run, and its outcome once it is over.
pub(super) struct RunConversation {
    talk: Option<Conversation>,
    said: Option<Result<Value, Untold>>,
}

impl RunConversation {
    /// Follows a conversation, if the run is one.
    pub(super) fn about(talk: Option<Conversation>) -> Self {
        Self { talk, said: None }
    }

    /// Returns when the conversation is over; never, when there is none.
    pub(super) async fn over(&mut self) {
        match &mut self.talk {
            Some(talk) => self.said = Some(talk.await),
            None => std::future::pending().await,
        }
        self.talk = None;
    }

    /// Gives a worker that has answered a moment to end, and one that has ended its last words.
    pub(super) async fn settle(&mut self, running: &mut Running) {
        if self.said.is_some() {
            if timeout(MOMENT, running.wait()).await.is_err() {
                running.stop();
            }
        } else if self.talk.is_some() {
            // Without last words it counts as gone.
            let _over = timeout(LAST_WORDS, self.over()).await;
        }
    }

    /// The end of the run. What ended it against its will counts more than what it has said.
    pub(super) fn weigh(self, end: End) -> End {
        let by_itself = matches!(end, End::Code(_) | End::Signal(_) | End::SupervisorLost);
        match (self.said, self.talk.is_some()) {
            (Some(Ok(value)), _) if by_itself => End::Told(Spoken(value)),
            (Some(Err(untold)), _) if by_itself && untold.closed => gone(&end, &untold.why),
            (Some(Err(untold)), _) if by_itself => End::Untold(untold.why),
            (None, true) if by_itself => gone(&end, "MCP worker error: it went away before it answered"),
            _ => end,
        }
    }
}

fn gone(end: &End, otherwise: &str) -> End {
    End::Untold(match end {
        End::Code(code) => {
            format!("MCP worker error: it ended with exit code {code} before it answered").into()
        }
        End::Signal(signal) => {
            format!("MCP worker error: it was terminated by signal {signal} before it answered").into()
        }
        _ => otherwise.into(),
    })
}
