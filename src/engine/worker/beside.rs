//! Commits of messages on a second thread.
//!
//! ```text
//!   [here] --many messages are due--> [away: it commits them] --committed--> [here]
//!                                       |   messages go on being kept
//!                                       +--anything else is asked--> the thread waits for it
//! ```
//! A commit takes as long as some hundred messages, whose senders would wait for it. So the engine hands its store
//! to a second thread together with the batch, and goes on with messages, which need nothing but memory and the
//! intake. There is one store, and it is in one of two places; all other work that needs it waits.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::Envelope;
use super::{Said, Waiting, Worker};
use provost_base::Digest;
use provost_domain::Outbox;
use provost_store::{Store, StoreError};

/// Everything that one commit includes.
pub(super) struct Batch {
    pub(super) out: Outbox,
    /// Statuses in it, which may be repeated.
    pub(super) said: Vec<Said>,
    /// Repeated statuses in it.
    pub(super) repeated: Vec<Arc<Said>>,
    /// The numbers of its changes and events that the boards show already.
    pub(super) shown: (usize, usize),
    /// The number of commands in it.
    pub(super) commands: u32,
}

/// The engine's store, while it is here.
pub(super) struct Home(Option<Box<dyn Store>>);

impl Home {
    pub(super) fn of(store: Box<dyn Store>) -> Self {
        Self(Some(store))
    }

    /// Checks whether the second thread has the store.
    pub(super) fn is_away(&self) -> bool {
        self.0.is_none()
    }
}

const AT_HOME: &str = "`have_store` comes before each use of the store";

impl Deref for Home {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        self.0.as_deref().expect(AT_HOME)
    }
}

impl DerefMut for Home {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0.as_deref_mut().expect(AT_HOME)
    }
}

struct Job {
    store: Box<dyn Store>,
    batch: Batch,
    /// The end of the messages that the batch includes.
    end: Digest,
}

/// The result of a finished job.
pub(super) struct Back {
    store: Box<dyn Store>,
    batch: Batch,
    done: Result<(), StoreError>,
    took: Duration,
}

/// The thread that commits. It ends when this value is dropped.
pub(in super::super) struct Beside {
    jobs: Option<Sender<Job>>,
    back: Receiver<Back>,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    /// Starts the thread. The end of each job wakes the engine through its queue.
    ///
    /// # Errors
    /// If the system provides no thread.
    pub(in super::super) fn start(wakes: Weak<SyncSender<Envelope>>) -> io::Result<Self> {
        let ((jobs, taken), (give_back, back)) = (channel::<Job>(), channel());
        let work = move || {
            while let Ok(Job { mut store, batch, end }) = taken.recv() {
                let began = Instant::now();
                let done = store.commit_kept(&batch.out, &end).map(drop).map_err(StoreError::from);
                let took = began.elapsed();
                if give_back.send(Back { store, batch, done, took }).is_err() {
                    return;
                }
                // A full queue wakes the engine as well.
                let _ = wakes.upgrade().map(|it| it.try_send(Envelope::Committed));
            }
        };
        let thread = std::thread::Builder::new().name("commits".into()).spawn(work)?;
        Ok(Self { jobs: Some(jobs), back, thread: Some(thread) })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.jobs = None;
        // Its last job is done; if it has panicked, the engine's thread has, too.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Worker {
    /// Hands the store and all kept messages to the second thread.
    pub(super) fn hand_over(&mut self) {
        let (Some(store), Some(intake), Some(jobs)) =
            (self.store.0.take(), &mut self.intake, &self.beside.jobs)
        else {
            return;
        };
        let end = intake.turn();
        let jobs = jobs.clone();
        self.receiving.send();
        let batch = self.take_batch();
        jobs.send(Job { store, batch, end }).map_err(drop).expect("the thread ends with the engine's");
    }

    /// Takes the store back if its commit is over.
    pub(super) fn welcome(&mut self) {
        if !self.store.is_away() {
            return;
        }
        match self.beside.back.try_recv() {
            Ok(back) => drop(self.take_home(back, &mut [])),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => panic!("the thread that commits has panicked"),
        }
    }

    /// Waits until the store is here. Returns `false` if its commit has failed: then nothing of this step counts.
    pub(super) fn have_store(&mut self, waiting: &mut [Waiting]) -> bool {
        if !self.store.is_away() {
            return true;
        }
        let back = self.beside.back.recv().expect("the thread that commits gives back what it takes");
        self.take_home(back, waiting)
    }

    fn take_home(&mut self, Back { store, batch, done, took }: Back, waiting: &mut [Waiting]) -> bool {
        self.store = Home::of(store);
        match done {
            Ok(()) => {
                self.committed(took, &batch);
                self.receiving.sent_is_done(!self.out.is_empty());
                self.follow(batch);
                true
            }
            Err(err) => {
                self.roll_back(batch, &err, waiting);
                false
            }
        }
    }
}
