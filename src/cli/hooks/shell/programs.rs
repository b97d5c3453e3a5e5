//! What programs write, by their names and arguments.

use std::path::{Path, PathBuf};

use super::Written;
use super::words::Word;

/// Programs whose every argument is written or removed.
const WRITE_ALL: &[&str] =
    &["rm", "unlink", "tee", "truncate", "shred", "rmdir", "mv", "rustfmt", "sponge", "ed", "ex"];

/// Programs whose last argument is written.
const WRITE_LAST: &[&str] = &["cp", "install", "ln", "rsync"];

/// Programs that write their arguments where one of these options says so.
const WRITE_IN_PLACE: &[(&str, &[&str])] = &[
    ("sed", &["-i", "--in-place"]),
    ("gsed", &["-i", "--in-place"]),
    ("awk", &["inplace"]),
    ("gawk", &["inplace"]),
    ("yq", &["-i", "--inplace"]),
    ("perl", &["-i"]),
    ("ruby", &["-i"]),
    ("prettier", &["--write", "-w"]),
    ("eslint", &["--fix"]),
    ("stylelint", &["--fix"]),
    ("biome", &["--write", "--apply", "--fix"]),
    ("gofmt", &["-w"]),
    ("goimports", &["-w"]),
    ("gofumpt", &["-w"]),
    ("shfmt", &["-w"]),
    ("clang-format", &["-i"]),
    ("autopep8", &["-i", "--in-place"]),
    ("yapf", &["-i", "--in-place"]),
];

/// Formatters that write what they are given, and everything where they are given nothing, unless one of these says not to.
const FORMATTERS: &[(&str, &[&str], &[&str])] = &[
    ("cargo", &["fmt", "fix"], &["--check"]),
    ("go", &["fmt", "fix"], &[]),
    ("deno", &["fmt"], &["--check"]),
    ("dprint", &["fmt"], &[]),
    ("ruff", &["format"], &["--check", "--diff"]),
    ("black", &[], &["--check", "--diff"]),
    ("isort", &[], &["--check", "--check-only", "-c", "--diff"]),
];

/// Programs that write what one of these options names.
const WRITE_OUTPUT: &[(&str, &[&str])] = &[
    ("sort", &["-o", "--output"]),
    ("curl", &["-o", "--output"]),
    ("wget", &["-O", "--output-document"]),
    ("gcc", &["-o"]),
    ("cc", &["-o"]),
    ("pandoc", &["-o", "--output"]),
];

/// Programs that run another one, how many words of theirs stand before it beside options, and the options that have a word
/// of their own behind them.
const HELPERS: &[(&str, usize, &[&str])] = &[
    ("sudo", 0, &["-u", "-g", "-D", "-h", "-p", "-C", "-R", "-T"]),
    ("doas", 0, &["-u", "-C"]),
    ("env", 0, &["-u", "-C", "-S", "--chdir", "--unset"]),
    ("command", 0, &[]),
    ("builtin", 0, &[]),
    ("exec", 0, &["-a"]),
    ("time", 0, &["-o", "-f"]),
    ("nice", 0, &["-n"]),
    ("ionice", 0, &["-c", "-n"]),
    ("nohup", 0, &[]),
    ("setsid", 0, &[]),
    ("busybox", 0, &[]),
    ("stdbuf", 0, &["-i", "-o", "-e"]),
    ("timeout", 1, &["-s", "-k", "--signal", "--kill-after"]),
    ("npx", 0, &["-p", "--package"]),
    ("bunx", 0, &[]),
    ("uvx", 0, &[]),
    // Words of the shell, behind which a command stands.
    ("if", 0, &[]),
    ("then", 0, &[]),
    ("elif", 0, &[]),
    ("else", 0, &[]),
    ("while", 0, &[]),
    ("until", 0, &[]),
    ("do", 0, &[]),
    ("{", 0, &[]),
    ("!", 0, &[]),
];

/// Options of theirs that say where the other one runs.
const CHDIR: &[(&str, &[&str])] = &[("env", &["-C", "--chdir"]), ("sudo", &["-D", "--chdir"])];

