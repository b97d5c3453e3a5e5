//! Commands that our own texts name: each exists, with these arguments, and is no old form. Found in the
//! string literals of the sources (errors, help, descriptions of tools, instructions), in the code of the
//! documents, and in the scripts and settings; read by the program itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use provost::cli::{Kind, definition, read};

use crate::support::provost;

/// Texts that begin like a command and are none.
const NO_COMMANDS: [&str; 4] =
    ["provost does not", "provost --test", "provost key id", "provost worker folder"];

/// How a text names a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// As code: to the letter.
    Code,
    /// In a sentence, whose words go on behind it.
    Words,
}

/// Finds the commands in what a file says.
type Reads<'a> = dyn Fn(&str, &mut Vec<(String, Form)>) + 'a;

fn files(folder: &str, ends: &str) -> Vec<PathBuf> {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|it| it.unwrap().path()));
        } else if path.extension().map_or(ends.is_empty(), |it| it == ends) {
            found.push(path);
        }
    }
    found
}

/// The string literals of a source, without comments.
fn literals(source: &str) -> Vec<String> {
    let lines = source.lines().filter(|it| !it.trim_start().starts_with("//"));
    let source = lines.collect::<Vec<_>>().join("\n");
    let (mut all, mut rest) = (Vec::new(), source.as_str());
    while let Some(at) = rest.find('"') {
        let is_raw = rest[..at].ends_with("r#");
        let is_char = rest[..at].ends_with('\'') && rest[at + 1..].starts_with('\'');
        rest = &rest[at + 1..];
        if is_char {
            continue;
        }
        if is_raw {
            let (text, behind) = rest.split_once("\"#").unwrap_or((rest, ""));
            all.push(text.to_owned());
            rest = behind;
            continue;
        }
        let (mut text, mut chars) = (String::new(), rest.char_indices());
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    rest = &rest[at + 1..];
                    break;
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    // A text goes on behind the blanks of the next line.
                    Some((_, '\n')) => {
                        while chars.clone().next().is_some_and(|(_, it)| it.is_whitespace()) {
                            chars.next();
                        }
                    }
                    Some((_, other)) => text.push(other),
                    None => {}
                },
                c => text.push(c),
            }
        }
        all.push(text);
    }
    all
}

/// Returns the texts between backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The commands in a text of ours.
fn in_literal(text: &str, found: &mut Vec<(String, Form)>) {
    let code = spans(text).filter(|it| it.starts_with("provost "));
    found.extend(code.map(|it| (it.to_owned(), Form::Code)));
    for line in text.replace("\\\n", " ").lines().filter(|it| !it.contains('`')) {
        for (at, _) in line.match_indices("provost ") {
            let is_example = line.starts_with("  ") && line[..at].trim().is_empty();
            found.push((line[at..].to_owned(), if is_example { Form::Code } else { Form::Words }));
        }
    }
}

fn in_document(text: &str, found: &mut Vec<(String, Form)>) {
    let (mut is_code, mut prose) = (false, String::new());
    for line in text.replace("\\\n", " ").lines() {
        let line = line.trim_start();
        match line.starts_with("```") {
            true => is_code = !is_code,
            false if is_code => {
                let line = line.strip_prefix("$ ").unwrap_or(line);
                found.extend(line.starts_with("provost ").then(|| (line.to_owned(), Form::Code)));
            }
            false => {
                prose.push_str(line);
                prose.push('\n');
            }
        }
    }
    for paragraph in prose.split("\n\n") {
        let code = spans(paragraph).map(|it| it.replace('\n', " ")).filter(|it| it.starts_with("provost "));
        found.extend(code.map(|it| (it, Form::Code)));
    }
}

/// In a script, and in a file of settings, whose comments are sentences.
fn in_script(text: &str, found: &mut Vec<(String, Form)>) {
    for line in text.replace("\\\n", " ").lines() {
        let code = spans(line).filter(|it| it.starts_with("provost "));
        found.extend(code.map(|it| (it.to_owned(), Form::Code)));
        let words = line.match_indices("provost ").filter(|_| !line.contains('`'));
        found.extend(words.map(|(at, _)| (line[at..].to_owned(), Form::Words)));
    }
}

