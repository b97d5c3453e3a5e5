//! The right to work with the core and the store: one thread has it at a time.
//!
//! ```text
//!   [free] --the engine's thread has something to do--> [a step of anything] --> [free]
//!     |
//!     +--the thread of a door has put a message into the queue--> [a step of messages] --> [free]
//! ```
//! Commands, views and commits belong to the engine's thread. A message needs nothing but memory and one write to
//! the intake, so the thread that has read it carries it out itself, with all other waiting ones, if no other
//! thread is at work. So no thread has to be woken, neither for the message nor for its answer. A door never waits
//! here: if it finds another thread at work, that thread takes the waiting messages after its step, or leaves them
//! to the engine's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::message_queue::MessageQueue;
use super::worker::Worker;
use super::worker::steps::Step;
use super::{Envelope, Lost};

/// The number of message steps that the thread of a door does in a row.
const STEPS_AT_DOOR: usize = 4;

/// The worker, which one thread uses at a time.
pub(super) struct Turns {
    /// `None` when the engine has ended.
    worker: Mutex<Option<Worker>>,
    /// Whether the engine's thread waits for it.
    wanted: AtomicBool,
    messages: Arc<MessageQueue>,
}

impl Turns {
    pub(super) fn new(worker: Worker, messages: Arc<MessageQueue>) -> Self {
        Self { worker: Mutex::new(Some(worker)), wanted: AtomicBool::new(false), messages }
    }

    /// Carries out waiting messages, if no other thread is at work. Returns `true` if the engine's thread has work
    /// to do.
    pub(super) fn step_at_door(&self) -> bool {
        for _ in 0..STEPS_AT_DOOR {
            if !self.messages.any() {
                return false;
            }
            // The engine's thread takes the messages in its step.
            if self.wanted.load(Ordering::Acquire) {
                return false;
            }
            let mut worker = match self.worker.try_lock() {
                Ok(worker) => worker,
                // The thread that is at work looks for messages after its step.
                Err(std::sync::TryLockError::WouldBlock) => return false,
                Err(std::sync::TryLockError::Poisoned(_)) => return true,
            };
            if worker.as_mut().is_none_or(Worker::step_of_messages) {
                return true;
            }
        }
        self.messages.any()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Worker>> {
        self.wanted.store(true, Ordering::Release);
        let worker = self.worker.lock();
        self.wanted.store(false, Ordering::Release);
        // A panic of a door's thread in the core ends the engine, as a panic of this thread does.
        worker.expect("no thread has panicked in the middle of a step")
    }

    /// Runs the engine's thread: it works until it is told to stop, or can answer no more requests.
    pub(super) fn run(&self, inbox: &Receiver<Envelope>) -> Option<Lost> {
        let mut next = Step::Wait(Duration::ZERO);
        loop {
            let patience = match next {
                // A door that found this thread at work has left its messages here.
                Step::Wait(_) if self.messages.any() => Duration::ZERO,
                Step::Wait(patience) => patience,
                Step::End(lost) => return lost,
            };
            let first = match inbox.recv_timeout(patience) {
                Ok(envelope) => Some(envelope),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Envelope::Stop),
            };
            let mut worker = self.lock();
            next = worker.as_mut().map_or(Step::End(None), |worker| worker.step(first, inbox));
            if matches!(next, Step::End(_)) {
                // No door carries out messages after the end.
                drop(worker.take());
            }
        }
    }
}