/// The same in two words.
const HELPERS_OF_TWO: &[(&str, &str)] = &[
    ("python", "-m"),
    ("python3", "-m"),
    ("npm", "exec"),
    ("pnpm", "exec"),
    ("pnpm", "dlx"),
    ("yarn", "run"),
    ("yarn", "exec"),
    ("uv", "run"),
    ("poetry", "run"),
    ("bundle", "exec"),
];

fn text(word: &Word) -> Option<&str> {
    match word {
        Word::Plain(text) => Some(text),
        _ => None,
    }
}

fn is_option(word: &Word) -> bool {
    text(word).is_some_and(|it| it.starts_with('-') && it.len() > 1)
}

fn name(words: &[Word]) -> Option<&str> {
    text(words.first()?).map(|it| it.rsplit('/').next().unwrap_or(it))
}

/// A command without settings of variables before it, and without programs that only run another one; and into which folder
/// these go first, if they do: `None` within where that is not known.
pub(super) fn without_helpers(mut words: &[Word]) -> (Option<Option<String>>, &[Word]) {
    let mut to = None;
    let is_setting = |word: &Word| match word {
        Word::Plain(it) | Word::Pattern(it) => {
            it.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains(['/', '-']))
        }
        Word::Unknown | Word::Into => false,
    };
    loop {
        let settings = words.iter().take_while(|it| is_setting(it)).count();
        words = &words[settings..];
        let Some(first) = name(words) else { return (to, words) };
        let second = words.get(1).and_then(text);
        let (more, valued) = match HELPERS.iter().find(|it| it.0 == first) {
            Some((_, more, valued)) => (*more, *valued),
            None if HELPERS_OF_TWO.iter().any(|it| it.0 == first && Some(it.1) == second) => (1, &[][..]),
            None => return (to, words),
        };
        let chdir = CHDIR.iter().find(|it| it.0 == first).map_or(&[][..], |it| it.1);
        words = &words[1..];
        // In two words the second one may look like an option.
        let mut at = usize::from(more == 1 && second == Some("-m"));
        let more = more - at;
        while let Some(option) = words.get(at).filter(|it| is_option(it)).and_then(text) {
            let (option, value) = match option.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ => (option, None),
            };
            let takes_next = value.is_none() && valued.contains(&option);
            if chdir.contains(&option) {
                let next = words.get(at + 1).and_then(text);
                to = Some(value.or(next).map(str::to_owned));
            }
            at += if takes_next { 2 } else { 1 };
        }
        words = words.get(at + more..).unwrap_or_default();
    }
}

/// Where a command leads those behind it; `None` inside where that is not known.
pub(super) fn changes_folder(words: &[Word]) -> Option<Option<String>> {
    if !matches!(name(words), Some("cd" | "pushd")) {
        return None;
    }
    Some(
        words[1..].iter().find(|it| !is_option(it)).and_then(text).filter(|it| *it != "-").map(str::to_owned),
    )
}

/// Whether a command leads back to where `pushd` came from.
pub(super) fn goes_back(words: &[Word]) -> bool {
    name(words) == Some("popd")
}

/// Whether one puts the folder aside that it leaves.
pub(super) fn puts_aside(words: &[Word]) -> bool {
    name(words) == Some("pushd")
}

/// Whether one is a shell that reads its commands.
pub(super) fn reads_commands(words: &[Word]) -> bool {
    matches!(name(words), Some("sh" | "bash" | "zsh" | "dash" | "ksh"))
        && words[1..].iter().all(is_option)
        && shell_text(words).is_none()
}

/// What a shell is told to run.
pub(super) fn shell_text(words: &[Word]) -> Option<String> {
    let rest = words.get(1..)?;
    match name(words)? {
        "sh" | "bash" | "zsh" | "dash" | "ksh" => {
            let is_command = |it: &Word| {
                text(it).is_some_and(|it| it.starts_with('-') && !it.starts_with("--") && it.ends_with('c'))
            };
            text(rest.get(rest.iter().position(is_command)? + 1)?).map(str::to_owned)
        }
        "eval" => Some(rest.iter().filter_map(text).collect::<Vec<_>>().join(" ")),
        _ => None,
    }
}

