//! Languages: the suffixes of their files, and the grammars that read them.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::OnceLock;

use tree_sitter::Parser;

use super::canon::{DeclaredName, Role};
use super::generated::Says;
use super::knowledge::Knowledge;
use super::lang::{
    Dialect, c_grammar, c_mask, csharp, csharp_mask, ecma, ecma_mask, go, java, java_mask, kotlin,
    kotlin_mask, php, php_known, php_mask, python, ruby, ruby_known, ruby_mask, rust, rust_mask, swift,
    swift_known, swift_mask,
};
use super::{built_in, built_in_jvm, generated, knowledge};

/// A language that Provost reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Language {
    /// TypeScript without JSX, where `<T>x` is a cast.
    TypeScript,
    /// TypeScript with JSX, where `<T>x` is an element.
    Tsx,
    /// JavaScript, JSX included.
    JavaScript,
    /// Python 3, stubs included.
    Python,
    /// Rust.
    Rust,
    /// Go.
    Go,
    /// Java.
    Java,
    /// C#.
    CSharp,
    /// Kotlin, scripts included.
    Kotlin,
    /// Ruby, with Rakefiles and similar files.
    Ruby,
    /// PHP, with the text around it in a page.
    Php,
    /// Swift.
    Swift,
    /// C.
    C,
    /// C++.
    Cpp,
    /// A header of C or C++; its content decides.
    CHeader,
}

/// The row of a language: its suffixes, its grammar, its dialect, and its peculiarities.
struct Row {
    language: Language,
    suffixes: &'static [&'static str],
    grammar: fn() -> tree_sitter::Language,
    dialect: &'static Dialect,
    /// Members of its own types, about whose callers the graph makes no guess.
    built_in: &'static [&'static str],
    /// Whether the type of each field, parameter and result is written.
    typed: bool,
    /// Whether a field whose range is its name alone is declared as a variable is. Elsewhere it is a case of an enumeration, declared by itself.
    bare_fields: bool,
    /// What the grammar is shown instead of a file ([`Language::masked`]).
    mask: fn(&[u8]) -> Option<Masked>,
    /// The text for a second parse of a file that did not parse.
    mask_further: fn(&[u8]) -> Option<Vec<u8>>,
    /// Whether `#` begins a comment. Elsewhere it begins a directive, a macro or a private member.
    hash_remarks: bool,
    /// Whether `@` begins an attribute of what follows. Elsewhere it begins a variable.
    at_attributes: bool,
    says_generated: Says,
    known: Knowledge,
}

/// A text as the grammar is shown it, and the ranges of the macros that it is not shown.
type Masked = (Vec<u8>, Vec<Range<u32>>);

/// Returns a text that hides no macro.
fn alone(shown: Option<Vec<u8>>) -> Option<Masked> {
    shown.map(|shown| (shown, Vec::new()))
}

/// The longest file that is parsed a second time if it does not parse.
const PARSED_TWICE_BYTES_MAX: usize = 1 << 20;

/// Files that are recognised by their whole names, in any folder.
const FILE_NAMES: &[(&str, Language)] = &[
    ("Rakefile", Language::Ruby),
    ("Gemfile", Language::Ruby),
    ("Guardfile", Language::Ruby),
    ("Capfile", Language::Ruby),
    ("Vagrantfile", Language::Ruby),
    ("Podfile", Language::Ruby),
    ("Fastfile", Language::Ruby),
    ("Dangerfile", Language::Ruby),
    ("Brewfile", Language::Ruby),
    ("Berksfile", Language::Ruby),
    ("Appraisals", Language::Ruby),
    (".irbrc", Language::Ruby),
    (".pryrc", Language::Ruby),
];

