//! A run of a worker that the daemon speaks with: combines the worker's last message with the end of its process.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::result::{End, Spoken, clip};
use provost_base::limits::REASON_LEN_MAX;
use provost_jail::{Running, plain_text};

/// How long a worker that has answered may take to end by itself.
const MOMENT: Duration = Duration::from_secs(1);
/// How long reading the last words of a worker that has ended may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The outcome of a conversation.
#[derive(Debug)]
pub(super) enum Spoke {
    /// The result of a call in MCP.
    Mcp(Value),
    /// A turn in ACP has ended well; its answer is in the run's output.
    Acp,
}

/// The reason why a conversation has no result.
#[derive(Debug)]
pub(super) struct Untold {
    /// One sentence, harmless to show.
    pub(super) why: Box<str>,
    /// Whether the worker has closed the connection.
    pub(super) closed: bool,
}

impl Untold {
    /// Makes the error of a worker that is called `whose` in sentences; `why` begins with a colon or the error's number.
    pub(super) fn new(whose: &str, why: &str) -> Self {
        let why = plain_text(&format!("{whose} error{why}"));
        Self { why: clip(why.trim(), REASON_LEN_MAX).into(), closed: false }
    }
}

/// A conversation that is under way.
pub(super) type Conversation = Pin<Box<dyn Future<Output = Result<Spoke, Untold>> + Send>>;

/// The conversation of a run, and its outcome once it is over.
pub(super) struct RunConversation {
    talk: Option<Conversation>,
    said: Option<Result<Spoke, Untold>>,
    /// The name of the worker in sentences.
    whose: &'static str,
}

impl RunConversation {
    /// Follows a conversation, if the run has one.
    pub(super) fn about(talk: Option<Conversation>, whose: &'static str) -> Self {
        Self { talk, said: None, whose }
    }

    /// Returns when the conversation is over; never returns if there is none.
    pub(super) async fn over(&mut self) {
        match &mut self.talk {
            Some(talk) => self.said = Some(talk.await),
            None => std::future::pending().await,
        }
        self.talk = None;
    }

    /// Gives a worker that has answered a moment to end, and reads the last words of a worker that has ended.
    pub(super) async fn settle(&mut self, running: &mut Running) {
        if self.said.is_some() {
            if timeout(MOMENT, running.wait()).await.is_err() {
                running.stop();
            }
        } else if self.talk.is_some() {
            // A worker without last words counts as gone.
            let _over = timeout(LAST_WORDS, self.over()).await;
        }
    }

    /// Checks whether the worker went away in the middle of the conversation.
    pub(super) fn was_left(&self) -> bool {
        match &self.said {
            Some(said) => said.as_ref().is_err_and(|it| it.closed),
            None => self.talk.is_some(),
        }
    }

    /// Returns the end of the run. A cause that ended the run against its will counts more than its last message.
    pub(super) fn weigh(self, end: End) -> End {
        let whose = self.whose;
        let by_itself = matches!(end, End::Code(_) | End::Signal(_) | End::SupervisorLost);
        match (self.said, self.talk.is_some()) {
            (Some(Ok(Spoke::Mcp(value))), _) if by_itself => End::Told(Spoken(value)),
            // Some agents stay after the end of their input, and the daemon ends them.
            (Some(Ok(Spoke::Acp)), _) if by_itself => End::Code(0),
            (Some(Err(untold)), _) if by_itself && untold.closed => gone(whose, &end, untold.why),
            (Some(Err(untold)), _) if by_itself => End::Untold(untold.why),
            (None, true) if by_itself => {
                gone(whose, &end, Untold::new(whose, ": it went away before it answered").why)
            }
            _ => end,
        }
    }
}

fn gone(whose: &str, end: &End, otherwise: Box<str>) -> End {
    End::Untold(match end {
        End::Code(code) => format!("{whose} error: it ended with exit code {code} before it answered").into(),
        End::Signal(signal) => {
            format!("{whose} error: it was terminated by signal {signal} before it answered").into()
        }
        _ => otherwise,
    })
}
