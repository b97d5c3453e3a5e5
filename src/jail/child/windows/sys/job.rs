//! Job objects, which hold a worker's processes together and to their limits.

use std::io;
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::IO::{CreateIoCompletionPort, GetQueuedCompletionStatus, OVERLAPPED};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, IsProcessInJob, JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
    JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION, JOB_OBJECT_LIMIT_JOB_MEMORY,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOB_OBJECT_LIMIT_PROCESS_MEMORY, JOB_OBJECT_LIMIT_PROCESS_TIME,
    JOB_OBJECT_UILIMIT_DESKTOP, JOB_OBJECT_UILIMIT_DISPLAYSETTINGS, JOB_OBJECT_UILIMIT_EXITWINDOWS,
    JOB_OBJECT_UILIMIT_GLOBALATOMS, JOB_OBJECT_UILIMIT_HANDLES, JOB_OBJECT_UILIMIT_READCLIPBOARD,
    JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS, JOB_OBJECT_UILIMIT_WRITECLIPBOARD,
    JOBOBJECT_ASSOCIATE_COMPLETION_PORT, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION,
    JOBOBJECT_BASIC_UI_RESTRICTIONS, JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JOBOBJECTINFOCLASS,
    JobObjectAssociateCompletionPortInformation, JobObjectBasicAccountingInformation,
    JobObjectBasicUIRestrictions, JobObjectExtendedLimitInformation, QueryInformationJobObject,
    SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::SystemServices::{
    JOB_OBJECT_MSG_ACTIVE_PROCESS_LIMIT, JOB_OBJECT_MSG_END_OF_PROCESS_TIME, JOB_OBJECT_MSG_JOB_MEMORY_LIMIT,
};

use crate::JobLimits;

/// How many messages are read in one go: more tell nothing new.
const MESSAGES_MAX: usize = 100_000;

/// The restrictions: no windows of others, no clipboard, no desktops, no system settings, no atoms of others, no logging
/// off.
const NO_DESKTOP: u32 = JOB_OBJECT_UILIMIT_HANDLES
    | JOB_OBJECT_UILIMIT_READCLIPBOARD
    | JOB_OBJECT_UILIMIT_WRITECLIPBOARD
    | JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS
    | JOB_OBJECT_UILIMIT_DISPLAYSETTINGS
    | JOB_OBJECT_UILIMIT_GLOBALATOMS
    | JOB_OBJECT_UILIMIT_DESKTOP
    | JOB_OBJECT_UILIMIT_EXITWINDOWS;

/// A limit that processes of a job have met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Limit {
    /// All processes together wanted more memory.
    Memory,
    /// One more process was to be started.
    Processes,
    /// This process had no processor time left.
    Time(u32),
}

/// The numbers of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Seen {
    /// The processes that run in the job at the moment.
    pub(in super::super) active: u32,
}

/// A job object. Closing it ends all processes in it; the end of this process closes it in every case.
#[derive(Debug)]
pub(in super::super) struct Job {
    job: OwnedHandle,
    port: OwnedHandle,
}

impl Job {
    /// Makes an empty job with these limits.
    pub(in super::super) fn new(limits: &JobLimits) -> io::Result<Self> {
        let made = Self { job: create()?, port: port()? };
        let mut most = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        let basic = &mut most.BasicLimitInformation;
        // Breaking away would need a flag of its own. A crash ends a process and shows no window.
        basic.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
            | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
            | JOB_OBJECT_LIMIT_ACTIVE_PROCESS
            | JOB_OBJECT_LIMIT_PROCESS_MEMORY
            | JOB_OBJECT_LIMIT_JOB_MEMORY
            | JOB_OBJECT_LIMIT_PROCESS_TIME;
        basic.ActiveProcessLimit = limits.processes;
        basic.PerProcessUserTimeLimit = limits.process_time;
        most.ProcessMemoryLimit = limits.process_bytes;
        most.JobMemoryLimit = limits.job_bytes;
        made.set(JobObjectExtendedLimitInformation, &most)?;
        let desktop = JOBOBJECT_BASIC_UI_RESTRICTIONS { UIRestrictionsClass: NO_DESKTOP };
        made.set(JobObjectBasicUIRestrictions, &desktop)?;
        let told = JOBOBJECT_ASSOCIATE_COMPLETION_PORT {
            CompletionKey: std::ptr::null_mut(),
            CompletionPort: made.port.as_raw_handle(),
        };
        made.set(JobObjectAssociateCompletionPortInformation, &told)?;
        Ok(made)
    }

