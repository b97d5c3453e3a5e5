//! A process that has not begun yet, with a token other than ours and three handles.

use std::io;
use std::os::windows::io::{
    AsHandle as _, AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle,
};
use std::path::Path;

use windows_sys::Win32::Foundation::{HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation};
use windows_sys::Win32::System::Threading::{
    CREATE_DEFAULT_ERROR_MODE, CREATE_NO_WINDOW, CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT,
    CreateProcessAsUserW, DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT, GetExitCodeProcess,
    INFINITE, InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST,
    PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROCESS_INFORMATION, ResumeThread, STARTF_USESTDHANDLES,
    STARTUPINFOEXW, TerminateProcess, UpdateProcThreadAttribute, WaitForSingleObject,
};

use super::KILLED;
use super::text::{wide, wide_path};
use super::token::WriteRestricted;

/// A program that is started and has not begun.
pub(in super::super) struct Started {
    /// The handle of the process, which has not run a step.
    pub(in super::super) process: OwnedHandle,
    /// The id of the process.
    pub(in super::super) pid: u32,
    thread: OwnedHandle,
}

impl Started {
    /// Lets the process take its first step.
    #[expect(unsafe_code, reason = "no safe word for it")]
    pub(in super::super) fn begin(self) -> io::Result<(Process, u32)> {
        // SAFETY: the handle is open for as long as `self`.
        match unsafe { ResumeThread(self.thread.as_raw_handle()) } {
            u32::MAX => Err(io::Error::last_os_error()),
            _ => Ok((Process(self.process), self.pid)),
        }
    }
}

/// A process that runs, or has run.
#[derive(Debug)]
pub(in super::super) struct Process(OwnedHandle);

impl Process {
    /// Waits for the end of the process, and returns its exit code. Blocking.
    #[expect(unsafe_code, reason = "the standard library waits only for processes that it has started")]
    pub(in super::super) fn wait(&self) -> io::Result<i32> {
        // SAFETY: the handle is open for as long as `self` is borrowed.
        unsafe { WaitForSingleObject(self.0.as_raw_handle(), INFINITE) };
        let mut code = 0;
        // SAFETY: as above; `code` is writable and outlives the call.
        match unsafe { GetExitCodeProcess(self.0.as_raw_handle(), &raw mut code) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(code.cast_signed()),
        }
    }
}

/// Makes a handle inheritable for a process that names it.
#[expect(unsafe_code, reason = "no safe word for it")]
pub(in super::super) fn inheritable(handle: OwnedHandle) -> io::Result<OwnedHandle> {
    let flag = HANDLE_FLAG_INHERIT;
    // SAFETY: the handle is open for as long as it is owned.
    match unsafe { SetHandleInformation(handle.as_raw_handle(), flag, flag) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(handle),
    }
}

/// Starts a program with a token, and stops it before its first step. It has the three handles (which must be
/// inheritable and different), a console without a window, and inherits no other handle.
#[expect(unsafe_code, reason = "the standard library starts processes with our own token alone")]
pub(in super::super) fn spawn(
    token: &WriteRestricted,
    program: &Path,
    command_line: &str,
    environment: &[u16],
    directory: &Path,
    streams: &[OwnedHandle; 3],
) -> io::Result<Started> {
    let (program, directory) = (wide_path(program)?, wide_path(directory)?);
    let mut command_line = wide(command_line)?.into_vec_with_nul();
    let handles: [HANDLE; 3] = streams.each_ref().map(|stream| stream.as_raw_handle());
    let mut attributes = Attributes::naming(&handles)?;
    let mut startup = STARTUPINFOEXW::default();
    startup.StartupInfo.cb = size_of::<STARTUPINFOEXW>() as u32;
    startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    let [input, output, errors] = handles;
    startup.StartupInfo.hStdInput = input;
    startup.StartupInfo.hStdOutput = output;
    startup.StartupInfo.hStdError = errors;
    startup.lpAttributeList = attributes.list();
    let flags = CREATE_SUSPENDED
        | CREATE_NO_WINDOW
        | CREATE_DEFAULT_ERROR_MODE
        | CREATE_UNICODE_ENVIRONMENT
        | EXTENDED_STARTUPINFO_PRESENT;
    let mut made = PROCESS_INFORMATION::default();
    let null = std::ptr::null();
    // SAFETY: texts and environment end as they must, and the command line is writable; the startup structure has the
    // size that it says, and a list of handles that are open; `made` is writable; all of it outlives the call.
    let started = unsafe {
        CreateProcessAsUserW(
            token.handle(),
            program.as_ptr(),
            command_line.as_mut_ptr(),
            null,
            null,
            1,
            flags,
            environment.as_ptr().cast(),
            directory.as_ptr(),
            (&raw const startup).cast(),
            &raw mut made,
        )
    };
    if started == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is a new handle that no object owns yet.
    let process = unsafe { OwnedHandle::from_raw_handle(made.hProcess) };
    // SAFETY: the same.
    let thread = unsafe { OwnedHandle::from_raw_handle(made.hThread) };
    Ok(Started { process, pid: made.dwProcessId, thread })
}

impl Started {
    /// Ends the process before it has begun.
    #[expect(unsafe_code, reason = "the standard library ends only processes that it has started")]
    pub(in super::super) fn kill(&self) {
        // SAFETY: the handle is open for as long as `self`. One that cannot be ended is stopped for ever.
        unsafe { TerminateProcess(self.process.as_raw_handle(), KILLED) };
    }

    /// Returns the handle, for checks before the process begins.
    pub(in super::super) fn handle(&self) -> BorrowedHandle<'_> {
        self.process.as_handle()
    }
}

/// The attributes of a new process: the handles that it inherits, and no others.
struct Attributes(Vec<u64>);

impl Attributes {
    #[expect(unsafe_code, reason = "no safe words for it")]
    fn naming(handles: &[HANDLE; 3]) -> io::Result<Self> {
        let mut bytes = 0;
        // SAFETY: without a list, it tells how long one is; `bytes` is writable.
        unsafe { InitializeProcThreadAttributeList(std::ptr::null_mut(), 1, 0, &raw mut bytes) };
        let mut made = Self(vec![0; bytes.div_ceil(8)]);
        // SAFETY: the list has at least as many bytes as were asked for, and is aligned for pointers.
        if unsafe { InitializeProcThreadAttributeList(made.list(), 1, 0, &raw mut bytes) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the list is whole; the handles stay where they are until the process is started, which the one
        // caller sees to; nothing is asked back.
        let named = unsafe {
            UpdateProcThreadAttribute(
                made.list(),
                0,
                PROC_THREAD_ATTRIBUTE_HANDLE_LIST as usize,
                handles.as_ptr().cast(),
                size_of_val(handles),
                std::ptr::null_mut(),
                std::ptr::null(),
            )
        };
        if named == 0 { Err(io::Error::last_os_error()) } else { Ok(made) }
    }

    fn list(&mut self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.0.as_mut_ptr().cast()
    }
}

impl Drop for Attributes {
    #[expect(unsafe_code, reason = "the system takes apart what it made")]
    fn drop(&mut self) {
        // SAFETY: zeros, where it was never initialised, are an empty list; otherwise it is whole.
        unsafe { DeleteProcThreadAttributeList(self.list()) };
    }
}