/// What one command writes, run in a folder.
pub(super) fn of_one(words: &[Word], folder: &Path, found: &mut Vec<Written>) {
    let Some(program) = name(words) else { return };
    let rest = &words[1..];
    let has =
        |options: &[&str]| rest.iter().filter_map(text).any(|it| options.iter().any(|option| is(it, option)));
    let arguments = || rest.iter().filter(|it| !is_option(it));
    if let Some((_, options)) = WRITE_IN_PLACE.iter().find(|it| it.0 == program) {
        if has(options) {
            found.extend(arguments().filter_map(|it| written(it, folder)));
        }
    } else if let Some((_, verbs, not)) = FORMATTERS.iter().find(|it| it.0 == program) {
        let is_verb = verbs.is_empty() || rest.first().and_then(text).is_some_and(|it| verbs.contains(&it));
        if is_verb && !has(not) {
            let paths = arguments().skip(usize::from(!verbs.is_empty()));
            let named: Vec<_> = paths.filter_map(|it| written(it, folder)).collect();
            // Packages of Cargo and Go are no paths, and what is not named is all.
            let all = named.is_empty() || matches!(program, "cargo" | "go");
            found.extend(if all { vec![Written::Below(folder.to_owned(), Vec::new())] } else { named });
        }
    } else if WRITE_ALL.contains(&program) {
        found.extend(arguments().filter_map(|it| written(it, folder)));
    } else if WRITE_LAST.contains(&program) {
        let into = value_of(rest, &["-t", "--target-directory"]).filter(|_| program != "rsync");
        match into {
            Some(folder_of_all) => found.push(Written::Path(folder.join(folder_of_all))),
            None => found.extend(arguments().next_back().and_then(|it| written(it, folder))),
        }
    } else if let Some((_, options)) = WRITE_OUTPUT.iter().find(|it| it.0 == program) {
        found.extend(value_of(rest, options).map(|it| Written::Path(folder.join(it))));
    } else {
        match program {
            "dd" => {
                let into = rest.iter().filter_map(text).filter_map(|it| it.strip_prefix("of="));
                found.extend(into.map(|it| Written::Path(folder.join(it))));
            }
            "tar" | "bsdtar" => of_tar(rest, folder, found),
            "unzip" if !has(&["-l", "-t", "-p"]) => {
                let into = value_of(rest, &["-d"]).map_or_else(|| folder.to_owned(), |it| folder.join(it));
                found.push(Written::Below(into, Vec::new()));
            }
            "find" => of_find(rest, folder, found),
            "xargs" => of_xargs(rest, folder, found),
            "patch" => of_patch(rest, folder, found),
            "git" => of_git(rest, folder, found),
            _ => {}
        }
    }
}

/// What stands behind an option, in the next word or in its own.
fn value_of(rest: &[Word], options: &[&str]) -> Option<String> {
    rest.iter().enumerate().filter_map(|(at, it)| Some((at, text(it)?))).find_map(|(at, word)| {
        let option = options.iter().find(|option| word.starts_with(**option))?;
        match &word[option.len()..] {
            "" => text(rest.get(at + 1)?).map(str::to_owned),
            value if option.starts_with("--") => value.strip_prefix('=').map(str::to_owned),
            value => Some(value.to_owned()),
        }
    })
}

/// `tar` writes whatever is in an archive.
fn of_tar(rest: &[Word], folder: &Path, found: &mut Vec<Written>) {
    let first = rest.first().and_then(text).unwrap_or_default();
    let is_short = |it: &str| it.starts_with('-') && !it.starts_with("--");
    let says = |it: &str| it == "--extract" || it == "--get" || (is_short(it) && it.contains('x'));
    let extracts = rest.iter().filter_map(text).any(says) || (!first.starts_with('-') && first.contains('x'));
    if extracts {
        let into =
            value_of(rest, &["-C", "--directory"]).map_or_else(|| folder.to_owned(), |it| folder.join(it));
        found.push(Written::Below(into, Vec::new()));
    }
}

