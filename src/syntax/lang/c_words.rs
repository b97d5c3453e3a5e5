//! Words of C and C++, by what may stand before and behind them.

use super::c_macros::is_macro_name;

/// Some words, which most others are told from by their length and their first byte.
pub(super) struct Words {
    all: &'static [&'static str],
    /// By the first byte, the lengths of the words that begin with it, as bits.
    lengths: [u32; 128],
}

impl Words {
    const fn of(all: &'static [&'static str]) -> Self {
        let mut lengths = [0; 128];
        let mut at = 0;
        while at < all.len() {
            let word = all[at].as_bytes();
            lengths[word[0] as usize] |= 1 << word.len();
            at += 1;
        }
        Self { all, lengths }
    }

    /// Whether a word is one of them.
    pub(super) fn contains(&self, word: &str) -> bool {
        let first = word.bytes().next().map_or(0, usize::from);
        let lengths = self.lengths.get(first).copied().unwrap_or(0);
        lengths.checked_shr(u32::try_from(word.len()).unwrap_or(u32::MAX)).unwrap_or(0) & 1 == 1
            && self.all.contains(&word)
    }
}

/// Words with which a declaration goes on after a macro, and which no type stands before.
pub(super) const BEGINNINGS: &Words = &Words::of(&[
    "class",
    "constexpr",
    "enum",
    "explicit",
    "extern",
    "friend",
    "inline",
    "namespace",
    "private",
    "protected",
    "public",
    "static",
    "struct",
    "template",
    "typedef",
    "union",
    "using",
    "virtual",
    "typename",
]);

/// Words that are a type, or a part of one.
pub(super) const TYPES: &Words = &Words::of(&[
    "auto",
    "bool",
    "char",
    "double",
    "float",
    "int",
    "long",
    "short",
    "signed",
    "unsigned",
    "void",
    "size_t",
    "ssize_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "_Bool",
    "wchar_t",
    "ptrdiff_t",
    "intptr_t",
    "uintptr_t",
]);

/// Words that may stand before or within a type.
pub(super) const QUALIFIERS: &Words = &Words::of(&[
    "const",
    "constexpr",
    "extern",
    "inline",
    "mutable",
    "register",
    "static",
    "thread_local",
    "typedef",
    "virtual",
    "volatile",
    "explicit",
    "friend",
    "__inline",
    "__inline__",
    "__extension__",
    "_Thread_local",
    "consteval",
    "constinit",
    "typename",
]);

/// Words that begin a statement, a label or something else that is no declaration.
pub(super) const STATEMENTS: &Words = &Words::of(&[
    "break",
    "case",
    "catch",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "for",
    "goto",
    "if",
    "new",
    "return",
    "switch",
    "throw",
    "try",
    "while",
    "using",
    "namespace",
    "template",
    "operator",
    "public",
    "private",
    "protected",
    "sizeof",
    "asm",
    "co_return",
    "co_await",
    "co_yield",
    "static_assert",
    "_Static_assert",
    "not",
    "and",
    "or",
    "concept",
    "requires",
    "decltype",
    "__asm__",
    "__attribute__",
    "__declspec",
    "alignas",
    "this",
    "true",
    "false",
    "nullptr",
    "import",
    "module",
    "export",
]);

/// Whether a word is written as those are that stand for nothing, or for an attribute.
pub(super) fn is_like_a_macro(word: &str) -> bool {
    is_macro_name(word) || (word.starts_with("__") && !word.starts_with("__int") && !word.starts_with("__m"))
}

/// Whether a macro is rather something like an attribute than a type.
pub(super) fn sounds_like_an_attribute(word: &str) -> bool {
    const PARTS: &[&str] = &[
        "API",
        "ATTR",
        "CALL",
        "CONST",
        "DECL",
        "DEPRECATED",
        "DLL",
        "EXPLICIT",
        "EXPORT",
        "EXTERN",
        "FORCE",
        "IMPORT",
        "INLINE",
        "LOCAL",
        "NODISCARD",
        "NOINLINE",
        "NORETURN",
        "NOTHROW",
        "PRIVATE",
        "PUBLIC",
        "PURE",
        "STATIC",
        "UNUSED",
        "VISIB",
    ];
    is_like_a_macro(word) && PARTS.iter().any(|it| word.contains(it))
}
