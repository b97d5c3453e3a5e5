//! The `.scip` indexes of compilers: what they add, what they replace, and when they do not count.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{ON, Read};
use crate::support::eventually;

/// A field of Protocol Buffers with bytes in it.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut len = content.len();
    while len >= 0x80 {
        bytes.push(u8::try_from(len & 0x7f).unwrap() | 0x80);
        len >>= 7;
    }
    bytes.push(u8::try_from(len).unwrap());
    [bytes, content.to_vec()].concat()
}

fn occurrence(line: u8, from: u8, to: u8, symbol: &str, defines: bool) -> Vec<u8> {
    let roles = if defines { vec![3 << 3, 1] } else { vec![] };
    field(2, &[field(1, &[line, from, to]), field(2, symbol.as_bytes()), roles].concat())
}

fn document(path: &str, occurrences: &[Vec<u8>]) -> Vec<u8> {
    field(2, &[field(1, path.as_bytes()), occurrences.concat()].concat())
}

#[test]
fn a_scip_index_finds_what_names_do_not_tell_as_long_as_files_are_older() {
    let session = ("s.ts", "export class Session { renew() {} }\nclass Other { renew() {} }\n");
    let uses = ("u.ts", "const \u{e9} = 1; function f(x) { x.renew(); }\nfunction g(x) { x.renew(); }\n");
    let scip = |root: &Path| {
        let tool = field(1, &field(2, &[field(1, b"scip-test"), field(2, b"1.0")].concat()));
        let defined = document("s.ts", &[occurrence(0, 23, 28, "s Session#renew().", true)]);
        // Columns are counted as JavaScript does.
        let used = document("u.ts", &[occurrence(0, 31, 36, "s Session#renew().", false)]);
        fs::write(root.join("index.scip"), [tool, defined, used].concat()).unwrap();
    };
    let mut read = Read::with(&[session, uses], ON, scip);
    assert_eq!(read.callers("s.ts:Session.renew"), ["u.ts:f"]);
    assert_eq!(read.callees("u.ts:f"), ["s.ts:Session.renew"]);
    assert_eq!(read.callees("u.ts:g"), ["?:renew"], "the index does not name this call");
    let scip = read.index.state().scip.unwrap();
    assert_eq!((&*scip.tool, scip.files, scip.outdated, scip.edges), ("scip-test 1.0", 2, 0, 1));

    read.put("u.ts", "\nfunction f(x) { x.renew(); }\n");
    read.hears_of("u.ts");
    assert_eq!(read.callees("u.ts:f"), ["?:renew"], "the index is older");
    assert_eq!(read.index.state().scip.unwrap().outdated, 1);

    fs::write(read.dir.path().join("index.scip"), b"\x12\xff\xff").unwrap();
    let complains = || read.index.state().missing.iter().any(|why| why.contains("cut off"));
    eventually("a broken index is named", complains);
    fs::remove_file(read.dir.path().join("index.scip")).unwrap();
    eventually("it is forgotten", || read.index.state().complete);
}

/// A symbol's name in a text: its last occurrence in the line that begins with some text.
fn at(text: &str, line: &str, name: &str, symbol: &str, defines: bool) -> Vec<u8> {
    let (number, found) =
        (0_u8..).zip(text.lines()).find(|(_, it)| it.starts_with(line)).expect("the line is there");
    let from = u8::try_from(found.rfind(name).expect("the name is there")).unwrap();
    occurrence(number, from, from + u8::try_from(name.len()).unwrap(), symbol, defines)
}

fn tool(name: &str) -> Vec<u8> {
    field(1, &field(2, &[field(1, name.as_bytes()), field(2, b"1")].concat()))
}

