//! A token with which a process can write only in permitted places.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle};
use std::path::Path;

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::Security::{
    CreateRestrictedToken, DISABLE_MAX_PRIVILEGE, GetSidSubAuthority, GetTokenInformation,
    ImpersonateLoggedOnUser, RevertToSelf, SID_AND_ATTRIBUTES, SetTokenInformation, TOKEN_ADJUST_DEFAULT,
    TOKEN_ASSIGN_PRIMARY, TOKEN_DEFAULT_DACL, TOKEN_DUPLICATE, TOKEN_GROUPS, TOKEN_IMPERSONATE,
    TOKEN_INFORMATION_CLASS, TOKEN_MANDATORY_LABEL, TOKEN_QUERY, TokenDefaultDacl, TokenGroups,
    TokenIntegrityLevel, TokenRestrictedSids, WRITE_RESTRICTED,
};
use windows_sys::Win32::System::SystemServices::{SE_GROUP_INTEGRITY, SE_GROUP_LOGON_ID};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::text::Sid;
use crate::job::object_descriptor;
use provost_system::SecurityDescriptor;

/// The group of all users. Every program needs to write where this group may, such as to the null device.
const EVERYBODY: &str = "S-1-1-0";
/// The identity of the low integrity level.
const LOW: &str = "S-1-16-4096";
/// The last part of that identity.
const LOW_LEVEL: u32 = 0x1000;

/// A token that is restricted for writing and of low integrity.
pub(in super::super) struct WriteRestricted {
    token: OwnedHandle,
    restrictions: u32,
}

impl WriteRestricted {
    /// Makes a token from our own: without privileges, of low integrity, and restricted for writing to these identities,
    /// everybody, and our logon, which owns the desktop.
    pub(in super::super) fn new(user: &str, identities: &[String]) -> io::Result<Self> {
        let own = open_own()?;
        let groups = Answer::about(&own, TokenGroups)?;
        let sids = identities.iter().map(String::as_str).chain([EVERYBODY]);
        let sids = sids.map(Sid::of).collect::<io::Result<Vec<_>>>()?;
        let mut restricting: Vec<SID_AND_ATTRIBUTES> =
            sids.iter().map(|sid| SID_AND_ATTRIBUTES { Sid: sid.as_ptr(), Attributes: 0 }).collect();
        let logon = |group: &&SID_AND_ATTRIBUTES| {
            group.Attributes & SE_GROUP_LOGON_ID.cast_unsigned() == SE_GROUP_LOGON_ID.cast_unsigned()
        };
        let logon = groups.groups().iter().filter(logon);
        restricting.extend(logon.map(|group| SID_AND_ATTRIBUTES { Sid: group.Sid, Attributes: 0 }));
        let token = restricted(&own, &restricting)?;
        lower(&token)?;
        share_objects(&token, user, identities)?;
        Ok(Self { token, restrictions: restricting.len() as u32 })
    }

    /// Returns the handle to start a process with.
    pub(in super::super) fn handle(&self) -> HANDLE {
        self.token.as_raw_handle()
    }

    /// Checks that a process has this token, with all its restrictions.
    pub(in super::super) fn is_of(&self, process: BorrowedHandle<'_>) -> Result<(), String> {
        let token = open(process.as_raw_handle(), TOKEN_QUERY).map_err(|e| e.to_string())?;
        let restrictions = Answer::about(&token, TokenRestrictedSids).map_err(|e| e.to_string())?;
        if restrictions.groups().len() as u32 != self.restrictions {
            return Err("the system gave the worker a token that is not restricted for writing".into());
        }
        match integrity(&token).map_err(|e| e.to_string())? {
            LOW_LEVEL => Ok(()),
            other => Err(format!("the system gave the worker the integrity level {other:#x} instead of low")),
        }
    }

    /// Tries the token: a thread with it can make a file `inside`, and cannot make one `outside`, where this process
    /// could.
    pub(in super::super) fn confines(&self, inside: &Path, outside: &Path) -> Result<(), String> {
        let name = inside.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let outside = outside.join(format!("{name}.probe"));
        let inside = inside.join(format!("{name}.probe"));
        let tried = std::thread::scope(|scope| {
            // The thread is made for this, so that nothing else can go on with the token.
            scope.spawn(|| self.make_two(&inside, &outside)).join()
        });
        let _made = fs::remove_file(&inside);
        let (in_it, out_of_it) = tried.map_err(|_| "the attempt ended before its time".to_owned())??;
        match (in_it, out_of_it) {
            (_, Ok(())) => {
                let _made = fs::remove_file(&outside);
                Err("this system lets a write-restricted token of low integrity write everywhere".into())
            }
            (_, Err(e)) if e.kind() != io::ErrorKind::PermissionDenied => {
                Err(format!("whether writing elsewhere is denied is not known: {e}"))
            }
            (Err(e), _) => {
                Err(format!("with the token nothing can be written in the worker's own folder: {e}"))
            }
            (Ok(()), Err(_)) => Ok(()),
        }
    }

    #[expect(unsafe_code, reason = "no safe words for it")]
    fn make_two(&self, inside: &Path, outside: &Path) -> Result<(io::Result<()>, io::Result<()>), String> {
        let make = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path).map(drop);
        // SAFETY: the token is open for as long as `self` is borrowed; this thread does nothing else than this.
        if unsafe { ImpersonateLoggedOnUser(self.token.as_raw_handle()) } == 0 {
            return Err(format!("the token cannot be tried: {}", io::Error::last_os_error()));
        }
        let tried = (make(inside), make(outside));
        // SAFETY: takes nothing; if it fails, this thread ends with the token.
        unsafe { RevertToSelf() };
        Ok(tried)
    }
}

