//! The data that commands hand to each other: names that a command prints for a loop or for `xargs`, files whose text it prints for a
//! shell, and the programs that it starts for each name.
#![forbid(unsafe_code)]

use super::alternatives::one_of;
use crate::programs::{SHELLS, is_loader};
use provost_base::limits::{PATH_LEN_MAX, WORD_CHOICES_MAX};

/// Options of `find` that a program follows.
const STARTS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// Programs that start another program for each name that they read.
const FOR_EACH: [&str; 2] = ["xargs", "parallel"];

/// How many programs of one `find` are looked at.
const STARTS_MAX: usize = 8;

fn name_of(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// Returns the paths that a command prints, with patterns in them; empty if they are unknown.
pub(super) fn names_of(words: &[String]) -> Vec<String> {
    let Some((name, words)) = words.split_first() else { return Vec::new() };
    let named = || words.iter().filter(|it| !it.starts_with('-')).take(WORD_CHOICES_MAX);
    let below = |word: &String, end: &str| match is_pattern(word) {
        true => word.clone(),
        false => format!("{}/{end}", word.trim_end_matches('/')),
    };
    match name_of(name) {
        "find" => found_by(words),
        "ls" if named().next().is_none() => vec!["./*".to_owned()],
        "ls" => named().map(|it| below(it, "*")).collect(),
        "git" if words.first().is_some_and(|it| it == "ls-files") => {
            named().skip(1).map(|it| below(it, "**")).collect()
        }
        // A list that is printed counts by its own name.
        "cat" | "head" | "tail" | "echo" | "printf" | "expand_path" | "realpath" | "readlink" => {
            named().cloned().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the folders that `find` looks through, joined with the name that it looks for.
fn found_by(words: &[String]) -> Vec<String> {
    let words: Vec<&String> =
        words.iter().skip_while(|it| matches!(it.as_str(), "-L" | "-H" | "-P")).collect();
    let folders = words.iter().take_while(|it| !it.starts_with(['-', '(', '!']));
    let folders: Vec<&str> = folders.take(WORD_CHOICES_MAX).map(|it| it.trim_end_matches('/')).collect();
    let mut names = words.iter().enumerate().filter(|(_, it)| matches!(it.as_str(), "-name" | "-iname"));
    // If `find` looks for several names, any name may be meant.
    let name = match (names.next(), names.next()) {
        (Some((at, _)), None) => words.get(at + 1).map_or("", |it| it.as_str()),
        _ => "",
    };
    let name = if name.len() <= PATH_LEN_MAX { name } else { "" };
    let folders = if folders.is_empty() { vec!["."] } else { folders };
    folders.into_iter().map(|folder| format!("{folder}/**{name}")).collect()
}

/// Combines the names into one word. Drops names that are too long for a path.
fn any_of(names: Vec<String>) -> String {
    one_of(names.into_iter().filter(|it| it.len() <= PATH_LEN_MAX / 16))
}

fn names_of_all(fed: &[Vec<String>]) -> Vec<String> {
    fed.iter().flat_map(|words| names_of(words)).take(WORD_CHOICES_MAX).collect()
}

/// Returns the names that the commands of a pipe hand to the next one, as one word; `None` if they are unknown.
pub(super) fn handed_on(fed: &[Vec<String>]) -> Option<String> {
    let names = names_of_all(fed);
    (!names.is_empty()).then(|| any_of(names))
}

/// Returns the arguments of a line that is itself an argument of this command, as one word.
pub(super) fn given_by(words: &[String], fed: &[Vec<String>]) -> Option<String> {
    let words = &words[..words.len().min(WORD_CHOICES_MAX)];
    if words.iter().any(|it| FOR_EACH.contains(&name_of(it))) {
        return handed_on(fed);
    }
    let from = words.iter().position(|it| name_of(it) == "find")?;
    let starts = words.iter().any(|it| STARTS.contains(&it.as_str()));
    starts.then(|| any_of(names_of(&words[from..])))
}

/// Returns the commands that a command starts for each file that it finds, or for the names that it reads from a pipe.
pub(super) fn started_by(words: &[String], fed: &[Vec<String>]) -> Vec<Vec<String>> {
    let Some((name, arguments)) = words.split_first() else { return Vec::new() };
    match name_of(name) {
        "find" => executed(words),
        "run-parts" => {
            let folders = arguments.iter().filter(|it| !it.starts_with('-')).take(WORD_CHOICES_MAX);
            folders.map(|it| vec![format!("{}/*", it.trim_end_matches('/'))]).collect()
        }
        name if FOR_EACH.contains(&name) => for_each(arguments, fed).into_iter().collect(),
        name if is_loader(name) || SHELLS.contains(&name) => {
            let (reader, code) = if is_loader(name) { (name, "cempr") } else { (".", "c") };
            let texts = read_by(arguments, code, fed).into_iter();
            texts.map(|it| vec![reader.to_owned(), it]).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the commands that `find` starts for each file that it finds.
fn executed(words: &[String]) -> Vec<Vec<String>> {
    let found = any_of(names_of(words));
    let begins = words.iter().enumerate().filter(|(_, it)| STARTS.contains(&it.as_str()));
    let command = |(at, _): (usize, &String)| {
        let words = words[at + 1..].iter().take_while(|it| !matches!(it.as_str(), ";" | "+"));
        words.take(WORD_CHOICES_MAX).map(|it| it.replacen("{}", &found, 2)).collect::<Vec<String>>()
    };
    begins.take(STARTS_MAX).map(command).collect()
}

/// Returns the command that `xargs` starts, with the names that it reads, if that is an interpreter or one of the files.
fn for_each(words: &[String], fed: &[Vec<String>]) -> Option<Vec<String>> {
    let names = handed_on(fed)?;
    let option = words.iter().position(|it| it.starts_with("-I"));
    let sign = option.and_then(|at| match words[at].strip_prefix("-I") {
        Some("") => words.get(at + 1).map(String::as_str),
        sign => sign,
    });
    let sign = sign.filter(|it| !it.is_empty()).unwrap_or("{}");
    let from = option.map_or(0, |at| at + 1 + usize::from(words[at] == "-I"));
    let is_first = |it: &String| it.contains(sign) || is_loader(name_of(it)) || SHELLS.contains(&name_of(it));
    let begin = from + words.get(from..)?.iter().position(is_first)?;
    let mut command: Vec<String> =
        words[begin..].iter().take(WORD_CHOICES_MAX).map(|it| it.replacen(sign, &names, 2)).collect();
    if !words[begin..].iter().any(|it| it.contains(sign)) {
        command.push(names);
    }
    Some(command)
}

/// Returns words of the commands before this one in a pipe, for an interpreter that reads its script from there: some are files
/// whose text it gets. With an option that has one of the letters `code`, it reads no script.
fn read_by(words: &[String], code: &str, fed: &[Vec<String>]) -> Vec<String> {
    let is_reading = words.iter().all(|it| it.starts_with('-')) || words.iter().any(|it| it == "-s");
    let is_code = |it: &String| {
        it.starts_with('-') && !it.starts_with("--") && it.contains(|sign: char| code.contains(sign))
    };
    if !is_reading || words.iter().any(is_code) {
        return Vec::new();
    }
    let all = fed.iter().flat_map(|words| words.iter().skip(1)).filter(|it| !it.starts_with('-'));
    all.take(WORD_CHOICES_MAX).cloned().collect()
}
