//! Processes that have spoken as agents to the other daemons of the same user. A model that is known in one
//! repository is no person in another one either, even if it has made that repository itself.
//!
//! Each daemon keeps the processes that it knows in its state folder, and the state folders of a user lie beside
//! each other. The daemon reads them when a caller would otherwise count as a person. Blocking.

use std::fs;
use std::path::{Path, PathBuf};

use super::speakers::marks_in;
use provost_base::limits::{DAEMONS_ASKED_MAX, SPEAKERS_FILE_BYTES_MAX};
use provost_domain::ProcessMark;

/// Returns the processes that still run, from the files of the same name in the folders beside that of `own`.
pub(super) fn known(own: &Path) -> Vec<ProcessMark> {
    let Some((folder, name)) = own.parent().zip(own.file_name()) else { return Vec::new() };
    let beside = folder.parent().map(fs::read_dir);
    let folders = beside.into_iter().flatten().flatten().flatten().map(|it| it.path());
    let files = folders.filter(|it| it != folder).map(|it| it.join(name));
    let mut files: Vec<(std::time::SystemTime, PathBuf)> =
        files.filter_map(|it| Some((fs::metadata(&it).ok()?.modified().ok()?, it))).collect();
    // If there are more files than the limit, the oldest are left out: their processes have ended long ago.
    files.sort_by_key(|it| std::cmp::Reverse(it.0));
    files.iter().take(DAEMONS_ASKED_MAX).flat_map(|(_, it)| of_file(it)).collect()
}

fn of_file(file: &Path) -> Vec<ProcessMark> {
    match fs::symlink_metadata(file) {
        Ok(it) if it.is_file() && it.len() <= SPEAKERS_FILE_BYTES_MAX => {}
        _ => return Vec::new(),
    }
    fs::read_to_string(file).map(|text| marks_in(&text)).unwrap_or_default()
}
