//! The connection at which a hook waits, over a named pipe.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use provost_system::{is_end_of_pipe, is_pipe_busy};

/// The variable in which a hook finds its address. DevIt 1.9.
pub(super) const VARIABLE: &str = "DEVIT_ACK_PIPE";

/// The number of tries, and their interval, for a pipe that is busy.
const BUSY_TRIES: u32 = 200;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// The waiting end of a thread that reads the pipe, since a pipe's reads have no timeout.
pub(super) struct Line(Receiver<io::Result<Option<u8>>>);

impl Line {
    pub(super) fn to(pipe: &Path) -> io::Result<Self> {
        let mut pipe = open(pipe)?;
        let (sender, bytes) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                let mut byte = [0];
                let read = match pipe.read(&mut byte) {
                    Ok(0) => Ok(None),
                    Ok(_) => Ok(Some(byte[0])),
                    Err(err) if is_end_of_pipe(&err) => Ok(None),
                    Err(err) => Err(err),
                };
                let last = !matches!(read, Ok(Some(_)));
                // Without a receiver the wait is over.
                if sender.send(read).is_err() || last {
                    return;
                }
            }
        });
        Ok(Self(bytes))
    }

    /// Reads, and fails with `TimedOut` after this long.
    pub(super) fn read_within(&mut self, buffer: &mut [u8], most: Duration) -> io::Result<usize> {
        match self.0.recv_timeout(most) {
            Ok(Ok(Some(byte))) => {
                buffer[0] = byte;
                Ok(1)
            }
            Ok(Err(err)) => Err(err),
            Err(RecvTimeoutError::Timeout) => Err(ErrorKind::TimedOut.into()),
            Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => Ok(0),
        }
    }
}

/// Opens the pipe, which another process of the hook may be opening at the same moment.
fn open(pipe: &Path) -> io::Result<File> {
    let mut tries = BUSY_TRIES;
    loop {
        match File::options().read(true).open(pipe) {
            Err(err) if is_pipe_busy(&err) && tries > 0 => tries -= 1,
            opened => return opened,
        }
        std::thread::sleep(BUSY_PAUSE);
    }
}
