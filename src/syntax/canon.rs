//! Canonical form: the tokens of a signature that carry meaning, and its text for people.
//!
//! Both are made in one pass over a node's tokens. Comments, blanks, line ends, trailing commas, the kind of
//! quotes, separators between members of a type, a leading `|` and the parentheses around a lone parameter
//! depend on the formatter and make no difference. The text keeps the source's words and spacing if
//! the form does not matter.

use std::borrow::Cow;

use tree_sitter::{Language, Node, TreeCursor};

use super::Signature;
use super::language::Table;

/// The part of a node in the form of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// No particular role: the node counts by its tokens.
    Plain,
    /// A comment or a continued line, which counts as a blank.
    Comment,
    /// A string literal in quotes.
    Text,
    /// Kept unchanged, with its blanks.
    Verbatim,
    /// A number, in which upper and lower case are the same.
    Number,
    /// Members with separators between them, of any kind: `{ a: string; b: number }`.
    Members,
    /// One of several alternatives, with a separator that may also lead.
    Choice,
    /// `<` and `>` are brackets here.
    Angles,
    /// A lone trailing comma makes a difference: `(1,)`, `x[1,]`.
    Tuple,
    /// An arrow function, whose lone parameter may lack its parentheses.
    Arrow,
    /// Has a name that may be written in quotes: `"a": string`.
    Named,
    /// Declares a name, which is for readers and makes no difference: the `key` of `const char *key`.
    Declares,
}

/// The numbers by which a grammar knows names within declarators.
pub(super) struct DeclaredName {
    /// `identifier` and `simple_identifier`; the latter may be a label, too.
    kinds: [u16; 2],
    /// The fields of an array's size and of values.
    values: [u16; 3],
    name: u16,
}

impl DeclaredName {
    pub(super) fn new(grammar: &Language) -> Self {
        let field = |name| grammar.field_id_for_name(name).map_or(0, u16::from);
        Self {
            kinds: ["identifier", "simple_identifier"].map(|it| grammar.id_for_node_kind(it, true)),
            values: ["size", "default_value", "value"].map(field),
            name: field("name"),
        }
    }

    /// Whether a leaf within a declarator is its name, and not the size of an array, a value, or a label by which callers name it.
    fn is_it(&self, cursor: &TreeCursor<'_>, node: Node<'_>, is_first: bool) -> bool {
        let kind = node.kind_id();
        let field = || cursor.field_id().map_or(0, u16::from);
        if kind == self.kinds[0] {
            let field = field();
            field == 0 || !self.values.contains(&field)
        } else {
            kind == self.kinds[1] && !is_first && field() == self.name
        }
    }
}

/// Where the walk over a signature's nodes is.
struct Level {
    role: Role,
    /// Whether none of its members was written yet.
    first: bool,
    /// The separator that was found after its last member.
    separator: Option<char>,
    /// How many of its children are still to come.
    left: u32,
}

/// Writes the canonical form and the text of one signature.
pub(super) struct Scribe<'a> {
    source: &'a [u8],
    table: &'static Table,
    text: String,
    canon: String,
    /// The end of the last token; `None` at the beginning and after words of our own.
    end: Option<usize>,
    /// A comma that is written once a token other than the closing bracket follows.
    comma: Option<(usize, usize)>,
    /// Whether blanks after the last token are dropped.
    open: bool,
    /// For each open bracket, whether a lone trailing comma counts, and how many commas there were.
    brackets: Vec<(bool, u32)>,
    broken: bool,
}

impl<'a> Scribe<'a> {
    pub(super) fn new(source: &'a [u8], table: &'static Table) -> Self {
        Self {
            source,
            table,
            text: String::new(),
            canon: String::new(),
            end: None,
            comma: None,
            open: false,
            brackets: Vec::new(),
            broken: false,
        }
    }

    /// A word of the signature's own: `async`, `->`; the text gets it with the blanks around it.
    pub(super) fn word(&mut self, word: &str) -> &mut Self {
        self.finish_comma();
        self.text.push_str(word);
        self.push_canon(word.trim());
        self.end = None;
        self
    }

    /// A word for people who read, which makes no difference: the name of a parameter that callers do not say.
    pub(super) fn remark(&mut self, word: &str) -> &mut Self {
        self.finish_comma();
        self.text.push_str(word);
        self.end = None;
        self
    }

    /// What makes a difference and is not shown: it is said once for people who read, and counts again.
    pub(super) fn unsaid(&mut self, write: impl FnOnce(&mut Self)) -> &mut Self {
        self.finish_comma();
        let shown = self.text.len();
        write(self);
        self.finish_comma();
        self.text.truncate(shown);
        self.end = None;
        self
    }

