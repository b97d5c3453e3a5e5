//! Settings that run later: files by which a tool of the host starts a program, or gets instructions, the next time
//! that a person works in the folder. One table serves the jail, the scan report, applies and the documents.
//!
//! A row is a pattern for the last names of a path. It applies in every folder, in upper and lower case, to files
//! with such a name and to everything below a folder with such a name. Files that people run on purpose (a build, a
//! test) have no row here: a worker may change them, and the scan report names them.

pub mod names;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

pub use table::ROWS;

/// The kind of tool that reads the settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Whose {
    /// Agents: their tools, servers, hooks and permissions.
    Agents,
    /// Editors and development environments.
    Editors,
    /// Shells, and tools that load variables into them.
    Shells,
    /// Tools that manage hooks of version control.
    Hooks,
    /// Version control other than git.
    VersionControl,
    /// Debuggers and interactive interpreters.
    Interpreters,
    /// Files with instructions for agents, in words.
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

/// The access to such files that a worker in the user's own directory has. The scan report names changes of
/// each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Read-only if it exists, and it cannot be made at the top of the worker's directory.
    Kept,
    /// Read-only if it exists. It can be made.
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

/// A pattern of files that a tool reads, with the access of workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The last names of its path; `*` stands for any part of a name.
    pub pattern: &'static str,
    /// Known spellings, where the pattern leaves that open. A jail puts stand-ins for them at the top,
    /// and tests try them.
    pub spellings: &'static [&'static str],
    /// The tool that reads such files.
    pub whose: Whose,
    /// The access of workers to such files.
    pub held: Held,
    /// The URL of the page or source file in which the tool says that it reads such files.
    pub source: &'static str,
}

impl Row {
    /// Returns every known spelling.
    pub fn examples(&self) -> impl Iterator<Item = &'static str> + use<> {
        let itself = self.spellings.is_empty().then_some(self.pattern);
        itself.into_iter().chain(self.spellings.iter().copied())
    }

    /// Checks whether a worker must not change the file.
    pub fn is_read_only(&self) -> bool {
        matches!(self.held, Held::Kept | Held::Found)
    }
}

/// Returns the names for which stand-ins are put at the top of a worker's directory if the files are missing, so
/// that they cannot be made. Git's hooks start the managers of git's hooks, and no worker can install hooks, so the
/// managers' files get no stand-ins without hooks.
pub fn stood_in_for(hooks: GitHooks) -> impl Iterator<Item = &'static str> {
    let in_use = move |row: &&Row| row.whose != Whose::Hooks || hooks == GitHooks::Installed;
    ROWS.iter().filter(|row| row.held == Held::Kept).filter(in_use).flat_map(Row::examples)
}

/// Whether git runs hooks in the place where a worker works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GitHooks {
    /// git runs hooks there, or it is not known.
    #[default]
    Installed,
    /// git runs no hooks there.
    None,
}

/// Folders that package managers fill and throw away as a whole. Files in them are reported but not protected: a
/// protected file would keep a package manager from replacing the folder, and no person works in there.
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

/// Checks whether a name is that of a folder with fetched or built files.
pub fn is_fetched(name: &[u8]) -> bool {
    FETCHED.iter().any(|it| it.as_bytes() == name)
}

/// The files and folders of a workspace, apart from settings, that run outside of every jail or lead to such
/// files. Each path is absolute or the end of a path, and includes everything below it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunsOutside {
    /// Named by git's or Provost's configuration, or protected.
    pub by_git_or_us: Vec<PathBuf>,
    /// Named by settings that are read-only for workers, or targets of links among them: read-only if they
    /// exist; the report names new ones.
    pub by_settings: Vec<PathBuf>,
    /// Reported when they change.
    pub told: Vec<PathBuf>,
    /// Folders in which a new module is reported, since an interpreter would load it in place of another one.
    pub beside: Vec<PathBuf>,
    /// Folders, absolute, with patterns of the paths in them that are reported when they change.
    pub patterns: Vec<(PathBuf, String)>,
}

/// Checks whether a name is that of an interpreter's module.
pub fn is_module(name: &[u8]) -> bool {
    const MODULES: [&[u8]; 9] = [b".py", b".pyc", b".so", b".js", b".cjs", b".mjs", b".rb", b".pm", b".lua"];
    MODULES.iter().any(|end| name.ends_with(end))
}

/// Checks whether a path is that of a module, or of a package's first file, in one of these folders.
pub fn is_module_in(path: &[u8], is_such_a_folder: impl Fn(&[u8]) -> bool) -> bool {
    let split = |path: &[u8]| {
        let end = path.iter().rposition(|it| *it == b'/');
        end.map_or((Vec::new(), path.to_vec()), |end| (path[..end].to_vec(), path[end + 1..].to_vec()))
    };
    let (folder, name) = split(path);
    let is_package = || name.starts_with(b"__init__.") && is_such_a_folder(&split(&folder).0);
    is_module(&name) && (is_such_a_folder(&folder) || !folder.is_empty() && is_package())
}

