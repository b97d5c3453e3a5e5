//! Passes every pending effect to the task that carries it out.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::capture::Captures;
use super::capture_config::CaptureConfig;
use super::deeds::DeedHands;
use super::desktop::Desktop;
use super::desktop_options::DesktopParts;
use super::engine_handle::EngineHandle;
use super::hook::{HookParts, Hooks};
use super::notices::{NoticeParts, Notices};
use super::worker::{WorkerParts, Workers};
use provost_base::EffectId;
use provost_domain::{Effect, Owed, Principal};
use provost_engine::Engine;

/// How long a start waits until the effects of an earlier daemon are taken up.
const OWED_WITHIN: Duration = Duration::from_secs(10);

/// The parts of the daemon that effects need.
pub struct EffectParts {
    /// The engine, to which results go as commands.
    pub engine: Engine,
    /// The daemon's own principal; it needs [`provost_domain::Scope::Host`].
    pub system: Principal,
    /// The parts that runs of workers need.
    pub workers: WorkerParts,
    /// The parts that hooks need.
    pub hooks: HookParts,
    /// The parts that notices to addresses elsewhere need.
    pub notices: NoticeParts,
    /// The parts that notices on the desktop need.
    pub desktop: DesktopParts,
    /// The hands that carry out jobs, settle applies, run merges and remove discarded changes.
    pub deeds: DeedHands,
    /// How pictures of the screen are taken, as the configuration has it now.
    pub capture_config: watch::Receiver<Arc<CaptureConfig>>,
}

/// Carries out effects until the daemon stops.
pub struct EffectRunner {
    handle: EngineHandle,
    /// Closed when the effects of an earlier daemon are taken up.
    taken_up: oneshot::Receiver<()>,
    notices: Notices,
}

/// The hands for all kinds of effects.
struct Router {
    handle: EngineHandle,
    workers: Arc<Workers>,
    hooks: Arc<Hooks>,
    notices: Notices,
    captures: Arc<Captures>,
    deeds: Arc<DeedHands>,
}

impl EffectRunner {
    /// Takes up the effects of an earlier daemon, then carries out new ones. Must be called within a runtime.
    pub fn start(
        parts: EffectParts,
        effects: mpsc::UnboundedReceiver<(EffectId, Effect)>,
        owed: Vec<Owed>,
    ) -> Self {
        let handle = EngineHandle::new(parts.engine, parts.system);
        let notices = Notices::new(handle.clone(), parts.notices);
        let router = Router {
            handle: handle.clone(),
            workers: Workers::new(handle.clone(), parts.workers),
            hooks: Hooks::new(handle.clone(), parts.hooks),
            notices: notices.clone(),
            captures: Captures::new(handle.clone(), parts.capture_config),
            deeds: Arc::new(parts.deeds),
        };
        handle.tracker.spawn(Desktop::new(handle.clone(), parts.desktop).look_on());
        handle.tracker.spawn(super::reaper::look_on(handle.clone()));
        handle.tracker.spawn(super::cut_off::look_on(router.workers.clone()));
        let (in_hand, taken_up) = oneshot::channel();
        handle.tracker.spawn(router.work(effects, owed, in_hand));
        Self { handle, taken_up, notices }
    }

    /// Returns the addresses that get notices, to try one out and to see how the attempts went.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Waits until all effects of an earlier daemon are taken up: workers wait for their places, and the jobs and applies that
    /// it had begun have ended on record.
    pub async fn owed_taken_up(&mut self) {
        // A store that takes nothing does not prevent the daemon's start; the start reports it.
        let _late = timeout(OWED_WITHIN, &mut self.taken_up).await;
    }

    /// Ends every run and reports it lost; runs that have not begun stay owed. Returns when nothing is being carried
    /// out any more. The engine has to go on until then.
    pub async fn stop(self) {
        self.handle.shutdown.cancel();
        self.handle.tracker.close();
        self.handle.tracker.wait().await;
    }
}

impl Router {
    async fn work(
        self,
        mut effects: mpsc::UnboundedReceiver<(EffectId, Effect)>,
        owed: Vec<Owed>,
        in_hand: oneshot::Sender<()>,
    ) {
        self.workers.sweep().await;
        self.hooks.sweep().await;
        self.captures.sweep().await;
        for Owed { id, effect, started, .. } in owed {
            match effect {
                Effect::Capture { task, .. } => self.captures.lost(id, task),
                // The start waits for each of them, so that doors open with their outcome known.
                Effect::RunJob { job } => self.deeds.take_up_job(&self.handle, job, started).await,
                Effect::WriteFiles { apply, by, .. } => {
                    self.deeds.settle_apply(&self.handle, apply, by).await
                }
                effect => self.take_up(id, effect, started),
            }
        }
        // The wiring may have given up waiting.
        let _ = in_hand.send(());
        loop {
            tokio::select! {
                biased;
                () = self.handle.shutdown.cancelled() => return,
                next = effects.recv() => match next {
                    Some((id, effect)) => self.take_up(id, effect, false),
                    None => return,
                },
            }
        }
    }

    /// Takes up an effect. Effects come in commit order, so that the order to stop a task finds the one to start it.
    fn take_up(&self, id: EffectId, effect: Effect, started: bool) {
        match effect {
            Effect::SpawnWorker { task } => self.workers.spawn(id, task, started),
            Effect::StopWorker { task, reason } => {
                self.captures.stop(&task);
                self.workers.stop(id, &task, reason);
            }
            Effect::RunHook { notice } => self.hooks.run(id, notice.task.clone()),
            Effect::SendNotice { notice } => self.notices.send(id, &notice.to),
            Effect::SignalAck { task } => self.hooks.signal(id, &task),
            Effect::WatchFiles { task } => self.workers.watchers.take_up(id, task),
            Effect::Capture { task, asker } => self.captures.take(id, task, asker),
            Effect::RunJob { job } => {
                let (deeds, handle) = (self.deeds.clone(), self.handle.clone());
                self.handle.tracker.spawn(async move { deeds.take_up_job(&handle, job, started).await });
            }
            Effect::DropChanges { task } => {
                let (deeds, handle) = (self.deeds.clone(), self.handle.clone());
                self.handle.tracker.spawn(async move { deeds.drop_changes(&handle, id, task).await });
            }
            Effect::RunMerges { numbers, asker } => {
                let (deeds, handle) = (self.deeds.clone(), self.handle.clone());
                let what = (numbers, asker);
                self.handle.tracker.spawn(async move { deeds.run_merges(&handle, id, what).await });
            }
            // The call that asked for the apply writes the files, since it has their contents.
            Effect::WriteFiles { .. } => {}
        }
    }
}
