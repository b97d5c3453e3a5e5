//! Checks the names under which agents publish here, and finds the common name of all spellings.

use provost_base::Slug;
use provost_base::limits::ID_LEN_MAX;
use provost_domain::post::slug;

/// Checks whether a caller may publish under a name: `supervisor`, or two words with a dash or a slash between
/// them. A single word may only be the name of a known agent.
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
    // A slash may occur once; the parts before and after it may have dashes.
    if let Some((prefix, rest)) = name.split_once('/') {
        return is_word(prefix) && is_word(rest);
    }
    if !is_word(name) {
        return false;
    }
    let bytes = name.as_bytes();
    let splits = bytes.windows(2).any(|pair| pair[0] == b'-' && pair[1].is_ascii_alphanumeric());
    // `feat--x` and `feat-x-` are valid, `feat-` is a single word.
    splits || knows(&slug(name))
}

/// Returns the names that are valid only if an agent has them.
pub(super) fn single(names: Vec<&str>) -> Vec<Slug> {
    let single = names.into_iter().filter(|it| is_good(it, |_| true) && !is_good(it, |_| false));
    single.map(slug).collect()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_')
}

/// Returns the agent of the wanted inbox: its name may have any valid spelling, or the dashed form.
pub(super) fn inbox(name: &str) -> Option<Slug> {
    let good = |part: &str| !part.is_empty() && part.chars().all(is_plain);
    let good = match name.split_once('/') {
        Some((prefix, rest)) => good(prefix) && good(rest),
        None => good(name),
    };
    (good && name.len() <= ID_LEN_MAX).then(|| slug(name))
}
