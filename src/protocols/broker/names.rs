//! Checks the names under which agents publish here, and finds the one name of all spellings.

use provost_base::Slug;
use provost_base::limits::ID_LEN_MAX;
use provost_domain::post::slug;

/// Whether a caller may publish under a name: `supervisor`, or two words with a dash or a slash between them. One word
/// alone may only be the name of a known agent.
pub(super) fn is_good(name: &str, knows: impl Fn(&Slug) -> bool) -> bool {
    if name.len() > ID_LEN_MAX {
        return false;
    }
    if name == "supervisor" {
        return true;
    }
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()) && part.chars().all(is_plain)
    };
    // A slash may stand once; what is before and after it has dashes of its own.
    if let Some((prefix, rest)) = name.split_once('/') {
        return is_word(prefix) && is_word(rest);
    }
    if !is_word(name) {
        return false;
    }
    let bytes = name.as_bytes();
    let splits = bytes.windows(2).any(|pair| pair[0] == b'-' && pair[1].is_ascii_alphanumeric());
    // `feat--x` and `feat-x-` are fine, `feat-` is one word.
    splits || knows(&slug(name))
}

/// Those of some names that are valid only if an agent has them.
pub(super) fn single(names: Vec<&str>) -> Vec<Slug> {
    let single = names.into_iter().filter(|it| is_good(it, |_| true) && !is_good(it, |_| false));
    single.map(slug).collect()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_')
}

/// Whose inbox is asked for: a name in any spelling that can be published under, or its dashed form.
pub(super) fn inbox(name: &str) -> Option<Slug> {
    let good = |part: &str| !part.is_empty() && part.chars().all(is_plain);
    let good = match name.split_once('/') {
        Some((prefix, rest)) => good(prefix) && good(rest),
        None => good(name),
    };
    (good && name.len() <= ID_LEN_MAX).then(|| slug(name))
}
