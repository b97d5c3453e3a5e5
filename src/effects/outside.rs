//! Finds the files of a workspace that are named by command lines which run outside of every jail, and the files that the scripts and
//! settings among those lead to in turn. Blocking: it looks at files and reads them, and never runs one.
//!
//! The jail makes the findings read-only: the file that a line names, a folder that an interpreter loads
//! modules from, and the files that a shell script starts or reads. A path with an unknown beginning
//! (`$DIR/f`) is held by its end.

mod folders;
mod interpreters;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::budget::Budget;
use super::command_lines::{Command, ShellWord, Variables, all_values, commands, values};
use super::git::{Named, absolute, has_in_its_index};
use super::heavy::typed;
use super::programs::{
    ADD_TO_PATH, HOOKS, LINES_BY_ANY_KEY, LOADED_FROM, OPTIONS_IN, RUNNERS, SCRIPTS_OF_EDITORS, SHELLS,
    SOURCES, WRAPPERS, is_loader,
};
use provost_base::RepoPath;
use provost_base::later::{Row, Whose, is_fetched, row_at};
use provost_base::limits::{
    BASES_MAX, ENDS_HELD_MAX, PATH_LEN_MAX, SCRIPT_BYTES_MAX, SCRIPTS_READ_MAX, SETTINGS_READ_BYTES_MAX,
};
use provost_jail::Missing;
use provost_system as system;
use provost_workspace::integrity_scan::Ground;

/// The kind of a text, which decides which of its words count, and whether missing files get a placeholder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// A line of a configuration: every named file counts, and a missing program gets a placeholder.
    Line,
    /// A shortcut that the user types in any repository: programs, with a placeholder for a missing one, and scripts.
    Alias,
    /// A line of other settings: programs and scripts. Changes of other named files are reported.
    Setting,
    /// A script: programs, scripts for interpreters, and files that are read as scripts.
    Script,
}

/// The way in which a named file is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LaunchMode {
    /// As a hook of git.
    AsHook,
    /// As a program of its own.
    Itself,
    /// Read by a shell.
    ByShell,
    /// Read by another interpreter.
    ByInterpreter,
}

/// All findings: the jail makes them read-only, or the daemon reports their changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    /// Files and folders, absolute.
    pub(super) named: Named,
    /// The ends of paths whose beginnings are unknown.
    pub(super) ends: BTreeSet<String>,
    /// Folders, absolute, from which an interpreter would load a new module, and which cannot be held as a whole.
    pub(super) beside: BTreeSet<PathBuf>,
    /// Files, absolute, whose changes are reported since they cannot be held: links on the way, and fetched packages.
    pub(super) told: BTreeSet<PathBuf>,
    /// Folders, absolute, each with a pattern of paths in it whose changes are reported: a line runs those files, and the folder
    /// cannot be held.
    pub(super) patterns: BTreeSet<(PathBuf, String)>,
}

impl Outside {
    /// Adds the findings from other work trees; their files go to `named`.
    pub(super) fn takes_over(&mut self, other: Outside, named: &mut Named) {
        for (path, missing) in other.named {
            named.entry(path).or_insert(missing);
        }
        self.ends.extend(other.ends);
        self.beside.extend(other.beside);
        self.told.extend(other.told);
        self.patterns.extend(other.patterns);
    }

    /// Makes a scan report changes of the findings that cannot be held by their paths.
    pub(super) fn reported_by(&self, ground: &mut Ground) {
        ground.report_files(&self.told);
        ground.report_modules_in(&self.beside);
        ground.report_ends(&self.ends);
        ground.report_patterns(&self.patterns);
    }
}

/// The context of the words of one command.
#[derive(Clone, Copy)]
struct CommandContext<'b> {
    /// The directory in which the command starts.
    at: &'b Path,
    /// The directories that the command's relative words may count from.
    bases: &'b BTreeSet<PathBuf>,
    mode: Mode,
}