/// The words of a command, up to what a shell would take for another one, or a reader for the rest of the
/// sentence.
fn words(command: &str, form: Form) -> Vec<String> {
    let (mut words, mut word, mut mark) = (Vec::new(), String::new(), None);
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        let is_end = match (mark, c) {
            (Some(open), c) if open == c => {
                mark = None;
                continue;
            }
            (Some(_), c) => {
                word.push(c);
                continue;
            }
            (None, '\'' | '"') => {
                mark = Some(c);
                continue;
            }
            (None, '#') => word.is_empty(),
            (None, ';' | '|' | '&' | '>' | '(' | ')' | '…') => true,
            (None, '<') => chars.peek() == Some(&' '),
            (None, ',' | ':' | '.') => chars.peek().is_none_or(|it| it.is_whitespace()),
            (None, ' ') => chars.peek() == Some(&' ') || form == Form::Words && word.ends_with(','),
            _ => false,
        };
        if is_end {
            break;
        }
        match c {
            ' ' => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            '[' | ']' => {}
            // A place for something is a word.
            '<' | '{' => {
                let end = if c == '<' { '>' } else { '}' };
                let _inner = chars.by_ref().take_while(|it| *it != end).count();
                word.push('x');
            }
            c => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words.into_iter().skip(1).filter(|it| it != "...").collect()
}

/// Why the program does not take a command; `None` where it does.
fn objection(command: &str, form: Form) -> Option<String> {
    let mut words = words(command, form);
    let typed = ["provost"].into_iter().chain(words.iter().map(String::as_str)).map(OsString::from).collect();
    if let Some(old) = read(typed, &definition()).form.filter(|it| it.kind != Kind::Short) {
        return Some(format!("`{}` is an old form of `{}`", old.typed, old.meant));
    }
    let at = words.iter().position(|it| it == "--").unwrap_or(words.len());
    words.insert(at, "--help".into());
    let done = Command::new(provost()).args(&words).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let first = said.lines().next().unwrap_or_default().to_owned();
    let is_place = first.contains("invalid value") || first.contains("a value is required");
    let what = first.split('\'').nth(1).unwrap_or_default();
    // The sentence goes on.
    let goes_on = form == Form::Words && !what.starts_with('-');
    (!done.status.success() && !is_place && !goes_on).then_some(first)
}

#[test]
fn every_command_that_a_text_of_ours_names_exists_with_its_arguments() {
    let mut all: BTreeMap<String, (Form, PathBuf)> = BTreeMap::new();
    let mut take = |path: PathBuf, read: &Reads<'_>| {
        let mut found = Vec::new();
        read(&std::fs::read_to_string(&path).unwrap(), &mut found);
        for (command, form) in found {
            if !NO_COMMANDS.iter().any(|it| command.starts_with(it)) {
                all.entry(command).or_insert((form, path.clone()));
            }
        }
    };
    for path in files("src", "rs") {
        take(path, &|text, found| literals(text).iter().for_each(|it| in_literal(it, found)));
    }
    for path in ["docs", "src", "policy", "README.md"].into_iter().flat_map(|it| files(it, "md")) {
        take(path, &in_document);
    }
    let scripts =
        files("scripts", "").into_iter().chain(files("scripts", "sh")).chain(files("scripts", "ps1"));
    for path in scripts.chain(files("config", "toml")).chain(files("policy", "toml")) {
        take(path, &in_script);
    }
    assert!(all.len() > 300, "only {} commands were found", all.len());
    let all: Vec<_> = all.into_iter().collect();
    let wrong = |part: &[(String, (Form, PathBuf))]| -> Vec<String> {
        let why = |(command, (form, path)): &(String, (Form, PathBuf))| {
            objection(command, *form).map(|why| format!("{}: {command}: {why}", path.display()))
        };
        part.iter().filter_map(why).collect()
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> =
            all.chunks(all.len().div_ceil(4)).map(|part| scope.spawn(move || wrong(part))).collect();
        parts.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_that_is_none_is_found() {
    for (command, form) in [
        ("provost nothing", Form::Code),
        ("provost up --nothing", Form::Code),
        ("provost up --nothing does it", Form::Words),
        ("provost task show ID more", Form::Code),
        ("provost locks", Form::Code),
        ("provost locks shows them", Form::Words),
        ("provost task 3f0c2a", Form::Code),
        ("provost hooks run claude pre-tool-use", Form::Code),
        ("provost git installs", Form::Code),
    ] {
        assert!(objection(command, form).is_some(), "{command}");
    }
    for (command, form) in [
        ("provost deny N --reason WHY", Form::Code),
        ("provost lock FILE:SYMBOL --ttl 5m", Form::Code),
        ("provost lock list", Form::Code),
        ("provost jail try -- ls -la", Form::Code),
        ("provost up, then once more", Form::Words),
        ("provost doctor shows it", Form::Words),
    ] {
        assert_eq!(objection(command, form), None, "{command}");
    }
}

/// The commands of tasks, in which an id stands that an agent may have chosen.
const OF_TASKS: [&str; 8] = [
    "task show",
    "task diff",
    "task apply",
    "task discard",
    "task cancel",
    "task report",
    "apply",
    "discard",
];

#[test]
fn an_id_of_a_task_stands_in_a_command_as_one_word_of_a_shell() {
    let is_raw = |text: &str| OF_TASKS.iter().any(|it| text.contains(&format!("provost {it} {{")));
    assert!(is_raw("write them: provost apply {id}") && is_raw("provost task show {} --wait"));
    let mut raw = Vec::new();
    for path in files("src", "rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        // The digest of an approval begins with words that nobody types.
        let words = literals(&text).into_iter().filter(|it| is_raw(it) && it != "provost apply {}");
        raw.extend(words.map(|it| format!("{}: {it}", path.display())));
    }
    assert!(raw.is_empty(), "task_command writes such a command:\n{}", raw.join("\n"));
}
