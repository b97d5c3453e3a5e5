//! Rust: what is found in a file with every construct, written down from its text.

use provost::syntax::{Kind, Language, NoSignature, Trouble};

use super::{paths, reading_of};

const TEXT: &str = r#"//! A file.
use std::fmt;

/// A store.
#[derive(Debug)]
// Between them.
#[non_exhaustive]
pub struct Store<T: Clone> {
    /// A field.
    pub a: u32,
    inner: Box<T>,
}

pub struct Pair(pub u8, String);

#[allow(unused)]
use std::io;

pub enum State {
    Open,
    /// Paid.
    Paid { by: String },
    Late(u8),
}

pub union Bits { a: u8, b: i8 }

impl<T: Clone> Store<T> {
    pub const MOST: usize = 1;

    #[must_use]
    pub async fn get<'a>(&'a self, mut key: &str, ) -> Option<&'a T> where T: Copy { None }

    fn outer() { fn nested(a: u8) -> u8 { a } const NONE: u8 = 1; }
}

impl<T: Clone> fmt::Display for Store<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { Ok(()) }
}

impl From<io::Error> for Store<u8> { fn from(_: io::Error) -> Self { loop {} } }
impl From<Vec<u8>> for Store<u8> { fn from(_: Vec<u8>) -> Self { loop {} } }

pub trait Keeps<K>: fmt::Debug + Send {
    type Out;
    const N: usize = 2;
    fn keep(&self, key: K) -> Self::Out;
    fn twice(&self) {}
}

unsafe extern "C" { fn from_c(a: i32) -> i32; }
pub const ONE: &str = "one";
pub static mut TWO: [u8; 2] = [0; 2];
pub type Name<T> = Vec<T>;
const _: () = ();

#[cfg(unix)]
fn double() -> u8 { 1 }

#[cfg(not(unix))]
fn double() -> u8 { 2 }

macro_rules! pairs {
    ($a:expr) => { fn hidden() {} };
    ($a:expr, $b:expr) => { ($a, $b) };
}

bitflags! {
    /// Seen in a macro.
    pub(crate) fn seen(a: u8) -> u8 { a }
    struct Flags { }
}

mod tests {
    use super::*;
    pub fn r#match() {}
    mod deeper { struct Inside; }
}
"#;