/// The rows in the form for lookups.
#[derive(Default)]
struct Index {
    /// Rows whose last name has no `*`, by that name in lower case.
    plain: BTreeMap<String, Vec<&'static Row>>,
    /// Rows whose last name has a `*`, which are compared individually.
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

/// Returns the row of a path, if the path has one of its own.
pub fn row_at(path: &[u8]) -> Option<&'static Row> {
    let Index { plain, open } = &*INDEX;
    let name = path.rsplit(|it| *it == b'/').next().unwrap_or_default();
    let known = std::str::from_utf8(name).ok().and_then(|it| plain.get(&it.to_ascii_lowercase()));
    known.into_iter().flatten().chain(open).copied().find(|row| ends_with(path, row.pattern))
}

/// Returns the row of a path or of a folder above it: the outermost read-only row, or, if there is none, the
/// outermost reported row.
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

/// Checks whether a path fits a pattern of shells: `*`, `?` and `[…]` stand for parts of one name, and `**` for any
/// part of the path.
pub fn fits_pattern(pattern: &[u8], path: &[u8]) -> bool {
    // For each beginning of the path: whether it fits the part of the pattern that was read.
    let mut fits = vec![false; path.len() + 1];
    fits[0] = true;
    let mut rest = pattern;
    while let Some((sign, behind)) = rest.split_first() {
        rest = behind;
        if *sign == b'*' {
            let is_deep = rest.first() == Some(&b'*');
            while let Some((b'*', behind)) = rest.split_first() {
                rest = behind;
            }
            for at in 1..fits.len() {
                fits[at] |= fits[at - 1] && (is_deep || path[at - 1] != b'/');
            }
            continue;
        }
        let end = if *sign == b'[' { rest.iter().skip(1).position(|it| *it == b']') } else { None };
        let is_any = *sign == b'?' || end.is_some();
        rest = end.map_or(rest, |end| &rest[end + 2..]);
        for at in (1..fits.len()).rev() {
            let is_it = if is_any { path[at - 1] != b'/' } else { path[at - 1] == *sign };
            fits[at] = fits[at - 1] && is_it;
        }
        fits[0] = false;
    }
    fits[path.len()]
}

/// Returns the table, for people.
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

These are files by which a tool on your machine starts a program, or gets instructions, the next time that you work in
the folder: when you open it in an editor, enter it with a shell, commit, debug, or start an agent there. This page is
printed from the table that the jail, the scan report and applies use (`src/base/later/table.rs`); a test plants
every row at the top of a workspace and below it.

A row applies in every folder, in upper and lower case, and to everything below a folder of that name. `*` stands for
any part of a name. If a worker works in your own directory, a row has one of these effects:

- **read-only, not to be made at the top**: a worker cannot change an existing file, in any folder. At the top of the
  worker's directory an empty folder stands in for a missing file while the worker runs. The report names a file that
  a worker makes below the top. Git's hooks start managers of git's hooks, and no worker can install a hook: if no
  hook is installed, nothing stands in for the managers' files, and the report names a new one.
- **read-only where it is**: the same, without the stand-in. The report names a new file.
- **reported**: a worker can change the file, since you may ask for that. Read the change before the next agent does.

The [scan report](threat-model.md#the-scan-report) names a *reported* file as `setting` or, for instructions
to agents, as `instructions`; it covers every row in every folder. In folders that package managers fill and replace
(`node_modules`, `.venv`, `venv`, `site-packages`, `vendor`, `target`, `.tox`, `.nox`, `bower_components`) all rows
are only reported. The report names a symbolic link below the top that has such a name, or lies in such a folder, when
its target changes, and every link on its way. Its target is read-only; if the target does not exist, an empty folder
stands in for it if it could be made in one step. If a link at the top of the worker's directory has such a name, the
daemon refuses the worker. At most 512 files and folders of one workspace are made read-only; the others are reported.
Tier `ll` cannot protect files in the workspace, and reports all of them. The daemon starts no worker in a directory
that is itself such a setting. Programs and scripts of the workspace that a read-only setting names are read-only
where they are, too; other files that it names (`pyproject.toml`, `package.json` behind `npm run`) are reported
([decision 0104](decisions/0104-what-a-line-names-is-held.md)). A folder that a setting adds to `PATH` (`PATH_add`,
`_.path`) is read-only as a whole, since a new `git` in it would run in place of the system's
([decision 0117](decisions/0117-no-line-is-dropped-silently.md)). So is a folder whose files a line runs that it does
not name one by one (`for f in hooks.d/*; do sh \"$f\"`, `find hooks.d -exec sh {} \\;`, `cat hooks.d/*.sh | sh`); if
the worker is to work in that folder, or if it does not exist, the report names what fits the pattern. A program with
a `cwd` beside it is looked for in that folder. The stand-ins are real folders in your directory for
the time of the run, since a mount needs a mount point: about sixty, six of them not hidden, and a hundred if hooks
are installed. `git status` does not show them and takes as long as before, `git clean` would name them, and the
daemon removes them with the last run. A worker in a private copy has them in its copy. [Applies](applies.md) write
the files that are read-only here, and the files that these name, only if `a6s.apply_settings` says so, and show all
rows to the approver apart from other files ([decision 0116](decisions/0116-applies-know-what-settings-name.md)).
";
