//! Languages are rows: each has module rules, and the graph names none of them outside of the rules' folder.

use provost::graph::is_settings;
use provost::syntax::{Language, language_of};

use crate::support::graphs::{assert_edges, graph_of};
use crate::support::source::{Source, sources};

/// A module, the one that stands for its folder, and a file that calls both: what every language has in some form.
fn modules(language: Language) -> [(&'static str, &'static str); 3] {
    let module = "export function f() {}";
    let folder = "export function g() {}";
    let caller = "import { f } from './lib/a';\nimport { g } from './lib';\nfunction h() { f(); g(); }";
    match language {
        Language::TypeScript => [("lib/a.ts", module), ("lib/index.ts", folder), ("main.ts", caller)],
        Language::Tsx => [("lib/a.tsx", module), ("lib/index.tsx", folder), ("main.tsx", caller)],
        Language::JavaScript => [("lib/a.js", module), ("lib/index.js", folder), ("main.js", caller)],
        Language::Python => [
            ("lib/a.py", "def f(): pass"),
            ("lib/__init__.py", "def g(): pass"),
            ("main.py", "from lib.a import f\nfrom lib import g\ndef h():\n    f()\n    g()\n"),
        ],
        Language::Rust => [
            ("lib/a.rs", "pub fn f() {}"),
            ("lib/mod.rs", "pub mod a; pub fn g() {}"),
            ("main.rs", "mod lib; use lib::{a::f, g}; fn h() { f(); g(); }"),
        ],
        // No file stands for its folder there: two files are one module.
        Language::Go => [
            ("lib/a.go", "package lib\nfunc F() {}\n"),
            ("lib/b.go", "package lib\nfunc G() {}\n"),
            ("main.go", "package main\nimport \"lib\"\nfunc h() { lib.F(); lib.G() }\n"),
        ],
        Language::Java => [
            ("lib/A.java", "package lib; class A { static void f() {} }"),
            ("lib/B.java", "package lib; public class B { static void g() {} }"),
            ("Main.java", "import lib.*; class Main { void h() { A.f(); lib.B.g(); } }"),
        ],
        // A class in two files.
        Language::CSharp => [
            ("Lib/A.cs", "namespace Lib; public partial class A { public static void F() {} }"),
            ("Lib/B.cs", "namespace Lib; public partial class A { public static void G() {} }"),
            ("Main.cs", "using Lib; class Main { void H() { A.F(); Lib.A.G(); } }"),
        ],
        Language::Kotlin => [
            ("lib/A.kt", "package lib\nfun f() {}\n"),
            ("lib/B.kt", "package lib\nfun g() {}\n"),
            ("Main.kt", "import lib.f\nfun h() {\n    f()\n    lib.g()\n}\n"),
        ],
        Language::Swift => [
            ("Sources/Lib/A.swift", "public func f() {}"),
            ("Sources/Lib/B.swift", "public func g() {}"),
            ("Sources/App/main.swift", "import Lib\nfunc h() {\n    f()\n    Lib.g()\n}\n"),
        ],
        Language::Php => [
            ("lib/a.php", "<?php\nnamespace Lib;\nfunction f() {}\n"),
            ("lib/b.php", "<?php\nnamespace Lib;\nfunction g() {}\n"),
            ("main.php", "<?php\nuse function Lib\\{f, g};\nfunction h() { f(); g(); }\n"),
        ],
        // Nor there: constants are known by their names.
        Language::Ruby => [
            ("lib/a.rb", "class A\n  def self.f = 1\nend\n"),
            ("lib/b.rb", "module B\n  def self.g = 1\nend\n"),
            ("main.rb", "def h\n  A.f\n  B.g\nend\n"),
        ],
        // Nor there: a file has the names of those that it includes.
        Language::C => [
            ("lib/a.c", "static void f(void) {}"),
            ("lib/b.c", "static void g(void) {}"),
            ("main.c", "#include \"lib/a.c\"\n#include \"lib/b.c\"\nvoid h(void) { f(); g(); }"),
        ],
        Language::Cpp => [
            ("lib/a.hpp", "inline void f() {}"),
            ("lib/b.hpp", "inline void g() {}"),
            ("main.cpp", "#include \"lib/a.hpp\"\n#include <lib/b.hpp>\nvoid h() { f(); g(); }"),
        ],
        Language::CHeader => [
            ("lib/a.h", "static inline void f(void) {}"),
            ("lib/b.h", "static inline void g(void) {}"),
            ("main.h", "#include \"lib/a.h\"\n#include <lib/b.h>\nstatic inline void h(void) { f(); g(); }"),
        ],
    }
}