    /// A node, with everything in it. What follows another node follows it without a blank.
    pub(super) fn node(&mut self, node: Node<'_>) -> &mut Self {
        self.finish_comma();
        self.end = None;
        self.broken |= node.has_error();
        if !self.broken {
            self.walk(node);
        }
        self
    }

    /// The signature; none if a part of it does not parse.
    pub(super) fn finish(mut self) -> Option<Signature> {
        self.finish_comma();
        (!self.broken).then(|| Signature::new(self.text.trim(), &self.canon))
    }

    fn walk(&mut self, top: Node<'_>) {
        let mut cursor = top.walk();
        let mut levels: Vec<Level> = Vec::new();
        loop {
            let node = cursor.node();
            let role = self.table.role(node.kind_id());
            let inside = self.enter(&cursor, node, role, &mut levels);
            if inside && cursor.goto_first_child() {
                let left = node.child_count().saturating_sub(1);
                levels.push(Level { role, first: true, separator: None, left });
                continue;
            }
            loop {
                // To ask for one that is not there costs more than to count.
                let Some(level) = levels.last_mut() else { return };
                if level.left > 0 && cursor.goto_next_sibling() {
                    level.left -= 1;
                    break;
                }
                cursor.goto_parent();
                levels.pop();
            }
        }
    }

    /// Writes a node that is one token; returns whether it is to be entered instead.
    fn enter(&mut self, cursor: &TreeCursor<'_>, node: Node<'_>, role: Role, levels: &mut [Level]) -> bool {
        if role == Role::Comment || (node.start_byte() == node.end_byte() && node.child_count() == 0) {
            return false;
        }
        let is_leaf = node.child_count() == 0;
        if let Some(level) = levels.last_mut() {
            let byte =
                if is_leaf && !node.is_named() { self.source.get(node.start_byte()).copied() } else { None };
            let first = std::mem::replace(&mut level.first, false);
            match (level.role, byte) {
                (Role::Members, Some(mark @ (b',' | b';'))) => {
                    level.separator = Some(char::from(mark));
                    return false;
                }
                (Role::Members, None) => {
                    // The bracket was first; from the second member on, there is a separator before each.
                    let separator = level.separator.replace(';');
                    level.first = false;
                    if let Some(mark) = separator {
                        self.separator(mark);
                    }
                }
                (Role::Choice, Some(b'|' | b'&')) if first => return false,
                (Role::Arrow, None) if is_leaf && first && cursor.field_name() == Some("parameter") => {
                    self.lone_parameter(node);
                    return false;
                }
                (Role::Declares, None) if is_leaf && self.table.declared.is_it(cursor, node, first) => {
                    self.token(node.start_byte(), node.end_byte(), Some(""));
                    return false;
                }
                (Role::Named, _) if first && role == Role::Text => {
                    self.quoted_name(node);
                    return false;
                }
                _ => {}
            }
        }
        let parent = levels.last().map_or(Role::Plain, |level| level.role);
        match role {
            Role::Text => self.string(node),
            Role::Verbatim => self.token(node.start_byte(), node.end_byte(), None),
            Role::Number => {
                let lower = self.slice(node.start_byte(), node.end_byte()).to_ascii_lowercase();
                self.token(node.start_byte(), node.end_byte(), Some(&lower));
            }
            _ if is_leaf => self.leaf(node, parent),
            _ => return true,
        }
        false
    }

    fn leaf(&mut self, node: Node<'_>, parent: Role) {
        let (start, end) = (node.start_byte(), node.end_byte());
        let text = if node.is_named() { &b""[..] } else { self.source.get(start..end).unwrap_or_default() };
        let closes = matches!(text, b")" | b"]" | b"}") || (text == b">" && parent == Role::Angles);
        let opens = matches!(text, b"(" | b"[" | b"{") || (text == b"<" && parent == Role::Angles);
        if text == b"," {
            self.finish_comma();
            if let Some((_, commas)) = self.brackets.last_mut() {
                *commas += 1;
                // Nothing before it: a hole, which counts.
                if self.open || self.canon.ends_with(',') {
                    self.token(start, end, None);
                } else {
                    self.comma = Some((start, end));
                }
            } else {
                self.token(start, end, None);
            }
            return;
        }
        if closes {
            let (counts, commas) = self.brackets.pop().unwrap_or_default();
            if let Some((_, comma_end)) = self.comma.take_if(|_| !(counts && commas == 1)) {
                self.end = Some(comma_end);
            }
            // Blanks within braces are the source's.
            self.close(start, end, text != b"}");
            return;
        }
        self.token(start, end, None);
        if opens {
            self.brackets.push((parent == Role::Tuple, 0));
            self.open = text != b"{";
        }
    }

