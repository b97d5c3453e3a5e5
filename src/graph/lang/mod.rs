//! The rules by which files of a language import each other. The rest of `graph` asks a file's [`Rules`] and
//! knows no language. To add a language, write `<name>.rs` here and its arm in [`rules`].
#![forbid(unsafe_code)]

mod c;
mod c_calls;
mod c_settings;
mod csharp;
mod ecma;
mod ecma_settings;
mod full_names;
mod go;
mod java;
mod kotlin;
mod php;
mod python;
mod ruby;
mod rust;
mod rust_settings;
mod swift;
mod swift_library;

use std::collections::BTreeSet;

use super::Files;
use super::Target;
use super::modules::Tries;
use super::outline::{Outline, Use};
use super::resolve::{Resolver, Value};
use provost_syntax::{Language, language_of};

/// The module rules of a family of languages.
pub(super) struct Rules {
    /// Suffixes of file names that an import may omit. A suffix comes before those that it ends with.
    pub(super) ends: &'static [&'static str],
    /// The name, without its suffix, of the file that stands for its folder.
    pub(super) folder_file: &'static str,
    /// Whether a file with this path has settings for finding modules.
    pub(super) is_settings: fn(&str) -> bool,
    /// The paths at which a module may be, by its text in an import and the path of the importing file.
    pub(super) tries: fn(&str, &str, &Files, &Settings) -> Tries,
    /// The file of the package that a module with this key belongs to.
    pub(super) package_of: fn(&str, &Files) -> Option<u32>,
    /// The module that a name imported from a module may be instead, in the form of an import.
    pub(super) or_module: fn(&str, &str) -> Option<String>,
    /// The value that a module offers under a name.
    pub(super) export: Lookup,
    /// The value that the stars of a file offer under a name.
    pub(super) through_stars: Lookup,
    /// Whether a star includes a name of a module.
    pub(super) is_in_star: fn(&Outline, &str) -> bool,
    /// Whether a star makes names known in its own file; otherwise it only passes them on.
    pub(super) stars_bind: bool,
    /// Whether all files of a folder are one module, and each sees the definitions of the others.
    pub(super) folder_is_module: bool,
    /// Whether a file can name itself in an import.
    pub(super) names_itself: bool,
    /// The lookup of a member that another file adds to a type; `None` if files add only to their own types.
    pub(super) added: Option<Added>,
    /// The keys under which others find a file's definitions without importing the file; `None` if they find only its additions to
    /// their types.
    pub(super) keys: Option<Keys>,
    /// The meaning of a name that its own file does not define: by the types and namespaces around, and by other files.
    pub(super) around: Option<Around>,
    /// The meaning of a whole path, whose first parts may be those of a namespace: a file, and the path; the last number is the
    /// depth so far.
    pub(super) by_path: Option<ByPath>,
    /// The lookup of a function that other files add to the types of a name: the last names of the type and of the function.
    pub(super) extension: Option<Extension>,
    /// The lookup of a member that files add to what a type of the language's own library keeps to: the names of the type and the member.
    pub(super) of_library: Option<Extension>,
    /// The only member with its name among all files, as a guess; `None` if only imported files are searched.
    pub(super) only_one: Option<fn(&mut Resolver<'_>, &str) -> Option<Value>>,
    /// Whether a member is guessed by its name if a function or a field before it does not declare its type.
    pub(super) guesses_behind_unknown: bool,
    /// Whether a call of what an interface declares leads to the declaration also where the code of a class is guessed.
    pub(super) declaration_counts: bool,
    /// The only code among all files for what a type declares without any; `None` if it is guessed by its name.
    pub(super) code_of: Option<CodeOf>,
    /// What else a call may mean that was found to lead to a symbol: the caller, and the file and the number of the symbol.
    pub(super) namesakes: Option<Namesakes>,
    /// The name under which a module exports itself as a whole.
    pub(super) whole: Option<&'static str>,
    /// The name under which a module exports its value without a name.
    pub(super) default: Option<&'static str>,
    /// The member that every class has, even if it is not declared.
    pub(super) implied: Option<&'static str>,
    /// A family's own way to follow calls; `None` if names are looked up in the common way.
    pub(super) follows: Option<&'static Follows>,
}

/// The way to follow calls if a file knows all names of all files that it includes, and a name may be declared in one file and
/// defined in another. Calls are kept as they are written, and files are also found by the ends of their paths.
pub(super) struct Follows {
    /// The targets of a call, each with whether it is a guess.
    pub(super) targets: fn(&mut Resolver<'_>, &Use) -> Vec<(Target, bool)>,
    /// The definitions of a file, by number, each with the place of its declaration.
    pub(super) declared: fn(&mut Resolver<'_>) -> Vec<(u32, Target)>,
}

pub(super) use c_calls::Memo;

/// Looks a name up in a file; the last number is the depth so far.
type Lookup = for<'g> fn(&mut Resolver<'g>, u32, &'g Outline, &str, u32) -> Option<Value>;

/// Looks for a member that other files add to a type: the type's file, its number there and the member; the last number is the depth
/// so far.
type Added = for<'g> fn(&mut Resolver<'g>, (u32, u32), &str, u32) -> Option<Value>;

/// Looks for what a call may mean beside a symbol, by the caller, and the file and the number of the symbol.
pub(super) type Namesakes = fn(&mut Resolver<'_>, u32, (u32, u32)) -> Vec<(u32, u32)>;

/// Looks for the code of a declared member, by the file and the number of the declaration.
type CodeOf = for<'g> fn(&mut Resolver<'g>, (u32, u32)) -> Option<Value>;

/// Returns the keys of a file's definitions, by the file's path.
type Keys = fn(&str, &Outline) -> BTreeSet<Box<str>>;

/// Looks for the meaning of a path in a file; the last number is the depth so far.
type ByPath = for<'g> fn(&mut Resolver<'g>, u32, &str, u32) -> Option<Value>;