/// For each language: the file that defines the method, the line of that, the method, and a file whose function `f` calls it on a
/// value of unknown type; and the function.
const IN_EACH: [(&str, &str, &str, &str, &str, &str, &str); 13] = [
    (
        "s.ts",
        "export class S { renew() {} }",
        "export",
        "renew",
        "u.ts",
        "export function f(x) { x.renew(); }",
        "f",
    ),
    (
        "s.js",
        "export class S { renew() {} }",
        "export",
        "renew",
        "u.js",
        "export function f(x) { x.renew(); }",
        "f",
    ),
    ("s.py", "class S:\n    def renew(self): pass", "    def", "renew", "u.py", "def f(x): x.renew()", "f"),
    (
        "s.rs",
        "impl S { pub fn renew(&self) {} }",
        "impl",
        "renew",
        "u.rs",
        "fn f(x: ext::X) { x.renew(); }",
        "f",
    ),
    (
        "s.go",
        "package s\nfunc (s S) Renew() {}",
        "func",
        "Renew",
        "u.go",
        "package s\nfunc f(x ext.X) { x.Renew() }",
        "f",
    ),
    (
        "S.java",
        "class S { void renew() {} }",
        "class",
        "renew",
        "U.java",
        "class U { void f(Ext x) { x.renew(); } }",
        "U.f",
    ),
    (
        "S.cs",
        "class S { void Renew() {} }",
        "class",
        "Renew",
        "U.cs",
        "class U { void f(Ext x) { x.Renew(); } }",
        "U.f",
    ),
    ("S.kt", "class S { fun renew() {} }", "class", "renew", "U.kt", "fun f(x: Ext) { x.renew() }", "f"),
    (
        "S.swift",
        "class S { func renew() {} }",
        "class",
        "renew",
        "U.swift",
        "func f(x: Ext) { x.renew() }",
        "f",
    ),
    ("s.c", "void renew(void) {}", "void", "renew", "u.c", "void f(struct ext *x) { x->renew(); }", "f"),
    (
        "s.cpp",
        "struct S { void renew() {} };",
        "struct",
        "renew",
        "u.cpp",
        "void f(Ext x) { x.renew(); }",
        "f",
    ),
    ("s.rb", "class S\n  def renew; end\nend", "  def", "renew", "u.rb", "def f(x)\n  x.renew()\nend", "f"),
    (
        "s.php",
        "<?php\nclass S { function renew() {} }",
        "class",
        "renew",
        "u.php",
        "<?php\nfunction f(Ext $x) { $x->renew(); }",
        "f",
    ),
];

#[test]
fn an_index_tells_what_is_called_in_each_language() {
    for (defining, definition, begins, name, using, uses, caller) in IN_EACH {
        let other = format!("other/{defining}");
        let index = |root: &Path| {
            let defined =
                document(defining, &[at(definition, begins, name, &format!("s S#{name}()."), true)]);
            let line = uses.lines().find(|it| it.contains(name)).expect("it is called");
            let used = document(using, &[at(uses, line, name, &format!("s S#{name}()."), false)]);
            fs::write(root.join("index.scip"), [tool("test"), defined, used].concat()).unwrap();
        };
        let read = Read::with(&[(defining, definition), (&other, definition), (using, uses)], ON, index);
        let called = if defining == "s.c" { name.to_owned() } else { format!("S.{name}") };
        assert_eq!(read.callees(&format!("{using}:{caller}")), [format!("{defining}:{called}")], "{using}");
        let callers = read.callers(&format!("{defining}:{called}"));
        assert_eq!(callers, [format!("{using}:{caller}")], "{using}");
    }
}

const A: (&str, &str) = ("a.ts", "export function run() {}\n");
const B: (&str, &str) = ("b.ts", "export function run() {}\n");

/// An index by which `run` in the first line of `u.ts` is what this file defines, or what no file of the repository does.
fn leads_to(file: &'static str, uses: &'static str) -> impl FnOnce(&Path) {
    move |root| {
        let names = [("a.ts", "s a/run()."), ("b.ts", "s b/run()."), ("far", "s far/run().")];
        let symbol = names.iter().find(|(it, _)| *it == file).map(|(_, symbol)| *symbol).unwrap();
        let defined = [A, B].map(|(path, text)| {
            let symbol = names.iter().find(|(it, _)| *it == path).map(|(_, symbol)| *symbol).unwrap();
            document(path, &[at(text, "export", "run", symbol, true)])
        });
        let used = document("u.ts", &[at(uses, "export function f", "run", symbol, false)]);
        fs::write(root.join("index.scip"), [tool("test"), defined.concat(), used].concat()).unwrap();
    }
}

