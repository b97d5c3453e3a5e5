//! The line of runs that wait for a place. The core decides the order ([`Turns`]); this module waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use provost_domain::{Turn, TurnNo, Turns};

/// The places of this daemon's workers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Line(Arc<Mutex<Inner>>);

struct Inner {
    turns: Turns,
    calls: HashMap<TurnNo, oneshot::Sender<()>>,
}

/// A place to run, or a place in the line; dropping it gives it back.
pub(super) struct LineSlot {
    line: Line,
    number: TurnNo,
}

impl Line {
    pub(super) fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(Inner { turns: Turns::new(places), calls: HashMap::new() })))
    }

    /// Waits for a place. A run that stops waiting leaves the line.
    pub(super) async fn place(&self, turn: Turn) -> LineSlot {
        let (called, call) = oneshot::channel();
        let place = {
            let mut inner = self.inner();
            let number = inner.turns.join(turn);
            // The runs that wait already could not begin a moment ago, and cannot now.
            if !inner.turns.begin(number) {
                inner.calls.insert(number, called);
            } else {
                // The run has its place already.
                let _heard = called.send(());
            }
            LineSlot { line: self.clone(), number }
        };
        // The sender is only dropped after the call.
        call.await.ok();
        place
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Each step leaves it valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LineSlot {
    fn drop(&mut self) {
        let mut inner = self.line.inner();
        inner.calls.remove(&self.number);
        inner.turns.leave(self.number);
        while let Some(next) = inner.turns.take_next() {
            if let Some(call) = inner.calls.remove(&next) {
                // A run that has stopped waiting gives its place back itself.
                let _heard = call.send(());
            }
        }
    }
}