#[expect(unsafe_code, reason = "no safe word for it")]
fn open_own() -> io::Result<OwnedHandle> {
    let rights =
        TOKEN_QUERY | TOKEN_DUPLICATE | TOKEN_ASSIGN_PRIMARY | TOKEN_ADJUST_DEFAULT | TOKEN_IMPERSONATE;
    // SAFETY: gives a constant that stands for this process and needs no closing.
    open(unsafe { GetCurrentProcess() }, rights)
}

#[expect(unsafe_code, reason = "no safe word for it")]
fn open(process: HANDLE, rights: u32) -> io::Result<OwnedHandle> {
    let mut token: HANDLE = std::ptr::null_mut();
    // SAFETY: both callers hold the process; `token` is writable and outlives the call.
    if unsafe { OpenProcessToken(process, rights, &raw mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is a new handle that no object owns yet.
    Ok(unsafe { OwnedHandle::from_raw_handle(token) })
}

#[expect(unsafe_code, reason = "no safe word for it")]
fn restricted(own: &OwnedHandle, to: &[SID_AND_ATTRIBUTES]) -> io::Result<OwnedHandle> {
    let mut token: HANDLE = std::ptr::null_mut();
    let null = std::ptr::null();
    // SAFETY: the handle is open; the list has as many entries as is said, whose identities the caller holds; the
    // other two lists are empty; `token` is writable; all of it outlives the call.
    let made = unsafe {
        CreateRestrictedToken(
            own.as_raw_handle(),
            DISABLE_MAX_PRIVILEGE | WRITE_RESTRICTED,
            0,
            null,
            0,
            null.cast(),
            to.len() as u32,
            to.as_ptr(),
            &raw mut token,
        )
    };
    if made == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is a new handle that no object owns yet.
    Ok(unsafe { OwnedHandle::from_raw_handle(token) })
}

/// Lowers the token to low integrity, which can neither write to the user's objects nor look into them.
#[expect(unsafe_code, reason = "no safe word for it")]
fn lower(token: &OwnedHandle) -> io::Result<()> {
    let low = Sid::of(LOW)?;
    let mut label = TOKEN_MANDATORY_LABEL::default();
    label.Label = SID_AND_ATTRIBUTES { Sid: low.as_ptr(), Attributes: SE_GROUP_INTEGRITY.cast_unsigned() };
    let bytes = size_of::<TOKEN_MANDATORY_LABEL>() as u32 + low.bytes();
    // SAFETY: the handle is open; the structure is the one of this class, and it and its identity outlive the call.
    let set = unsafe {
        SetTokenInformation(token.as_raw_handle(), TokenIntegrityLevel, (&raw const label).cast(), bytes)
    };
    if set == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets the worker's processes use the objects that others of them make.
#[expect(unsafe_code, reason = "no safe word for it")]
fn share_objects(token: &OwnedHandle, user: &str, identities: &[String]) -> io::Result<()> {
    let descriptor = SecurityDescriptor::of(&object_descriptor(user, identities))?;
    let list = TOKEN_DEFAULT_DACL { DefaultDacl: descriptor.access_list()? };
    let bytes = size_of::<TOKEN_DEFAULT_DACL>() as u32;
    // SAFETY: the handle is open; the structure is the one of this class, and it and its list outlive the call.
    let set = unsafe {
        SetTokenInformation(token.as_raw_handle(), TokenDefaultDacl, (&raw const list).cast(), bytes)
    };
    if set == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[expect(unsafe_code, reason = "a SID is behind a pointer")]
fn integrity(token: &OwnedHandle) -> io::Result<u32> {
    let answer = Answer::about(token, TokenIntegrityLevel)?;
    // SAFETY: the kernel has filled the answer with a `TOKEN_MANDATORY_LABEL`, it is aligned for one, and the SID that
    // it points to lies in the same answer and has one part, as every level's has.
    Ok(unsafe {
        let label = &*answer.0.as_ptr().cast::<TOKEN_MANDATORY_LABEL>();
        *GetSidSubAuthority(label.Label.Sid, 0)
    })
}

/// The kernel's answer about a token, aligned so that structures with pointers may lie at its beginning.
struct Answer(Vec<u64>);

/// Bytes of the longest answer that is accepted, which has room for the groups of any usual user.
const ANSWER_BYTES_MAX: u32 = 1 << 16;

impl Answer {
    #[expect(unsafe_code, reason = "no safe word for it")]
    fn about(token: &OwnedHandle, class: TOKEN_INFORMATION_CLASS) -> io::Result<Self> {
        let mut answer = vec![0_u64; ANSWER_BYTES_MAX as usize / 8];
        let mut length = 0;
        // SAFETY: the handle is open; the kernel writes at most as many bytes as it is told that there are,
        // and both live longer than the call.
        let asked = unsafe {
            GetTokenInformation(
                token.as_raw_handle(),
                class,
                answer.as_mut_ptr().cast(),
                ANSWER_BYTES_MAX,
                &raw mut length,
            )
        };
        if asked == 0 { Err(io::Error::last_os_error()) } else { Ok(Self(answer)) }
    }

    /// Returns the entries of an answer about groups. The identities lie in the answer.
    #[expect(unsafe_code, reason = "the list's length stands before it")]
    fn groups(&self) -> &[SID_AND_ATTRIBUTES] {
        let groups: *const TOKEN_GROUPS = self.0.as_ptr().cast();
        // SAFETY: both callers have asked for groups, so that the kernel has written such a list, with as many entries
        // as it says; zeros, where it has written nothing, are an empty one.
        unsafe {
            std::slice::from_raw_parts((&raw const (*groups).Groups).cast(), (*groups).GroupCount as usize)
        }
    }
}