/// Every language, in the order of [`Language`].
const LANGUAGES: &[Row] = &[
    Row {
        language: Language::TypeScript,
        suffixes: &[".ts", ".mts", ".cts"],
        grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        dialect: &ecma::DIALECT,
        built_in: built_in::ECMA,
        typed: true,
        bare_fields: false,
        mask: |it| alone(ecma_mask::mask(it)),
        mask_further: ecma_mask::mask_newer,
        hash_remarks: false,
        at_attributes: true,
        says_generated: generated::nothing,
        known: knowledge::ECMA,
    },
    Row {
        language: Language::Tsx,
        suffixes: &[".tsx"],
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        dialect: &ecma::DIALECT,
        built_in: built_in::ECMA,
        typed: true,
        bare_fields: false,
        mask: |it| alone(ecma_mask::mask(it)),
        mask_further: ecma_mask::mask_newer_and_tags,
        hash_remarks: false,
        at_attributes: true,
        says_generated: generated::nothing,
        known: knowledge::ECMA,
    },
    Row {
        language: Language::JavaScript,
        suffixes: &[".js", ".jsx", ".mjs", ".cjs"],
        grammar: || tree_sitter_javascript::LANGUAGE.into(),
        dialect: &ecma::DIALECT,
        built_in: built_in::ECMA,
        typed: false,
        bare_fields: false,
        mask: |_| None,
        mask_further: ecma_mask::mask_between_tags,
        hash_remarks: false,
        at_attributes: true,
        says_generated: generated::nothing,
        known: knowledge::JAVASCRIPT,
    },
    Row {
        language: Language::Python,
        suffixes: &[".py", ".pyi"],
        grammar: || tree_sitter_python::LANGUAGE.into(),
        dialect: &python::DIALECT,
        built_in: built_in::PYTHON,
        typed: false,
        bare_fields: true,
        mask: |_| None,
        mask_further: |_| None,
        hash_remarks: true,
        at_attributes: true,
        says_generated: generated::nothing,
        known: knowledge::PYTHON,
    },
    Row {
        language: Language::Rust,
        suffixes: &[".rs"],
        grammar: || tree_sitter_rust::LANGUAGE.into(),
        dialect: &rust::DIALECT,
        built_in: built_in::RUST,
        typed: true,
        bare_fields: false,
        mask: |it| alone(rust_mask::mask(it)),
        mask_further: |_| None,
        hash_remarks: false,
        at_attributes: false,
        says_generated: generated::by_mark,
        known: knowledge::RUST,
    },
    Row {
        language: Language::Go,
        suffixes: &[".go"],
        grammar: || tree_sitter_go::LANGUAGE.into(),
        dialect: &go::DIALECT,
        built_in: built_in::GO,
        typed: true,
        bare_fields: false,
        mask: |_| None,
        mask_further: |_| None,
        hash_remarks: false,
        at_attributes: false,
        says_generated: generated::as_go_has_it,
        known: knowledge::GO,
    },
    Row {
        language: Language::Java,
        suffixes: &[".java"],
        grammar: || tree_sitter_java::LANGUAGE.into(),
        dialect: &java::DIALECT,
        built_in: built_in_jvm::JAVA,
        typed: true,
        bare_fields: false,
        mask: |_| None,
        mask_further: java_mask::mask,
        hash_remarks: false,
        at_attributes: true,
        says_generated: generated::in_any_comment,
        known: knowledge::JAVA,
    },
    Row {
        language: Language::CSharp,
        suffixes: &[".cs", ".csx"],
        grammar: || tree_sitter_c_sharp::LANGUAGE.into(),
        dialect: &csharp::DIALECT,
        built_in: built_in_jvm::CSHARP,
        typed: true,
        bare_fields: false,
        mask: |it| alone(csharp_mask::mask(it)),
        mask_further: csharp_mask::mask_newer,
        hash_remarks: false,
        at_attributes: false,
        says_generated: generated::in_any_comment,
        known: knowledge::CSHARP,
    },
    Row {
        language: Language::Kotlin,
        suffixes: &[".kt", ".kts"],
        grammar: || tree_sitter_kotlin_ng::LANGUAGE.into(),
        dialect: &kotlin::DIALECT,
        built_in: built_in_jvm::KOTLIN,
        typed: true,
        bare_fields: false,
        mask: |it| alone(kotlin_mask::mask(it)),
        mask_further: |_| None,
        hash_remarks: false,
        at_attributes: true,
        says_generated: generated::in_any_comment,
        known: knowledge::KOTLIN,
    },
    Row {
        language: Language::Ruby,
        suffixes: &[".rb", ".rake", ".gemspec", ".ru", ".rbi", ".podspec", ".jbuilder"],
        grammar: || tree_sitter_ruby::LANGUAGE.into(),
        dialect: &ruby::DIALECT,
        built_in: ruby_known::BUILT_IN,
        typed: false,
        bare_fields: false,
        mask: |_| None,
        mask_further: ruby_mask::mask,
        hash_remarks: true,
        at_attributes: false,
        says_generated: generated::nothing,
        known: ruby_known::KNOWN,
    },
    Row {
        language: Language::Php,
        suffixes: &[".php", ".phtml", ".php5", ".php7", ".php8"],
        grammar: || tree_sitter_php::LANGUAGE_PHP.into(),
        dialect: &php::DIALECT,
        built_in: php_known::BUILT_IN,
        typed: true,
        bare_fields: false,
        mask: |_| None,
        mask_further: php_mask::mask,
        hash_remarks: true,
        at_attributes: false,
        says_generated: generated::nothing,
        known: php_known::KNOWN,
    },
    Row {
        language: Language::Swift,
        suffixes: &[".swift"],
        grammar: || tree_sitter_swift::LANGUAGE.into(),
        dialect: &swift::DIALECT,
        built_in: swift_known::BUILT_IN,
        typed: true,
        bare_fields: false,
        mask: |it| alone(swift_mask::mask(it)),
        mask_further: |_| None,
        hash_remarks: false,
        at_attributes: true,
        says_generated: generated::nothing,
        known: swift_known::KNOWN,
    },
    Row {
        language: Language::C,
        suffixes: &[".c"],
        grammar: || tree_sitter_c::LANGUAGE.into(),
        dialect: &c_grammar::DIALECT,
        built_in: built_in::C,
        typed: true,
        bare_fields: false,
        mask: c_mask::mask,
        mask_further: |_| None,
        hash_remarks: false,
        at_attributes: false,
        says_generated: generated::as_c_has_it,
        known: knowledge::C,
    },
    Row {
        language: Language::Cpp,
        suffixes: &[
            ".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".ipp", ".inl", ".tpp", ".tcc",
            ".txx", ".cppm", ".ixx",
        ],
        grammar: || tree_sitter_cpp::LANGUAGE.into(),
        dialect: &c_grammar::DIALECT,
        built_in: built_in::CPP,
        typed: true,
        bare_fields: false,
        mask: c_mask::mask,
        mask_further: |_| None,
        hash_remarks: false,
        at_attributes: false,
        says_generated: generated::as_c_has_it,
        known: knowledge::CPP,
    },
    Row {
        language: Language::CHeader,
        suffixes: &[".h"],
        grammar: || tree_sitter_cpp::LANGUAGE.into(),
        dialect: &c_grammar::DIALECT,
        built_in: built_in::CPP,
        typed: true,
        bare_fields: false,
        mask: c_mask::mask,
        mask_further: |_| None,
        hash_remarks: false,
        at_attributes: false,
        says_generated: generated::as_c_has_it,
        known: knowledge::C_HEADER,
    },
];

