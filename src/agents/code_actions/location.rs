//! The place of a selection: a file of the workspace, or a buffer without a file. A6s 3.2 and 6.0.

use std::path::Path;

use cap_std::fs::Dir;

use super::conventions::{WorkspaceProbe, tests_of};
use super::patch::NoPlace;
use super::{CodeAsk, CodeQuestion};
use crate::AgentService;
use provost_base::limits::{ID_LEN_MAX, PATH_LEN_MAX};
use provost_base::{Digest, RepoPath};

/// The state of the selection's file when the question is asked.
pub(super) struct Found {
    /// The file; `None` for a buffer without a file in the workspace.
    pub(super) file: Option<RepoPath>,
    /// The name of the buffer, without folders.
    pub(super) name: String,
    /// The text of the file, or the reason why it cannot be had.
    pub(super) text: Result<String, String>,
    /// The digest of the file's state, to recognise later changes; `None` if it is unknown.
    pub(super) was: Option<Digest>,
    /// The reason why the file can never be written, if there is one.
    pub(super) unwritable: Option<String>,
    pub(super) tests: Option<Tests>,
}

/// The file for tests, and its existing text.
pub(super) struct Tests {
    pub(super) path: RepoPath,
    pub(super) text: Option<String>,
}

/// The files of a workspace. Blocking.
pub(crate) struct Tree<'a>(pub(crate) &'a Dir);

impl WorkspaceProbe for Tree<'_> {
    fn is_file(&self, path: &str) -> bool {
        self.0.symlink_metadata(path).is_ok_and(|it| it.is_file())
    }

    fn is_folder(&self, path: &str) -> bool {
        self.0.symlink_metadata(path).is_ok_and(|it| it.is_dir())
    }
}

impl AgentService {
    /// Finds out the state of a selection's file. Blocking.
    pub(super) fn find_out(&self, ask: &CodeAsk) -> Found {
        let root = self.provost().root();
        let file = located(root.place().path(), root.handle(), &ask.file_path);
        let nothing = Some(Digest::of(b""));
        let (text, was) = match file.as_ref().map(|file| (file, self.provost().file_now(file))) {
            None => (Err("it has no file".to_owned()), nothing),
            Some((file, Ok(None))) => (Err(NoPlace::Nowhere.says(file.as_str())), nothing),
            Some((file, Err(why))) => (Err(format!("{file}: {why}")), None),
            Some((file, Ok(Some((bytes, digest))))) => {
                let text = String::from_utf8(bytes);
                (text.map_err(|_| format!("{file}: it is no text in UTF-8")), Some(digest))
            }
        };
        let unwritable = file.as_ref().and_then(|file| self.provost().never_written(file));
        let wants_tests = ask.question == CodeQuestion::GenerateTests;
        let tests = file.as_ref().filter(|_| wants_tests).and_then(|file| {
            let path = RepoPath::parse(&tests_of(file.as_str(), &Tree(root.handle()))).ok()?;
            let there = self.provost().file_now(&path).ok().flatten();
            Some(Tests { text: there.and_then(|(bytes, _)| String::from_utf8(bytes).ok()), path })
        });
        Found { file, name: base_name(&ask.file_path), text, was, unwritable, tests }
    }
}

/// Returns the file of the workspace that an editor means. Editors send an absolute path, or the name of a buffer without a
/// file. Links on the way are followed, since the file behind them is edited.
fn located(root: &Path, dir: &Dir, said: &str) -> Option<RepoPath> {
    if said.trim().is_empty() || said.len() > PATH_LEN_MAX || said.contains('\0') {
        return None;
    }
    let path = Path::new(said);
    if !path.is_absolute() {
        // The text may be the name of a buffer.
        let file = RepoPath::parse(&said.replace('\\', "/")).ok()?;
        return Tree(dir).is_file(file.as_str()).then_some(file);
    }
    let real = path.canonicalize().ok().or_else(|| {
        // The file has not been saved yet.
        Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
    });
    let beneath = |path: &Path| {
        let rest = path.strip_prefix(root).ok()?.to_str()?.replace('\\', "/");
        RepoPath::parse(&rest).ok().filter(|it| !it.is_root())
    };
    let file = match real {
        Some(real) => beneath(&real).or_else(|| cfg!(windows).then(|| beneath(path)).flatten()),
        None => beneath(path),
    };
    file.filter(|file| !Tree(dir).is_folder(file.as_str()))
}

/// Returns the name of a buffer, without folders.
fn base_name(said: &str) -> String {
    let base = said.trim().rsplit(['/', '\\']).next().unwrap_or_default();
    let base: String = base.chars().filter(|c| !c.is_control()).collect();
    let base = &base[..base.floor_char_boundary(ID_LEN_MAX.min(base.len()))];
    if base.is_empty() { "untitled".to_owned() } else { base.to_owned() }
}