#[test]
fn an_index_goes_before_what_the_rules_find_where_it_knows_every_call_of_the_name() {
    let once = "export function f() { run(); }\nimport { run } from './a';\n";
    let read = Read::with(&[A, B, ("u.ts", once)], ON, leads_to("a.ts", once));
    assert_eq!(read.callees("u.ts:f"), ["a.ts:run"]);
    let read = Read::with(&[A, B, ("u.ts", once)], ON, leads_to("b.ts", once));
    assert_eq!(read.callees("u.ts:f"), ["b.ts:run"], "as a setting of the compiler may lead there");
    assert_eq!(read.callers("a.ts:run"), [""; 0]);
    let read = Read::with(&[A, B, ("u.ts", once)], ON, leads_to("far", once));
    assert_eq!(
        read.callees("u.ts:f"),
        ["a.ts:run"],
        "an index of a part of the repository knows nothing of the rest"
    );

    // What the index tells of moves to another file.
    let through = "export function f() { run(); }\nimport { run } from './barrel';\n";
    let barrel = ("barrel.ts", "export { run } from './b';\n");
    let mut read = Read::with(&[A, B, barrel, ("u.ts", through)], ON, leads_to("b.ts", through));
    assert_eq!(read.callees("u.ts:f"), ["b.ts:run"]);
    read.put("barrel.ts", "export { run } from './c';\n");
    read.put("c.ts", "export function run() {}\n");
    read.put("b.ts", "");
    read.hears_of("b.ts");
    eventually("the rules count again", || read.callees("u.ts:f") == ["c.ts:run"]);

    // The index says nothing of the second call.
    let twice = "export function f() { run();\n run(); }\nimport { run } from './a';\n";
    let read = Read::with(&[A, B, ("u.ts", twice)], ON, leads_to("b.ts", twice));
    assert_eq!(read.callees("u.ts:f"), ["a.ts:run", "b.ts:run"]);
    // Nor of the only one: it tells of a mention behind that.
    let mentioned = "export function f() { run(); const g = run; }\nimport { run } from './a';\n";
    let read = Read::with(&[A, B, ("u.ts", mentioned)], ON, leads_to("b.ts", mentioned));
    assert_eq!(read.callees("u.ts:f"), ["a.ts:run"], "a mention is no call");
}

#[test]
fn a_symbol_of_a_file_that_has_changed_since_is_not_taken_for_one_of_another_package() {
    let once = "export function f() { run(); }\nimport { run } from './a';\n";
    let index = |root: &Path| {
        leads_to("a.ts", once)(root);
        let later = SystemTime::now() + Duration::from_secs(5);
        File::options().write(true).open(root.join("a.ts")).unwrap().set_modified(later).unwrap();
    };
    let read = Read::with(&[A, B, ("u.ts", once)], ON, index);
    assert_eq!(read.index.state().scip.unwrap().outdated, 1);
    assert_eq!(read.callees("u.ts:f"), ["a.ts:run"], "by the rules");
}

#[test]
fn a_file_with_other_content_and_an_old_time_is_not_as_it_was_indexed() {
    let once = "export function f() { run(); }\nimport { run } from './a';\n";
    let moved =
        "\n\n  export function g() {}\n  export function f() { run(); }\nimport { run } from './a';\n";
    let index = |root: &Path| {
        leads_to("b.ts", once)(root);
        let before = SystemTime::now() - Duration::from_secs(3_600);
        File::options().write(true).open(root.join("u.ts")).unwrap().set_modified(before).unwrap();
    };
    let read = Read::with(&[A, B, ("u.ts", moved)], ON, index);
    assert_eq!(read.callees("u.ts:f"), ["a.ts:run"]);
    let scip = read.index.state().scip.unwrap();
    assert_eq!((scip.files, scip.outdated), (2, 1));
}

