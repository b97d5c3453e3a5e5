//! The files that git tracks, by its index: a tracked file is never ignored, regardless of the ignore files.
//! Blocking.
//!
//! It reads the index file directly, in each of its versions with SHA-1 names, and does not run git. If the index
//! cannot be read, no further file counts as tracked, and the ignore files alone decide.

use std::collections::BTreeSet;
use std::io::Read as _;

use cap_std::fs::Dir;

use super::snapshot::open_file;
use provost_base::limits::{GIT_INDEX_BYTES_MAX, HARVEST_FILES_MAX};

/// Bytes of an entry before its flags: times, device, inode, mode, owners, size and the object's name.
const FIXED: usize = 60;
/// The flag for two more bytes of flags.
const EXTENDED: u16 = 0x4000;

/// Returns the paths that the index of a repository names.
pub(crate) fn tracked(git: &Dir) -> BTreeSet<String> {
    let (mut bytes, mut paths) = (Vec::new(), BTreeSet::new());
    let file = open_file(git, "index".as_ref());
    if file.is_ok_and(|file| file.take(GIT_INDEX_BYTES_MAX).read_to_end(&mut bytes).is_ok()) {
        // The index may be cut; the entries before the cut count.
        let _whole = read(&bytes, |path| {
            paths.insert(path);
        });
    }
    paths
}

fn read(bytes: &[u8], mut each: impl FnMut(String)) -> Option<()> {
    let mut rest = bytes.strip_prefix(b"DIRC")?;
    let version = u32::from_be_bytes(take(&mut rest)?);
    let count = u32::from_be_bytes(take(&mut rest)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut name: Vec<u8> = Vec::new();
    for _ in 0..count.min(u32::try_from(HARVEST_FILES_MAX).unwrap_or(u32::MAX)) {
        let before = rest.len();
        take::<FIXED>(&mut rest)?;
        if u16::from_be_bytes(take(&mut rest)?) & EXTENDED != 0 {
            take::<2>(&mut rest)?;
        }
        match version {
            4 => {
                let gone = number(&mut rest)?;
                name.truncate(name.len().checked_sub(gone)?);
            }
            _ => name.clear(),
        }
        let end = memchr::memchr(0, rest)?;
        name.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        if version < 4 {
            // The length of each entry, with its closing zeros, is a multiple of eight bytes.
            let used = before - rest.len();
            rest = rest.get(used.next_multiple_of(8) - used..)?;
        }
        if let Ok(path) = String::from_utf8(name.clone()) {
            each(path);
        }
    }
    Some(())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(*taken)
}

/// Reads a number as git packs offsets: seven bits in each byte, the highest first; each further byte adds one.
fn number(rest: &mut &[u8]) -> Option<usize> {
    let [byte] = take(rest)?;
    let mut number = usize::from(byte & 0x7f);
    let mut more = byte & 0x80 != 0;
    while more {
        let [byte] = take(rest)?;
        number = number.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        more = byte & 0x80 != 0;
    }
    Some(number)
}