/// Path, kind, how its source begins and ends, and its contract; empty for one that declares nothing.
const ROWS: &[(&str, Kind, &str, &str, &str)] = &[
    (
        "Store",
        Kind::Class,
        "/// A store.\n#[derive(Debug)]\n// Between",
        "Box<T>,\n}",
        "struct<T: Clone> { pub a: u32, .. }",
    ),
    ("Store.a", Kind::Field, "/// A field.\n    pub a", "u32", ": u32"),
    ("Store.inner", Kind::Field, "inner", "Box<T>", ": Box<T>"),
    ("Pair", Kind::Class, "pub struct Pair", ";", "struct (pub u8, String)"),
    ("Pair.0", Kind::Field, "pub u8", "u8", ": u8"),
    ("Pair.1", Kind::Field, "String", "String", ": String"),
    ("State", Kind::Enum, "pub enum", "}", "enum { Open, Paid { by: String }, Late(u8) }"),
    ("State.Open", Kind::Field, "Open", "Open", ""),
    ("State.Paid", Kind::Field, "/// Paid.", "}", ""),
    ("State.Paid.by", Kind::Field, "by", "String", ": String"),
    ("State.Late", Kind::Field, "Late", "(u8)", ""),
    ("Bits", Kind::Class, "pub union", "}", "union { .. }"),
    ("Bits.a", Kind::Field, "a", "u8", ": u8"),
    ("Bits.b", Kind::Field, "b", "i8", ": i8"),
    ("Store.MOST", Kind::Field, "pub const MOST", ";", ": usize"),
    (
        "Store.get",
        Kind::Method,
        "#[must_use]",
        "{ None }",
        "async <'a>(&'a self, mut key: &str) -> Option<&'a T> where T: Copy",
    ),
    ("Store.outer", Kind::Method, "fn outer", "}", "()"),
    ("Store.outer.nested", Kind::Function, "fn nested", "{ a }", "(a: u8) -> u8"),
    ("Store.Display", Kind::Class, "impl<T: Clone> fmt::Display", "}", ""),
    ("Store.Display.fmt", Kind::Method, "fn fmt", "}", "(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result"),
    ("Store.From<io::Error>", Kind::Class, "impl From", "}", ""),
    ("Store.From<io::Error>.from", Kind::Method, "fn from", "}", "(_: io::Error) -> Self"),
    ("Store.From<Vec<u8>>", Kind::Class, "impl From", "}", ""),
    ("Store.From<Vec<u8>>.from", Kind::Method, "fn from", "}", "(_: Vec<u8>) -> Self"),
    (
        "Keeps",
        Kind::Interface,
        "pub trait",
        "}",
        "trait<K>: fmt::Debug + Send type Out; const N: usize = 2; fn keep(&self, key: K) -> Self::Out; fn twice(&self) { … }",
    ),
    ("Keeps.Out", Kind::TypeAlias, "type Out", ";", "type"),
    ("Keeps.N", Kind::Field, "const N", ";", ": usize"),
    ("Keeps.keep", Kind::Method, "fn keep", ";", "(&self, key: K) -> Self::Out"),
    ("Keeps.twice", Kind::Method, "fn twice", "{}", "(&self)"),
    ("from_c", Kind::Function, "fn from_c", ";", "(a: i32) -> i32"),
    ("ONE", Kind::Variable, "pub const ONE", ";", ": &str"),
    ("TWO", Kind::Variable, "pub static", ";", ": [u8; 2]"),
    ("Name", Kind::TypeAlias, "pub type", ";", "type<T> = Vec<T>"),
    ("double", Kind::Function, "#[cfg(unix)]", "{ 1 }", "() -> u8; () -> u8"),
    ("pairs", Kind::Function, "macro_rules!", "}", "macro ($a:expr) ($a:expr, $b:expr)"),
    ("seen", Kind::Function, "/// Seen in a macro.\n    pub(crate) fn", "{ a }", ""),
    ("Flags", Kind::Class, "struct Flags", "}", ""),
    ("tests", Kind::Namespace, "mod tests", "}", ""),
    ("tests.match", Kind::Function, "pub fn", "{}", "()"),
    ("tests.deeper", Kind::Namespace, "mod deeper", "}", ""),
    ("tests.deeper.Inside", Kind::Class, "struct Inside", ";", "struct"),
];

#[test]
fn everything_in_a_rust_file_is_found_with_its_range_and_its_contract_and_nothing_else() {
    for text in [TEXT.to_owned(), TEXT.replace('\n', "\r\n"), TEXT.replace("    ", "\t")] {
        let reading = reading_of(Language::Rust, &text);
        assert!(reading.is_whole(), "{:?}", reading.trouble);
        let plain = |it: &str| it.replace("\r\n", "\n").replace('\t', "    ");
        for (path, kind, begins, ends, contract) in ROWS {
            let found = reading.find(path);
            let symbol = found.first().unwrap_or_else(|| panic!("no {path}"));
            assert_eq!((&*symbol.path, symbol.kind), (*path, *kind));
            let own = plain(&text[symbol.range.start as usize..symbol.range.end as usize]);
            assert!(own.starts_with(begins) && own.ends_with(ends), "{path} is {own:?}");
            let said = match reading.contract(path) {
                Ok(signature) => signature.text.to_string(),
                Err(NoSignature::Undeclared) => String::new(),
                Err(why) => panic!("{path}: {why:?}"),
            };
            assert_eq!(said, *contract, "{path}");
        }
        let mut more: Vec<&str> = reading.symbols.iter().map(|symbol| &*symbol.path).collect();
        more.retain(|path| ROWS.iter().all(|row| row.0 != *path));
        assert_eq!(more, [""; 0]);
        assert_eq!(reading.find("double").len(), 2, "both branches of a `cfg`");
        assert_eq!(paths(&reading, "fmt"), ["Store.Display.fmt"]);
        assert_eq!(paths(&reading, "from").len(), 2, "one of each trait that it is from");
    }
}

