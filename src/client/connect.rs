//! Connects, and checks before the first byte is sent that no other user's process listens there.

use std::io;
use std::path::Path;

use super::ClientError;
use provost_transport::{Stream, listen};

/// Turns an error of a connect into the error that no process listens, or into a broken connection.
fn absent(socket: &Path, e: &io::Error) -> ClientError {
    match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::ConnectionRefused => {
            ClientError::NotRunning(socket.to_owned())
        }
        _ => ClientError::Broken(format!("{}: {e}", socket.display())),
    }
}

fn foreign(socket: &Path, what: String) -> ClientError {
    ClientError::Foreign { socket: socket.to_owned(), what }
}

#[cfg(unix)]
pub(super) async fn connect(socket: &Path) -> Result<Stream, ClientError> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let us = provost_system::user_number();
    let meta = std::fs::symlink_metadata(socket).map_err(|e| absent(socket, &e))?;
    if !meta.file_type().is_socket() {
        return Err(foreign(socket, "is not a socket".into()));
    }
    if meta.uid() != us {
        return Err(foreign(socket, format!("belongs to uid {} and not to us, uid {us}", meta.uid())));
    }
    let stream = listen::connect(socket).await.map_err(|e| absent(socket, &e))?;
    // The socket's file may have been replaced since; the connection cannot be.
    #[cfg(target_os = "linux")]
    {
        let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(ClientError::broken)?;
        if peer.uid.as_raw() != us {
            let uid = peer.uid.as_raw();
            return Err(foreign(socket, format!("is served by uid {uid} and not by us, uid {us}")));
        }
    }
    Ok(stream)
}

#[cfg(windows)]
pub(super) async fn connect(pipe: &Path) -> Result<Stream, ClientError> {
    use std::os::windows::io::AsHandle as _;

    use provost_system::{Token, process_serving};
    let stream = listen::connect(pipe).await.map_err(|e| absent(pipe, &e))?;
    let user_of = |token: io::Result<Token>| token.and_then(|token| token.user());
    let us = user_of(Token::of_this_process()).map_err(ClientError::broken)?;
    // Another user's process does not let its user be read, which is proof enough.
    let server = process_serving(stream.as_handle()).and_then(|pid| user_of(Token::of_process(pid)));
    if server.as_ref().ok() != Some(&us) {
        return Err(foreign(pipe, "is served by another user and not by us".into()));
    }
    Ok(stream)
}

/// Returns the process that listens at a socket if it is stopped: it then accepts connections and answers none. Blocks.
#[cfg(target_os = "linux")]
pub(super) fn stopped_process(socket: &Path) -> Option<u32> {
    let stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).ok()?;
    provost_system::is_stopped(pid).then_some(pid)
}

/// Returns `None`: this system does not tell which process listens.
#[cfg(not(target_os = "linux"))]
pub(super) fn stopped_process(_socket: &Path) -> Option<u32> {
    None
}
