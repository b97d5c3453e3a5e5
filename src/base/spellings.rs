//! Spellings of a symbol's name: the ones of languages, and the one of symbols here. Locks and the graph read a name by the same rules.

/// Rewrites a name as languages write it, `Store::get`, `(*Store).Get`, `Store#get`, `get()`, `get(by:at:)`, `square!` or
/// `App\Store::get`, in the form that symbols have here; `None` if it has that form already.
///
/// A name between angle brackets stays as it is: `Store::From<io::Error>::from` is `Store.From<io::Error>.from`.
pub fn symbol_as_path(name: &str) -> Option<String> {
    let labelled = name.strip_suffix(":)").and_then(|it| it.split_once('(')).map(|(bare, _)| bare);
    let bare = labelled.or_else(|| name.strip_suffix("()")).unwrap_or(name);
    let bare = bare.strip_suffix('!').unwrap_or(bare);
    let plain = with_dots(&bare.replace("(*", "").replace(").", "."));
    let plain = plain.strip_prefix('.').unwrap_or(&plain);
    (plain != name && !plain.is_empty()).then(|| plain.to_owned())
}

/// Writes a dot for each separator of a language.
fn with_dots(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut depth = 0_u32;
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match c {
            '#' | '\\' if depth == 0 => plain.push('.'),
            ':' if depth == 0 && rest.next_if_eq(&':').is_some() => plain.push('.'),
            c => plain.push(c),
        }
    }
    plain
}

/// Checks whether a text names a symbol without its file: it has no colon, or its first colon belongs to the name, as in `Store::get`
/// and `find(by:at:)`.
pub fn names_no_file(text: &str) -> bool {
    let Some((before, after)) = text.split_once(':') else { return true };
    let is_in_brackets = before.matches('(').count() > before.matches(')').count();
    after.starts_with(':') || (is_in_brackets && text.ends_with(":)"))
}
