//! Settings that run later: files by which a tool of the host starts a program, or is told what to do, the next time
//! that somebody works in the folder. One table for the jail, the hand-off report, applies and the documents.
//!
//! A row is a pattern of the last names of a path. It holds in every folder, in any size of letters, for what has such a
//! name and, where that is a folder, for all below it. What somebody runs on purpose (a build, a test) has no row here:
//! it is a worker's business to change, and the hand-off report names it.

mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

pub use table::ROWS;

/// Whose settings they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Whose {
    /// Of agents: tools, servers, hooks, permissions.
    Agents,
    /// Of editors and development environments.
    Editors,
    /// Of shells and what loads variables into them.
    Shells,
    /// Of what manages hooks of version control.
    Hooks,
    /// Of version control beside git.
    VersionControl,
    /// Of debuggers and interactive interpreters.
    Interpreters,
    /// What agents are told in words.
    Instructions,
}

impl Whose {
    const ALL: [Self; 7] = [
        Self::Agents,
        Self::Instructions,
        Self::Editors,
        Self::Shells,
        Self::Hooks,
        Self::VersionControl,
        Self::Interpreters,
    ];

    fn words(self) -> &'static str {
        match self {
            Self::Agents => "Settings of agents",
            Self::Editors => "Settings of editors",
            Self::Shells => "Settings of shells",
            Self::Hooks => "Settings of hook managers",
            Self::VersionControl => "Settings of version control beside git",
            Self::Interpreters => "Settings of debuggers and interpreters",
            Self::Instructions => "Instructions for agents",
        }
    }
}

/// What a worker that works in the user's own directory can do with them. The hand-off report names a change of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Read-only where it is, and at the top of the worker's directory it cannot be made.
    Kept,
    /// Read-only where it is. It can be made.
    Found,
    /// Free to change, since users ask for that.
    Reported,
}

impl Held {
    fn words(self) -> &'static str {
        match self {
            Held::Kept => "read-only, not to be made at the top",
            Held::Found => "read-only where it is",
            Held::Reported => "reported",
        }
    }
}

/// One kind of file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The last names of its path; `*` stands for any part of a name.
    pub pattern: &'static str,
    /// What it is spelled like, where the pattern leaves that open: stood in for at the top, and tried by tests.
    pub spellings: &'static [&'static str],
    /// Whose it is.
    pub whose: Whose,
    /// What becomes of it.
    pub held: Held,
    /// Where its tool says that it reads it.
    pub source: &'static str,
}

impl Row {
    /// Every spelling that is known.
    pub fn examples(&self) -> impl Iterator<Item = &'static str> + use<> {
        let itself = self.spellings.is_empty().then_some(self.pattern);
        itself.into_iter().chain(self.spellings.iter().copied())
    }

    /// Whether a worker must leave it as it is.
    pub fn is_read_only(&self) -> bool {
        matches!(self.held, Held::Kept | Held::Found)
    }
}

/// What stands at the top of a worker's directory where nothing is, so that it cannot be made. Managers of git's hooks
/// are started by git's hooks, which no worker can install, so that nothing stands for their files where there is none.
pub fn stood_in_for(hooks: GitHooks) -> impl Iterator<Item = &'static str> {
    let in_use = move |row: &&Row| row.whose != Whose::Hooks || hooks == GitHooks::Installed;
    ROWS.iter().filter(|row| row.held == Held::Kept).filter(in_use).flat_map(Row::examples)
}

/// Whether git runs hooks where a worker works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GitHooks {
    /// It does, or that is not known.
    #[default]
    Installed,
    /// It does not.
    None,
}

/// Folders that package managers fill and throw away as a whole. What lies in them is reported and not held: held, it
/// would keep them from being replaced, and nobody works in there.
const FETCHED: [&str; 9] = [
    ".nox",
    ".tox",
    ".venv",
    "bower_components",
    "node_modules",
    "site-packages",
    "target",
    "vendor",
    "venv",
];

/// Whether a name is that of a folder with what was fetched or built.
pub fn is_fetched(name: &[u8]) -> bool {
    FETCHED.iter().any(|it| it.as_bytes() == name)
}

/// The rows as they are looked for.
#[derive(Default)]
struct Index {
    /// Those whose last name is plain, by that name.
    plain: BTreeMap<String, Vec<&'static Row>>,
    /// The others.
    open: Vec<&'static Row>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index::default();
    for row in ROWS {
        let name = row.pattern.rsplit('/').next().unwrap_or_default();
        match name.contains('*') {
            true => index.open.push(row),
            false => index.plain.entry(name.to_ascii_lowercase()).or_default().push(row),
        }
    }
    index
});