/// Whether an argument is an option, also with others of one letter, or with a value, in the same word.
fn is(argument: &str, option: &str) -> bool {
    let short = option.len() == 2 && !argument.starts_with("--") && argument.starts_with('-');
    argument == option
        || argument.strip_prefix(option).is_some_and(|rest| option.len() > 2 && rest.starts_with('='))
        || (short && argument[1..].contains(&option[1..]))
}

/// What a word names.
fn written(word: &Word, folder: &Path) -> Option<Written> {
    let (text, pattern) = match word {
        Word::Plain(text) => (text, text.contains(['*', '?'])),
        Word::Pattern(text) => (text, true),
        Word::Unknown | Word::Into => return None,
    };
    if !pattern {
        return Some(Written::Path(folder.join(text)));
    }
    // The folder in which the pattern begins, and the rest of it.
    let fixed = text.find(['*', '?', '[', '{']).unwrap_or(text.len());
    let (at, rest) =
        text[..fixed].rfind('/').map_or(("", text.as_str()), |cut| (&text[..cut], &text[cut + 1..]));
    Some(Written::Below(folder.join(at), vec![rest.to_owned()]))
}

/// `find` removes what it finds, or has a program write it.
fn of_find(rest: &[Word], folder: &Path, found: &mut Vec<Written>) {
    let says = |name: &str| rest.iter().position(|it| text(it) == Some(name));
    let run = ["-exec", "-execdir", "-ok"].into_iter().find_map(says);
    if says("-delete").is_none() && !run.is_some_and(|at| runs_writer(&rest[at + 1..])) {
        return;
    }
    let is_test = |it: &Word| is_option(it) || matches!(text(it), Some("(" | "!"));
    let from: Vec<PathBuf> =
        rest.iter().take_while(|it| !is_test(it)).filter_map(text).map(|it| folder.join(it)).collect();
    let from = if from.is_empty() { vec![folder.to_owned()] } else { from };
    // Of several tests it is not looked at how they are joined.
    let named = |it: &&Word| matches!(text(it), Some("-name"));
    let names: Vec<String> = match rest.iter().filter(named).count() {
        1 => says("-name").and_then(|at| text(rest.get(at + 1)?)).map(str::to_owned).into_iter().collect(),
        _ => Vec::new(),
    };
    found.extend(from.into_iter().map(|it| Written::Below(it, names.clone())));
}

/// `xargs` reads what it has a program write: it may be anything below.
fn of_xargs(rest: &[Word], folder: &Path, found: &mut Vec<Written>) {
    let takes_value = |it: &Word| matches!(text(it), Some("-I" | "-n" | "-P" | "-L" | "-d" | "-s" | "-E"));
    let mut at = 0;
    while rest.get(at).is_some_and(is_option) {
        at += if takes_value(&rest[at]) { 2 } else { 1 };
    }
    if runs_writer(rest.get(at..).unwrap_or_default()) {
        found.push(Written::Below(folder.to_owned(), Vec::new()));
    }
}

/// Whether a command would write what is given to it.
fn runs_writer(words: &[Word]) -> bool {
    let (_, words) = without_helpers(words);
    let mut given = words.to_vec();
    given.push(Word::Plain("given".into()));
    let mut found = Vec::new();
    match shell_text(words) {
        // What is given to it stands in there under other names.
        Some(inner) => {
            let names = ["\"$@\"", "\"$1\"", "\"$0\"", "$@", "$1", "$0", "$f", "{}"];
            let inner = names.iter().fold(inner, |text, name| text.replace(name, "given"));
            super::read(&inner, Path::new("/"), 1, &mut found);
        }
        None => of_one(&given, Path::new("/"), &mut found),
    }
    !found.is_empty()
}

fn of_patch(rest: &[Word], folder: &Path, found: &mut Vec<Written>) {
    if rest.iter().any(|it| text(it) == Some("--dry-run")) {
        return;
    }
    let strip = rest.iter().filter_map(text).find_map(|it| it.strip_prefix("-p")?.parse().ok()).unwrap_or(0);
    let mut words = rest.iter().filter_map(text);
    let named = words.find_map(|it| it.strip_prefix("--input=").map(str::to_owned));
    let input = rest.iter().position(|it| text(it) == Some("-i")).and_then(|at| text(rest.get(at + 1)?));
    match (named.or_else(|| input.map(str::to_owned)), rest.iter().find(|it| !is_option(it)).and_then(text)) {
        (Some(from), _) => found.push(Written::Patched(folder.join(from), folder.to_owned(), strip)),
        (None, Some(file)) => found.push(Written::Path(folder.join(file))),
        // It is read from somewhere else.
        (None, None) => found.push(Written::Below(folder.to_owned(), Vec::new())),
    }
}

