//! Ends a daemon in order, and logs why.

use anyhow::{Result, anyhow};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Daemon, GRACE};
use provost_effects::EffectRunner;
use provost_engine as engine;

impl Daemon {
    /// Ends the doors first, then the effects, then the engine, so that everything that was begun can still
    /// be recorded. The last line of the log says why, where the engine has ended by itself.
    pub(super) async fn shut_down(
        self,
        hands: EffectRunner,
        thread: std::thread::JoinHandle<Option<engine::Lost>>,
        reply: Option<oneshot::Sender<Result<String, String>>>,
    ) -> Result<()> {
        tracing::info!("stopping");
        self.say_draining();
        if let Some(reply) = reply {
            // The asker may have gone.
            let _ = reply.send(Ok("stopping".into()));
        }
        // Running jobs end with the daemon. Clients that wait for them are told so while there is a door.
        let ended = self.agents.end_running_jobs().await.unwrap_or_default();
        self.stop.cancel();
        self.doors.close();
        // A door gives its connections their time; what looks at a file that does not answer keeps no stop waiting.
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
        // The thread commits what is queued; joining it may take as long as the disk does.
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
