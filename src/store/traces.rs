//! The name of a repository in ids of traces.

use std::path::Path;

use super::StoreError;
use super::files;
use super::journal::Key;
use provost_base::Digest;

/// Returns the name of the repository of a state folder for ids of traces, and `None` without a journal key. All hosts make the same name, since they have
/// that key in common; the name tells neither the key nor the place of the repository.
///
/// # Errors
/// [`StoreError`] when the key's file cannot be read.
pub fn name_of_traces(state: &Path) -> Result<Option<Digest>, StoreError> {
    let secret = files::journal_key(state)?;
    Ok(secret.map(|it| Key::new(&it).mac(b"provost-traces-v1", &[])))
}