#[test]
fn a_contract_of_rust_is_the_same_however_it_is_written() {
    let canon = |text: &str| reading_of(Language::Rust, text).contract("f").unwrap().canon;
    let one = canon("fn f<T>(a: Vec<T>, b: &str) -> Result<T, ()> where T: Copy {}");
    for same in [
        "pub fn f<T>(\n    a: Vec<T>, // the first\n    b: &str,\n) -> Result<T, ()>\nwhere\n    T: Copy,\n{ todo!() }",
        "/// Doc.\n#[inline]\nfn f< T >( a : Vec< T >, b : & str ) -> Result< T, () > where T : Copy {}",
    ] {
        assert_eq!(canon(same), one, "{same}");
    }
    for other in
        ["fn f<T>(a: Vec<T>, b: &mut str) -> Result<T, ()> where T: Copy {}", "unsafe fn f() {}", "fn f() {}"]
    {
        assert_ne!(canon(other), one, "{other}");
    }
    assert_ne!(canon("fn f(a: (u8,)) {}"), canon("fn f(a: (u8)) {}"));
    assert_ne!(canon("async fn f() {}"), canon("fn f() {}"));
}

#[test]
fn generated_code_is_left_out_with_the_reason_and_its_words_elsewhere_mean_nothing() {
    for (language, text) in [
        (Language::Rust, "// This file is @generated by a tool.\nfn f() {}\n"),
        (Language::Go, "// Code generated by protoc-gen-go. DO NOT EDIT.\n\npackage p\n\nfunc F() {}\n"),
        (
            Language::Go,
            "/* A licence\n * of two lines. */\n\n//go:build x\n\n// Code generated by x. DO NOT EDIT.\r\npackage p\n",
        ),
        (
            Language::TypeScript,
            "/* eslint-disable */\n// @generated by protoc-gen-es v1.2 with parameter \"target=ts\"\nexport function f() {}\n",
        ),
        (
            Language::Tsx,
            "/**\n * This file was auto-generated by x.\n * Do not make direct changes to the file.\n */\nexport function F() {}\n",
        ),
        (
            Language::JavaScript,
            "'use strict';\n// Autogenerated by Thrift Compiler (0.16.0)\nfunction f() {}\n",
        ),
        (
            Language::Python,
            "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# Generated by the protocol buffer compiler.  DO NOT EDIT!\ndef f():\n    pass\n",
        ),
        (Language::Python, "# Generated from Expr.g4 by ANTLR 4.13.1\ndef f():\n    pass\n"),
    ] {
        let reading = reading_of(language, text);
        assert_eq!(reading.trouble, [Trouble::Generated], "{text}");
        assert!(reading.symbols.is_empty());
    }
    for (language, text) in [
        (Language::Rust, "fn f() {}\n// @generated\n"),
        (Language::TypeScript, "export function f() {}\n// @generated\n"),
        (Language::JavaScript, "// Writes files that are generated.\nfunction f() {}\n"),
        (Language::Python, "\"\"\"Reads `@generated`.\"\"\"\ndef f():\n    pass\n"),
        (Language::Python, "def f():\n    pass\n# Generated by x. DO NOT EDIT.\n"),
        (Language::Go, "package p\n\n// Code generated by x. DO NOT EDIT.\nfunc F() {}\n"),
        (Language::Go, "// Code generated by x. DO NOT EDIT. Or do.\npackage p\n\nfunc F() {}\n"),
        (Language::Go, "/*\n// Code generated by x. DO NOT EDIT.\n*/\npackage p\n\nfunc F() {}\n"),
    ] {
        let reading = reading_of(language, text);
        assert!(reading.is_whole() && !reading.symbols.is_empty(), "{text}");
    }
}

#[test]
fn the_contract_of_a_trait_has_what_the_trait_brings_itself_without_its_code() {
    let contract = |of_more: &str| {
        let text = format!("trait T {{\n    fn a(&self);\n    {of_more}\n}}\n");
        reading_of(Language::Rust, &text).contract("T").unwrap()
    };
    let one = contract("async fn b<K: Ord>(&self, key: K) -> u32 where K: Copy { 1 }");
    assert_eq!(&*one.text, "trait fn a(&self); async fn b<K: Ord>(&self, key: K) -> u32 where K: Copy { … }");
    assert_eq!(one, contract("async fn b<K: Ord>(&self, key: K) -> u32 where K: Copy { 2 + 2 }"));
    for other in [
        "",
        "async fn b<K: Ord>(&self, key: K) -> u64 where K: Copy { 1 }",
        "async fn c<K: Ord>(&self, key: K) -> u32 where K: Copy { 1 }",
        "async fn b<K: Ord>(&self, key: K) -> u32 where K: Copy;",
    ] {
        assert_ne!(one, contract(other), "{other}");
    }
}
