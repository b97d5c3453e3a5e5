//! Instances of named pipes, and the processes at their ends.

use std::io;
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle};
use std::path::Path;

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::{ERROR_BROKEN_PIPE, ERROR_PIPE_BUSY, ERROR_PIPE_NOT_CONNECTED};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::IO::CancelIoEx;
use windows_sys::Win32::System::Pipes::{GetNamedPipeClientProcessId, GetNamedPipeServerProcessId};

use super::SecurityDescriptor;

/// Makes an instance of a pipe, which has this descriptor from its first moment. Must be called within the runtime.
///
/// # Errors
/// The system's error.
#[expect(unsafe_code, reason = "the attributes are behind a pointer")]
pub fn pipe_instance(options: &ServerOptions, path: &Path, descriptor: &str) -> io::Result<NamedPipeServer> {
    let descriptor = SecurityDescriptor::of(descriptor)?;
    let mut attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor.as_ptr(),
        bInheritHandle: 0,
    };
    // SAFETY: attributes and descriptor are whole and outlive the call.
    unsafe { options.create_with_security_attributes_raw(path, (&raw mut attributes).cast()) }
}

/// Checks whether a pipe could not be opened because all its instances are taken. A daemon makes the next instance as soon as one
/// is taken, so the next try may succeed.
pub fn is_pipe_busy(error: &io::Error) -> bool {
    error.raw_os_error().map(i32::cast_unsigned) == Some(ERROR_PIPE_BUSY)
}

/// Checks whether reading from a pipe has failed because its other end was closed or has cut it off: no more data will come.
pub fn is_end_of_pipe(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(i32::cast_unsigned);
    matches!(code, Some(ERROR_BROKEN_PIPE | ERROR_PIPE_NOT_CONNECTED))
}

/// Returns the id of the process that has opened a pipe of ours; it means that process only while the process lives.
///
/// # Errors
/// The system's error.
#[expect(unsafe_code, reason = "no safe word for it")]
pub fn process_behind(pipe: BorrowedHandle<'_>) -> io::Result<u32> {
    let mut pid = 0;
    // SAFETY: the handle is open for as long as it is borrowed; `pid` is writable and outlives the call.
    let known = unsafe { GetNamedPipeClientProcessId(pipe.as_raw_handle(), &raw mut pid) };
    if known == 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
}

/// Returns the id of the process that serves a pipe which we have opened; it means that process only while the process lives.
///
/// # Errors
/// The system's error.
#[expect(unsafe_code, reason = "no safe word for it")]
pub fn process_serving(pipe: BorrowedHandle<'_>) -> io::Result<u32> {
    let mut pid = 0;
    // SAFETY: the handle is open for as long as it is borrowed; `pid` is writable and outlives the call.
    let known = unsafe { GetNamedPipeServerProcessId(pipe.as_raw_handle(), &raw mut pid) };
    if known == 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
}

/// Cancels the unfinished operations of this process on a pipe; threads that wait for them are
/// released.
#[expect(unsafe_code, reason = "no safe word for it")]
pub fn cancel_io(pipe: BorrowedHandle<'_>) {
    // SAFETY: the handle is open for as long as it is borrowed; null stands for everything that was begun with it.
    // It fails when nothing was, which is as good.
    let _nothing_begun = unsafe { CancelIoEx(pipe.as_raw_handle(), std::ptr::null()) };
}
