//! Reads of the store beside the engine: few connections, kept open, and requests that wait for their turn.
//!
//! The number of open files stays small for any number of requests; a request takes milliseconds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, oneshot};

use super::{Engine, Envelope};
use provost_base::limits::STORE_READERS_MAX;
use provost_store::{OpensReader, Reader, StoreError};

/// The connections that are not in use at the moment, and the turns for using one.
pub(super) struct Readers {
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<Box<dyn Reader>>>,
}

impl Default for Readers {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(STORE_READERS_MAX)), idle: Mutex::default() }
    }
}

impl Readers {
    fn idle(&self) -> MutexGuard<'_, Vec<Box<dyn Reader>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Reads from the store on a blocking thread. If the engine finds meanwhile that a server is silent, the answer is not waited for.
    ///
    /// # Errors
    /// If the store cannot be read, or the engine has stopped.
    pub async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        tokio::select! {
            biased;
            err = self.trouble.is_silent() => Err(err),
            answer = self.read_in_turn(question) => answer,
        }
    }

    /// Returns what opens the store once more, only for reading.
    async fn opens_reader(&self) -> Result<OpensReader, StoreError> {
        let (reply, answer) = oneshot::channel();
        let stopped = || StoreError::Stopped("the engine has stopped".into());
        self.hand_over(Envelope::Reader(reply)).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    async fn read_in_turn<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.settled().await;
        let readers = self.readers.clone();
        let turn = readers.turns.clone().acquire_owned().await;
        let kept = readers.idle().pop();
        let open: OpensReader = match kept {
            Some(reader) => Box::new(|| Ok(reader)),
            None => self.opens_reader().await?,
        };
        let asked = tokio::task::spawn_blocking(move || {
            let mut reader = open()?;
            let answer = question(&mut *reader);
            if answer.is_ok() {
                readers.idle().push(reader);
            }
            // Only now, even if the caller has gone meanwhile.
            drop(turn);
            answer
        });
        asked.await.map_err(|err| StoreError::Stopped(err.to_string().into()))?
    }
}
