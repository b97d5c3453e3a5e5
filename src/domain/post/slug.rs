//! Slugs: one name for all spellings of an agent's name, and the name that the broker's clients
//! derive from a branch.

use provost_base::Slug;
use provost_base::limits::ID_LEN_MAX;
use provost_base::small;

/// Returns the slug of a name: small letters; a slash becomes a dash, several dashes become one, and the ends have
/// none. `feat/x` and `feat-x` are the same agent, as for the broker's clients. Other characters stay, and so does
/// a name that would consist of dashes only: different names are different inboxes, and have different owners.
pub fn slug(name: &str) -> Slug {
    spelled(name, |c| if c == '/' || c.is_control() { '-' } else { c })
}

/// Returns the form of a name that a key or a token protects: the slug, with a dash for each ASCII character that
/// is not a letter, digit or underscore. `a.b` and `a-b` have inboxes of their own, but only one owner: one could
/// pass for the other, and clients of the broker derive the second from a branch that is called like the first.
pub fn owned_slug(name: &str) -> Slug {
    spelled(name, |c| if is_plain(c) || !(c.is_ascii() || c.is_control()) { c } else { '-' })
}

/// Returns the inboxes that a name in a list of owners means: the name's own, and the one of git-paw's clients,
/// which derive their names from a branch with this name.
pub fn owner_slugs(name: &str) -> impl Iterator<Item = Slug> {
    let (own, branch) = (slug(name), slug_of_branch(name));
    let other = branch.filter(|it| *it != own);
    std::iter::once(own).chain(other)
}

fn spelled(name: &str, kept: impl Fn(char) -> char) -> Slug {
    let text = dashed(name.chars().map(|c| kept(small(c))));
    let whole = || if name.is_empty() { "-".to_owned() } else { cut(name).replace(char::is_control, "-") };
    let text = if text.is_empty() { whole() } else { text };
    Slug::parse(&text).expect("text that is not empty, without control characters, is an id")
}

/// Returns the name that git-paw's clients derive from a branch: characters outside of ASCII become dashes, too.
/// `None` if nothing is left of the name; such clients all call themselves `agent`, a name from which git-paw's own
/// broker takes no message.
pub fn slug_of_branch(branch: &str) -> Option<Slug> {
    let kept = |c: char| if is_plain(c) { c } else { '-' };
    Slug::parse(&dashed(branch.chars().map(|c| kept(c.to_ascii_lowercase())))).ok()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

/// Returns the text with one dash for several and none at the ends, no longer than an id may be.
fn dashed(chars: impl Iterator<Item = char>) -> String {
    let mut text = String::with_capacity(chars.size_hint().1.unwrap_or(0).min(ID_LEN_MAX));
    for c in chars {
        if c != '-' || !(text.is_empty() || text.ends_with('-')) {
            text.push(c);
        }
    }
    text.truncate(cut(&text).trim_end_matches('-').len());
    text
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(ID_LEN_MAX)]
}
