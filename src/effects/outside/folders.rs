//! Folders whose files a line runs without naming each: by a pattern, or by an unknown name.

use std::path::{Path, PathBuf};

use super::{CommandContext, LaunchMode, Mode, Seeker};
use crate::command_lines::{OpenPart, ShellWord};
use crate::programs::is_loader;
use provost_base::later::fits_pattern;
use provost_base::limits::{PATTERNS_TOLD_MAX, SETTINGS_READ_MAX};
use provost_base::plain_path;
use provost_jail::Missing;
use provost_system::is_run_itself;

impl Seeker<'_> {
    /// Holds such a folder as a whole, at each place where it may be. If it is missing, or if the worker is to work in it, changes of
    /// files that fit the pattern are reported.
    pub(super) fn open_part(&mut self, open: &OpenPart, way: CommandContext<'_>, run: LaunchMode) {
        let is_here = plain_path(Path::new(&open.folder)).as_os_str().is_empty();
        let elsewhere = way.bases.iter().map(PathBuf::as_path).filter(|it| !is_here && *it != way.at);
        let mut is_there = false;
        for base in std::iter::once(way.at).chain(elsewhere) {
            if !self.budget.look(open.folder.len()) {
                return;
            }
            let folder = self.at(base, &open.folder);
            if folder.starts_with(self.root) && folder.is_dir() {
                is_there = true;
                self.held_whole(folder, &open.pattern, way, run);
            }
        }
        let folder = self.at(way.at, &open.folder);
        if !is_there && folder.symlink_metadata().is_err() {
            // A worker could create the folder, with files that the line would run.
            self.told_in(folder, &open.pattern);
        }
    }

    fn held_whole(&mut self, folder: PathBuf, pattern: &str, way: CommandContext<'_>, run: LaunchMode) {
        let is_worked_in = self.is_worked_in(&folder);
        // The files that the line runs may lead to more. In a mixed folder, a list or a text counts as no script.
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().take(SETTINGS_READ_MAX);
        for entry in entries {
            let (file, name) = (entry.path(), entry.file_name());
            if !self.budget.look(name.len()) {
                return;
            }
            let text = name.to_string_lossy();
            let is_named = [".sh", ".bash", ".zsh"].iter().any(|it| text.ends_with(it))
                || !is_worked_in && !text.contains('.');
            if fits_pattern(pattern.as_bytes(), text.as_bytes())
                && file.is_file()
                && (is_named || is_run_itself(&file))
            {
                self.script(&file, way, run);
            }
        }
        if is_worked_in {
            self.told_in(folder, pattern);
        } else {
            self.hold(folder, Missing::Leave, way.mode);
        }
    }

    fn told_in(&mut self, folder: PathBuf, pattern: &str) {
        if folder.starts_with(self.root) {
            self.found.patterns.insert((folder, pattern.to_owned()));
        }
        if self.found.patterns.len() > PATTERNS_TOLD_MAX {
            self.budget.is_not_enough();
        }
    }

    /// Adds the files that a text in another language than a shell's names: those that can be run or loaded are held, and changes of
    /// the others are reported.
    pub(super) fn words_of(&mut self, text: &str, folders: &[&Path]) {
        if !self.budget.read(text.len()) {
            return;
        }
        let divides = |sign: char| sign.is_whitespace() || "\"'`()[]{},;|=<>:".contains(sign);
        for word in text.split(divides).filter(|it| it.contains(['.', '/'])) {
            for folder in folders {
                if !self.budget.look(word.len()) {
                    return;
                }
                let file = self.at(folder, word);
                if file.starts_with(self.root) && file.is_file() {
                    let ends = [".sh", ".bash", ".zsh", ".vim", ".lua", ".el", ".py", ".rb", ".pl", ".js"];
                    let is_run = ends.iter().any(|it| word.ends_with(it)) || is_run_itself(&file);
                    self.hold_or_tell(file, Mode::Setting, is_run);
                }
            }
        }
    }

    /// Adds the value of an interpreter's option that is code, or a line; a line is read elsewhere unless it is a program's path.
    pub(super) fn inline(&mut self, name: &str, code: Option<&ShellWord>, way: CommandContext<'_>) {
        let Some(word) = code else { return };
        if is_loader(name) {
            self.code(&word.text, way);
        } else if !word.text.contains(|sign: char| sign.is_whitespace() || ";&|<>(){}$`\"'".contains(sign)) {
            self.program(word, way, (LaunchMode::Itself, word.text.contains('/')));
        }
    }

    /// Adds the files that an interpreter's code in a command line names, if the code runs any.
    fn code(&mut self, code: &str, way: CommandContext<'_>) {
        const RUNS: [&str; 10] =
            ["dofile", "eval", "exec", "import", "popen", "Popen", "require", "runpy", "spawn", "system"];
        const DATA: [&str; 8] = [".json", ".lock", ".md", ".toml", ".txt", ".xml", ".yaml", ".yml"];
        if !RUNS.iter().any(|it| code.contains(it)) {
            return;
        }
        let is_data = |word: &str| DATA.iter().any(|it| word.ends_with(it));
        for word in code.split(['"', '\'', '`']).filter(|it| !it.trim().is_empty() && !is_data(it)) {
            for base in way.bases {
                if !self.budget.look(word.len()) {
                    return;
                }
                let file = self.at(base, word);
                if file.starts_with(self.root) && file.is_file() {
                    self.script(&file, way, LaunchMode::ByInterpreter);
                    self.hold(file, Missing::Leave, way.mode);
                }
            }
        }
    }
}
