//! Calls of hosts' tools, for the naive judge: which command one would run, and which files it names.
//!
//! Written from what `policy/README.md` promises, a list of signs at a time; it shares no code with the readings of the core.

use provost_policy::{Request, Ruling};

use super::naive::{letters_match, locate};

/// The files that a call names, and whether these are certainly all.
pub(super) struct Named {
    pub(super) paths: Vec<String>,
    pub(super) certain: bool,
}

pub(super) fn named(request: &Request) -> Named {
    let path = request.path.as_ref().map(ToString::to_string);
    match &*request.tool {
        "Read" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
            let paths: Vec<String> = path.filter(|it| !it.is_empty()).into_iter().collect();
            Named { certain: !paths.is_empty(), paths }
        }
        // What stands as its command is its patch, and none of ours is one.
        "apply_patch" | "ApplyPatch" if request.command.is_some() => {
            Named { paths: Vec::new(), certain: false }
        }
        "apply_patch" | "ApplyPatch" => {
            let paths: Vec<String> = path.into_iter().collect();
            Named { certain: !paths.is_empty(), paths }
        }
        _ => {
            let mut paths: Vec<String> =
                path.into_iter().chain(request.command.iter().map(ToString::to_string)).collect();
            for stretch in stretches(request.command.as_deref().unwrap_or_default()) {
                for (word, _) in stretch.words {
                    paths.extend(word.split_once('=').map(|it| it.1.to_owned()));
                    paths.extend(word.strip_prefix('@').map(str::to_owned));
                    paths.push(word);
                }
            }
            paths.retain(|it| !it.is_empty() && !it.contains(char::is_control));
            Named { paths, certain: false }
        }
    }
}

/// Whether the command of a call is one of these, in a rule of this kind.
pub(super) fn command_is(patterns: &[Box<str>], ruling: Ruling, request: &Request) -> bool {
    let Some(line) = request.command.as_deref() else { return false };
    let tool = &*request.tool;
    if ["Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch", "ApplyPatch"].contains(&tool) {
        return false;
    }
    if ruling == Ruling::Allow {
        let runs_it =
            ["Bash", "Monitor", "Shell", "shell", "exec_command"].contains(&tool) && request.path.is_none();
        let words = plain(line).filter(|_| runs_it && locate(request).is_ok());
        return words.is_some_and(|words| patterns.iter().any(|it| is_exactly(it, &words)));
    }
    let candidates = commands(line);
    patterns.iter().any(|pattern| candidates.iter().any(|it| may_be(pattern, it)))
}

/// The words of a single plain command.
fn plain(line: &str) -> Option<Vec<String>> {
    let signs: Vec<char> = line.chars().collect();
    let mut words: Vec<String> = Vec::new();
    let mut at = 0;
    while at < signs.len() {
        if signs[at] == ' ' || signs[at] == '\t' {
            at += 1;
            continue;
        }
        if signs[at] == '=' {
            return None;
        }
        let mut word = String::new();
        while at < signs.len() && signs[at] != ' ' && signs[at] != '\t' {
            let sign = signs[at];
            if sign == '\'' || sign == '"' {
                let end = (at + 1..signs.len()).find(|it| signs[*it] == sign)?;
                let inner: String = signs[at + 1..end].iter().collect();
                let special =
                    |it: char| it.is_control() || (sign == '"' && matches!(it, '$' | '`' | '\\' | '!'));
                if inner.contains(special) {
                    return None;
                }
                word += &inner;
                at = end + 1;
            } else if sign.is_alphanumeric()
                || matches!(sign, '_' | '-' | '.' | '/' | ':' | ',' | '+' | '@' | '=')
            {
                word.push(sign);
                at += 1;
            } else {
                return None;
            }
        }
        words.push(word);
    }
    let program = words.first()?;
    let letters = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '/' | '+' | '-');
    (!program.is_empty() && program.chars().all(letters) && !program.starts_with(['+', '-'])).then_some(words)
}

fn is_exactly(pattern: &str, words: &[String]) -> bool {
    let mut wanted: Vec<&str> = pattern.split(' ').collect();
    let any_more = wanted.last() == Some(&"**");
    if any_more {
        wanted.pop();
    }
    if words.len() < wanted.len() || (!any_more && words.len() > wanted.len()) {
        return false;
    }
    let fits = |(at, want): (usize, &&str)| {
        let is_star_for_option = at > 0 && want.starts_with('*') && words[at].starts_with('-');
        letters_match(want.as_bytes(), words[at].as_bytes()) && !is_star_for_option
    };
    wanted.iter().enumerate().all(fits) && words[wanted.len()..].iter().all(|it| !it.starts_with('-'))
}

/// Words between two ends of commands.
struct Stretch {
    words: Vec<(String, bool)>,
    within: bool,
}

/// Where a sign of the line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Nothing,
    Single,
    Double,
}