    fn close(&mut self, start: usize, end: usize, tight: bool) {
        self.finish_comma();
        if tight {
            self.end = None;
        }
        self.token(start, end, None);
    }

    fn finish_comma(&mut self) {
        if let Some((start, end)) = self.comma.take() {
            self.token(start, end, None);
        }
    }

    fn separator(&mut self, mark: char) {
        self.finish_comma();
        self.text.push(mark);
        self.push_canon(";");
        self.open = false;
    }

    fn lone_parameter(&mut self, node: Node<'_>) {
        self.gap(node.start_byte(), node.end_byte());
        self.text.push('(');
        self.push_canon("(");
        self.end = None;
        self.token(node.start_byte(), node.end_byte(), None);
        self.text.push(')');
        self.push_canon(")");
    }

    fn string(&mut self, node: Node<'_>) {
        let canonical = canonical_string(self.slice(node.start_byte(), node.end_byte()).as_ref());
        self.token(node.start_byte(), node.end_byte(), Some(&canonical));
    }

    fn quoted_name(&mut self, node: Node<'_>) {
        let canonical = canonical_string(self.slice(node.start_byte(), node.end_byte()).as_ref());
        let bare = canonical.trim_matches('"');
        let is_name = bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$')
            && bare.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        let canonical = if is_name { bare } else { &canonical };
        self.token(node.start_byte(), node.end_byte(), Some(canonical));
    }

    /// One token; the canonical form gets it as it is, unless told otherwise.
    fn token(&mut self, start: usize, end: usize, canonical: Option<&str>) {
        self.finish_comma();
        self.gap(start, end);
        let text = self.slice(start, end);
        self.text.push_str(&text);
        self.push_canon(canonical.unwrap_or(&text));
        self.end = Some(end);
        self.open = false;
    }

    /// The blank between the last token and the next, where the text has one.
    fn gap(&mut self, start: usize, end: usize) {
        let between = self.end.and_then(|from| self.source.get(from..start)).unwrap_or_default();
        if between.is_empty() || self.open {
            return;
        }
        let blank = between.iter().any(u8::is_ascii_whitespace);
        let comment = between.iter().any(|byte| !byte.is_ascii_whitespace());
        let next = self.source.get(start).copied().unwrap_or_default();
        let joins = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'"' | b'\'') || byte >= 0x80
        };
        let would_join = start < end && joins(next) && self.text.bytes().last().is_some_and(joins);
        // A comment leaves no blank behind before what stands close.
        let stands_close = comment && matches!(next, b',' | b';' | b':' | b')' | b']');
        if would_join || (blank && !stands_close) {
            self.text.push(' ');
        }
    }

    fn push_canon(&mut self, token: &str) {
        if !self.canon.is_empty() && !token.is_empty() {
            self.canon.push(' ');
        }
        self.canon.push_str(token);
    }

    /// Source text with one kind of line end; what is not UTF-8 is marked as such.
    fn slice(&self, start: usize, end: usize) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(self.source.get(start..end).unwrap_or_default());
        if text.as_bytes().contains(&b'\r') { text.replace("\r\n", "\n").into() } else { text }
    }
}

/// A string literal in double quotes, also if it was written in single ones: `'it\'s'` is `"it's"`. Prefixes (`r`, `b`)
/// stay.
fn canonical_string(literal: &str) -> String {
    let at = literal.find(['"', '\'']).unwrap_or(0);
    let (prefix, quoted) = literal.split_at(at);
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| {
        quoted.len() >= 2 * quote.len() && quoted.starts_with(quote) && quoted.ends_with(quote)
    });
    let Some(content) = quote.and_then(|quote| quoted.get(quote.len()..quoted.len() - quote.len())) else {
        return literal.into();
    };
    let mut written = format!("{}\"", prefix.to_ascii_lowercase());
    if prefix.contains(['r', 'R']) {
        // There are no escapes within; a quote is doubled instead.
        written.push_str(&content.replace('"', "\"\""));
    } else {
        let mut marks = content.chars();
        while let Some(mark) = marks.next() {
            match mark {
                '"' => written.push_str("\\\""),
                '\\' => match marks.next() {
                    Some('\'') => written.push('\''),
                    next => {
                        written.push('\\');
                        written.extend(next);
                    }
                },
                _ => written.push(mark),
            }
        }
    }
    written.push('"');
    written
}
