//! Identities, paths and folders, made from their textual forms.

use std::io;
use std::path::Path;

use widestring::U16CString;
use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::ConvertStringSidToSidW;
use windows_sys::Win32::Security::{GetLengthSid, PSID, SECURITY_ATTRIBUTES};
use windows_sys::Win32::Storage::FileSystem::CreateDirectoryW;

use provost_system::SecurityDescriptor;

/// Returns a text with the terminating null.
pub(super) fn wide(text: &str) -> io::Result<U16CString> {
    U16CString::from_str(text).map_err(io::Error::other)
}

/// Returns a path with the terminating null.
pub(super) fn wide_path(path: &Path) -> io::Result<U16CString> {
    U16CString::from_os_str(path).map_err(io::Error::other)
}

/// An identity (SID) that the system has made from its text, and frees when this is dropped.
pub(super) struct Sid(PSID);

impl Sid {
    /// Makes an identity from text of the form `S-1-...`.
    #[expect(unsafe_code, reason = "the system hands out identities as pointers")]
    pub(super) fn of(text: &str) -> io::Result<Self> {
        let text = wide(text)?;
        let mut sid: PSID = std::ptr::null_mut();
        // SAFETY: the text ends with a null; `sid` is writable; both outlive the call.
        match unsafe { ConvertStringSidToSidW(text.as_ptr(), &raw mut sid) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(Self(sid)),
        }
    }

    /// Returns the pointer, for calls that read the identity while `self` exists.
    pub(super) fn as_ptr(&self) -> PSID {
        self.0
    }

    /// Returns the length of the identity in bytes.
    #[expect(unsafe_code, reason = "the system counts them")]
    pub(super) fn bytes(&self) -> u32 {
        // SAFETY: the identity was made by the system and is there for as long as `self`.
        unsafe { GetLengthSid(self.0) }
    }
}

impl Drop for Sid {
    #[expect(unsafe_code, reason = "the system takes it back")]
    fn drop(&mut self) {
        // SAFETY: it was made for us, and is not used any more.
        unsafe { LocalFree(self.0) };
    }
}

/// Makes a folder that has this security descriptor from its first moment.
#[expect(unsafe_code, reason = "the standard library makes folders without descriptors")]
pub(in super::super) fn make_folder(path: &Path, descriptor: &str) -> io::Result<()> {
    let (path, descriptor) = (wide_path(path)?, SecurityDescriptor::of(descriptor)?);
    let attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor.as_ptr(),
        bInheritHandle: 0,
    };
    // SAFETY: the path ends with a null; attributes and descriptor are whole; all of it outlives the call.
    match unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