fn stretches(line: &str) -> Vec<Stretch> {
    const END: char = '\u{1}';
    const END_WITHIN: char = '\u{2}';
    const OPEN: char = '\u{3}';
    const KEEP: char = '\u{4}';
    // First the line with marks of our own in the place of everything that means something.
    let mut marked = String::new();
    let mut inside = In::Nothing;
    let mut signs = line.chars().peekable();
    while let Some(sign) = signs.next() {
        match (sign, inside) {
            ('\'', In::Nothing) => (inside, _) = (In::Single, marked.push(KEEP)),
            ('"', In::Nothing) => (inside, _) = (In::Double, marked.push(KEEP)),
            ('\'', In::Single) | ('"', In::Double) => inside = In::Nothing,
            ('\'' | '"', _) => {}
            ('\\', _) => marked.extend(signs.next().filter(|it| !['\n', '\'', '"'].contains(it))),
            ('`', In::Nothing | In::Double) => marked.extend([OPEN, END]),
            ('$', In::Nothing | In::Double) if signs.peek() == Some(&'(') => {
                signs.next();
                marked.extend([OPEN, END]);
            }
            ('$', In::Nothing | In::Double) | ('*' | '?' | '[' | '{' | '}', In::Nothing) => {
                marked.extend([OPEN, sign])
            }
            ('\n' | '\r' | ';' | '|' | '&' | '(' | ')', In::Nothing) => marked.push(END),
            ('\n' | '\r' | ';' | '|' | '&' | '(' | ')', _) => marked.push(END_WITHIN),
            ('<' | '>', _) => marked.push(' '),
            (sign, _) => marked.push(sign),
        }
    }
    // Then cut at the ends, and within these at blanks.
    let mut all = Vec::new();
    let mut within = false;
    for part in marked.split_inclusive([END, END_WITHIN]) {
        let next = part.ends_with(END_WITHIN);
        let mut words: Vec<(String, bool)> = Vec::new();
        for word in part.trim_end_matches([END, END_WITHIN]).split_whitespace() {
            let text: String = word.chars().filter(|it| ![OPEN, KEEP].contains(it)).collect();
            let keyword =
                ["if", "then", "elif", "else", "while", "until", "do", "{", "!"].contains(&text.as_str());
            if words.is_empty() && keyword && !word.contains(KEEP) {
                continue;
            }
            let open = word.contains(OPEN) && !["{", "}", "[", "[["].contains(&text.as_str());
            words.push((text, open));
        }
        if !words.is_empty() {
            all.push(Stretch { words, within });
        }
        within = next;
    }
    all
}

fn program_of(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name).to_owned()
}

fn one_of(word: &str, listed: &str) -> bool {
    listed.split(' ').any(|it| it == program_of(word).to_ascii_lowercase())
}

const WRAPPERS: &str = "sudo doas su runuser env command builtin exec eval time timeout nice ionice nohup setsid stdbuf xargs \
     parallel watch flock strace busybox npx ssh sh bash zsh dash ksh ash fish nu pwsh powershell cmd";
const INTERPRETERS: &str = "python python2 python3 pypy perl ruby node deno bun php lua awk source . tee";
const READERS: &str = "echo printf grep egrep fgrep cat ls head tail wc which type cd test [";

fn program_at(words: &[(String, bool)]) -> usize {
    let is_setting = |(word, open): &(String, bool)| {
        let name = word.split('=').next().unwrap_or_default();
        !open
            && word.contains('=')
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    words.iter().position(|it| !is_setting(it)).unwrap_or(words.len())
}

/// The words behind each place at which a command may begin.
fn commands(line: &str) -> Vec<Vec<(String, bool)>> {
    let all = stretches(line);
    let starts_open = |it: &Stretch| !it.within && it.words.get(program_at(&it.words)).is_some_and(|it| it.1);
    let runs = |(word, _): &(String, bool)| one_of(word, WRAPPERS) || one_of(word, INTERPRETERS);
    let runs_text = all.iter().any(|it| starts_open(it) || it.words.iter().any(runs));
    let mut found = Vec::new();
    let mut reads = false;
    for stretch in &all {
        let (words, first) = (&stretch.words, program_at(&stretch.words));
        if !stretch.within {
            let second = words.get(first + 1).filter(|it| !it.1).map_or("", |it| it.0.as_str());
            let quiet_git = ["commit", "log", "show", "add", "status"].contains(&second);
            reads = !runs_text
                && words.get(first).is_some_and(|(word, open)| {
                    !open && (one_of(word, READERS) || (program_of(word) == "git" && quiet_git))
                });
        }
        for at in 0..words.len() {
            let wrapped = words[..at].iter().any(|(word, open)| !open && one_of(word, WRAPPERS));
            let is_place =
                if at == first { !(stretch.within && reads) } else { !reads && (!words[at].1 || wrapped) };
            if is_place {
                found.push(words[at..].to_vec());
            }
        }
    }
    found
}

/// Whether a command may be what a pattern describes.
fn may_be(pattern: &str, words: &[(String, bool)]) -> bool {
    let mut wanted = pattern.split(' ').filter(|it| *it != "**");
    let program = wanted.next().unwrap_or_default().to_ascii_lowercase();
    let (first, open) = &words[0];
    let named = program_of(first).to_ascii_lowercase();
    let whole = first.to_ascii_lowercase();
    let is_it = letters_match(program.as_bytes(), named.as_bytes())
        || letters_match(program.as_bytes(), whole.as_bytes());
    *open || (is_it && follows(&wanted.collect::<Vec<_>>(), &words[1..]))
}

fn follows(wanted: &[&str], words: &[(String, bool)]) -> bool {
    let Some((want, rest)) = wanted.split_first() else { return true };
    let Some(((word, open), behind)) = words.split_first() else { return false };
    if *open || (letters_match(want.as_bytes(), word.as_bytes()) && follows(rest, behind)) {
        return true;
    }
    word.starts_with('-')
        && (follows(wanted, behind)
            || behind.split_first().is_some_and(|(value, behind)| value.1 || follows(wanted, behind)))
}