    #[expect(unsafe_code, reason = "no safe words for jobs")]
    fn set<T>(&self, class: JOBOBJECTINFOCLASS, value: &T) -> io::Result<()> {
        // SAFETY: the handle is open; the three callers pass the structure that the class has, which outlives the call.
        let set = unsafe {
            SetInformationJobObject(
                self.job.as_raw_handle(),
                class,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as u32,
            )
        };
        if set == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Puts a process into the job, with all its later children, and checks that it is there.
    #[expect(unsafe_code, reason = "no safe words for jobs")]
    pub(in super::super) fn take(&self, process: BorrowedHandle<'_>) -> io::Result<()> {
        // SAFETY: both handles are open for as long as they are borrowed.
        if unsafe { AssignProcessToJobObject(self.job.as_raw_handle(), process.as_raw_handle()) } == 0 {
            return Err(io::Error::last_os_error());
        }
        let mut inside = 0;
        // SAFETY: as above; `inside` is writable and outlives the call.
        let asked =
            unsafe { IsProcessInJob(process.as_raw_handle(), self.job.as_raw_handle(), &raw mut inside) };
        match (asked, inside) {
            (0, _) => Err(io::Error::last_os_error()),
            (_, 0) => Err(io::Error::other("the system did not put the worker into it")),
            _ => Ok(()),
        }
    }

    /// Ends all processes in the job.
    #[expect(unsafe_code, reason = "no safe words for jobs")]
    pub(in super::super) fn end(&self, code: u32) -> io::Result<()> {
        // SAFETY: the handle is open for as long as `self`.
        match unsafe { TerminateJobObject(self.job.as_raw_handle(), code) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Returns the number of processes in the job.
    #[expect(unsafe_code, reason = "no safe words for jobs")]
    pub(in super::super) fn look(&self) -> io::Result<Seen> {
        let mut found = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        // SAFETY: the handle is open; the structure is the one of this class, writable, and outlives the call.
        let asked = unsafe {
            QueryInformationJobObject(
                self.job.as_raw_handle(),
                JobObjectBasicAccountingInformation,
                (&raw mut found).cast(),
                size_of::<JOBOBJECT_BASIC_ACCOUNTING_INFORMATION>() as u32,
                std::ptr::null_mut(),
            )
        };
        if asked == 0 { Err(io::Error::last_os_error()) } else { Ok(Seen { active: found.ActiveProcesses }) }
    }

    /// Returns the limits that were met since the last call. Does not wait.
    pub(in super::super) fn met(&self) -> Vec<Limit> {
        let mut met = Vec::new();
        for _ in 0..MESSAGES_MAX {
            let Some((message, about)) = self.message() else { break };
            let limit = match message {
                JOB_OBJECT_MSG_JOB_MEMORY_LIMIT => Limit::Memory,
                JOB_OBJECT_MSG_ACTIVE_PROCESS_LIMIT => Limit::Processes,
                JOB_OBJECT_MSG_END_OF_PROCESS_TIME => Limit::Time(about),
                _ => continue,
            };
            if !met.contains(&limit) {
                met.push(limit);
            }
        }
        met
    }

    #[expect(unsafe_code, reason = "no safe words for ports")]
    fn message(&self) -> Option<(u32, u32)> {
        let (mut message, mut key) = (0, 0);
        let mut about: *mut OVERLAPPED = std::ptr::null_mut();
        // SAFETY: the handle is open; the three are writable and outlive the call; it waits for nothing. What a job
        // sends in the place of the last pointer is the number of a process, and is never followed.
        let got = unsafe {
            GetQueuedCompletionStatus(
                self.port.as_raw_handle(),
                &raw mut message,
                &raw mut key,
                &raw mut about,
                0,
            )
        };
        (got != 0).then(|| (message, about.addr() as u32))
    }
}

#[expect(unsafe_code, reason = "no safe words for jobs")]
fn create() -> io::Result<OwnedHandle> {
    let null = std::ptr::null();
    // SAFETY: the job has no name and no attributes, so no process can open or inherit it; the call gives
    // a new handle or null.
    owned(unsafe { CreateJobObjectW(null, null.cast()) })
}

#[expect(unsafe_code, reason = "no safe words for ports")]
fn port() -> io::Result<OwnedHandle> {
    // SAFETY: for no file yet; gives a new handle or null.
    owned(unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, std::ptr::null_mut(), 0, 1) })
}

#[expect(unsafe_code, reason = "the system hands out handles as they are")]
fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both callers pass a handle that the system has just made, and that no object owns yet.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}
