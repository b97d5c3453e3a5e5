//! Types as the doc comments of JavaScript write them: `Store`, `?Store`, `Readonly<Store>`, `import("./store").Store`.

use provost_base::limits::SYMBOL_LEN_MAX;

/// The deepest nesting of brackets around a type that is followed.
const NESTED_MAX: usize = 8;
/// Types that have the members of what they are made for.
const HELPERS: [&str; 4] = ["Partial", "Readonly", "Required", "NonNullable"];

/// The text between the brackets at the beginning of a text, and what is behind them.
pub(super) fn typed(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start().strip_prefix('{')?;
    let mut open = 0_usize;
    for (at, it) in text.bytes().enumerate() {
        match it {
            b'{' => open += 1,
            b'}' if open == 0 => return Some((text[..at].trim(), &text[at + 1..])),
            b'}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// `T`, `{Bound} T, U`, `[T=Store]`.
pub(super) fn templates(rest: &str) -> impl Iterator<Item = &str> {
    let rest = typed(rest).map_or(rest, |(_, rest)| rest);
    let line = rest.lines().next().unwrap_or_default();
    let names = line.split(',').map(|it| it.trim_start_matches([' ', '\t', '[']));
    names.map(|it| &it[..it.find(|it: char| !is_in_name(it)).unwrap_or(it.len())]).filter(|it| !it.is_empty())
}

pub(super) fn is_in_name(it: char) -> bool {
    it.is_alphanumeric() || matches!(it, '_' | '$')
}

pub(super) fn is_in_path(it: char) -> bool {
    is_in_name(it) || it == '.'
}

/// What a type names.
pub(super) enum Named<'a> {
    Class(&'a str),
    /// `import("./store")`, and `import("./store").Store` with the name.
    Imported {
        from: &'a str,
        name: Option<&'a str>,
    },
    BuiltIn,
    Unknown,
}

pub(super) fn named(typed: &str) -> Named<'_> {
    let mut typed = typed.trim();
    for _ in 0..NESTED_MAX {
        typed = typed.trim_start_matches(['?', '!']).trim_end_matches(['=', '?', '!']).trim();
        let Some(only) = only_one(typed) else { return Named::Unknown };
        let inner = only.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        match inner.or_else(|| argument_of_helper(only)) {
            Some(inner) => typed = inner.trim(),
            None if only.len() == typed.len() => return bare(only),
            None => typed = only,
        }
    }
    Named::Unknown
}

/// The type that is none of `null` and `undefined`, if it is the only one of several; none if they do not end where they should.
fn only_one(typed: &str) -> Option<&str> {
    let (mut open, mut from, mut found) = (0_usize, 0, None);
    let ends = typed.char_indices().chain([(typed.len(), '|')]);
    for (at, it) in ends {
        match it {
            '(' | '<' | '{' | '[' => open += 1,
            '>' if typed[..at].ends_with('=') => {}
            ')' | '>' | '}' | ']' => open = open.checked_sub(1)?,
            '|' if open == 0 => {
                let part = typed[from..at].trim();
                from = (at + 1).min(typed.len());
                if !matches!(part, "null" | "undefined") && found.replace(part).is_some() {
                    return None;
                }
            }
            _ => {}
        }
    }
    found.filter(|_| open == 0)
}

/// `Store` of `Readonly<Store>`, and of others that have the members of what they are made for.
fn argument_of_helper(typed: &str) -> Option<&str> {
    let (helper, argument) = typed.strip_suffix('>')?.split_once('<')?;
    HELPERS.contains(&helper.trim_end_matches('.')).then_some(argument)
}

fn bare(typed: &str) -> Named<'_> {
    if typed.ends_with("[]") {
        return Named::BuiltIn;
    }
    // What stands behind a name may be what it is made for, and nothing else.
    let is_whole = |rest: &str| rest.is_empty() || rest.starts_with('<') && rest.ends_with('>');
    if let Some(rest) = typed.strip_prefix("import(") {
        let found = imported_by(rest).filter(|(_, rest)| is_whole(rest));
        return found.map_or(Named::Unknown, |(found, _)| found);
    }
    let end = typed.find(|it: char| !is_in_path(it)).unwrap_or(typed.len());
    let (path, rest) = (typed[..end].trim_end_matches('.'), &typed[end..]);
    match path {
        "string" | "number" | "boolean" | "bigint" | "symbol" | "void" | "never" | "Array" => Named::BuiltIn,
        "any" | "unknown" | "object" | "Object" | "function" | "Function" | "typeof" | "keyof" | "" => {
            Named::Unknown
        }
        _ if path.starts_with(|it: char| it.is_numeric() || it == '.') || path.len() > SYMBOL_LEN_MAX => {
            Named::Unknown
        }
        _ if is_whole(rest) => Named::Class(path),
        _ => Named::Unknown,
    }
}

/// `"./store").Store`: the module and the name behind it, and what stands behind that.
pub(super) fn imported_by(rest: &str) -> Option<(Named<'_>, &str)> {
    let quote = rest.chars().next().filter(|it| matches!(it, '"' | '\''))?;
    let (from, rest) = rest[1..].split_once(quote)?;
    let rest = rest.trim_start().strip_prefix(')')?;
    let (path, rest) = rest.split_at(rest.find(|it: char| !is_in_path(it)).unwrap_or(rest.len()));
    let name = path.strip_prefix('.').filter(|it| !it.is_empty() && !it.contains('.'));
    let is_known = (path.is_empty() || name.is_some()) && !from.is_empty();
    let is_short = from.len() + path.len() <= SYMBOL_LEN_MAX;
    (is_known && is_short).then_some((Named::Imported { from, name }, rest))
}
