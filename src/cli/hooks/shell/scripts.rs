//! Writes of scripts for `sed` and `awk`, as far as they name the files.
//!
//! The scripts are not understood: every text that may be a file's name in such a place counts as one. An extra name
//! does no harm, since no agent holds such a file.

use std::path::Path;

use super::found::Found;
use super::programs::{is_option, text, values_of, written};
use super::words::Word;
use super::{Reader, Written};
use provost_base::limits::{SCRIPT_NAME_BYTES_MAX, SCRIPT_PLACES_MAX};

pub(super) fn of_one(program: &str, rest: &[Word], folder: &Path, found: &mut Found) {
    match program {
        "sed" | "gsed" => of_sed(rest, folder, found),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => of_awk(rest, folder, found),
        _ => {}
    }
}

/// Returns the scripts among words: the values of some options, or the first word that is no option.
fn scripts(rest: &[Word], options: &[&str], other: &[&str], flags: &str) -> (Vec<String>, usize) {
    let said = values_of(rest, options, flags);
    if !said.is_empty() || !values_of(rest, &["-f", "--file"], flags).is_empty() {
        return (said, 0);
    }
    let mut at = 0;
    while rest.get(at).is_some_and(is_option) {
        at += if text(&rest[at]).is_some_and(|it| other.contains(&it)) { 2 } else { 1 };
    }
    (rest.get(at).and_then(text).map(str::to_owned).into_iter().collect(), at + 1)
}

/// Finds `w FILE`, also after `s/a/b/`, and `e LINE`.
fn of_sed(rest: &[Word], folder: &Path, found: &mut Found) {
    let (scripts, _) = scripts(rest, &["-e", "--expression"], &["-l", "--line-length"], "nrEsuzi");
    for line in scripts.iter().flat_map(|it| it.lines()) {
        let places: Vec<usize> = line.match_indices(['w', 'W', 'e']).map(|it| it.0).collect();
        if places.len() > SCRIPT_PLACES_MAX {
            return found.give_up();
        }
        for at in places {
            // A name extends to the end of the line.
            let name = line[at + 1..].trim_start();
            if name.is_empty() || name.len() > SCRIPT_NAME_BYTES_MAX {
                continue;
            }
            let is_within_word = line[..at].ends_with(|c: char| c.is_alphabetic() && c != 'g' && c != 'p');
            match line.as_bytes()[at] {
                b'e' if line[at + 1..].starts_with(' ') && !is_within_word => runs(name, folder, found),
                b'e' => {}
                _ => {
                    found.push(Written::Path(folder.join(name)));
                    let to_the_brace = name.trim_end_matches(['}', ';', ' ']);
                    found.push(Written::Path(folder.join(to_the_brace)));
                }
            }
        }
    }
}

/// Finds `print > "file"`, `print | "line"`, `system("line")`; a name stands for the values that it is given anywhere.
fn of_awk(rest: &[Word], folder: &Path, found: &mut Found) {
    let (scripts, files) =
        scripts(rest, &["-e", "--source"], &["-v", "-F", "--assign", "--field-separator", "-i", "-l"], "");
    let given = values_of(rest, &["-v", "--assign"], "");
    for script in &scripts {
        let signs: Vec<(usize, &str)> = script.match_indices(['>', '|', '(']).collect();
        if signs.len() > SCRIPT_PLACES_MAX {
            return found.give_up();
        }
        for (at, sign) in signs {
            let behind = script[at + 1..].trim_start_matches(['>', '&', ' ', '(']);
            let before = script[..at].trim_end();
            let is_call = sign == "(" && before.ends_with("system");
            if sign == "(" && !is_call {
                continue;
            }
            if sign == "|"
                && let Some(line) = before.strip_suffix('"').and_then(|it| it.rsplit('"').next())
            {
                runs(line, folder, found);
            }
            let is_file = sign == ">";
            for value in values(behind, script, &given) {
                match is_file {
                    true => found.extend(written(&Word::Plain(value), folder)),
                    false => runs(&value, folder, found),
                }
            }
            if is_file && ["FILENAME", "ARGV"].iter().any(|it| behind.starts_with(it)) {
                let files = rest.get(files..).unwrap_or_default().iter().filter(|it| !is_option(it));
                found.extend(files.flat_map(|it| written(it, folder)));
            }
        }
    }
}

/// Returns the texts that an expression may be: a text, or the values that its name is given.
fn values(expression: &str, script: &str, given: &[String]) -> Vec<String> {
    let quoted = |it: &str| it.trim_start().strip_prefix('"')?.split('"').next().map(str::to_owned);
    if let Some(text) = quoted(expression) {
        return vec![text];
    }
    let end = expression.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(expression.len());
    let name = &expression[..end];
    if name.is_empty() {
        return Vec::new();
    }
    let of_option = given.iter().filter_map(|it| it.strip_prefix(name)?.strip_prefix('='));
    let behind = script.match_indices(name).take(SCRIPT_PLACES_MAX).map(|(at, _)| &script[at + name.len()..]);
    let assigned = behind.filter_map(|it| quoted(it.trim_start().strip_prefix('=')?));
    of_option.map(str::to_owned).chain(assigned).collect()
}

fn runs(line: &str, folder: &Path, found: &mut Found) {
    if line.len() <= SCRIPT_NAME_BYTES_MAX {
        found.deeper(|found| Reader::within(found).line(line, folder));
    }
}
