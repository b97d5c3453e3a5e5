//! Identities and descriptors, made from the text that stands for them.

use std::io;
use std::path::Path;

use widestring::U16CString;
use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, ConvertStringSidToSidW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{
    ACL, GetLengthSid, GetSecurityDescriptorDacl, PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES,
};
use windows_sys::Win32::Storage::FileSystem::CreateDirectoryW;

/// Text with its end.
pub(super) fn wide(text: &str) -> io::Result<U16CString> {
    U16CString::from_str(text).map_err(io::Error::other)
}

/// A path with its end.
pub(super) fn wide_path(path: &Path) -> io::Result<U16CString> {
    U16CString::from_os_str(path).map_err(io::Error::other)
}

/// An identity (SID) that the system has made from its text, and takes back when this is dropped.
pub(super) struct Sid(PSID);

impl Sid {
    /// From `S-1-...`.
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

    /// For calls that read it while `self` is there.
    pub(super) fn as_ptr(&self) -> PSID {
        self.0
    }

    /// How many bytes it has.
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

/// A security descriptor that the system has made from its text, and takes back when this is dropped.
pub(super) struct Descriptor(PSECURITY_DESCRIPTOR);

impl Descriptor {
    /// From the system's text for them.
    #[expect(unsafe_code, reason = "the system hands out descriptors as pointers")]
    pub(super) fn of(text: &str) -> io::Result<Self> {
        let text = wide(text)?;
        let mut made: PSECURITY_DESCRIPTOR = std::ptr::null_mut();
        // SAFETY: the text ends with a null; `made` is writable; both outlive the call; the length is not asked for.
        let converted = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &raw mut made,
                std::ptr::null_mut(),
            )
        };
        match converted {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(Self(made)),
        }
    }

    /// Its access list, for calls that read it while `self` is there.
    #[expect(unsafe_code, reason = "the list lies in the descriptor")]
    pub(super) fn access_list(&self) -> io::Result<*mut ACL> {
        let (mut present, mut default) = (0, 0);
        let mut list: *mut ACL = std::ptr::null_mut();
        // SAFETY: the descriptor is there for as long as `self`; the three are writable and outlive the call.
        let found =
            unsafe { GetSecurityDescriptorDacl(self.0, &raw mut present, &raw mut list, &raw mut default) };
        match (found, present) {
            (0, _) => Err(io::Error::last_os_error()),
            (_, 0) => Err(io::Error::other("a descriptor without an access list")),
            _ => Ok(list),
        }
    }
}

impl Drop for Descriptor {
    #[expect(unsafe_code, reason = "the system takes it back")]
    fn drop(&mut self) {
        // SAFETY: it was made for us, and is not used any more.
        unsafe { LocalFree(self.0) };
    }
}

/// Makes a folder that has this descriptor from its first moment.
#[expect(unsafe_code, reason = "the standard library makes folders without descriptors")]
pub(in super::super) fn make_folder(path: &Path, descriptor: &str) -> io::Result<()> {
    let (path, descriptor) = (wide_path(path)?, Descriptor::of(descriptor)?);
    let attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor.0,
        bInheritHandle: 0,
    };
    // SAFETY: the path ends with a null; attributes and descriptor are whole; all of it outlives the call.
    match unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