/// The search for named files.
pub(super) struct Seeker<'a> {
    /// The top directory of the workspace.
    pub(super) root: &'a Path,
    home: &'a Path,
    /// The folder that a worker is to work in: neither it nor the folders around it can be held.
    works_in: &'a Path,
    read: BTreeSet<PathBuf>,
    budget: Budget,
    /// The settings file that has cost most of the budget.
    dearest: Option<(usize, PathBuf)>,
    /// The file that exceeded a bound other than the budget.
    too_long: Option<PathBuf>,
    pub(super) found: Outside,
}

impl<'a> Seeker<'a> {
    pub(super) fn new(root: &'a Path, home: &'a Path, works_in: &'a Path) -> Self {
        let (read, found) = (BTreeSet::new(), Outside::default());
        Self { root, home, works_in, read, budget: Budget::new(), dearest: None, too_long: None, found }
    }

    /// Returns a path as git and a shell read it, without `.` and `..`. For a path that leads into the workspace by a link on the way,
    /// returns the path of the file there.
    pub(super) fn at(&self, folder: &Path, text: &str) -> PathBuf {
        let path = absolute(folder, self.home, text);
        if path.starts_with(self.root) {
            return path;
        }
        let there = path.ancestors().find_map(|it| Some((it, it.canonicalize().ok()?)));
        let there = there.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?)));
        there.filter(|it| it.starts_with(self.root)).unwrap_or(path)
    }

    /// Adds the findings of a command line that starts in a folder.
    pub(super) fn line(&mut self, line: &str, folder: &Path) {
        // The sign `!` makes git hand the line to a shell.
        self.text(line.trim_start().trim_start_matches('!'), folder, folder, Mode::Line);
    }

    /// Adds the findings of a git alias.
    pub(super) fn alias(&mut self, line: &str, folder: &Path) {
        self.text(line.trim_start().trim_start_matches('!'), folder, folder, Mode::Alias);
    }

    /// Returns the reason why the findings are incomplete; `None` if they are complete.
    pub(super) fn over(&self) -> Option<String> {
        let begins = "settings that run outside of every jail name more files than the daemon examines";
        let file = self.too_long.as_ref().or(self.dearest.as_ref().map(|it| &it.1));
        self.budget.is_over().then(|| match file {
            Some(file) => {
                let shown = file.strip_prefix(self.root).unwrap_or(file).display().to_string();
                let remove = typed(file).filter(|_| has_in_its_index(self.root, &shown) == Some(false));
                let remove = remove.map(|it| {
                    format!("; git knows nothing of it: if a worker has left it, `rm {it}` puts it right")
                });
                format!("{begins}, most of it by {shown:?}; make it shorter and delegate again{}", remove.unwrap_or_default())
            }
            None => format!(
                "{begins}, by git's configuration, hooks, or the scripts that they lead to; make them shorter and delegate again"
            ),
        })
    }

    /// Adds the findings of git's hooks in a folder.
    pub(super) fn hooks_in(&mut self, folder: &Path, begins: &Path) {
        let bases = BTreeSet::from([begins.to_path_buf()]);
        for name in HOOKS {
            let path = folder.join(name);
            if path.is_file() {
                self.script(
                    &path,
                    CommandContext { at: begins, bases: &bases, mode: Mode::Script },
                    LaunchMode::AsHook,
                );
            }
        }
    }

    /// Adds the findings of a settings file that is held itself.
    pub(super) fn settings(&mut self, file: &Path, row: &Row) {
        if self.budget.is_over() {
            return;
        }
        let Ok((text, is_all)) = system::beginning(file, SETTINGS_READ_BYTES_MAX) else { return };
        // A file of this size in a folder of settings is no settings file.
        let is_itself = file.file_name().is_some_and(|it| row_at(it.as_encoded_bytes()).is_some());
        if !is_all && is_itself {
            self.budget.is_not_enough();
        }
        self.settings_text(&String::from_utf8_lossy(&text), file, row);
    }

    /// Adds the findings of a settings file that is to have this text.
    pub(super) fn settings_text(&mut self, text: &str, file: &Path, row: &Row) {
        let is_shells = matches!(row.whose, Whose::Shells | Whose::Interpreters)
            || [".husky", ".git-hooks", ".lefthook", ".lefthook-local"].contains(&row.pattern);
        // Users start editors' tasks on purpose, except those that begin with the opening of the folder.
        let begin = ["folderOpen", "Command\"", "\"PATH\"", "\"mcp\""];
        let name = file.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        let is_editors = row.whose == Whose::Editors;
        let counts = !is_editors
            || [".zed", ".helix"].contains(&row.pattern)
            || ["mcp.json", "settings.json"].contains(&name)
            || begin.iter().any(|it| text.contains(it));
        let before = self.budget.used();
        if is_shells {
            self.text(text, self.root, file.parent().unwrap_or(self.root), Mode::Script);
        }
        if counts {
            for value in values(text, is_editors, &mut self.budget) {
                self.text(&value, self.root, self.root, Mode::Setting);
            }
        }
        if SCRIPTS_OF_EDITORS.contains(&row.pattern) {
            self.words_of(text, &[self.root, file.parent().unwrap_or(self.root)]);
        }
        if LINES_BY_ANY_KEY.contains(&row.pattern) {
            for value in all_values(text, &mut self.budget) {
                self.text(&value, self.root, self.root, Mode::Setting);
            }
        }
        let cost = self.budget.used() - before;
        if self.dearest.as_ref().is_none_or(|it| it.0 < cost) {
            self.dearest = Some((cost, file.to_owned()));
        }
        self.blame(file);
    }

    /// Notes that there are more settings than are read, and that this is one of them.
    pub(super) fn is_too_much(&mut self, file: &Path) {
        self.budget.is_not_enough();
        self.blame(file);
    }

    /// Remembers the file in which a bound was exceeded, if one was.
    fn blame(&mut self, file: &Path) {
        if self.budget.is_too_long() {
            self.too_long.get_or_insert_with(|| file.to_owned());
        }
    }

    /// Adds the findings of a text. `folder` is where it starts, `own` is the folder of the script itself.
    fn text(&mut self, text: &str, folder: &Path, own: &Path, mode: Mode) {
        let variables = self.variables(own);
        let (mut at, mut bases) =
            (folder.to_path_buf(), BTreeSet::from([folder.to_path_buf(), own.to_path_buf()]));
        for command in commands(text, &variables, &mut self.budget) {
            self.variables_of(&command, &at, mode);
            for word in command.words.iter().filter(|it| !it.is_end) {
                if !self.budget.look(word.text.len()) {
                    break;
                }
                // The directory to which the commands before may have changed.
                let named = self.at(&at, &word.text);
                if named.starts_with(self.root) && named.is_dir() {
                    bases.insert(named);
                }
            }
            if bases.len() > BASES_MAX {
                self.budget.is_not_enough();
            }
            if self.budget.is_over() {
                return;
            }
            self.command(&command.words, &mut at, &bases, mode);
        }
    }

    fn variables(&self, own: &Path) -> Variables {
        let root = self.root.display().to_string();
        let known = [
            ("CLAUDE_PROJECT_DIR", root.clone()),
            ("CURSOR_PROJECT_DIR", root.clone()),
            ("GEMINI_PROJECT_DIR", root.clone()),
            ("GIT_PREFIX", ".".into()),
            ("GIT_WORK_TREE", root.clone()),
            ("HOME", self.home.display().to_string()),
            ("PWD", root.clone()),
            ("ZED_WORKTREE_ROOT", root.clone()),
            ("containerWorkspaceFolder", root.clone()),
            ("workspaceFolder", root.clone()),
            ("workspaceRoot", root),
            ("0%/*", own.display().to_string()),
        ];
        known.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Adds the folders and files from which a variable has programs loaded.
    fn variables_of(&mut self, command: &Command, at: &Path, mode: Mode) {
        let missing = if mode == Mode::Line { Missing::Directory } else { Missing::Leave };
        // `env A=b program` sets it as well.
        let words = command.words.iter().filter_map(|it| it.text.split_once('='));
        let words = words.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let bases = BTreeSet::from([at.to_path_buf(), self.root.to_path_buf()]);
        for (name, value) in command.variables.iter().cloned().chain(words.collect::<Vec<_>>()) {
            if let Some((_, program)) = OPTIONS_IN.iter().find(|it| it.0 == name) {
                self.options_in(program, &value, CommandContext { at, bases: &bases, mode });
            }
            if LOADED_FROM.contains(&name.as_str()) {
                for part in value.split(':').filter(|it| !it.is_empty() && !it.contains('\0')) {
                    if self.budget.look(part.len()) {
                        let is_source = mode != Mode::Line && SOURCES.contains(&name.as_str());
                        self.loaded_from(self.at(at, part), missing, mode, is_source);
                    }
                }
            }
        }
    }

    fn command(&mut self, words: &[ShellWord], at: &mut PathBuf, bases: &BTreeSet<PathBuf>, mode: Mode) {
        let Some((first, words)) = named_first(words) else { return };
        let name = name_of(first);
        if matches!(name, "cd" | "pushd") {
            if let Some(to) = words.iter().find(|it| !it.text.starts_with('-')) {
                *at = self.at(at, &to.text);
            }
            return;
        }
        let way = CommandContext { at, bases, mode };
        if ADD_TO_PATH.contains(&name) {
            return self.added_to_path(name, words, way);
        }
        self.started(first, words, way);
        if WRAPPERS.contains(&name) {
            self.wrapped(words, way);
        }
        if mode != Mode::Script {
            for word in words.iter().filter(|it| !it.is_end) {
                self.argument(&word.text, way);
            }
        }
    }

    /// Adds the folders that direnv's own commands put into `PATH`, or into another variable.
    fn added_to_path(&mut self, name: &str, words: &[ShellWord], way: CommandContext<'_>) {
        let (variable, words) = match (name, words.split_first()) {
            ("path_add", Some((variable, words))) => (variable.text.as_str(), words),
            _ => ("PATH", words),
        };
        let below = if name == "load_prefix" { "/bin" } else { "" };
        for word in words.iter().filter(|it| !it.is_end && LOADED_FROM.contains(&variable)) {
            if self.budget.look(word.text.len()) {
                let folder = self.at(way.at, &format!("{}{below}", word.text));
                let is_source = way.mode != Mode::Line && SOURCES.contains(&variable);
                self.loaded_from(folder, Missing::Leave, way.mode, is_source);
            }
        }
    }

    /// Adds a program with its arguments.
    fn started(&mut self, first: &ShellWord, words: &[ShellWord], way: CommandContext<'_>) {
        let name = name_of(first);
        self.program(first, way, (LaunchMode::Itself, first.text.contains('/')));
        if is_loader(name) || SHELLS.contains(&name) {
            self.interpreted(name, words, way);
        }
        // direnv's `dotenv` may set variables to folders of programs.
        if name == "dotenv"
            && let Some(file) = words.first().filter(|it| it.text.contains(['/', '.']))
        {
            self.program(file, way, (LaunchMode::ByShell, true));
        }
        // Changes of files that a script builds or tests are reported and not prevented.
        let runs = |names: &[&str]| way.mode != Mode::Script && names.contains(&name);
        for (_, files) in RUNNERS.iter().filter(|(names, _)| runs(names)) {
            // If there is no such file, a new one is reported, like all files of builds.
            for file in
                way.bases.iter().flat_map(|base| files.iter().map(|it| base.join(it))).collect::<Vec<_>>()
            {
                if self.budget.look(0) && file.is_file() {
                    self.hold_or_tell(file, way.mode, way.mode == Mode::Line);
                }
            }
        }
    }

    /// Adds a program or a script: it is held where it exists, and where it is missing, too, if a configuration names it.
    fn program(&mut self, word: &ShellWord, way: CommandContext<'_>, (run, is_path): (LaunchMode, bool)) {
        let text = word.text.as_str();
        let known = if word.is_end { text.trim_start_matches('/') } else { text };
        let mut is_there = false;
        // A name without a folder is looked up in `PATH`.
        if let Some(open) =
            word.open.as_ref().filter(|it| run != LaunchMode::Itself || it.folder.contains('/'))
        {
            self.open_part(open, way, run);
        }
        for base in way.bases {
            if !self.budget.look(known.len()) {
                return;
            }
            let file = self.at(base, known);
            // A name without a folder is looked up in `PATH`, unless it is in a folder that was entered before.
            if file.is_file() && (is_path || base != way.at) {
                is_there = true;
                self.script(&file, way, run);
                self.hold(file, Missing::Leave, way.mode);
            }
        }
        if word.is_end {
            if text.starts_with('/') && !known.is_empty() {
                self.found.ends.insert(known.to_owned());
            }
            if self.found.ends.len() > ENDS_HELD_MAX {
                self.budget.is_not_enough();
            }
        } else if !is_there && is_path && !known.is_empty() && !known.contains(['%', '*', '?', '[', '$']) {
            let file = self.at(way.at, known);
            // The placeholder is an empty folder: running it fails, as running a missing file does.
            let stands_in = way.mode == Mode::Line || way.mode == Mode::Alias && run == LaunchMode::Itself;
            let missing = if stands_in { Missing::Directory } else { Missing::Leave };
            if file.symlink_metadata().is_err() {
                self.hold(file, missing, way.mode);
            }
        }
    }

    /// Adds the files that any other word may mean.
    fn argument(&mut self, text: &str, way: CommandContext<'_>) {
        let parts = text.split(['=', ':', ',', '@']).chain([text]);
        for part in parts.filter(|it| !it.is_empty()).collect::<BTreeSet<_>>() {
            for base in way.bases {
                if !self.budget.look(part.len()) {
                    return;
                }
                let file = self.at(base, part);
                if !file.starts_with(self.root) || !file.is_file() {
                    continue;
                }
                let is_run = system::is_run_itself(&file);
                let ends = [".sh", ".bash", ".zsh"];
                if is_run || ends.iter().any(|it| part.ends_with(it)) {
                    self.script(&file, way, LaunchMode::Itself);
                }
                self.hold_or_tell(file, way.mode, is_run || way.mode == Mode::Line);
            }
        }
        // No worker may create a file that the line names as an existing one.
        let file = self.at(way.at, text);
        let is_named = text.starts_with("./") || Path::new(text).is_absolute();
        if way.mode == Mode::Line
            && is_named
            && !text.contains(['%', '*', '?'])
            && file.symlink_metadata().is_err()
        {
            self.hold(file, Missing::Directory, way.mode);
        }
    }

    /// Adds a script that is run, and reads it if it is a shell's.
    fn script(&mut self, file: &Path, way: CommandContext<'_>, run: LaunchMode) {
        // Hooks lie in the repository, which may be elsewhere.
        if !(run == LaunchMode::AsHook || file.starts_with(self.root)) {
            return;
        }
        let end = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
        if !self.read.insert(end.clone()) {
            return;
        }
        let Ok((begin, is_all)) = system::beginning(&end, SCRIPT_BYTES_MAX) else { return };
        let first = begin.split(|it| *it == b'\n').next().unwrap_or_default();
        // This is no text. If the first line is text, a shell reads on and passes over such bytes.
        if first.contains(&0) {
            return;
        }
        let text = String::from_utf8_lossy(&begin).replace('\0', "");
        let first = text.lines().next().and_then(|it| it.strip_prefix("#!")).unwrap_or_default();
        let program = first.split_whitespace().rfind(|it| !it.starts_with('-'));
        let program = program.and_then(|it| it.rsplit('/').next()).unwrap_or_default();
        if is_loader(program) {
            self.neighbours(&end, way.mode);
        } else if program.is_empty() && run != LaunchMode::ByInterpreter || SHELLS.contains(&program) {
            if !is_all || self.read.len() > SCRIPTS_READ_MAX {
                self.budget.is_not_enough();
            }
            self.text(&text, way.at, end.parent().unwrap_or(way.at), Mode::Script);
            self.blame(&end);
        }
    }

    fn folder(&mut self, folder: PathBuf, missing: Missing, mode: Mode) {
        if self.is_worked_in(&folder) {
            if folder.starts_with(self.root) {
                self.found.beside.insert(folder);
            }
        } else {
            let missing = if folder.exists() { Missing::Leave } else { missing };
            self.hold(folder, missing, mode);
        }
    }

    /// Adds a folder or file that an interpreter loads from. Sources may change, but new modules in them are reported.
    fn loaded_from(&mut self, folder: PathBuf, missing: Missing, mode: Mode, is_source: bool) {
        if !(is_source && folder.is_dir()) {
            self.folder(folder, missing, mode);
        } else if folder.starts_with(self.root) {
            self.found.beside.insert(folder);
        }
    }

    /// Holds a file, or has its changes reported.
    fn hold_or_tell(&mut self, file: PathBuf, mode: Mode, is_held: bool) {
        if is_held {
            self.hold(file, Missing::Leave, mode);
        } else if file.starts_with(self.root) {
            self.found.told.insert(file);
        }
    }

    fn is_worked_in(&self, folder: &Path) -> bool {
        self.works_in.starts_with(folder) || self.root.starts_with(folder)
    }

    /// Holds a file or folder. A path that a configuration names is held as it is, or the worker is refused; a path that
    /// others name is held at the end of its links, and changes of the links are reported.
    fn hold(&mut self, path: PathBuf, missing: Missing, mode: Mode) {
        if !path.starts_with(self.root) || self.is_worked_in(&path) {
            return;
        }
        // An odd path is no program, unless a file with that path exists.
        let is_odd = |it: &str| it.len() > PATH_LEN_MAX || it.contains(char::is_control);
        if path.to_str().is_none_or(is_odd) && path.symlink_metadata().is_err() {
            return;
        }
        if !matches!(mode, Mode::Line | Mode::Alias) {
            let end = path.canonicalize().unwrap_or_else(|_| path.clone());
            let below = end.strip_prefix(self.root).unwrap_or(Path::new(""));
            let is_plain = |it: &str| RepoPath::as_is(it).is_some();
            let is_free = below.iter().any(|name| is_fetched(name.as_encoded_bytes()))
                || self.is_worked_in(&end)
                || !below.to_str().is_some_and(is_plain);
            if end != path || is_free {
                self.found.told.insert(path);
            }
            if !is_free && end.starts_with(self.root) {
                self.found.named.entry(end).or_insert(missing);
            }
            return;
        }
        self.found.named.entry(path).or_insert(missing);
    }
}

/// Returns the first word that can be a program's name, and the words behind it.
fn named_first(words: &[ShellWord]) -> Option<(&ShellWord, &[ShellWord])> {
    let is_name = |it: &ShellWord| it.is_end || !(it.text.contains('=') || it.text.starts_with('-'));
    words[words.iter().position(is_name)?..].split_first()
}

fn name_of(word: &ShellWord) -> &str {
    word.text.rsplit('/').next().unwrap_or_default()
}
