//! Queries about files before there are artifacts: the content of a file, and whether an apply could ever write it.

use super::Provost;
use provost_base::{Digest, RepoPath};
use provost_workspace::{artifact_path, file};

impl Provost {
    /// Returns the content and the digest of a file of the workspace; `None` if it does not exist. Follows no link. Blocking.
    ///
    /// # Errors
    /// The reason why the file cannot be read.
    pub fn file_now(&self, path: &RepoPath) -> Result<Option<(Vec<u8>, Digest)>, String> {
        let found = file::look(self.root().handle(), path).map_err(|trouble| trouble.to_string())?;
        Ok(found.map(|it| (it.bytes, it.digest)))
    }

    /// Returns why no change of this file by an agent could ever be written; `None` if it could.
    pub fn never_written(&self, path: &RepoPath) -> Option<String> {
        let root = self.root().place().path().to_string_lossy().into_owned();
        let bounds = self.0.applying.bounds();
        let deny = match &bounds.deny {
            Ok(deny) => deny,
            Err(why) => return Some(why.clone()),
        };
        let allowed =
            |path: &RepoPath| artifact_path::denied(deny, path).and_then(|()| bounds.set_apart(path));
        artifact_path::read(&root, path.as_str()).and_then(|path| allowed(&path)).err()
    }
}
