//! A network between a host and the server: what goes either way arrives half a round trip later, in its order.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tempfile::TempDir;

/// The name of a server's socket, by its port.
const SOCKET: &str = ".s.PGSQL.5432";

/// A socket in front of the server's.
pub(super) struct Delay {
    dir: TempDir,
    half_us: Arc<AtomicU64>,
}

impl Delay {
    pub(super) fn before(server: &Path) -> Result<Self> {
        let (dir, half_us) = (TempDir::new()?, Arc::new(AtomicU64::new(0)));
        let (listener, to) = (UnixListener::bind(dir.path().join(SOCKET))?, server.join(SOCKET));
        let told = half_us.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = UnixStream::connect(&to) else { continue };
                let (Ok(from), Ok(into)) = (client.try_clone(), server.try_clone()) else { continue };
                pass(from, into, told.clone());
                pass(server, client, told.clone());
            }
        });
        Ok(Self { dir, half_us })
    }

    /// The folder of its socket.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What goes over it takes so long there and back from now on.
    pub(super) fn set(&self, round_trip: Duration) {
        let half = u64::try_from(round_trip.as_micros() / 2).unwrap_or(u64::MAX);
        self.half_us.store(half, Ordering::Release);
    }
}

/// Passes on what goes one way. A thread reads, so that what comes later is not late by what came before; another one writes what is due.
/// Without a delay the first one writes, which costs no thread's wake-up.
fn pass(mut from: UnixStream, into: UnixStream, half_us: Arc<AtomicU64>) {
    let (put, take) = mpsc::channel::<(Instant, Vec<u8>)>();
    let on_the_way = Arc::new(AtomicUsize::new(0));
    let Ok(mut at_once) = into.try_clone() else { return };
    let counted = on_the_way.clone();
    std::thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            let half = Duration::from_micros(half_us.load(Ordering::Acquire));
            if half.is_zero() && counted.load(Ordering::Acquire) == 0 {
                if at_once.write_all(&bytes[..length]).is_err() {
                    return;
                }
                continue;
            }
            counted.fetch_add(1, Ordering::AcqRel);
            if put.send((Instant::now() + half, bytes[..length].to_vec())).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        let mut into = into;
        while let Ok((due, bytes)) = take.recv() {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if into.write_all(&bytes).is_err() {
                break;
            }
            on_the_way.fetch_sub(1, Ordering::AcqRel);
        }
        // The other side has ended already where this fails.
        let _ = into.shutdown(Shutdown::Write);
    });
}