#[test]
fn two_languages_bring_two_indexes_and_one_that_is_broken_takes_no_other_away() {
    let (go, calls) = ("package s\nfunc (s S) Renew() {}", "package s\nfunc f(x ext.X) { x.Renew() }");
    let once = "export function f() { run(); }\nimport { run } from './a';\n";
    let indexes = |root: &Path| {
        leads_to("b.ts", once)(root);
        fs::rename(root.join("index.scip"), root.join("typescript.scip")).unwrap();
        let defined = document("s.go", &[at(go, "func", "Renew", "s S#Renew().", true)]);
        let used = document("u.go", &[at(calls, "func", "Renew", "s S#Renew().", false)]);
        fs::write(root.join("go.scip"), [tool("of-go"), defined, used].concat()).unwrap();
        fs::write(root.join("broken.scip"), b"\x12\xff\xff").unwrap();
    };
    let files =
        [A, B, ("u.ts", once), ("s.go", go), ("t.go", "package s\nfunc (t T) Renew() {}"), ("u.go", calls)];
    let read = Read::with(&files, ON, indexes);
    assert_eq!(read.callees("u.ts:f"), ["b.ts:run"]);
    assert_eq!(read.callees("u.go:f"), ["s.go:S.Renew"]);
    let state = read.index.state();
    let scip = state.scip.unwrap();
    assert_eq!((&*scip.tool, scip.files, scip.edges), ("of-go 1, test 1", 5, 2));
    let complaint = state.missing.iter().find(|it| it.contains("broken.scip")).expect("it is named");
    assert!(complaint.contains("cut off"), "{complaint}");

    fs::remove_file(read.dir.path().join("typescript.scip")).unwrap();
    eventually("the other one is forgotten", || read.callees("u.ts:f") == ["a.ts:run"]);
    assert_eq!(read.callees("u.go:f"), ["s.go:S.Renew"]);
}

#[test]
fn what_is_beside_a_call_that_the_rules_have_found_too_stays() {
    let store =
        "export interface Store { save(): void }\nexport class FileStore implements Store { save() {} }\n";
    let uses = "import { Store } from './store';\nexport function f(s: Store) { s.save(); }\n";
    let (header, code) = ("void renew(void);\n", "#include \"store.h\"\nvoid renew(void) {}\n");
    let calls = "#include \"store.h\"\nvoid f(void) { renew(); }\n";
    let (linux, windows) = (
        "//go:build linux\n\npackage p\nfunc page() {}\n",
        "//go:build windows\n\npackage p\nfunc page() {}\n",
    );
    let pages = "package p\nfunc f() { page() }\n";
    let (declares, defines) = ("void page(void);\n", "void page(void) {}\n");
    let uses_page = "#include \"page.h\"\nvoid f(void) { page(); }\n";
    // The files, where the index has the definition, and where the call.
    let cases = [
        (
            vec![("store.ts", store), ("u.ts", uses)],
            ("store.ts", store, "export interface", "save"),
            ("u.ts", uses, "export function"),
        ),
        (
            vec![("store.h", header), ("store.c", code), ("u.c", calls)],
            ("store.c", code, "void", "renew"),
            ("u.c", calls, "void"),
        ),
        (
            vec![("p/a_linux.go", linux), ("p/a_windows.go", windows), ("p/u.go", pages)],
            ("p/a_linux.go", linux, "func", "page"),
            ("p/u.go", pages, "func"),
        ),
        (
            vec![("page.h", declares), ("linux.c", defines), ("windows.c", defines), ("u.c", uses_page)],
            ("linux.c", defines, "void", "page"),
            ("u.c", uses_page, "void"),
        ),
    ];
    for (files, (defining, definition, begins, name), (using, uses, calling)) in cases {
        let without = Read::of(&files);
        let index = |root: &Path| {
            let defined = document(defining, &[at(definition, begins, name, &format!("s {name}()."), true)]);
            let used = document(using, &[at(uses, calling, name, &format!("s {name}()."), false)]);
            fs::write(root.join("index.scip"), [tool("test"), defined, used].concat()).unwrap();
        };
        let with = Read::with(&files, ON, index);
        let caller = format!("{using}:f");
        let both = [&without, &with].map(|it| {
            let mut all = it.callees(&caller);
            all.sort();
            all
        });
        assert!(both[0].len() >= 2, "{both:?}");
        assert_eq!(both[0], both[1], "{using}");
    }
}

