//! Finds the files that interpreters, and programs that start others, run or load: scripts, modules, and the files
//! that are loaded before them.

use std::path::{Path, PathBuf};

use super::{CommandContext, LaunchMode, Mode, Seeker, name_of};
use crate::command_lines::ShellWord;

use crate::programs::{LOAD_OPTIONS, RESOLVED, RUN_VALUED, RUNNERS, SHELLS, is_loader};
use provost_base::later::is_module;
use provost_jail::Missing;
use provost_system as system;

/// Subcommands of interpreters, before the script: `deno run`, `tsx watch`.
const OWN_WORDS: [&str; 4] = ["run", "serve", "test", "watch"];

/// Checks whether an option's value is code: `bash -e script` has none.
fn is_code(name: &str, option: &str) -> bool {
    match name {
        _ if SHELLS.contains(&name) => !option.starts_with('-') && option.contains('c'),
        _ if name.starts_with("py") => option == "c",
        _ if name.starts_with("node") && matches!(option, "p" | "pe" | "-print") => true,
        _ => matches!(option, "e" | "E" | "ne" | "pe" | "-eval" | "-execute"),
    }
}

impl Seeker<'_> {
    /// Adds the program that a wrapper starts. For wrappers that say `run`, the options with values are known; for
    /// the others, the first word counts that can be a program.
    pub(super) fn wrapped(&mut self, words: &[ShellWord], way: CommandContext<'_>) {
        let (mut is_next, mut is_value) = (false, false);
        for (from, word) in words.iter().enumerate() {
            let (text, name) = (word.text.as_str(), name_of(word));
            if text.starts_with('-') && !word.is_end {
                if let ("-m" | "--module", true, Some(module)) = (text, is_next, words.get(from + 1)) {
                    return self.module(&module.text, way);
                }
                is_value = RUN_VALUED.contains(&text);
                continue;
            }
            if std::mem::take(&mut is_value) {
                continue;
            }
            let is_path = text.contains('/');
            if std::mem::replace(&mut is_next, text == "run") && (is_path || is_module(text.as_bytes())) {
                let run = if self.is_run_itself(word, way) {
                    LaunchMode::Itself
                } else {
                    LaunchMode::ByInterpreter
                };
                return self.program(word, way, (run, true));
            }
            let is_known = is_loader(name)
                || SHELLS.contains(&name)
                || RUNNERS.iter().any(|(names, _)| names.contains(&name));
            let is_line = way.mode == Mode::Line && word.open.is_none();
            if is_known || is_path && (is_line || self.is_run_itself(word, way)) {
                return self.started(word, &words[from + 1..], way);
            }
            // `npx ./tool` runs the program that the folder's own settings name.
            if is_path && self.resolved(text, way).is_none() {
                self.loaded(text, way);
            }
        }
    }

    fn is_run_itself(&mut self, word: &ShellWord, way: CommandContext<'_>) -> bool {
        let text = if word.is_end { word.text.trim_start_matches('/') } else { &word.text };
        way.bases.iter().any(|base| {
            let file = self.at(base, text);
            self.budget.look(text.len()) && file.is_file() && system::is_run_itself(&file)
        })
    }

    /// Adds the script or module that the arguments make an interpreter run, and the files that
    /// it loads before that.
    pub(super) fn interpreted(&mut self, name: &str, words: &[ShellWord], way: CommandContext<'_>) {
        // Files that a script only tests or checks may change.
        let looks = |it: &ShellWord| match it.text.as_str() {
            "test" | "--test" | "--check" => true,
            "-l" => name.starts_with("php"),
            _ => false,
        };
        let tests = words.iter().any(looks);
        let mut words = words.iter().peekable();
        let mut is_value = false;
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            match text.strip_prefix('-').filter(|_| !word.is_end) {
                Some("m") if name.starts_with("py") => {
                    if let Some(module) = words.next() {
                        self.module(&module.text, way);
                    }
                    return;
                }
                // The option makes the shell check the script without running it.
                Some("n") if SHELLS.contains(&name) => return,
                Some(option) if is_code(name, option) => return self.inline(name, words.next(), way),
                Some(option) if LOAD_OPTIONS.contains(&option) => {
                    if let Some(next) = words.next() {
                        self.loaded(&next.text, way);
                    }
                }
                Some(option) => {
                    match option.split_once('=') {
                        Some((option, value)) if LOAD_OPTIONS.contains(&option) => self.loaded(value, way),
                        _ => self.loaded(option.trim_start_matches(['I', 'L', 'r']), way),
                    }
                    is_value = true;
                    continue;
                }
                None => {
                    let script = self.resolved(text, way);
                    // This is an option's value, as in `bash -o pipefail script`, or a subcommand of the interpreter.
                    let is_other = is_value || OWN_WORDS.contains(&text);
                    if is_other && script.is_none() && !text.contains(['/', '.']) && words.peek().is_some() {
                        is_value = false;
                        continue;
                    }
                    let run = if is_loader(name) { LaunchMode::ByInterpreter } else { LaunchMode::ByShell };
                    let text = script.unwrap_or_else(|| text.to_owned());
                    let open = word.open.clone().filter(|_| !tests);
                    let script = ShellWord { text: text.clone(), is_end: word.is_end, open };
                    self.program(&script, way, (run, true));
                    if run == LaunchMode::ByInterpreter {
                        for base in way.bases {
                            let file = self.at(base, &text);
                            if self.budget.look(text.len()) && file.is_file() {
                                self.neighbours(&file, way.mode);
                            }
                        }
                    }
                    return;
                }
            }
            is_value = false;
        }
    }

    /// Adds the findings of an interpreter's options in a variable: `NODE_OPTIONS=--import=./x.mjs`.
    pub(super) fn options_in(&mut self, name: &str, value: &str, way: CommandContext<'_>) {
        let words: Vec<ShellWord> = value.split_whitespace().map(ShellWord::of).collect();
        self.interpreted(name, &words, way);
    }

    /// Returns the file that an interpreter finds for a word: the word itself, or with an extension added. `None` if there is none.
    fn resolved(&mut self, text: &str, way: CommandContext<'_>) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        RESOLVED.iter().map(|end| format!("{text}{end}")).find(|text| {
            way.bases.iter().any(|base| self.budget.look(text.len()) && self.at(base, text).is_file())
        })
    }

    /// Adds a folder of modules, or a module, if the word is one.
    fn loaded(&mut self, text: &str, way: CommandContext<'_>) {
        let text = text.strip_prefix("file://").unwrap_or(text);
        let text = self.resolved(text, way).unwrap_or_else(|| text.to_owned());
        for base in way.bases.iter().filter(|_| !text.is_empty()) {
            if !self.budget.look(text.len()) {
                return;
            }
            let named = self.at(base, &text);
            if named.is_dir() {
                self.loaded_from(named, Missing::Leave, way.mode, way.mode != Mode::Line);
            } else if named.is_file() {
                self.hold(named, Missing::Leave, way.mode);
            }
        }
    }

    /// Adds a Python module by its name: the interpreter looks in its start folder before anywhere else.
    fn module(&mut self, name: &str, way: CommandContext<'_>) {
        let first = name.split('.').next().unwrap_or_default();
        let (folder, file) = (way.at.join(first), way.at.join(format!("{first}.py")));
        if folder.is_dir() && way.mode != Mode::Line {
            // The worker may be there to change the package, so only the files that run are held.
            let module = way.at.join(name.replace('.', "/"));
            for file in [module.with_extension("py"), module.join("__main__.py"), folder.join("__init__.py")]
            {
                if self.budget.look(name.len()) && file.is_file() {
                    self.hold(file, Missing::Leave, way.mode);
                }
            }
            self.loaded_from(folder, Missing::Leave, way.mode, true);
        } else if folder.is_dir() {
            self.folder(folder, Missing::Leave, way.mode);
        } else if file.is_file() {
            self.hold(file, Missing::Leave, way.mode);
        }
        if way.at.starts_with(self.root) {
            self.found.beside.insert(way.at.to_path_buf());
        }
    }

    /// Adds the files beside an interpreter's script that it would load: `import json` finds `json.py` there first.
    pub(super) fn neighbours(&mut self, script: &Path, mode: Mode) {
        let Some(folder) = script.parent().filter(|it| it.starts_with(self.root)) else { return };
        match mode {
            Mode::Line => self.folder(folder.to_path_buf(), Missing::Leave, mode),
            Mode::Alias | Mode::Setting | Mode::Script => {
                self.found.beside.insert(PathBuf::from(folder));
            }
        }
    }
}
