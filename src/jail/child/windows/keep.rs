//! Follows a worker to its end, and ends it when it has to end.
#![forbid(unsafe_code)]

use std::io::{self, PipeReader, Read as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle as Runtime;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Built;
use super::scratch::Scratch;
use super::sys::{Job, KILLED, Limit};
use super::watch::Ground;
use crate::bounds::Limits;
use crate::launch::{Exit, ExitReason};
use crate::output::{LiveOutput, Stream};
use provost_base::limits::JAIL_END_MS_MAX;

/// The time between two checks of a worker's use.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The time between two checks whether all processes have ended after the order.
const END_EVERY: Duration = Duration::from_millis(5);

/// The signal that means, on every system, an end for lack of processor time: SIGXCPU.
const OUT_OF_TIME: i32 = 24;

/// Follows one worker. Dropping it closes the job, and with it ends all processes of the worker.
pub(super) struct Keeper {
    job: Job,
    pid: u32,
    ended: oneshot::Receiver<io::Result<i32>>,
    readers: Vec<oneshot::Receiver<()>>,
    ground: Arc<Ground>,
    limits: Limits,
    deadline: Instant,
    stopped: oneshot::Receiver<()>,
    processes_reached: bool,
    out_of_time: bool,
    scratch: Scratch,
}

impl Keeper {
    /// Begins to read the worker's output, and to wait for its end. Must be called within the runtime.
    pub(super) fn new(
        built: Built,
        limits: Limits,
        deadline: Instant,
        stopped: oneshot::Receiver<()>,
        output: &LiveOutput,
    ) -> io::Result<Self> {
        let [out, err] = built.streams;
        let readers =
            vec![reader(out, Stream::Out, output.clone())?, reader(err, Stream::Err, output.clone())?];
        let (tell, ended) = oneshot::channel();
        let process = built.process;
        thread("worker", move || {
            // The receiver is gone when the runtime ends, so the result may be lost.
            let _told = tell.send(process.wait());
        })?;
        Ok(Self {
            job: built.job,
            pid: built.pid,
            ended,
            readers,
            ground: Arc::new(built.ground),
            limits,
            deadline,
            stopped,
            processes_reached: false,
            out_of_time: false,
            scratch: built.scratch,
        })
    }

    /// Runs until no process of the worker is left and its output is complete.
    pub(super) async fn keep(mut self) -> Exit {
        let reason = self.reason().await;
        let swept = self.end().await;
        for reader in std::mem::take(&mut self.readers) {
            // Another process may have got hold of the other end; the reader does not wait for that one.
            let _late = timeout(Duration::from_millis(JAIL_END_MS_MAX), reader).await;
        }
        let scratch = self.scratch;
        // Only the end of the runtime prevents the removal; the folder is left behind then.
        let _removed = tokio::task::spawn_blocking(move || drop(scratch)).await;
        Exit { reason, swept, processes_reached: self.processes_reached }
    }

    async fn reason(&mut self) -> ExitReason {
        let mut next = Instant::now() + LOOK_EVERY;
        loop {
            tokio::select! {
                biased;
                code = &mut self.ended => return self.reason_of(code),
                () = sleep_until(self.deadline) => return ExitReason::TimedOut,
                _ = &mut self.stopped => return ExitReason::Cancelled,
                () = sleep_until(next) => {}
            }
            if let Some(beyond) = self.look().await {
                return beyond;
            }
            next = Instant::now() + LOOK_EVERY;
        }
    }

    fn reason_of(&mut self, code: Result<io::Result<i32>, oneshot::error::RecvError>) -> ExitReason {
        let over = self.met();
        match code {
            Ok(Ok(_)) if over => ExitReason::OverMemory,
            Ok(Ok(_)) if self.out_of_time => ExitReason::Signal(OUT_OF_TIME),
            Ok(Ok(code)) => ExitReason::Code(code),
            Ok(Err(err)) => {
                tracing::error!(%err, "a worker's exit code is not known");
                ExitReason::SupervisorLost
            }
            Err(_) => ExitReason::SupervisorLost,
        }
    }

    async fn look(&mut self) -> Option<ExitReason> {
        if self.met() {
            return Some(ExitReason::OverMemory);
        }
        if self.job.look().is_ok_and(|seen| seen.active >= self.limits.processes) {
            self.processes_reached = true;
        }
        let (ground, limits) = (self.ground.clone(), self.limits.clone());
        let looked = tokio::task::spawn_blocking(move || ground.beyond(&limits)).await;
        looked.ok().flatten().map(ExitReason::OverSpace)
    }

    /// Notes the limits that the job has met. Returns whether the limit of all memory is among them.
    fn met(&mut self) -> bool {
        let mut memory = false;
        for limit in self.job.met() {
            match limit {
                Limit::Memory => memory = true,
                Limit::Processes => self.processes_reached = true,
                Limit::Time(pid) => self.out_of_time |= pid == self.pid,
            }
        }
        memory
    }

    /// Ends all running processes, and waits until none is left. Returns how many outlived the first one.
    async fn end(&mut self) -> u32 {
        let until = Instant::now() + Duration::from_millis(JAIL_END_MS_MAX);
        let mut swept = None;
        loop {
            let active = match self.job.look() {
                Ok(seen) => seen.active,
                Err(err) => {
                    tracing::error!(%err, "whether a worker's processes have ended is not known");
                    return swept.unwrap_or(0);
                }
            };
            let swept = *swept.get_or_insert(active);
            if active == 0 {
                return swept;
            }
            if Instant::now() >= until {
                tracing::error!(active, "processes of a worker do not end; their job is closed");
                return swept;
            }
            if let Err(err) = self.job.end(KILLED) {
                tracing::warn!(%err, "a worker's processes were not ended; it is tried again");
            }
            sleep(END_EVERY).await;
        }
    }
}

/// Reads one output stream of a worker, in a thread of its own. The receiver hears of the end of the stream.
fn reader(mut from: PipeReader, stream: Stream, to: LiveOutput) -> io::Result<oneshot::Receiver<()>> {
    let (done, ended) = oneshot::channel();
    let runtime = Runtime::current();
    thread("output", move || {
        let mut block = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut block) {
            to.push(stream, &block[..read]);
            runtime.block_on(to.room());
        }
        let _nobody = done.send(());
    })?;
    Ok(ended)
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).map(drop)
}