#[test]
fn each_call_of_a_chain_and_of_a_constructor_has_its_target() {
    let two = "export class A { get(k) {} }\nexport class B { get(k) {} }\n";
    let chain = "export function f(x) { x.get(1).get(2); }\n";
    let index = |root: &Path| {
        let defined = ["export class A", "export class B"]
            .map(|begins| at(two, begins, "get", &format!("s {}#get().", &begins[13..]), true));
        let used = [(25, "s A#get()."), (32, "s B#get().")]
            .map(|(from, it)| occurrence(0, from, from + 3, it, false));
        let documents = [document("s.ts", &defined), document("u.ts", &used)];
        fs::write(root.join("index.scip"), [tool("test"), documents.concat()].concat()).unwrap();
    };
    let read = Read::with(&[("s.ts", two), ("u.ts", chain)], ON, index);
    assert_eq!(read.callees("u.ts:f"), ["s.ts:A.get", "s.ts:B.get"]);

    let (wrong, right) = ("export class Foo {}\n", "export class Foo {\n  constructor() {}\n}\n");
    let makes = "export function f() { new Foo(); }\nimport { Foo } from './a';\n";
    let index = |root: &Path| {
        let symbol = "s b/Foo#`<constructor>`().";
        let defined = document("b.ts", &[at(right, "  constructor", "constructor", symbol, true)]);
        let used = document("u.ts", &[at(makes, "export function", "Foo", symbol, false)]);
        fs::write(root.join("index.scip"), [tool("test"), defined, used].concat()).unwrap();
    };
    let read = Read::with(&[("a.ts", wrong), ("b.ts", right), ("u.ts", makes)], ON, index);
    assert_eq!(read.callees("u.ts:f"), ["b.ts:Foo.constructor"]);
}

/// An index as that of TypeScript: a name that is written shortly in an object is defined there, and is a use of what it stands for.
#[test]
fn a_name_stands_for_what_the_same_text_uses() {
    let tools = "function find() {}\nfunction seek() {}\nmodule.exports = { find };\n";
    let taken = "const { find } = require('./tools');\nfunction f() { find(); }\nfunction g() { const it = 1; find(it); }\n";
    let inner = "function around() { function seek() {} function use() { seek(); } }\n";
    let index = |root: &Path| {
        let tools = document(
            "tools.js",
            &[
                at(tools, "function find", "find", "s `tools.js`/find().", true),
                at(tools, "function seek", "seek", "s `tools.js`/seek().", true),
                at(tools, "module", "find", "s `tools.js`/find0:", true),
                at(tools, "module", "find", "s `tools.js`/find().", false),
            ],
        );
        let taken = document(
            "taken.js",
            &[
                at(taken, "const", "find", "local 1", true),
                at(taken, "const", "find", "s `tools.js`/find0:", false),
                at(taken, "function f", "find", "local 1", false),
                at(taken, "function g", "it", "local 2", true),
                at(taken, "function g", "find", "local 1", false),
            ],
        );
        // The same local name is another symbol in each file.
        let inner = document(
            "inner.js",
            &[occurrence(0, 29, 33, "local 1", true), occurrence(0, 56, 60, "local 1", false)],
        );
        fs::write(root.join("index.scip"), [tool("test"), tools, taken, inner].concat()).unwrap();
    };
    let read = Read::with(&[("tools.js", tools), ("taken.js", taken), ("inner.js", inner)], ON, index);
    assert_eq!(read.callees("taken.js:f"), ["tools.js:find"]);
    assert_eq!(read.callees("taken.js:g"), ["tools.js:find"]);
    assert_eq!(read.callees("inner.js:around.use"), ["inner.js:around.seek"]);
    let scip = read.index.state().scip.unwrap();
    assert_eq!((scip.files, scip.outdated, scip.edges), (3, 0, 3));
}