/// Looks for a function that extends the types of a name: the name, and that of the function.
type Extension = for<'g> fn(&mut Resolver<'g>, &str, &str) -> Option<Value>;

/// Looks for a name at a place: a file, and the number of the symbol around it; the last number is the depth so far.
type Around = for<'g> fn(&mut Resolver<'g>, (u32, Option<u32>), &str, u32) -> Option<Value>;

/// The rules of a language in which each file exports its top-level symbols; the rows of other languages name the differences.
pub(super) const PLAIN: Rules = Rules {
    ends: &[],
    folder_file: "",
    is_settings: |_| false,
    tries: |_, _, _, _| Tries { paths: Vec::new(), keys: Vec::new() },
    package_of: |_, _| None,
    or_module: |_, _| None,
    export: |resolver, file, outline, name, depth| resolver.at_top(file, outline, name, depth),
    through_stars: |_, _, _, _, _| None,
    is_in_star: |_, _| true,
    stars_bind: false,
    folder_is_module: false,
    names_itself: false,
    added: None,
    keys: None,
    around: None,
    by_path: None,
    extension: None,
    of_library: None,
    only_one: None,
    guesses_behind_unknown: false,
    declaration_counts: false,
    code_of: None,
    namesakes: None,
    whole: None,
    default: None,
    implied: None,
    follows: None,
};

/// What the stars of a file offer under a name: in circles, and where ways meet again, a module is asked once; what two of them have
/// under one name is offered by none.
pub(super) fn through_any_star<'g>(
    resolver: &mut Resolver<'g>,
    file: u32,
    outline: &'g Outline,
    name: &str,
    depth: u32,
) -> Option<Value> {
    let is_first = resolver.open.is_empty();
    if !resolver.open.insert((file, name.to_owned())) {
        return None;
    }
    let mut found: BTreeSet<Value> = BTreeSet::new();
    for spec in outline.stars.iter().map(|(spec, _)| *spec).collect::<BTreeSet<u32>>() {
        found.extend(resolver.through_star(file, spec, name, depth));
    }
    if is_first {
        resolver.open.clear();
    }
    if found.len() == 1 { found.pop_first() } else { None }
}

/// The rules of a language. Exhaustive, so that a language without rules does not compile.
pub(super) fn rules(language: Language) -> &'static Rules {
    match language {
        Language::TypeScript | Language::Tsx | Language::JavaScript => &ecma::RULES,
        Language::Python => &python::RULES,
        Language::Rust => &rust::RULES,
        Language::Go => &go::RULES,
        Language::C | Language::Cpp | Language::CHeader => &c::RULES,
        Language::Ruby => &ruby::RULES,
        Language::Php => &php::RULES,
        Language::Java => &java::RULES,
        Language::CSharp => &csharp::RULES,
        Language::Kotlin => &kotlin::RULES,
        Language::Swift => &swift::RULES,
    }
}

/// The rules of the language to which a path belongs.
pub(super) fn rules_at(path: &str) -> Option<&'static Rules> {
    language_of(path).map(rules)
}

/// Whether a file of this name has settings.
pub fn is_settings(path: &str) -> bool {
    Language::all().any(|language| (rules(language).is_settings)(path))
}

/// The settings of a repository, by the family of languages that reads them.
#[derive(Default, Debug)]
pub(super) struct Settings {
    c: c_settings::Settings,
    ecma: ecma_settings::Settings,
    rust: rust_settings::Settings,
    go: go::Settings,
    php: php::Settings,
}

impl Settings {
    /// Takes a file's text in, or notes that it is gone; says whether that makes a difference.
    pub(super) fn set(&mut self, path: &str, text: Option<&str>) -> bool {
        match () {
            () if c_settings::is_settings(path) => self.c.set(path, text),
            () if ecma_settings::is_settings(path) => self.ecma.set(path, text),
            () if rust_settings::is_settings(path) => self.rust.set(path, text),
            () if go::is_settings(path) => self.go.set(path, text),
            () if php::is_settings(path) => self.php.set(path, text),
            () => false,
        }
    }
}

impl Rules {
    /// A path without the end that an import may leave out.
    pub(super) fn stem<'p>(&self, path: &'p str) -> &'p str {
        self.ends.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path)
    }
}
