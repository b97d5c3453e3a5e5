//! Checks whether a daemon can run with the limits that this process was started with. Without enough threads or
//! address space, libraries fail in the middle of an operation, where no error can be reported.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use rustix::process::{Resource, getrlimit};

use provost_base::limits::{ADDRESS_SPACE_MIN, THREADS_AT_START};

/// Starts as many threads as a daemon has soon after its start, all at once, and lets them end.
///
/// # Errors
/// A sentence with the limit that is too low, and the remedy.
pub fn check_headroom() -> Result<(), String> {
    let space = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    if space < ADDRESS_SPACE_MIN {
        return Err(format!(
            "the daemon may have {} MiB of address space (`ulimit -v`, RLIMIT_AS), and needs at least {} MiB: raise the \
             limit, and use a control group to bound its memory",
            space >> 20,
            ADDRESS_SPACE_MIN >> 20
        ));
    }
    let wanted = THREADS_AT_START + thread::available_parallelism().map_or(1, usize::from);
    let (mut started, mut failed) = (Vec::with_capacity(wanted), None);
    let all_there = Arc::new((Mutex::new(false), Condvar::new()));
    for _ in 0..wanted {
        let waits = all_there.clone();
        let thread = thread::Builder::new().name("headroom".into()).spawn(move || {
            let (over, told) = &*waits;
            let over = over.lock().unwrap_or_else(PoisonError::into_inner);
            drop(told.wait_while(over, |over| !*over));
        });
        match thread {
            Ok(thread) => started.push(thread),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let count = started.len();
    *all_there.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    all_there.1.notify_all();
    for thread in started {
        // These threads do nothing that could fail.
        let _ended = thread.join();
    }
    match failed {
        None => Ok(()),
        Some(error) => Err(format!(
            "the daemon can start {count} threads, and needs {wanted} ({error}): this user may run too few processes and \
             threads (`ulimit -u`, RLIMIT_NPROC, a control group), or has too many; end some, or raise the limit"
        )),
    }
}
