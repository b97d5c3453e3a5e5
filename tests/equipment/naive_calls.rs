//! Calls of hosts' tools, for the naive judge: which command one would run, and which files it names.
//!
//! Written from what `policy/README.md` promises, a list of signs at a time; it shares no code with the
//! readings of the core.

use provost_policy::{Request, Ruling};

use super::naive::{letters_match, locate};

/// The files that a call names, and whether these are certainly all.
pub(super) struct Named {
    pub(super) paths: Vec<String>,
    /// Words that may be paths, with stars for what is not known.
    pub(super) open: Vec<String>,
    pub(super) certain: bool,
    /// Whether it may touch any file.
    pub(super) any: bool,
}

pub(super) fn named(request: &Request) -> Named {
    let path = request.path.as_ref().map(ToString::to_string);
    match &*request.tool {
        "Read" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
            let paths: Vec<String> = path.filter(|it| !it.is_empty()).into_iter().collect();
            Named { certain: !paths.is_empty(), any: false, paths, open: Vec::new() }
        }
        // What stands as its command may be its patch, and none of ours is one.
        "apply_patch" | "ApplyPatch" => {
            let paths: Vec<String> = path.into_iter().collect();
            let is_alone = request.command.is_none();
            Named { certain: is_alone && !paths.is_empty(), any: paths.is_empty(), paths, open: Vec::new() }
        }
        _ => {
            let line = request.command.as_deref().unwrap_or_default();
            let texts = path.into_iter().chain(request.command.iter().map(ToString::to_string));
            let mut named = Named { paths: texts.collect(), open: Vec::new(), certain: false, any: false };
            let (read, bare) = stretches(line);
            for (word, open) in read.into_iter().chain(bare).flat_map(|it| it.words) {
                let escaped = word.contains('\\').then(|| word.replace('\\', ""));
                for word in [Some(word), escaped].into_iter().flatten() {
                    if open {
                        named.open.push(starred(&word));
                    }
                    for part in word.split([':', ',', '=']) {
                        named.paths.push(part.to_owned());
                        named.paths.extend(part.strip_prefix('@').map(str::to_owned));
                    }
                    if word.starts_with(['-', '@']) {
                        named.paths.extend(word.split_once('@').map(|it| it.1.to_owned()));
                    }
                    named.paths.push(word);
                }
            }
            named.paths.retain(|it| !it.is_empty() && !it.contains(char::is_control));
            named
        }
    }
}

/// A word with stars for what is not known; none of ours has braces that do not end.
fn starred(word: &str) -> String {
    let signs: Vec<char> = word.chars().collect();
    let (mut all, mut at) = (String::new(), 0);
    let to = |from: usize, end: char| {
        (from..signs.len()).find(|it| signs[*it] == end).map_or(signs.len(), |it| it + 1)
    };
    while at < signs.len() {
        let next = match signs[at] {
            '$' if signs.get(at + 1) == Some(&'{') => to(at + 2, '}'),
            '$' => {
                let is_name = |it: &usize| signs[*it].is_ascii_alphanumeric() || signs[*it] == '_';
                at + 1 + (at + 1..signs.len()).take_while(is_name).count()
            }
            '{' => to(at + 1, '}'),
            '[' => to(at + 1, ']'),
            '*' | '?' => at + 1,
            sign => {
                all.push(sign);
                at += 1;
                continue;
            }
        };
        all.push('*');
        at = next;
    }
    if all.contains('*') { all } else { all + "*" }
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
        let word = words[at].as_str();
        let stands_for = match want.find('*') {
            None => true,
            Some(0) => is_name(word),
            Some(from) => {
                !climbs(word) && (want[..from].contains('=') || !sets(word) || !word[from..].contains('='))
            }
        };
        letters_match(want.as_bytes(), word.as_bytes()) && (at == 0 || stands_for)
    };
    wanted.iter().enumerate().all(fits) && words[wanted.len()..].iter().all(|it| is_name(it))
}

/// Whether a star may stand for a word.
fn is_name(word: &str) -> bool {
    !["-", "+", "@"].iter().any(|it| word.starts_with(it)) && !climbs(word) && !sets(word)
}

fn climbs(word: &str) -> bool {
    word.replace(['\\', '=', ':', ','], "/").split('/').any(|it| it == "..")
}

fn sets(word: &str) -> bool {
    let letters = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | ':' | '+');
    word.split_once('=').is_some_and(|(name, _)| name.chars().all(letters))
}

/// Words between two ends of commands.
struct Stretch {
    words: Vec<(String, bool)>,
    /// Which of the words are targets of redirections, or follow a blank within quotation marks.
    aside: Vec<bool>,
    /// Which of the words begin a text within quotation marks, or a command in such a text.
    heads: Vec<bool>,
    within: bool,
}

/// Where a sign of the line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Nothing,
    Single,
    Double,
}