fn of_git(mut rest: &[Word], folder: &Path, found: &mut Vec<Written>) {
    let mut folder = folder.to_owned();
    while let Some(option) = rest.first().filter(|it| is_option(it)).and_then(text) {
        let value = rest.get(1).and_then(text);
        match (option, value) {
            ("-C", Some(to)) => folder = folder.join(to),
            ("-C", None) => return,
            _ => {}
        }
        rest = rest
            .get(if matches!(option, "-C" | "-c" | "--git-dir" | "--work-tree") { 2 } else { 1 }..)
            .unwrap_or_default();
    }
    let Some(verb) = rest.first().and_then(text) else { return };
    let rest = &rest[1..];
    let has = |option: &str| rest.iter().filter_map(text).any(|it| it == option);
    let behind = rest.iter().position(|it| text(it) == Some("--"));
    let paths =
        |from: usize| rest[from..].iter().filter(|it| !is_option(it)).filter_map(|it| written(it, &folder));
    let first = || rest.iter().take(behind.unwrap_or(rest.len())).find(|it| !is_option(it));
    let changed = |to: Option<String>| Written::Changed(folder.clone(), to);
    let makes_branch = || ["-b", "-B", "-c", "-C", "--orphan", "--create"].iter().any(|it| has(it));
    match verb {
        "rm" | "mv" | "restore" | "clean" if !(has("--cached") || has("-n") || has("--staged")) => {
            let named: Vec<_> = paths(0).collect();
            // `git clean` removes what git does not know.
            let all = verb == "clean" && named.is_empty();
            found.extend(if all { vec![Written::Below(folder, Vec::new())] } else { named });
        }
        "checkout" | "switch" if makes_branch() => {}
        "checkout" if behind.is_some() => found.extend(paths(behind.unwrap_or(0))),
        "checkout" | "switch" => {
            let there = |it: &Word| text(it).is_some_and(|it| folder.join(it).symlink_metadata().is_ok());
            let named = rest.iter().any(there);
            match (named, first().and_then(text)) {
                // As git does: what is a file's name is one, unless it is a revision.
                (true, _) => found.extend(paths(0)),
                (false, Some(to)) => found.push(changed(Some(to.to_owned()))),
                (false, None) if has("-f") || has("--force") => found.push(changed(None)),
                (false, None) => {}
            }
        }
        "reset" if has("--hard") || has("--merge") || has("--keep") => {
            found.push(changed(first().and_then(text).map(str::to_owned)));
        }
        "stash" => match first().and_then(text) {
            None | Some("push" | "save" | "pop" | "apply" | "branch") => {
                let of = matches!(first().and_then(text), Some("pop" | "apply" | "branch"));
                found.push(changed(of.then(|| "stash@{0}".to_owned())));
            }
            Some(_) => {}
        },
        "read-tree" | "checkout-index" | "bisect" | "sparse-checkout" => found.push(changed(None)),
        "merge" | "rebase" | "cherry-pick" | "revert" | "pull" if !has("--abort") => {
            found.push(changed(first().and_then(text).map(str::to_owned)));
        }
        "apply" | "am" if !(has("--check") || has("--stat") || has("--cached") || has("--numstat")) => {
            let strip =
                rest.iter().filter_map(text).find_map(|it| it.strip_prefix("-p")?.parse().ok()).unwrap_or(1);
            let files: Vec<_> = rest.iter().filter(|it| !is_option(it)).filter_map(text).collect();
            match files.is_empty() {
                true => found.push(Written::Below(folder, Vec::new())),
                false => found
                    .extend(files.iter().map(|it| Written::Patched(folder.join(it), folder.clone(), strip))),
            }
        }
        _ => {}
    }
}
