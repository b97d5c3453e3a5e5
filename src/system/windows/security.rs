//! Security descriptors, made from their textual form.

use std::io;

use widestring::U16CString;
use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{ACL, GetSecurityDescriptorDacl, PSECURITY_DESCRIPTOR};

/// A security descriptor that the system has made from its text, and frees when this is dropped.
#[derive(Debug)]
pub struct SecurityDescriptor(PSECURITY_DESCRIPTOR);

impl SecurityDescriptor {
    /// Makes a descriptor from the system's textual form.
    ///
    /// # Errors
    /// The system's error, about the text.
    #[expect(unsafe_code, reason = "the system hands out descriptors as pointers")]
    pub fn of(text: &str) -> io::Result<Self> {
        let text = U16CString::from_str(text).map_err(io::Error::other)?;
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

    /// Returns the pointer, for calls that read the descriptor while `self` exists.
    pub fn as_ptr(&self) -> PSECURITY_DESCRIPTOR {
        self.0
    }

    /// Returns the descriptor's access list, for calls that read it while `self` exists.
    ///
    /// # Errors
    /// The system's error, or that the descriptor has no access list.
    #[expect(unsafe_code, reason = "the list lies in the descriptor")]
    pub fn access_list(&self) -> io::Result<*mut ACL> {
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

impl Drop for SecurityDescriptor {
    #[expect(unsafe_code, reason = "the system takes it back")]
    fn drop(&mut self) {
        // SAFETY: it was made for us, and is not used any more.
        unsafe { LocalFree(self.0) };
    }
}
