//! The functions around a line, found by the first words and the indentation of lines, without a grammar.

use provost::syntax::Language;

/// What a comment begins with.
pub(crate) fn comment(language: Language) -> &'static str {
    if matches!(language, Language::Python | Language::Ruby) { "#" } else { "//" }
}

/// Whether a file has texts of several lines, which look like code and are none.
pub(crate) fn is_hard_to_look_at(language: Language, text: &str) -> bool {
    let marks: &[&str] = match language {
        Language::Python | Language::Kotlin | Language::Swift => &["\"\"\"", "'''"],
        Language::TypeScript | Language::Tsx | Language::JavaScript => &["`"],
        Language::Rust => &["r#\"", "r\"", "\\\n"],
        Language::Go => &["`"],
        Language::Ruby => &["<<~", "<<-", "<<\"", "<<'", "%Q", "%q", "__END__", "=begin"],
        Language::Php => &["<<<", "?>"],
        Language::Java => &["\"\"\""],
        Language::CSharp => &["@\"", "\"\"\""],
        Language::C | Language::Cpp | Language::CHeader => &["R\"", "\\\n"],
    };
    marks.iter().any(|it| text.contains(it))
}

/// The names of the functions around a line, the innermost first; none where that cannot be told by looking.
pub(crate) fn around(language: Language, lines: &[&str], at: usize) -> Vec<String> {
    let is_hard = is_doubtful(lines[at].trim()) || is_attribute(language, lines[at].trim());
    if !is_plain(lines[at]) || is_hard || indent(lines[at]) == 0 || begun(language, lines[at]).is_some() {
        return Vec::new();
    }
    let before = lines[..at].join("\n");
    if before.matches("/*").count() > before.matches("*/").count() {
        return Vec::new();
    }
    // Whether the functions so far belong to a value, whose name is further out.
    let (mut names, mut bound, mut in_value) = (Vec::new(), indent(lines[at]), false);
    for (from, line) in lines[..at].iter().enumerate().rev() {
        let text = line.trim();
        let name = begun(language, line);
        if text.is_empty() || indent(line) >= bound || (name.is_none() && is_beside(language, text)) {
            continue;
        }
        bound = indent(line);
        let name = name.filter(|_| has_body(language, &lines[from..]));
        if let Some(name) = macro_of(language, text) {
            // What stands in it belongs to it.
            names = vec![name];
        } else if name.is_some() && is_handed_on(language, &lines[..from]) {
            (names, in_value) = (Vec::new(), true);
        } else if let Some(name) = name {
            names.push(name);
            in_value = false;
        } else if in_value || (!names.is_empty() && is_nameless_class(language, text)) {
            // A function of it belongs to the value, or to what is further out.
            if let Some(value) = value_name(text) {
                (names, in_value) = (vec![value], false);
            } else {
                (names, in_value) = (Vec::new(), true);
            }
        } else if names.is_empty() && !in_value && is_doubtful(text) {
            return Vec::new();
        }
        if bound == 0 {
            break;
        }
    }
    names
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Whether a line is one whose definition can be told by looking at it.
fn is_plain(line: &str) -> bool {
    const STARTS: &[&str] = &[
        "//", "/*", "*", "#", ")", "]", "}", "{", "|", "@", ":", "->", ".", "where", "use ", "import", "end",
        "case ", "default:", "else", "\"", "'",
    ];
    let text = line.trim();
    text.len() > 3 && !STARTS.iter().any(|it| text.starts_with(it)) && !text.ends_with([',', '\\', '/'])
}

/// A bracket alone, a comment, a line of the preprocessor or a mark says nothing of what is around.
fn is_beside(language: Language, text: &str) -> bool {
    const STARTS: &[&str] = &["//", "/*", "*", "#", "@", "{", ")", "]", "}"];
    // A private member of JavaScript.
    if text.starts_with('#') && is_ecma(language) || text.starts_with('@') && text.ends_with('{') {
        return false;
    }
    STARTS.iter().any(|it| text.starts_with(it)) || (text.ends_with(':') && !text.contains([' ', '(']))
}

fn is_ecma(language: Language) -> bool {
    matches!(language, Language::TypeScript | Language::Tsx | Language::JavaScript)
}

/// An attribute belongs to what is below it.
fn is_attribute(language: Language, text: &str) -> bool {
    language == Language::CSharp && text.starts_with('[')
}

/// The name of the macro that a line begins.
fn macro_of(language: Language, text: &str) -> Option<String> {
    let rest = text.strip_prefix("macro_rules! ").filter(|_| language == Language::Rust)?;
    rest.split([' ', '{', '(']).next().map(str::to_owned)
}

/// Whether what begins behind these lines is an expression: a function that is given to another one.
fn is_handed_on(language: Language, before: &[&str]) -> bool {
    let last = before.iter().rev().find(|it| !it.trim().is_empty());
    is_ecma(language)
        && last.is_some_and(|it| it.trim_end().ends_with("=>") || it.trim_end().ends_with(['(', '=']))
}

/// Whether a line begins a class without a name, as the value of a field or a variable.
fn is_nameless_class(language: Language, text: &str) -> bool {
    match language {
        Language::Java => text.contains(" = new ") && text.ends_with(") {"),
        Language::Kotlin => text.contains("object :") && text.ends_with('{'),
        _ => false,
    }
}

/// The name that a line gives a value to.
fn value_name(text: &str) -> Option<String> {
    let named = text.split_once(" = ")?.0.split(':').next()?;
    named.split_whitespace().last().map(str::to_owned)
}

/// A value that has a function or a class in it goes by a name that is not looked for here.
fn is_doubtful(text: &str) -> bool {
    text.ends_with("=>")
        || text.ends_with("=> {")
        || (text.contains(" = ") && text.ends_with(['{', '(', '[']))
}

/// Whether there is a body behind the head of a function.
fn has_body(language: Language, lines: &[&str]) -> bool {
    if matches!(language, Language::Python | Language::Ruby) {
        return true;
    }
    // A function of Kotlin whose body is an expression, which may be a call with a block.
    let head = lines.first().map_or("", |line| line.trim());
    if language == Language::Kotlin && (head.ends_with('=') || head.contains(") = ") || head.contains("> = "))
    {
        return head.ends_with('{');
    }
    for line in lines.iter().take(12) {
        let text = line.trim().trim_end_matches('\r');
        if text.ends_with('{') || text.ends_with("=> {") || text.starts_with('{') {
            return true;
        }
        if text.ends_with(';') || text.ends_with('}') {
            return false;
        }
    }
    false
}

/// The name of the function that a line begins.
fn begun(language: Language, line: &str) -> Option<String> {
    let text = line.trim();
    match language {
        Language::Python => behind(text, "def "),
        Language::Ruby => behind(text, "def "),
        Language::Rust => behind(text, "fn "),
        Language::Go => behind(text, "func "),
        Language::Swift => quoted_or_operator(text).or_else(|| behind(text, "func ")),
        Language::Kotlin => behind(&without_brackets(text), "fun "),
        Language::Php => behind(text, "function "),
        Language::TypeScript | Language::Tsx | Language::JavaScript => {
            behind(text, "function ").or_else(|| method(text, true))
        }
        // `operator()` of C++, whose brackets are none of parameters.
        _ => method(&text.replacen("operator()", "operator_call", 1), false)
            .map(|name| name.replace("operator_call", "operator()")),
    }
}

/// A name of Swift within back quotes, or one of signs.
fn quoted_or_operator(text: &str) -> Option<String> {
    let (before, rest) = text.split_once("func ")?;
    if !before.chars().all(|it| it.is_alphanumeric() || " _()@".contains(it)) {
        return None;
    }
    if let Some(quoted) = rest.strip_prefix('`') {
        return quoted.split('`').next().map(str::to_owned);
    }
    let signs: String = rest.chars().take_while(|it| "+-*/%<>=!&|^~?.".contains(*it)).collect();
    (!signs.is_empty()).then(|| format!("operator{}", signs.replace('.', "_")))
}

/// A line without what stands between its angle brackets.
fn without_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    let keeps = |it: char| {
        match it {
            '<' => depth += 1,
            '>' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    };
    let head = text.split(['(', '{']).next().unwrap_or(text);
    let short: String = head
        .chars()
        .filter({
            let mut keeps = keeps;
            move |it| keeps(*it)
        })
        .collect();
    format!("{}{}", short.replace("fun  ", "fun "), &text[head.len()..])
}

/// The name behind a keyword that stands behind nothing but other words.
fn behind(text: &str, keyword: &str) -> Option<String> {
    let at = text.find(keyword)?;
    let is_word = |it: char| it.is_alphanumeric() || " _()@\"&".contains(it);
    let is_whole = at == 0 || text[..at].ends_with([' ', '(']);
    if !is_whole || !text[..at].chars().all(is_word) || text[..at].starts_with("return") {
        return None;
    }
    let mut rest = text[at + keyword.len()..].trim_start_matches(['*', '&', ' ']);
    // A receiver, or parameters of types before the name.
    for (open, close) in [('(', ") "), ('<', "> ")] {
        if rest.starts_with(open) {
            rest = rest.split_once(close)?.1;
        }
    }
    let head = rest.split(['(', ' ', '<', '{', ';', '[', '\r']).next()?.trim_start_matches("self.");
    let name = head.rsplit('.').next()?.trim_matches('`').trim_end_matches(['?', '=', '!']);
    let is_name =
        !name.is_empty() && name != "interface" && name.chars().all(|it| it.is_alphanumeric() || it == '_');
    is_name.then(|| head.rsplit('.').next().unwrap_or(name).trim_matches('`').to_owned())
}

/// The name before the first bracket, where a type or words of a declaration stand before it.
fn method(text: &str, without_type: bool) -> Option<String> {
    const NONE: &[&str] = &[
        "if",
        "for",
        "while",
        "switch",
        "catch",
        "return",
        "else",
        "new",
        "throw",
        "do",
        "try",
        "using",
        "lock",
        "foreach",
        "sizeof",
        "await",
        "yield",
        "case",
        "fixed",
        "when",
        "synchronized",
        "assert",
        "delete",
        "typeof",
        "in",
        "of",
        "function",
        "class",
        "import",
        "interface",
    ];
    let (head, behind) = text.split_once('(')?;
    if text.ends_with(';')
        || head.contains(['=', '"', '\'', '.', '?', '!', '|', '/', '+', '{', '}', ')'])
        || head.ends_with(' ')
        || text.starts_with(':')
    {
        return None;
    }
    // What is made with a type behind it, or a call with a block.
    if without_type && (!text.ends_with('{') || behind.contains("=>") && !behind.contains("):")) {
        return None;
    }
    let head = head.split('<').next().filter(|_| without_type).unwrap_or(head);
    let words: Vec<&str> = head.split([' ', '*', '&']).filter(|it| !it.is_empty()).collect();
    let name = words.last()?.rsplit("::").next()?;
    let is_named = name.chars().all(|it| it.is_alphanumeric() || "_#$~".contains(it)) && !name.is_empty();
    let is_of_macros = name.chars().all(|it| it.is_uppercase() || it.is_numeric() || it == '_');
    if !is_named
        || is_of_macros
        || words.iter().any(|it| NONE.contains(it))
        || (words.len() < 2 && !without_type)
    {
        return None;
    }
    Some(name.to_owned())
}
