//! The kernel's data about the user of a process.

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};

use widestring::U16CStr;
use windows_sys::Win32::Foundation::{HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::ConvertSidToStringSidW;
use windows_sys::Win32::Security::{
    GetSidSubAuthority, GetTokenInformation, IsTokenRestricted, TOKEN_INFORMATION_CLASS,
    TOKEN_MANDATORY_LABEL, TOKEN_QUERY, TOKEN_USER, TokenElevation, TokenIntegrityLevel, TokenIsAppContainer,
    TokenUser,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, OpenProcess, OpenProcessToken, PROCESS_QUERY_LIMITED_INFORMATION,
};

/// Bytes of the largest answer about a token: a user's SID has at most 68.
const ANSWER_BYTES_MAX: usize = 256;

/// The integrity level of ordinary processes.
const MEDIUM_INTEGRITY: u32 = 0x2000;

/// An answer, aligned so that structures with pointers may lie at its beginning.
#[repr(C, align(16))]
struct Answer([u8; ANSWER_BYTES_MAX]);

/// A process's access token.
#[derive(Debug)]
pub struct Token(OwnedHandle);

impl Token {
    /// Opens the token of our own process.
    ///
    /// # Errors
    /// The system's error.
    #[expect(unsafe_code, reason = "no safe word for it")]
    pub fn of_this_process() -> io::Result<Self> {
        // SAFETY: gives a constant that stands for this process and needs no closing.
        Self::of(unsafe { GetCurrentProcess() })
    }

    /// Opens the token of another process.
    ///
    /// # Errors
    /// The system's error; `PermissionDenied` for most processes of other users.
    #[expect(unsafe_code, reason = "no safe word for it")]
    pub fn of_process(pid: u32) -> io::Result<Self> {
        // SAFETY: takes numbers, and gives a new handle or null.
        let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
        if process.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so this is a new handle that no other value owns.
        let process = unsafe { OwnedHandle::from_raw_handle(process) };
        Self::of(process.as_raw_handle())
    }

    #[expect(unsafe_code, reason = "no safe word for it")]
    fn of(process: HANDLE) -> io::Result<Self> {
        let mut token: HANDLE = std::ptr::null_mut();
        // SAFETY: both callers hold the process open; `token` is writable and outlives the call.
        let opened = unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) };
        if opened == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so this is a new handle that no other value owns.
        Ok(Self(unsafe { OwnedHandle::from_raw_handle(token) }))
    }

    /// Returns the user's SID, as text: `S-1-5-21-...`.
    ///
    /// # Errors
    /// The system's error.
    #[expect(unsafe_code, reason = "a SID is behind a pointer")]
    pub fn user(&self) -> io::Result<String> {
        let answer = self.ask(TokenUser)?;
        // SAFETY: the kernel has filled the answer with a `TOKEN_USER`, it is aligned for one, and the SID that it
        // points to lies in the same answer, which stays where it is and outlives `user`.
        let user = unsafe { &*(&raw const answer.0).cast::<TOKEN_USER>() };
        let mut text: *mut u16 = std::ptr::null_mut();
        // SAFETY: the SID is valid, see above; `text` is writable and outlives the call.
        let converted = unsafe { ConvertSidToStringSidW(user.User.Sid, &raw mut text) };
        if converted == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(take_text(text))
    }

    /// Checks whether the token has an administrator's rights in force.
    ///
    /// # Errors
    /// The system's error.
    pub fn is_elevated(&self) -> io::Result<bool> {
        self.flag(TokenElevation)
    }

    /// Checks whether the process is confined: its token was restricted or has less than the usual integrity, or the process lives in
    /// an app container.
    ///
    /// # Errors
    /// The system's error.
    #[expect(unsafe_code, reason = "no safe word for it")]
    pub fn is_confined(&self) -> io::Result<bool> {
        // SAFETY: the handle is open for as long as `self` is borrowed.
        let restricted = unsafe { IsTokenRestricted(self.0.as_raw_handle()) } != 0;
        Ok(restricted || self.flag(TokenIsAppContainer)? || self.integrity()? < MEDIUM_INTEGRITY)
    }

    /// Returns the token's integrity level, as the last part of that level's SID.
    ///
    /// # Errors
    /// The system's error.
    #[expect(unsafe_code, reason = "a SID is behind a pointer")]
    pub fn integrity(&self) -> io::Result<u32> {
        let answer = self.ask(TokenIntegrityLevel)?;
        // SAFETY: the kernel has filled the answer with a `TOKEN_MANDATORY_LABEL`, it is aligned for one, and the SID
        // that it points to lies in the same answer and has one part, as every level's has.
        Ok(unsafe {
            let label = &*(&raw const answer.0).cast::<TOKEN_MANDATORY_LABEL>();
            *GetSidSubAuthority(label.Label.Sid, 0)
        })
    }

    fn flag(&self, class: TOKEN_INFORMATION_CLASS) -> io::Result<bool> {
        Ok(self.ask(class)?.0[..4] != [0; 4])
    }

    #[expect(unsafe_code, reason = "no safe word for it")]
    fn ask(&self, class: TOKEN_INFORMATION_CLASS) -> io::Result<Box<Answer>> {
        // The answer is boxed before it is filled, since it may contain pointers into itself.
        let mut answer = Box::new(Answer([0; ANSWER_BYTES_MAX]));
        let mut length = 0;
        // SAFETY: the handle is open; the kernel writes at most as many bytes as it is told that there are, and both
        // outlive the call.
        let asked = unsafe {
            GetTokenInformation(
                self.0.as_raw_handle(),
                class,
                (&raw mut answer.0).cast(),
                ANSWER_BYTES_MAX as u32,
                &raw mut length,
            )
        };
        if asked == 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
    }
}

/// Returns the text that a system call has made for us, and frees the system's copy. The pointer must come from such
/// a call that has succeeded.
#[expect(unsafe_code, reason = "the system hands out texts as pointers")]
pub(super) fn take_text(text: *mut u16) -> String {
    // SAFETY: both callers pass what the system has just made: a string that ends with a null.
    let taken = unsafe { U16CStr::from_ptr_str(text) }.to_string_lossy();
    // SAFETY: it was made for us, and is not used any more.
    unsafe { LocalFree(text.cast()) };
    taken
}