#[test]
fn names_that_stand_for_one_another_end() {
    let circle = "function f() {\n const { a, b } = any;\n return a();\n}\n";
    let index = |root: &Path| {
        let circle = document(
            "circle.js",
            &[
                at(circle, " const", "a", "local 1", true),
                at(circle, " const", "a", "local 2", false),
                at(circle, " const", "b", "local 2", true),
                at(circle, " const", "b", "local 1", false),
                at(circle, " return", "a", "local 1", false),
            ],
        );
        fs::write(root.join("index.scip"), [tool("test"), circle].concat()).unwrap();
    };
    let read = Read::with(&[("circle.js", circle)], ON, index);
    assert_eq!(read.callees("circle.js:f"), ["?:a"]);
    assert_eq!(read.index.state().scip.unwrap().edges, 0);
}

#[test]
fn a_file_with_local_names_at_other_places_is_not_as_it_was_indexed() {
    let before = "function f(x) { const abc = x; const de = abc; return de + abc + de; }\n";
    let after = "function f(x) {   const abc = x; const de = abc; return de + abc + de; }\n";
    let index = |root: &Path| {
        let names = [(22, 25, "local 1"), (37, 39, "local 2"), (42, 45, "local 1"), (54, 56, "local 2")];
        let names = names.map(|(from, to, symbol)| occurrence(0, from, to, symbol, false));
        fs::write(root.join("index.scip"), [tool("test"), document("u.js", &names)].concat()).unwrap();
    };
    let as_indexed = Read::with(&[("u.js", before)], ON, index);
    assert_eq!(as_indexed.index.state().scip.unwrap().outdated, 0);
    let index = |root: &Path| {
        index(root);
        let earlier = SystemTime::now() - Duration::from_secs(3_600);
        File::options().write(true).open(root.join("u.js")).unwrap().set_modified(earlier).unwrap();
    };
    let changed = Read::with(&[("u.js", after)], ON, index);
    assert_eq!(changed.index.state().scip.unwrap().outdated, 1);
}

#[test]
fn a_variable_with_the_name_of_the_function_around_it_is_not_that_function() {
    let parse = "function parse(t) { const parse = pick(t); return parse(t); }\n";
    let taken = "function find() { const { find } = require('./tools'); return find(); }\n";
    let tools = "function find() {}\nmodule.exports = { find };\n";
    let index = |root: &Path| {
        let defined = document(
            "tools.js",
            &[
                at(tools, "function", "find", "s `tools.js`/find().", true),
                at(tools, "module", "find", "s `tools.js`/find0:", true),
                at(tools, "module", "find", "s `tools.js`/find().", false),
            ],
        );
        let one = document(
            "parse.js",
            &[
                occurrence(0, 26, 31, "local 3", true),
                occurrence(0, 50, 55, "local 3", false),
                occurrence(0, 9, 14, "s `parse.js`/parse().", true),
            ],
        );
        let other = document(
            "taken.js",
            &[
                occurrence(0, 9, 13, "s `taken.js`/find().", true),
                occurrence(0, 26, 30, "local 3", true),
                occurrence(0, 26, 30, "s `tools.js`/find0:", false),
                occurrence(0, 63, 67, "local 3", false),
            ],
        );
        fs::write(root.join("index.scip"), [tool("test"), defined, one, other].concat()).unwrap();
    };
    let read = Read::with(&[("tools.js", tools), ("parse.js", parse), ("taken.js", taken)], ON, index);
    assert_eq!(read.callees("parse.js:parse"), ["?:pick", "?:parse"]);
    assert_eq!(read.callees("taken.js:find"), ["tools.js:find"]);
    assert_eq!(read.index.state().scip.unwrap().outdated, 0);
}