/// The stretches of a line, and those without its marks and comments if it may mean something else.
fn stretches(line: &str) -> (Vec<Stretch>, Vec<Stretch>) {
    let (marked, tangled) = marked(line, false);
    let bare = if tangled { cut(&self::marked(line, true).0) } else { Vec::new() };
    let mut all = cut(&marked);
    let is_shell = |(word, _): &(String, bool)| one_of(word, "sh bash zsh dash ksh ash eval su");
    if all.iter().flat_map(|it| &it.words).any(is_shell) {
        for stretch in &mut all {
            for ((word, open), head) in stretch.words.iter_mut().zip(&stretch.heads) {
                let may_vary = word.contains(['*', '?', '[', '{', '$', '`']) && word != "[";
                *open = *open || (*head && may_vary);
            }
        }
    }
    (all, bare)
}

const END: char = '\u{1}';
const END_WITHIN: char = '\u{2}';
const OPEN: char = '\u{3}';
const KEEP: char = '\u{4}';
/// The word behind it is the target of a redirection.
const TARGET: char = '\u{5}';
/// A blank within marks.
const BLANK_WITHIN: char = '\u{6}';
/// Marks end here.
const CLOSE: char = '\u{7}';

/// The line with marks of our own in the place of everything that means something, and whether it may mean
/// something else.
fn marked(line: &str, bare: bool) -> (String, bool) {
    let signs: Vec<char> = line.chars().collect();
    let mut marked = String::new();
    let (mut inside, mut tangled, mut at) = (In::Nothing, false, 0);
    while at < signs.len() {
        let (sign, next) = (signs[at], signs.get(at + 1).copied());
        at += 1;
        let plain = marked.trim_end_matches(CLOSE);
        let is_word = plain.len() < marked.len() && plain.ends_with(KEEP);
        let begins = !is_word && (plain.is_empty() || plain.ends_with([' ', '\t', TARGET, END]));
        match (sign, inside) {
            ('\'' | '"', _) if bare => marked.push(KEEP),
            ('\'', In::Nothing) => (inside, _) = (In::Single, marked.push(KEEP)),
            ('"', In::Nothing) => (inside, _) = (In::Double, marked.push(KEEP)),
            ('\'', In::Single) | ('"', In::Double) => (inside, _) = (In::Nothing, marked.push(CLOSE)),
            ('\'' | '"', _) => {}
            ('#', In::Nothing) if begins && !bare => {
                tangled = true;
                at = (at..signs.len()).find(|it| signs[*it] == '\n').unwrap_or(signs.len());
            }
            ('\\', In::Nothing | In::Double) => {
                marked.extend(next.filter(|it| !['\n', '\'', '"'].contains(it)));
                at += 1;
            }
            ('`', In::Nothing | In::Double) => (tangled, _) = (true, marked.extend([OPEN, END])),
            ('$', In::Nothing | In::Double) if next == Some('(') => {
                (tangled, at) = (true, at + 1);
                marked.extend([OPEN, END]);
            }
            ('$', In::Nothing | In::Double) => {
                tangled |= next.is_some_and(|it| ['{', '\'', '"'].contains(&it));
                marked.extend([OPEN, sign]);
            }
            ('*' | '?' | '[' | '{' | '}', In::Nothing) if !bare => marked.extend([OPEN, sign]),
            ('\n' | '\r' | ';' | '|' | '&' | '(' | ')', In::Nothing) => {
                tangled |= sign.is_whitespace() && next.is_some();
                marked.push(END);
            }
            ('\n' | '\r' | ';' | '|' | '&' | '(' | ')', _) => marked.push(END_WITHIN),
            ('<' | '>', In::Nothing) => {
                tangled |= sign == '<' && next == Some('<');
                // A number before it is no word.
                let word = marked.rsplit([' ', '\t', TARGET, END]).next().unwrap_or_default().to_owned();
                if word.chars().all(|it| it.is_ascii_digit()) {
                    marked.truncate(marked.len() - word.len());
                }
                while at < signs.len() && ['<', '>', '&', '|'].contains(&signs[at]) {
                    at += 1;
                }
                marked.extend([' ', if signs.get(at) == Some(&'(') { ' ' } else { TARGET }]);
            }
            ('<' | '>', _) => marked.push(' '),
            (sign, it) if sign.is_whitespace() && it != In::Nothing => marked.push(BLANK_WITHIN),
            (sign, _) => marked.push(sign),
        }
    }
    (marked, tangled || inside != In::Nothing)
}

