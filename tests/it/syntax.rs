//! Reading code: what is found in real files of each language, and what broken and hostile ones do.

use std::fs;

use provost::syntax::{Language, Patience, Reading, language_of, read};

use super::source::project_root;

/// A file of the fixture, as it is on disk.
fn fixture(path: &str) -> Vec<u8> {
    fs::read(project_root().join("tests/it/fixtures/wit").join(path)).unwrap()
}

fn reading(path: &str) -> Reading {
    read(language_of(path).unwrap(), &fixture(path), &Patience::endless())
}

#[test]
fn every_grammar_has_an_interface_that_the_runtime_knows() {
    for language in Language::all() {
        assert!((13..=15).contains(&language.abi()), "{language:?} has ABI {}", language.abi());
    }
}

#[test]
fn a_name_alone_finds_the_one_symbol_that_ends_with_it() {
    let reading = reading("src/tricky.ts");
    let paths = |name| reading.find(name).into_iter().map(|symbol| &*symbol.path).collect::<Vec<_>>();
    assert_eq!(paths("nested"), ["outer.nested"]);
    assert_eq!(paths("Base.run"), ["Base.run"]);
    assert_eq!(paths("run"), ["Base.run", "Second.run"]);
    assert_eq!(paths("nowhere"), [""; 0]);
}
