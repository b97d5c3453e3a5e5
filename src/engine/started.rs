//! A started engine, as its caller gets it.

use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use super::{Engine, Lost};
use provost_base::EffectId;
use provost_domain::{Effect, Owed};

/// The values that the caller of an engine's start gets.
pub struct Started {
    /// The handle with which commands are submitted; clones share the one engine.
    pub engine: Engine,
    /// Effects to carry out from now on, in commit order.
    pub effects: mpsc::UnboundedReceiver<(EffectId, Effect)>,
    /// Effects that an earlier run still owes.
    pub owed: Vec<Owed>,
    /// Whether the last run stopped in order.
    pub clean: bool,
    /// The thread; it ends after [`Engine::stop`], or by itself, and then returns the reason.
    pub thread: JoinHandle<Option<Lost>>,
    /// Closed when the thread ends.
    pub ended: oneshot::Receiver<()>,
}