/// The language of a file, by the end of its name or by the whole; upper and lower case are the same (`A.TS` is TypeScript).
pub fn language_of(path: &str) -> Option<Language> {
    let name = path.rsplit(['/', '\\']).next()?;
    let ends = |suffix: &&str| {
        // A name that is nothing but a suffix is a hidden file without one.
        let stem = name.len().checked_sub(suffix.len()).filter(|stem| *stem > 0);
        stem.and_then(|stem| name.get(stem..)).is_some_and(|end| end.eq_ignore_ascii_case(suffix))
    };
    let by_end = LANGUAGES.iter().find(|row| row.suffixes.iter().any(ends)).map(|row| row.language);
    by_end.or_else(|| FILE_NAMES.iter().find(|(whole, _)| *whole == name).map(|(_, language)| *language))
}

impl Language {
    /// Every language with a grammar, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        LANGUAGES.iter().map(|row| row.language)
    }

    /// How it is called in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "TypeScript",
            Self::Tsx => "TSX",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
            Self::Rust => "Rust",
            Self::Go => "Go",
            Self::Java => "Java",
            Self::CSharp => "C#",
            Self::Kotlin => "Kotlin",
            Self::Ruby => "Ruby",
            Self::Php => "PHP",
            Self::Swift => "Swift",
            Self::C => "C",
            Self::Cpp => "C++",
            Self::CHeader => "C or C++ header",
        }
    }

    /// The ends of its files' names.
    pub fn suffixes(self) -> &'static [&'static str] {
        self.row().suffixes
    }

    /// The version of the interface between its grammar and tree-sitter.
    pub fn abi(self) -> usize {
        (self.row().grammar)().abi_version()
    }

    /// Whether types of the language itself have a member of this name.
    pub fn has_built_in(self, member: &str) -> bool {
        self.row().built_in.contains(&member)
    }

    /// Whether each field, parameter and result has a type that is written.
    pub fn has_typed_members(self) -> bool {
        self.row().typed
    }

    /// Whether a call may be one of a variable that holds a function.
    pub(super) fn calls_variables(self) -> bool {
        self != Self::Java
    }

    /// Whether a field whose range is its name alone is declared as a variable is.
    pub(super) fn has_bare_fields(self) -> bool {
        self.row().bare_fields
    }

    /// Whether the members of a type, and the types within it, are known within it by their names alone.
    pub fn has_open_types(self) -> bool {
        const OPEN: &[Language] =
            &[Language::Java, Language::CSharp, Language::Kotlin, Language::Ruby, Language::Swift];
        OPEN.contains(&self)
    }

    /// Whether a name that stands alone means a method of the instance around and none of the types further out: those know only
    /// constants.
    pub fn is_of_self(self, name: &str) -> bool {
        self == Self::Ruby && name.starts_with(|first: char| first.is_lowercase() || first == '_')
    }

    /// Whether a class that several classes extend is asked for a member behind all of them. Elsewhere it comes first where it is first
    /// come to, or there are no such classes.
    pub fn asks_shared_bases_last(self) -> bool {
        const LAST: &[Language] = &[
            Language::Python,
            Language::Ruby,
            Language::Java,
            Language::CSharp,
            Language::Kotlin,
            Language::Swift,
        ];
        LAST.contains(&self)
    }

    /// Whether all direct bases of a type are asked for a member before what is above them.
    pub fn asks_bases_by_depth(self) -> bool {
        self == Self::Go
    }

    /// Whether an unknown base at this place in a class's list of bases may have a member that a later base has, too, so that a call may mean
    /// either. If only the first base can be a class, the compiler refuses two other bases with the same member.
    pub fn may_hide_later_bases(self, name: &str, place: usize) -> bool {
        /// Bases that have no member which a class would call.
        const EMPTY: &[&str] = &["ABC", "Generic", "Protocol", "object"];
        match self {
            Self::Python => !EMPTY.contains(&name.rsplit('.').next().unwrap_or(name)),
            Self::Ruby => true,
            Self::Java | Self::CSharp | Self::Kotlin | Self::Swift | Self::Php => place == 0,
            _ => false,
        }
    }

    /// Whether a class has the members of the interfaces that it names, so that they need no value of the interface.
    pub fn inherits_from_interfaces(self) -> bool {
        self != Self::CSharp
    }

    /// What is known of it.
    pub fn knowledge(self) -> Knowledge {
        self.row().known
    }

    /// The language in which a file with these bytes is read.
    pub(super) fn of_bytes(self, bytes: &[u8]) -> Self {
        match self {
            Self::CHeader if c_mask::is_cpp(bytes) => Self::Cpp,
            Self::CHeader => Self::C,
            other => other,
        }
    }

    /// What the grammar is shown instead of a file, byte for byte as long, and which macros it is not shown.
    pub(super) fn masked(self, bytes: &[u8]) -> Option<Masked> {
        (self.row().mask)(bytes)
    }

    /// Returns the text for a second parse of a file that did not parse. Both together have the time for one file, so a long file is
    /// parsed once.
    pub(super) fn masked_further(self, shown: &[u8]) -> Option<Vec<u8>> {
        if shown.len() > PARSED_TWICE_BYTES_MAX { None } else { (self.row().mask_further)(shown) }
    }

    /// Checks whether `#` begins a comment.
    pub(super) fn hash_remarks(self) -> bool {
        self.row().hash_remarks
    }

    /// Checks whether `@` begins an attribute of what follows.
    pub(super) fn at_attributes(self) -> bool {
        self.row().at_attributes
    }

    /// How its files say that a program has written them.
    pub(super) fn says_generated(self) -> Says {
        self.row().says_generated
    }

    fn row(self) -> &'static Row {
        &LANGUAGES[self as usize]
    }

    pub(super) fn dialect(self) -> &'static Dialect {
        self.row().dialect
    }

    /// Its numbers of nodes and fields, looked up by name once.
    pub(super) fn table(self) -> &'static Table {
        static TABLES: [OnceLock<Table>; LANGUAGES.len()] = [const { OnceLock::new() }; LANGUAGES.len()];
        TABLES[self as usize].get_or_init(|| Table::new(&(self.row().grammar)(), self.dialect()))
    }

    /// Lends this thread's parser for the language; a thread makes one, once.
    pub(super) fn with_parser<T>(self, work: impl FnOnce(&mut Parser) -> T) -> T {
        thread_local! {
            static PARSERS: RefCell<[Option<Parser>; LANGUAGES.len()]> = RefCell::default();
        }
        // Taken out while in use, so that a panic leaves none behind that has stopped half-way.
        let mut parser = PARSERS.with_borrow_mut(|all| all[self as usize].take()).unwrap_or_else(|| {
            let mut parser = Parser::new();
            parser
                .set_language(&(self.row().grammar)())
                .expect("the runtime takes the grammars that we chose");
            parser
        });
        let done = work(&mut parser);
        PARSERS.with_borrow_mut(|all| all[self as usize] = Some(parser));
        done
    }
}