/// The row of what has this path, if it has one of its own.
pub fn row_at(path: &[u8]) -> Option<&'static Row> {
    let Index { plain, open } = &*INDEX;
    let name = path.rsplit(|it| *it == b'/').next().unwrap_or_default();
    let known = std::str::from_utf8(name).ok().and_then(|it| plain.get(&it.to_ascii_lowercase()));
    known.into_iter().flatten().chain(open).copied().find(|row| ends_with(path, row.pattern))
}

/// The row of what has this path, or of a folder above it that has one: the outermost that is read-only, and only where
/// there is none, the outermost that is reported.
pub fn row_over(path: &[u8]) -> Option<&'static Row> {
    let ends = path.iter().enumerate().filter(|(_, it)| **it == b'/').map(|(at, _)| at);
    let rows = || ends.clone().chain([path.len()]).filter_map(|end| row_at(&path[..end]));
    rows().find(|row| row.is_read_only()).or_else(|| rows().next())
}

fn ends_with(path: &[u8], pattern: &str) -> bool {
    let mut names = path.rsplit(|it| *it == b'/');
    pattern.rsplit('/').all(|part| names.next().is_some_and(|name| fits(part.as_bytes(), name)))
}

fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|from| fits(rest, &name[from..])),
        Some((it, rest)) => {
            name.split_first().is_some_and(|(first, name)| it.eq_ignore_ascii_case(first) && fits(rest, name))
        }
    }
}

/// The table, for people.
pub fn print_markdown() -> String {
    let mut text = String::from(HEAD);
    for whose in Whose::ALL {
        let _ = write!(
            text,
            "\n## {}\n\n| file or folder | in a worker's directory | source |\n|---|---|---|\n",
            whose.words()
        );
        for row in ROWS.iter().filter(|row| row.whose == whose) {
            let mut names = format!("`{}`", row.pattern);
            if !row.spellings.is_empty() {
                let known: Vec<String> = row.spellings.iter().map(|it| format!("`{it}`")).collect();
                let _ = write!(names, " ({})", known.join(", "));
            }
            let _ = writeln!(text, "| {names} | {} | <{}> |", row.held.words(), row.source);
        }
    }
    text
}

const HEAD: &str = "# Settings that run later

Files by which a tool on your machine starts a program, or is told what to do, the next time that you work in the folder:
open it in an editor, enter it with a shell, commit, debug, or start an agent there. This page is printed from the table
that the jail, the hand-off report and applies use (`src/base/later/table.rs`); a test plants every row at the top of a
workspace and below it.

A row holds in every folder, in any size of letters, and for all below a folder of that name. `*` stands for any part of a
name. What becomes of it where a worker works in your own directory:

- **read-only, not to be made at the top**: what is there cannot be changed, in whichever folder. At the top of the
  worker's directory an empty folder stands in for it while the worker runs. Made below the top, it is reported. Managers of
  git's hooks are started by git's hooks, which no worker can install: where none is installed, nothing stands in for their
  files, and a new one is reported.
- **read-only where it is**: the same, without the stand-in. A new one is reported.
- **reported**: a worker can change it, since you may well ask for that. Read the change before the next agent does.

*Reported* is what the [hand-off report](threat-model.md#the-hand-off-report) says, as `setting` or, for what agents are told
in words, `instructions`; it covers every row in every folder. In folders that package managers fill and throw away
(`node_modules`, `.venv`, `venv`, `site-packages`, `vendor`, `target`, `.tox`, `.nox`, `bower_components`) all rows are reported
and not held. A symbolic link below the top that has such a name, or lies in such a folder, is reported when it is turned, and so is every
link on its way; what it leads to is read-only, and where nothing is there, an empty folder stands in for it if it could be made in
one step. At the top of the worker's directory, a link of such a name refuses the worker. At most 512 files and folders are held in one workspace; beyond that they are reported. Tier `ll` cannot
protect files in the workspace, and reports all of them. A worker is not started in a directory that is itself held.
Programs and scripts of the workspace that a held setting names are read-only where they are, too; other files that it names
(`pyproject.toml`, `package.json` behind `npm run`) are reported
([decision 0104](decisions/0104-what-a-line-names-is-held.md)).
The stand-ins are real folders in your directory for the time of the run, since a mount needs something to stand on: about
sixty, six of them not hidden, and a hundred where hooks are installed. `git status` does not show them and takes as long as
before, `git clean` would name them, and they go with the last run. A worker in a private copy has them in its copy.
[Applies](applies.md) write what is read-only here only where `a6s.apply_settings` says so, and show all rows apart to who is
asked.
";
