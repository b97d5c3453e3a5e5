//! Programs that only run another one, and those that set the folder of the next commands.

use super::programs::{is_known, is_option, name, text};
use super::values::setting;
use super::words::{Word, quoted};

/// Programs that run another one, with the number of their own words before it beside options, and with the options
/// that have a value in the next word.
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
    ("shx", 0, &[]),
    ("xvfb-run", 0, &["-n", "-s"]),
    ("direnv", 2, &[]),
    ("function", 1, &[]),
    ("strace", 0, &["-o", "-e", "-p", "-s", "-u"]),
    ("ltrace", 0, &["-o", "-e", "-p", "-s", "-u"]),
    ("valgrind", 0, &[]),
    ("watch", 0, &["-n", "--interval"]),
    ("entr", 0, &[]),
    ("chronic", 0, &[]),
    ("unbuffer", 0, &[]),
    ("coproc", 0, &[]),
    ("unshare", 0, &["-S", "-G"]),
    ("systemd-run", 0, &["-p", "-u", "-E"]),
    ("chrt", 1, &[]),
    ("taskset", 1, &[]),
    ("chroot", 1, &[]),
    ("stdbuf", 0, &["-i", "-o", "-e"]),
    ("timeout", 1, &["-s", "-k", "--signal", "--kill-after"]),
    ("flock", 1, &["-w", "-E", "--timeout"]),
    ("npx", 0, &["-p", "--package"]),
    ("bunx", 0, &[]),
    ("uvx", 0, &["--from", "--with", "-p", "--python"]),
    // Words of the shell before a command.
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

/// Their options that set the folder of the other program.
const CHDIR: &[(&str, &[&str])] = &[
    ("env", &["-C", "--chdir"]),
    ("sudo", &["-D", "--chdir"]),
    ("npm", &["--prefix", "-C"]),
    ("pnpm", &["-C", "--dir"]),
    ("yarn", &["--cwd"]),
    ("uv", &["--directory"]),
];

/// Programs that run another one after a word, with those words, and whether they also do so without one.
const RUNNERS: &[(&str, &[&str], bool)] = &[
    ("npm", &["exec", "x"], false),
    ("pnpm", &["exec", "dlx"], true),
    ("yarn", &["run", "exec", "dlx"], true),
    ("bun", &["x", "run"], true),
    ("uv", &["run"], false),
    ("poetry", &["run"], false),
    ("pdm", &["run"], false),
    ("hatch", &["run"], false),
    ("rye", &["run"], false),
    ("pipx", &["run"], false),
    ("pipenv", &["run"], false),
    ("bundle", &["exec"], false),
    ("conda", &["run"], false),
    ("mise", &["exec", "x"], false),
];

/// Their options that have a value in the next word.
const RUNNERS_VALUED: &[&str] = &[
    "-C",
    "-p",
    "--cwd",
    "--dir",
    "--directory",
    "--filter",
    "-F",
    "--package",
    "--prefix",
    "--project",
    "--python",
    "--with",
    "-w",
    "--workspace",
];

/// Returns a command without the settings of variables before it, and without programs that only run another one; and the folder
/// to which these change first, if they do: `None` within where it is not known. A command that `is_kept` stays unchanged.
pub(super) fn without_helpers<'a>(
    mut words: &'a [Word],
    is_kept: &dyn Fn(&[Word]) -> bool,
) -> (Option<Option<String>>, &'a [Word]) {
    let mut to = None;
    loop {
        let settings = words.iter().take_while(|it| setting(it).is_some()).count();
        words = &words[settings..];
        let Some(first) = name(words) else { return (to, words) };
        if is_kept(words) {
            return (to, words);
        }
        let rest = &words[1..];
        // A command in one word is read as a line.
        if matches!(first, "env" | "watch" | "flock") && shell_text(words).is_some() {
            return (to, words);
        }
        let next = match HELPERS.iter().find(|it| it.0 == first) {
            Some((_, more, valued)) => Some((past_options(first, rest, valued, &mut to), *more)),
            None if is_python(first) && rest.first().and_then(text) == Some("-m") => Some((1, 0)),
            None => run_by(first, rest, &mut to).map(|at| (at, 0)),
        };
        let Some((at, more)) = next else { return (to, words) };
        words = rest.get(at + more..).unwrap_or_default();
    }
}

fn is_python(name: &str) -> bool {
    name.starts_with("python") || name.starts_with("pypy")
}

/// Returns the index, among the words after a runner, of the program that it runs.
fn run_by(first: &str, rest: &[Word], to: &mut Option<Option<String>>) -> Option<usize> {
    let (_, verbs, also_without) = RUNNERS.iter().find(|it| it.0 == first)?;
    let mut goes = to.clone();
    let at = past_options(first, rest, RUNNERS_VALUED, &mut goes);
    let word = text(rest.get(at)?)?;
    let at = match verbs.contains(&word) {
        true => at + 1 + past_options(first, &rest[at + 1..], RUNNERS_VALUED, &mut goes),
        false if *also_without && is_known(word) => at,
        false => return None,
    };
    *to = goes;
    Some(at)
}

