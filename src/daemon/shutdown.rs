//! Ends a daemon in order, and logs the reason.

use anyhow::{Result, anyhow};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Daemon, GRACE};
use provost_effects::EffectRunner;
use provost_engine as engine;

impl Daemon {
    /// Ends the doors first, then the effects, then the engine, so that everything that was begun can still
    /// be recorded. If the engine has ended by itself, the last line of the log has the reason.
    pub(super) async fn shut_down(
        self,
        hands: EffectRunner,
        thread: std::thread::JoinHandle<Option<engine::Lost>>,
        reply: Option<oneshot::Sender<Result<String, String>>>,
    ) -> Result<()> {
        tracing::info!("stopping");
        self.say_draining();
        if let Some(reply) = reply {
            // The asker may be gone.
            let _ = reply.send(Ok("stopping".into()));
        }
        // Running jobs end with the daemon. Clients that wait for them learn it while there is a door.
        let ended = self.agents.end_running_jobs().await.unwrap_or_default();
        self.stop.cancel();
        self.doors.close();
        // A door gives its connections time to finish; reading a file that does not answer must not delay the stop.
        if timeout(3 * GRACE, self.doors.wait()).await.is_err() {
            tracing::warn!("a door is not closed yet: a file that it looks at does not answer");
        }
        self.provost.index().stop();
        hands.stop().await;
        self.agents.settle_jobs(&ended).await;
        if let Err(err) =
            self.record("daemon.stopped", &self.start.places.root.display().to_string(), json!({})).await
        {
            tracing::warn!("the stop is not on record: {err:#}");
        }
        self.engine().stop();
        // The thread commits the queued commands; joining it may take as long as the disk does.
        let lost = match tokio::task::spawn_blocking(move || thread.join()).await? {
            Ok(None) => match self.engine().trouble() {
                Some(why) => anyhow!("stopped, but the last requests are not kept: {why}"),
                None => {
                    tracing::info!("stopped");
                    return Ok(());
                }
            },
            Ok(Some(lost)) => anyhow!(lost),
            Err(_) => anyhow!("the engine has failed; the log has the cause"),
        };
        tracing::error!("ended: {lost:#}");
        Err(lost)
    }
}
