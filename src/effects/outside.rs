//! Finds what command lines that run outside of every jail name in a workspace, and what the scripts and
//! settings among those lead to in turn. Blocking: it looks at files and reads them, and never runs one.
//!
//! The jail holds what is found read-only: the file that a line names, a folder that an interpreter loads
//! modules from, and what a script of a shell starts or reads. What a line names by something unknown
//! (`$DIR/f`) is held by the end of its path.

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

/// How much of a text counts, and what becomes of what is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// A line of a configuration: every file that is named, and something stands in for a program that is missing.
    Line,
    /// A shortcut that the user types, in each repository: programs, something that stands in for a missing one, and scripts.
    Alias,
    /// A line of other settings: programs, and scripts. Other files that are named are reported.
    Setting,
    /// A script: programs, scripts for interpreters, and what is read as a script.
    Script,
}

/// How a file that is named is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LaunchMode {
    /// As a hook of git's.
    AsHook,
    /// As a program of its own.
    Itself,
    /// Read by a shell.
    ByShell,
    /// Read by another interpreter.
    ByInterpreter,
}

/// All that was found, which is to be held read-only.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    /// Files and folders, absolute.
    pub(super) named: Named,
    /// Ends of paths of files whose beginnings are not known.
    pub(super) ends: BTreeSet<String>,
    /// Folders, absolute, in which a new module of an interpreter's would be loaded, and that cannot be held as a whole.
    pub(super) beside: BTreeSet<PathBuf>,
    /// Files, absolute, of which a change is reported, since they cannot be held: links on the way, and what is fetched.
    pub(super) told: BTreeSet<PathBuf>,
    /// Folders, absolute, with patterns of those paths in them whose change is reported: a line runs them, and the folder
    /// cannot be held.
    pub(super) patterns: BTreeSet<(PathBuf, String)>,
}

impl Outside {
    /// Adds what was found in other work trees; files go to those that are named.
    pub(super) fn takes_over(&mut self, other: Outside, named: &mut Named) {
        for (path, missing) in other.named {
            named.entry(path).or_insert(missing);
        }
        self.ends.extend(other.ends);
        self.beside.extend(other.beside);
        self.told.extend(other.told);
        self.patterns.extend(other.patterns);
    }

    /// Has a scan report changes of what cannot be held by its path.
    pub(super) fn reported_by(&self, ground: &mut Ground) {
        ground.report_files(&self.told);
        ground.report_modules_in(&self.beside);
        ground.report_ends(&self.ends);
        ground.report_patterns(&self.patterns);
    }
}

/// What holds for the words of one command.
#[derive(Clone, Copy)]
struct CommandContext<'b> {
    /// The directory in which the command starts.
    at: &'b Path,
    /// The directories from which its words may count.
    bases: &'b BTreeSet<PathBuf>,
    mode: Mode,
}

/// A look for what is named.
pub(super) struct Seeker<'a> {
    /// The top directory of the workspace.
    pub(super) root: &'a Path,
    home: &'a Path,
    /// Folders that a worker is to work in: neither they nor what holds them can be held.
    works_in: &'a Path,
    read: BTreeSet<PathBuf>,
    budget: Budget,
    /// The file of settings that has cost most.
    dearest: Option<(usize, PathBuf)>,
    /// The file in which a bound was reached that is no matter of cost.
    too_long: Option<PathBuf>,
    pub(super) found: Outside,
}

impl<'a> Seeker<'a> {
    pub(super) fn new(root: &'a Path, home: &'a Path, works_in: &'a Path) -> Self {
        let (read, found) = (BTreeSet::new(), Outside::default());
        Self { root, home, works_in, read, budget: Budget::new(), dearest: None, too_long: None, found }
    }