/// Returns the number of words that options take at the beginning; `to` gets the folder to which they change.
pub(super) fn past_options(
    program: &str,
    rest: &[Word],
    valued: &[&str],
    to: &mut Option<Option<String>>,
) -> usize {
    let chdir = CHDIR.iter().find(|it| it.0 == program).map_or(&[][..], |it| it.1);
    let mut at = 0;
    while let Some(option) = rest.get(at).filter(|it| is_option(it)).and_then(text) {
        let (option, value) = match option.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (option, None),
        };
        if chdir.contains(&option) {
            let next = rest.get(at + 1).and_then(text);
            *to = Some(value.or(next).map(str::to_owned));
        }
        at += if value.is_none() && valued.contains(&option) { 2 } else { 1 };
    }
    at
}

/// Returns the folder to which a command changes for those after it; `None` inside where it is not known.
pub(super) fn changes_folder(words: &[Word]) -> Option<Option<String>> {
    if !matches!(name(words), Some("cd" | "pushd")) {
        return None;
    }
    let to = words[1..].iter().find(|it| !is_option(it));
    // A pattern without a match is a folder's name, too, as in `app/[id]`.
    let to = to.and_then(|it| match it {
        Word::Plain(text) | Word::Pattern(text) => Some(text.as_str()),
        _ => None,
    });
    Some(to.filter(|it| *it != "-").map(str::to_owned))
}

/// Checks whether a command returns to the folder that `pushd` has left.
pub(super) fn goes_back(words: &[Word]) -> bool {
    name(words) == Some("popd")
}

/// Checks whether a command puts the folder aside that it leaves.
pub(super) fn puts_aside(words: &[Word]) -> bool {
    name(words) == Some("pushd")
}

/// Checks whether a command is a shell that reads its commands from its input.
pub(super) fn reads_commands(words: &[Word]) -> bool {
    // The words after `-s` are arguments of the input.
    let reads = || words[1..].iter().all(is_option) || words.get(1).and_then(text) == Some("-s");
    name(words).is_some_and(|it| SHELLS.contains(&it)) && reads() && shell_text(words).is_none()
}

/// Returns the words for `$0`, `$1` and so on in the input of a shell.
fn parameters(words: &[Word]) -> &[Word] {
    let is_read = |it: &Word| text(it) == Some("-s");
    words.iter().position(is_read).map_or(&[], |at| &words[at..])
}

/// Returns a line with the given words in place of `$1`, `$@` and so on.
pub(super) fn filled_in(line: &str, given: &[Word]) -> String {
    if given.is_empty() || !line.contains('$') {
        return line.to_owned();
    }
    let one =
        |at: usize| given.get(at).and_then(quoted).map(|it| it.trim_start().to_owned()).unwrap_or_default();
    // Without quotation marks, a shell splits the text into words.
    let words = |word: &Word| match word {
        Word::Plain(text) => Some(
            text.split_whitespace().filter_map(|it| quoted(&Word::Plain(it.to_owned()))).collect::<String>(),
        ),
        word => quoted(word),
    };
    let several = |at: usize| given.get(at).and_then(words).unwrap_or_default().trim_start().to_owned();
    let all: String = given.iter().skip(1).filter_map(quoted).collect();
    let all_words: String = given.iter().skip(1).filter_map(words).collect();
    let mut line = line.to_owned();
    for (name, all) in [("\"$@\"", &all), ("\"$*\"", &all), ("$@", &all_words), ("$*", &all_words)] {
        line = line.replace(name, all.trim_start());
    }
    for at in 0..=9 {
        for name in [format!("\"${at}\""), format!("\"${{{at}}}\"")] {
            line = line.replace(&name, &one(at));
        }
        for name in [format!("${{{at}}}"), format!("${at}")] {
            line = line.replace(&name, &several(at));
        }
    }
    line
}

/// Returns a text as a shell that reads it from its input would run it.
pub(super) fn read_by(words: &[Word], line: &str) -> String {
    filled_in(line, parameters(words))
}

/// Shells whose lines are similar enough.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "nu", "pwsh"];

/// Checks whether a name is one of these shells.
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

fn behind(rest: &[Word], option: &str) -> Option<String> {
    let at = rest.iter().position(|it| text(it) == Some(option))?;
    rest.get(at + 1).and_then(text).map(str::to_owned)
}

/// Returns the line that a shell gets as an argument.
pub(super) fn shell_text(words: &[Word]) -> Option<String> {
    let rest = words.get(1..)?;
    match name(words)? {
        "su" | "script" | "runuser" | "flock" => behind(rest, "-c"),
        "nix-shell" => behind(rest, "--run").or_else(|| behind(rest, "--command")),
        "trap" => rest.iter().find(|it| !is_option(it)).and_then(text).map(str::to_owned),
        "watch" => rest.iter().filter_map(text).find(|it| it.contains(' ')).map(str::to_owned),
        shell if SHELLS.contains(&shell) => {
            let is_command = |it: &Word| {
                text(it).is_some_and(|it| it.starts_with('-') && !it.starts_with("--") && it.ends_with('c'))
            };
            let rest = rest.get(rest.iter().position(is_command)? + 1..)?;
            let rest = if rest.first().and_then(text) == Some("--") { &rest[1..] } else { rest };
            let (line, given) = rest.split_first()?;
            Some(filled_in(text(line)?, given))
        }
        // The whole command in one word.
        "env" => {
            let line = rest.iter().position(|it| matches!(text(it), Some("-S" | "--split-string")));
            let line = line.and_then(|at| rest.get(at + 1));
            let joined = || rest.iter().filter_map(text).find_map(|it| it.strip_prefix("--split-string="));
            line.and_then(text).or_else(joined).map(str::to_owned)
        }
        "eval" => Some(rest.iter().filter_map(text).collect::<Vec<_>>().join(" ")),
        _ => None,
    }
}