/// The numbers of a grammar's nodes and fields, mapped to those of its dialect.
pub(super) struct Table {
    /// The dialect's kind for each number of a node; 0 for all others.
    kinds: Vec<u8>,
    /// The role in the form of a signature, for each number of a node.
    roles: Vec<Role>,
    /// The grammar's number for each of the dialect's fields; 0 if the grammar lacks it.
    fields: Vec<u16>,
    pub(super) declared: DeclaredName,
}

impl Table {
    fn new(grammar: &tree_sitter::Language, dialect: &Dialect) -> Self {
        let ids = 0..u16::try_from(grammar.node_kind_count()).unwrap_or(u16::MAX);
        let name = |id: u16| grammar.node_kind_for_id(id).filter(|_| grammar.node_kind_is_named(id));
        let kind = |id: u16| {
            let found = dialect.kinds.iter().position(|kind| name(id).is_some_and(|name| name == *kind));
            found.and_then(|at| u8::try_from(at + 1).ok()).unwrap_or(0)
        };
        Self {
            kinds: ids.clone().map(kind).collect(),
            roles: ids.map(|id| name(id).map_or(Role::Plain, dialect.role)).collect(),
            fields: dialect
                .fields
                .iter()
                .map(|field| grammar.field_id_for_name(field).map_or(0, u16::from))
                .collect(),
            declared: DeclaredName::new(grammar),
        }
    }

    pub(super) fn kind(&self, id: u16) -> u8 {
        // Errors have the largest number.
        self.kinds.get(usize::from(id)).copied().unwrap_or(0)
    }

    pub(super) fn role(&self, id: u16) -> Role {
        self.roles.get(usize::from(id)).copied().unwrap_or(Role::Plain)
    }

    pub(super) fn field(&self, field: u8) -> u16 {
        self.fields.get(usize::from(field)).copied().unwrap_or(0)
    }
}
