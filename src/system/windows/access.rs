//! Owners and access lists of files.

use std::io;
use std::path::Path;

use widestring::U16CString;
use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertSecurityDescriptorToStringSecurityDescriptorW, GetNamedSecurityInfoW, SDDL_REVISION_1,
    SE_FILE_OBJECT,
};
use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, OWNER_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR,
};

use super::Token;
use crate::descriptor;

/// The parts of a security descriptor that are read.
const ASKED: u32 = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;

/// Checks that only we, the system and its administrators can read or write a file.
///
/// # Errors
/// Another account that can; or the reason why that is unknown, which counts the same.
pub fn private(path: &Path) -> Result<(), String> {
    judge(path, descriptor::private)
}

/// Checks that only we, the system and its administrators can write to a file.
///
/// # Errors
/// As [`private`].
pub fn trusted(path: &Path) -> Result<(), String> {
    judge(path, descriptor::trusted)
}

/// Checks that a file belongs to us, or to the system or its administrators.
///
/// # Errors
/// As [`private`].
pub fn owned(path: &Path) -> Result<(), String> {
    judge(path, descriptor::owned)
}

fn judge(path: &Path, by: fn(&str, &str) -> Result<(), String>) -> Result<(), String> {
    let unknown = |e: io::Error| format!("does not tell who may use it: {e}");
    let user = Token::of_this_process().and_then(|token| token.user()).map_err(unknown)?;
    by(&descriptor_of(path).map_err(unknown)?, &user)
}

/// Returns owner and access list as text.
#[expect(unsafe_code, reason = "no safe word for it")]
fn descriptor_of(path: &Path) -> io::Result<String> {
    let name = U16CString::from_os_str(path).map_err(io::Error::other)?;
    let null = std::ptr::null_mut();
    let mut descriptor: PSECURITY_DESCRIPTOR = null;
    // SAFETY: the name ends with a null; what is not asked for may be null; `descriptor` is writable; all of it
    // outlives the call.
    let error = unsafe {
        GetNamedSecurityInfoW(
            name.as_ptr(),
            SE_FILE_OBJECT,
            ASKED,
            null.cast(),
            null.cast(),
            null.cast(),
            null.cast(),
            &raw mut descriptor,
        )
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error.cast_signed()));
    }
    let mut text: *mut u16 = std::ptr::null_mut();
    // SAFETY: the descriptor was made by the call above; `text` is writable and outlives the call; the length is
    // not asked for.
    let converted = unsafe {
        ConvertSecurityDescriptorToStringSecurityDescriptorW(
            descriptor,
            SDDL_REVISION_1,
            ASKED,
            &raw mut text,
            null.cast(),
        )
    };
    let converted = if converted == 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: it was made for us by the first call, and is not used any more.
    unsafe { LocalFree(descriptor) };
    converted.map(|()| super::token::take_text(text))
}