/// Cuts a marked line at the ends, and within these at blanks.
fn cut(marked: &str) -> Vec<Stretch> {
    let mut all = Vec::new();
    let mut within = false;
    for part in marked.split_inclusive([END, END_WITHIN]) {
        let next = part.ends_with(END_WITHIN);
        let mut stretch = Stretch { words: Vec::new(), aside: Vec::new(), heads: Vec::new(), within };
        let (mut target, mut follows) = (false, false);
        let mut in_text = within;
        let part = part.trim_end_matches([END, END_WITHIN]);
        for word in
            part.split_inclusive(|it: char| it.is_whitespace() || [TARGET, BLANK_WITHIN].contains(&it))
        {
            let end = word.chars().next_back().unwrap_or_default();
            let inner =
                word.trim_end_matches(|it: char| it.is_whitespace() || [TARGET, BLANK_WITHIN].contains(&it));
            let text: String = inner.chars().filter(|it| ![OPEN, KEEP, CLOSE].contains(it)).collect();
            let mut head = false;
            let mut begun = false;
            for sign in word.chars() {
                match sign {
                    CLOSE => in_text = false,
                    KEEP => (in_text, head, begun) = (true, head || !begun, true),
                    OPEN => {}
                    _ if !begun => (head, begun) = (in_text && stretch.words.is_empty(), true),
                    _ => {}
                }
            }
            let inner = inner.replace(CLOSE, "");
            let inner = inner.as_str();
            let keyword =
                ["if", "then", "elif", "else", "while", "until", "do", "{", "!"].contains(&text.as_str());
            let is_keyword = stretch.words.is_empty() && keyword && !inner.contains(KEEP);
            if !inner.is_empty() {
                if !is_keyword {
                    let open = inner.contains(OPEN) && !["{", "}", "[", "[["].contains(&text.as_str());
                    stretch.words.push((text, open));
                    stretch.aside.push(target || follows);
                    stretch.heads.push(head);
                }
                (target, follows) = (false, false);
            }
            match end {
                TARGET => target = true,
                BLANK_WITHIN => follows = !within && !stretch.words.is_empty(),
                it if it.is_whitespace() => follows = false,
                _ => {}
            }
        }
        if !stretch.words.is_empty() {
            all.push(stretch);
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
const INTERPRETERS: &str = "deno bun source . tee";
const READERS: &str = "echo printf grep egrep fgrep cat ls head tail wc which type cd test [";

fn is_interpreter(word: &str) -> bool {
    let name = program_of(word).to_ascii_lowercase();
    let begins = ["python", "pypy", "perl", "ruby", "node", "php", "lua"];
    one_of(word, INTERPRETERS) || begins.iter().any(|it| name.starts_with(it)) || name.ends_with("awk")
}

fn program_at(stretch: &Stretch) -> usize {
    let is_setting = |(word, open): &(String, bool)| {
        let name = word.split('=').next().unwrap_or_default();
        !open
            && word.contains('=')
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let both = stretch.words.iter().zip(&stretch.aside);
    let before = |(word, aside): &(&(String, bool), &bool)| **aside || is_setting(word);
    both.take_while(before).count()
}

fn is_reader(stretch: &Stretch) -> bool {
    let (word, open) = &stretch.words[0];
    let second = stretch.words.get(1).filter(|it| !it.1).map_or("", |it| it.0.as_str());
    let quiet_git = ["commit", "log", "show", "add", "status"].contains(&second);
    let reads = one_of(word, READERS) || (program_of(word) == "git" && quiet_git);
    let subscripts = one_of(word, "test [ printf") && stretch.words[1..].iter().any(|it| it.0.contains('['));
    !stretch.aside.contains(&false) || (!stretch.aside[0] && !open && reads && !subscripts)
}

/// The words behind each place at which a command may begin.
fn commands(line: &str) -> Vec<Vec<(String, bool)>> {
    let (all, bare) = stretches(line);
    let runs = |(word, _): &(String, bool)| one_of(word, WRAPPERS) || is_interpreter(word);
    let reads = bare.is_empty()
        && !all.iter().any(|it| it.words.iter().any(runs))
        && all.iter().all(|it| it.within || is_reader(it));
    let mut found = Vec::new();
    for stretch in all.iter().chain(&bare) {
        let (words, first) = (&stretch.words, program_at(stretch));
        for at in 0..words.len() {
            let wrapped = words[..at].iter().any(|(word, open)| !open && one_of(word, WRAPPERS));
            let is_place =
                if at == first { !(stretch.within && reads) } else { !reads && (!words[at].1 || wrapped) };
            if is_place {
                found.push(words[at..].to_vec());
            }
            if reads || words[at].1 {
                continue;
            }
            let mut parts: Vec<&str> = words[at].0.split(['=', '!', '[', ']', ',']).collect();
            parts.remove(0);
            parts.retain(|it| !it.is_empty());
            for from in 0..parts.len() {
                let told = parts[from..].iter().map(|it| ((*it).to_owned(), false));
                found.push(told.chain(words[at + 1..].iter().cloned()).collect());
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
    let is_it = |it: &str| {
        let it = it.to_ascii_lowercase();
        letters_match(program.as_bytes(), program_of(&it).as_bytes())
            || letters_match(program.as_bytes(), it.as_bytes())
    };
    let is_it = is_it(first) || (first.contains('\\') && is_it(&first.replace('\\', "")));
    *open || (is_it && follows(&wanted.collect::<Vec<_>>(), &words[1..]))
}

fn follows(wanted: &[&str], words: &[(String, bool)]) -> bool {
    let Some((want, rest)) = wanted.split_first() else { return true };
    let Some(((word, open), behind)) = words.split_first() else { return false };
    let is_it =
        [word.clone(), word.replace('\\', "")].iter().any(|it| letters_match(want.as_bytes(), it.as_bytes()));
    if *open || (is_it && follows(rest, behind)) {
        return true;
    }
    word.starts_with('-')
        && (follows(wanted, behind)
            || behind.split_first().is_some_and(|(value, behind)| value.1 || follows(wanted, behind)))
}
