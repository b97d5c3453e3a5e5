//! Reading code: what is found in real files of each language, and what broken and hostile ones do.

mod cache;
mod calls;
mod canon;
mod fixture;
mod go;
mod hostile;
mod modules;
mod php;
mod ruby;
mod rust;
mod vectors;

use std::fs;

use provost::syntax::{Language, ParseDeadline, Reading, language_of, read};

use crate::support::source::project_root;

/// A file of the fixture, as it is on disk.
fn fixture(path: &str) -> Vec<u8> {
    fs::read(project_root().join("tests/it/vectors/wit/fixture").join(path)).unwrap()
}

/// What there is in a file of the fixture.
fn reading(path: &str) -> Reading {
    read(language_of(path).unwrap(), &fixture(path), &ParseDeadline::endless())
}

/// What there is in some text.
fn reading_of(language: Language, text: &str) -> Reading {
    read(language, text.as_bytes(), &ParseDeadline::endless())
}

/// Paths of what a name leads to.
fn paths<'a>(reading: &'a Reading, name: &str) -> Vec<&'a str> {
    reading.find(name).into_iter().map(|symbol| &*symbol.path).collect()
}

#[test]
fn every_grammar_has_an_interface_that_the_runtime_knows() {
    for language in Language::all() {
        assert!((13..=15).contains(&language.abi()), "{language:?} has ABI {}", language.abi());
    }
}

#[test]
fn the_end_of_a_name_says_which_language_it_is() {
    for (path, language) in [
        ("a.ts", Some(Language::TypeScript)),
        ("a/b.d.ts", Some(Language::TypeScript)),
        ("a.mts", Some(Language::TypeScript)),
        ("a.cts", Some(Language::TypeScript)),
        ("A.TS", Some(Language::TypeScript)),
        ("a.tsx", Some(Language::Tsx)),
        ("a.js", Some(Language::JavaScript)),
        ("a.jsx", Some(Language::JavaScript)),
        ("a.mjs", Some(Language::JavaScript)),
        ("a.cjs", Some(Language::JavaScript)),
        ("a.py", Some(Language::Python)),
        ("a.pyi", Some(Language::Python)),
        ("a.rs", Some(Language::Rust)),
        ("main.go", Some(Language::Go)),
        ("a.php", Some(Language::Php)),
        ("a.phtml", Some(Language::Php)),
        ("a.rb", Some(Language::Ruby)),
        ("lib/tasks/a.rake", Some(Language::Ruby)),
        ("a.gemspec", Some(Language::Ruby)),
        ("a/Rakefile", Some(Language::Ruby)),
        ("Gemfile", Some(Language::Ruby)),
        ("Gemfile.lock", None),
        ("main.zig", None),
        ("ts", None),
        (".ts", None),
        ("a.ts/b", None),
        ("", None),
        ("ü.py", Some(Language::Python)),
    ] {
        assert_eq!(language_of(path), language, "{path}");
    }
}
