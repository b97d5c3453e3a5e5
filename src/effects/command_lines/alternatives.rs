//! Words that stand for several: of a loop, of braces, or of a default value; and words with an open part.
#![forbid(unsafe_code)]

use super::{OpenPart, ShellWord};
use crate::budget::Budget;
use provost_base::limits::WORD_CHOICES_MAX;

/// The mark for an unknown part of a word.
pub(super) const UNKNOWN: char = '\0';

/// The marks that begin, divide and end the choices of a word. No text has these signs.
pub(super) const CHOICE: char = '\u{fdd0}';
pub(super) const OR: char = '\u{fdd1}';
pub(super) const CHOSEN: char = '\u{fdd2}';

fn is_mark(sign: char) -> bool {
    matches!(sign, CHOICE | OR | CHOSEN)
}

/// Combines words into one word with choices; without any word, the mark for an unknown part.
pub(super) fn one_of(words: impl IntoIterator<Item = String>) -> String {
    let words: Vec<String> = words.into_iter().collect();
    match words.as_slice() {
        [] => UNKNOWN.to_string(),
        [one] => one.clone(),
        all => format!("{CHOICE}{}{CHOSEN}", all.join(OR.to_string().as_str())),
    }
}

/// Returns the words that a word stands for. If one choice has too many alternatives, its value is unknown.
pub(super) fn each_of(word: &str, budget: &mut Budget) -> Vec<String> {
    if !word.contains(is_mark) {
        return vec![word.to_owned()];
    }
    let (mut done, mut left) = (Vec::new(), vec![word.to_owned()]);
    while let Some(next) = left.pop() {
        if !budget.read(next.len()) {
            break;
        }
        let Some((before, choices, after)) = first_choice(&next) else {
            done.push(next.replace(is_mark, ""));
            continue;
        };
        if done.len() + left.len() + choices.len() > WORD_CHOICES_MAX {
            left.push(format!("{before}{UNKNOWN}{after}"));
        } else {
            left.extend(choices.iter().rev().map(|choice| format!("{before}{choice}{after}")));
        }
    }
    done
}

/// Returns the text before the first choice of a word, its alternatives, and the text behind it.
fn first_choice(word: &str) -> Option<(&str, Vec<&str>, &str)> {
    let from = word.find(CHOICE)?;
    let inner = &word[from + CHOICE.len_utf8()..];
    let (mut choices, mut open, mut at) = (Vec::new(), 0_usize, 0);
    for (index, sign) in inner.char_indices() {
        match sign {
            CHOICE => open += 1,
            OR if open == 0 => {
                choices.push(&inner[at..index]);
                at = index + sign.len_utf8();
            }
            CHOSEN if open == 0 => {
                choices.push(&inner[at..index]);
                return Some((&word[..from], choices, &inner[index + sign.len_utf8()..]));
            }
            CHOSEN => open -= 1,
            _ => {}
        }
    }
    None
}

impl ShellWord {
    /// Makes a word from a text, as far as the text is known.
    pub(crate) fn of(text: &str) -> Self {
        let open = open_part(text);
        match text.rsplit_once(UNKNOWN) {
            Some((_, end)) => Self { text: end.to_owned(), is_end: true, open },
            None => Self { text: text.to_owned(), is_end: false, open },
        }
    }
}

/// Returns the folder of a word whose rest is open; `None` if the whole word is known, or nothing of its beginning.
fn open_part(text: &str) -> Option<OpenPart> {
    let at = text.find(|sign: char| sign == UNKNOWN || "*?[".contains(sign))?;
    if at == 0 && text.starts_with(UNKNOWN) {
        return None;
    }
    let (folder, rest) = text.split_at(text[..at].rfind('/').map_or(0, |it| it + 1));
    Some(OpenPart { folder: folder.to_owned(), pattern: rest.replace(UNKNOWN, "**") })
}

/// Returns the value of a loop's variable: each of the words, or, if there are too many, any file in their folders. `None` if there
/// are too many folders, too.
pub(super) fn loop_value(words: &[String]) -> Option<String> {
    if words.len() <= WORD_CHOICES_MAX {
        return Some(one_of(words.iter().cloned()));
    }
    let folder = |word: &String| format!("{}**", &word[..word.rfind('/').map_or(0, |it| it + 1)]);
    let folders: std::collections::BTreeSet<String> = words.iter().map(folder).collect();
    (folders.len() <= WORD_CHOICES_MAX).then(|| one_of(folders))
}
