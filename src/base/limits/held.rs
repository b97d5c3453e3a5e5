//! Bounds of the files of a workspace that a worker cannot write, and of the report on the others.

/// Settings below the top of one workspace that are protected, each by a mount and one more for every folder above
/// it. The scan report names changes of all of them. A large repository of many packages has some dozens.
pub const SETTINGS_HELD_MAX: usize = 512;

/// Files with other names outside of a task's directory that are copied before it starts: some seconds. Folders of
/// fetched packages with more become read-only as a whole.
pub const UNSHARED_FILES_MAX: usize = 10_000;

/// Bytes of them together, since not every file system can share blocks.
pub const UNSHARED_BYTES_MAX: u64 = 1 << 30;

/// Passes over a workspace until no file in it is shared any more. The second one finds none, unless others work in
/// there.
pub const UNSHARE_LOOKS_MAX: usize = 3;

/// Bytes of one extended attribute, and of the names of all: Linux' own bound.
pub const XATTR_BYTES_MAX: usize = 64 << 10;

/// Findings listed in a scan report. A person who is told of so many looks at every file anyway.
pub const FINDINGS_MAX: usize = 64;

/// Findings of each kind that are listed in any case, regardless of the number of others.
pub const FINDINGS_OF_A_KIND_MIN: usize = 5;