    /// A path as git and a shell read it, without `.` and `..`. One that leads into the workspace by a link on the way
    /// is that of the file there.
    pub(super) fn at(&self, folder: &Path, text: &str) -> PathBuf {
        let path = absolute(folder, self.home, text);
        if path.starts_with(self.root) {
            return path;
        }
        let there = path.ancestors().find_map(|it| Some((it, it.canonicalize().ok()?)));
        let there = there.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?)));
        there.filter(|it| it.starts_with(self.root)).unwrap_or(path)
    }

    /// A command line that begins in a folder.
    pub(super) fn line(&mut self, line: &str, folder: &Path) {
        // With this sign, git hands it to a shell.
        self.text(line.trim_start().trim_start_matches('!'), folder, folder, Mode::Line);
    }

    /// A shortcut of git's.
    pub(super) fn alias(&mut self, line: &str, folder: &Path) {
        self.text(line.trim_start().trim_start_matches('!'), folder, folder, Mode::Alias);
    }

    /// Why not all of it is known.
    pub(super) fn over(&self) -> Option<String> {
        let begins = "more is named by what runs outside of every jail than is looked at";
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

    /// Hooks of git's in a folder.
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

    /// A file of settings that is held itself: what it has run.
    pub(super) fn settings(&mut self, file: &Path, row: &Row) {
        if self.budget.is_over() {
            return;
        }
        let Ok((text, is_all)) = system::beginning(file, SETTINGS_READ_BYTES_MAX) else { return };
        // In a folder of settings, what is so large is none.
        let is_itself = file.file_name().is_some_and(|it| row_at(it.as_encoded_bytes()).is_some());
        if !is_all && is_itself {
            self.budget.is_not_enough();
        }
        self.settings_text(&String::from_utf8_lossy(&text), file, row);
    }

    /// The same, of settings that are to say this.
    pub(super) fn settings_text(&mut self, text: &str, file: &Path, row: &Row) {
        let is_shells = matches!(row.whose, Whose::Shells | Whose::Interpreters)
            || [".husky", ".git-hooks", ".lefthook", ".lefthook-local"].contains(&row.pattern);
        // Tasks of editors are run on purpose, but for those that begin with the folder.
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

    /// There are more settings than are read, and this is one of them.
    pub(super) fn is_too_much(&mut self, file: &Path) {
        self.budget.is_not_enough();
        self.blame(file);
    }

    /// Remembers in which file a bound was reached, if one was.
    fn blame(&mut self, file: &Path) {
        if self.budget.is_too_long() {
            self.too_long.get_or_insert_with(|| file.to_owned());
        }
    }

    /// `folder` is where it begins, `own` where the script itself lies.
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
                // Where it may have gone by then.
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

    /// Folders and files that a variable has programs loaded from.
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

    /// What direnv's own words for it put into `PATH`, or into another variable.
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

    /// A program with its arguments.
    fn started(&mut self, first: &ShellWord, words: &[ShellWord], way: CommandContext<'_>) {
        let name = name_of(first);
        self.program(first, way, (LaunchMode::Itself, first.text.contains('/')));
        if is_loader(name) || SHELLS.contains(&name) {
            self.interpreted(name, words, way);
        }
        // Of direnv: what it sets may be folders of programs.
        if name == "dotenv"
            && let Some(file) = words.first().filter(|it| it.text.contains(['/', '.']))
        {
            self.program(file, way, (LaunchMode::ByShell, true));
        }
        // What a script has built or tested is reported, and free to change.
        let runs = |names: &[&str]| way.mode != Mode::Script && names.contains(&name);
        for (_, files) in RUNNERS.iter().filter(|(names, _)| runs(names)) {
            // Where there is none, a new one is reported, as all that builds.
            for file in
                way.bases.iter().flat_map(|base| files.iter().map(|it| base.join(it))).collect::<Vec<_>>()
            {
                if self.budget.look(0) && file.is_file() {
                    self.hold_or_tell(file, way.mode, way.mode == Mode::Line);
                }
            }
        }
    }

    /// A program, or a script: held where it is, and where it is missing too if a configuration names it.
    fn program(&mut self, word: &ShellWord, way: CommandContext<'_>, (run, is_path): (LaunchMode, bool)) {
        let text = word.text.as_str();
        let known = if word.is_end { text.trim_start_matches('/') } else { text };
        let mut is_there = false;
        // A name without a folder is looked for in `PATH`.
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
            // A name without a folder is looked for in `PATH`, unless it is in a folder that was gone into.
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
            // An empty folder: what is to run it fails, as it does without.
            let stands_in = way.mode == Mode::Line || way.mode == Mode::Alias && run == LaunchMode::Itself;
            let missing = if stands_in { Missing::Directory } else { Missing::Leave };
            if file.symlink_metadata().is_err() {
                self.hold(file, missing, way.mode);
            }
        }
    }

    /// Any other word: the files that it may mean.
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
        // One that is named as being there is not for a worker to bring.
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

    /// A script that is run: read, if it is one of a shell's.
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
        // A program that is no text; where the first line is one, a shell reads on and passes over such bytes.
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

    /// A folder, or a file, that an interpreter loads from. Sources are free to change, and new modules in them reported.
    fn loaded_from(&mut self, folder: PathBuf, missing: Missing, mode: Mode, is_source: bool) {
        if !(is_source && folder.is_dir()) {
            self.folder(folder, missing, mode);
        } else if folder.starts_with(self.root) {
            self.found.beside.insert(folder);
        }
    }

    /// Has a file held, or a change of it reported.
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

    /// Has a file or folder held. What a line of a configuration names is held under that name, or refuses the worker; what is
    /// named by others is held at the end of its links, and those are told.
    fn hold(&mut self, path: PathBuf, missing: Missing, mode: Mode) {
        if !path.starts_with(self.root) || self.is_worked_in(&path) {
            return;
        }
        // What is no path is no program either, unless it is one after all.
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

/// The first word that can be a program's name, and those behind it.
fn named_first(words: &[ShellWord]) -> Option<(&ShellWord, &[ShellWord])> {
    let is_name = |it: &ShellWord| it.is_end || !(it.text.contains('=') || it.text.starts_with('-'));
    words[words.iter().position(is_name)?..].split_first()
}

fn name_of(word: &ShellWord) -> &str {
    word.text.rsplit('/').next().unwrap_or_default()
}