#[test]
fn modules_of_each_language_are_found_in_any_order_of_files() {
    for language in Language::all() {
        let files = modules(language);
        let [module, folder, caller] = files.map(|(path, _)| path);
        for (path, _) in files {
            assert_eq!(language_of(path), Some(language), "{path}");
        }
        let [h, f, g] = match language {
            Language::Go => ["h", "F", "G"],
            Language::Java => ["Main.h", "A.f", "B.g"],
            Language::CSharp => ["Main.H", "A.F", "A.G"],
            Language::Ruby => ["h", "A.f", "B.g"],
            _ => ["h", "f", "g"],
        };
        let expected = [format!("{caller}:{h} -> {module}:{f}"), format!("{caller}:{h} -> {folder}:{g}")];
        let expected = expected.each_ref().map(String::as_str);
        let [a, b, c] = files;
        for order in [[a, b, c], [c, b, a], [b, c, a]] {
            assert_edges(&graph_of(&order), &expected);
        }
    }
}

#[test]
fn a_called_module_of_python_leads_nowhere_whatever_its_functions_are_called() {
    let module = "def default(): pass\ndef constructor(): pass\n";
    let caller = "import m\ndef f():\n    m()\n    m.default()\n";
    assert_edges(
        &graph_of(&[("m.py", module), ("main.py", caller)]),
        &["main.py:f -> m.py:default", "main.py:f -> ?:m"],
    );
    let caller = "import m\ndef f():\n    m()\n";
    assert_edges(&graph_of(&[("m.py", module), ("main.py", caller)]), &["main.py:f -> ?:m"]);
}

/// Returns the texts that name a language: its name, the name of its family, and strings that are ends or names of its files.
fn named(source: &Source) -> Vec<String> {
    let folder = source.path.strip_prefix("src/graph/");
    if folder.is_none_or(|rest| rest.starts_with("lang/")) {
        return Vec::new();
    }
    let mut names: Vec<String> = Language::all().map(|language| language.name().to_lowercase()).collect();
    names.push("ecma".into());
    let mut found = Vec::new();
    for (i, line) in source.text.lines().enumerate() {
        let small = line.to_lowercase();
        let is_named = |name: &str| match name {
            // A word of every day, unless it is written as a name.
            "c" => [" C ", " C,", " C.", "(C)", "::C)"].iter().any(|it| line.contains(it)),
            "go" => ["Go ", "Go,", "Go.", "Go)", "go::", "Go's"].iter().any(|it| line.contains(it)),
            // The beginning of another name.
            "java" => small.replace("javascript", "").contains(name),
            name => small.contains(name),
        };
        let names = names.iter().filter(|name| is_named(name));
        found.extend(names.map(|name| format!("{}:{}: names {name}", source.path, i + 1)));
    }
    for (line, text) in literals(source) {
        if language_of(&format!("a{text}")).is_some() || is_settings(&text) {
            found.push(format!("{}:{line}: \"{text}\" is a file of one language", source.path));
        }
    }
    found
}

/// The strings of a source, each with its line from 1.
fn literals(source: &Source) -> Vec<(usize, String)> {
    let lines = source.text.lines().zip(source.code.lines()).zip(source.comments.lines());
    let mut found = Vec::new();
    for (i, ((text, code), comments)) in lines.enumerate() {
        let chars = text.chars().zip(code.chars()).zip(comments.chars());
        let literal = |((text, code), comment): ((char, char), char)| {
            if code == ' ' && comment == ' ' { text } else { '"' }
        };
        let only: String = chars.map(literal).collect();
        found.extend(only.split('"').filter(|text| !text.trim().is_empty()).map(|text| (i + 1, text.into())));
    }
    found
}

#[test]
fn the_graph_names_no_language_outside_of_the_rules() {
    let found: Vec<String> = sources("src/graph").iter().flat_map(named).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    let rules = sources("src/graph/lang");
    assert!(rules.iter().any(|source| source.text.contains("Language::Python")), "the rules are elsewhere");
}

#[test]
fn a_language_outside_of_the_rules_is_caught() {
    let count = |path: &str, text: &str| named(&Source::new(path, text)).len();
    for text in [
        "if outline.is_python() {}",
        "if language == Language::Tsx {}",
        "modules::ecma(spec)",
        "// As JavaScript has it.",
        "language == Language::Rust",
        "language == (Language::Go)",
        "// As Go has it.",
        "path.ends_with(\".pyi\")",
        "let init = \"/__init__.py\";",
        "path == \"tsconfig.json\"",
    ] {
        assert_eq!(count("src/graph/resolve.rs", text), 1, "{text}");
        assert_eq!(count("src/graph/lang/ecma.rs", text), 0, "{text}");
        assert_eq!(count("src/index/walk.rs", text), 0, "{text}");
    }
    assert_eq!(
        count("src/graph/resolve.rs", "let rules = outline.rules(); // of `.py`\nlet a = \"a.b\";"),
        0
    );
}
