//! The names of files in a workspace that run later: by themselves, during a build, or on a build server.
//!
//! They are recognised by name alone, so that reading a directory is enough. The table of [`later`] has the settings
//! that run by themselves; this list has the files that people run on purpose. Such a list is never complete; the
//! configuration adds further paths with `protect`.

use provost_base::later::{self, Whose, names};
use provost_domain::FindingKind;
use provost_jail::RepositoryParts;

/// The kind of a directory, which decides how the names in it count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Zone {
    /// The top of the workspace.
    Top,
    /// A directory that has no meaning of its own.
    Plain,
    /// A repository's own directory, under any name.
    Git,
    /// A part of a repository's own directory from which no program is started.
    GitInner,
    /// A repository's own directory, or a part of it, if every file in it matters.
    Whole,
    /// The directory of objects in such a repository.
    Objects,
    /// Objects in files of their own, named by their content: a new one has no effect, a changed one has.
    Loose,
    /// A directory in which every file matters, for this reason.
    All(FindingKind),
}

/// The classification of a name in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    /// The zone of the directory with this name; `None` if it is not entered.
    pub zone: Option<Zone>,
    /// The reason why a file or link with this name matters; `None` if it does not.
    pub kind: Option<FindingKind>,
}

/// Files of a repository that name programs, or lead to files that do.
const GIT_FILES: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];

/// Directories of a repository with programs to run: hooks, and operations that were begun and go on later.
const GIT_DIRS: [&str; 4] = ["hooks", "rebase-merge", "rebase-apply", "sequencer"];

/// Returns the reason why a row of the table matters.
pub(crate) fn kind_of(row: &later::Row) -> FindingKind {
    match row.whose {
        Whose::Instructions => FindingKind::Instructions,
        Whose::Agents
        | Whose::Editors
        | Whose::Shells
        | Whose::Hooks
        | Whose::VersionControl
        | Whose::Interpreters => FindingKind::Setting,
    }
}

/// Classifies a name in a directory of this zone; `row` is the table's row for its path, if there
/// is one.
pub(crate) fn said(zone: Zone, name: &[u8], row: Option<&later::Row>) -> Said {
    let name = std::str::from_utf8(name).unwrap_or_default();
    let whole = |kind| Said { zone: Some(Zone::All(kind)), kind: Some(kind) };
    // A file for servers or builds may be a setting, too.
    let open = matches!(zone, Zone::Top | Zone::Plain | Zone::All(FindingKind::Ci | FindingKind::Build));
    if let Some(row) = row.filter(|_| open) {
        return whole(kind_of(row));
    }
    let nothing = |zone| Said { zone: Some(zone), kind: None };
    match zone {
        Zone::All(kind) => whole(kind),
        // Objects are data; there are many, and they are named by their content.
        Zone::Git if name == "objects" => Said { zone: None, kind: None },
        Zone::Git if GIT_DIRS.contains(&name) => whole(FindingKind::Git),
        Zone::Git if GIT_FILES.contains(&name) => Said { kind: Some(FindingKind::Git), ..nothing(zone) },
        Zone::Git | Zone::GitInner => nothing(Zone::GitInner),
        Zone::Whole if name == "objects" => nothing(Zone::Objects),
        Zone::Whole => Said { kind: Some(FindingKind::Git), ..nothing(Zone::Whole) },
        Zone::Objects if name.len() == 2 => nothing(Zone::Loose),
        Zone::Objects => Said { kind: Some(FindingKind::Git), ..nothing(Zone::Whole) },
        Zone::Loose => Said { kind: Some(FindingKind::Git), ..nothing(Zone::Loose) },
        Zone::Top if names::is_ci(name) => whole(FindingKind::Ci),
        Zone::Top | Zone::Plain if name == ".git" => {
            Said { zone: Some(Zone::Git), kind: Some(FindingKind::Git) }
        }
        Zone::Top | Zone::Plain if names::is_build_folder(name) => {
            Said { zone: Some(Zone::All(FindingKind::Build)), kind: None }
        }
        Zone::Top | Zone::Plain if names::is_hiding(name) => {
            Said { kind: Some(FindingKind::Git), ..nothing(Zone::Plain) }
        }
        Zone::Top | Zone::Plain => Said { kind: file(name), ..nothing(Zone::Plain) },
    }
}

fn file(name: &str) -> Option<FindingKind> {
    if names::is_build(name) {
        return Some(FindingKind::Build);
    }
    names::is_lock(name).then_some(FindingKind::Lock)
}

/// Checks whether a directory with these names is a repository's own, under any name: git recognises a repository
/// by them.
pub(crate) fn is_repository<'a>(names: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut parts = RepositoryParts::default();
    names.for_each(|name| parts.add(name));
    parts.are_a_repository()
}
