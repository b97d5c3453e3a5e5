//! More sessions than a PostgreSQL server has room for.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::waits::within;

/// The version of the protocol, 3.0, as a session's first message names it.
const PROTOCOL: u32 = 3 << 16;

/// No test crowds a server for longer.
const LONGEST: Duration = Duration::from_secs(300);

/// Sessions that do nothing, and tries for more of them: what becomes free on the server meanwhile is taken as soon as it is. They
/// end when this is dropped.
pub(crate) struct Crowd {
    ends: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
}

impl Crowd {
    /// `number` tries at the server with this socket, as one of its users, and then one try after the other.
    pub(crate) fn at(socket: PathBuf, user: &'static str, number: usize) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ends);
        let keeper = std::thread::spawn(move || {
            let begin = || session(&socket, user);
            let mut admitted: Vec<UnixStream> = (0..number).filter_map(|_| begin()).collect();
            within(LONGEST, || {
                admitted.extend(std::iter::repeat_with(begin).map_while(|it| it).take(number));
                until.load(Ordering::Relaxed)
            });
        });
        Self { ends, keeper: Some(keeper) }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let ended = self.keeper.take().map(JoinHandle::join);
        assert!(
            std::thread::panicking() || ended.is_some_and(|it| it.is_ok()),
            "the crowd could not be kept"
        );
    }
}

/// Begins a session; none if the server has no room for it.
fn session(socket: &PathBuf, user: &str) -> Option<UnixStream> {
    let names = format!("user\0{user}\0database\0postgres\0\0");
    let length = u32::try_from(names.len() + 8).expect("a short message");
    let message = [&length.to_be_bytes(), &PROTOCOL.to_be_bytes(), names.as_bytes()].concat();
    let mut stream = UnixStream::connect(socket).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let mut kind = [0];
    // A server without room may end the connection before it has read anything.
    (stream.write_all(&message).and_then(|()| stream.read_exact(&mut kind)).is_ok() && kind == *b"R")
        .then_some(stream)
}
