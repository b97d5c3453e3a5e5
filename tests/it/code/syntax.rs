//! Reading code: what is found in real files of each language, and what broken and hostile ones do.

mod bad_input;
mod beyond;
mod c;
mod cache;
mod calls;
mod canon;
mod cpp;
mod csharp;
mod fixture;
mod go;
mod hostile;
mod java;
mod kotlin;
mod modules;
mod php;
mod ruby;
mod rust;
mod samples;
mod swift;
mod vectors;

use std::fs;

use provost::syntax::{Kind, Language, NoSignature, ParseDeadline, Reading, language_of, read};

use crate::support::source::project_root;

/// A file of the fixture, as it is on disk.
fn fixture(path: &str) -> Vec<u8> {
    fs::read(project_root().join("tests/it/vectors/wit/fixture").join(path)).unwrap()
}

/// Reads a file of the fixture.
fn reading(path: &str) -> Reading {
    read(language_of(path).unwrap(), &fixture(path), &ParseDeadline::endless())
}

/// Reads a text.
fn reading_of(language: Language, text: &str) -> Reading {
    read(language, text.as_bytes(), &ParseDeadline::endless())
}

/// Paths of what a name leads to.
fn paths<'a>(reading: &'a Reading, name: &str) -> Vec<&'a str> {
    reading.find(name).into_iter().map(|symbol| &*symbol.path).collect()
}

/// A file has these symbols and no others, also with other line ends: their paths, kinds, how their sources begin and end, and their
/// contracts, empty where nothing is declared.
fn assert_rows(language: Language, text: &str, rows: &[(&str, Kind, &str, &str, &str)]) {
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        let reading = reading_of(language, &text);
        assert!(reading.is_whole(), "{:?}", reading.trouble);
        for (path, kind, begins, ends, contract) in rows {
            let found = reading.find(path);
            let symbol = found.first().unwrap_or_else(|| panic!("no {path}"));
            assert_eq!((&*symbol.path, symbol.kind), (*path, *kind));
            let own = text[symbol.range.start as usize..symbol.range.end as usize].replace("\r\n", "\n");
            assert!(own.starts_with(begins) && own.ends_with(ends), "{path} is {own:?}");
            let said = match reading.contract(path) {
                Ok(signature) => signature.text.to_string(),
                Err(NoSignature::Undeclared) => String::new(),
                Err(why) => panic!("{path}: {why:?}"),
            };
            assert_eq!(said, *contract, "{path}");
        }
        let mut more: Vec<&str> = reading.symbols.iter().map(|symbol| &*symbol.path).collect();
        more.retain(|path| rows.iter().all(|row| row.0 != *path));
        assert_eq!(more, [""; 0]);
    }
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
        ("main.c", Some(Language::C)),
        ("a.cc", Some(Language::Cpp)),
        ("a.HPP", Some(Language::Cpp)),
        ("a.h", Some(Language::CHeader)),
        ("main.go", Some(Language::Go)),
        ("a.php", Some(Language::Php)),
        ("a.phtml", Some(Language::Php)),
        ("a.rb", Some(Language::Ruby)),
        ("lib/tasks/a.rake", Some(Language::Ruby)),
        ("a.gemspec", Some(Language::Ruby)),
        ("a/Rakefile", Some(Language::Ruby)),
        ("Gemfile", Some(Language::Ruby)),
        ("Gemfile.lock", None),
        ("src/A.java", Some(Language::Java)),
        ("A.Designer.cs", Some(Language::CSharp)),
        ("a.csx", Some(Language::CSharp)),
        ("build.gradle.kts", Some(Language::Kotlin)),
        ("a/B.kt", Some(Language::Kotlin)),
        ("Sources/App/main.swift", Some(Language::Swift)),
        ("Package.swift", Some(Language::Swift)),
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
