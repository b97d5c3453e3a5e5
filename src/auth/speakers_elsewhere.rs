//! Processes that have spoken as agents to the other daemons of the same user. A model that is known in one repository is no person in
//! another one, also not in one that it has made itself.
//!
//! Each daemon keeps those that it knows in its state folder, and all state folders of a user lie beside each other. They are read when
//! a caller would count as a person otherwise. Blocking.

use std::fs;
use std::path::{Path, PathBuf};

use super::speakers::{FILE_BYTES_MAX, marks_in};
use provost_base::limits::DAEMONS_MAX;
use provost_domain::ProcessMark;

/// Those that still run, in the files of this name in the folders beside the one of `own`.
pub(super) fn known(own: &Path) -> Vec<ProcessMark> {
    let found = own.parent().zip(own.file_name());
    let Some((folder, name)) = found else { return Vec::new() };
    let beside = folder.parent().map(fs::read_dir);
    let folders = beside.into_iter().flatten().flatten().flatten().map(|it| it.path());
    let mut files: Vec<PathBuf> = folders.filter(|it| it != folder).map(|it| it.join(name)).collect();
    // The newest first: where there are more than are read, older ones are of ended processes.
    files.sort_by_key(|it| std::cmp::Reverse(fs::metadata(it).and_then(|it| it.modified()).ok()));
    files.iter().take(DAEMONS_MAX).flat_map(|it| of_file(it)).collect()
}

fn of_file(file: &Path) -> Vec<ProcessMark> {
    match fs::metadata(file) {
        Ok(it) if it.is_file() && it.len() <= FILE_BYTES_MAX => {}
        _ => return Vec::new(),
    }
    fs::read_to_string(file).map(|text| marks_in(&text)).unwrap_or_default()
}
