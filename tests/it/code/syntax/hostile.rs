//! Hostile input: it is read as far as that makes sense, the reading says so, and it costs no stack, no endless time
//! and no endless memory.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use proptest::prelude::*;
use provost::base::limits::{
    SOURCE_BYTES_MAX, SOURCE_DEPTH_MAX, SOURCE_FACTS_MAX, SOURCE_TEXT_MIN, SOURCE_TEXT_PER_BYTE,
    SYMBOL_LEN_MAX,
};
use provost::syntax::{Language, NoSignature, ParseDeadline, Reading, Trouble, read};

use super::reading_of;

fn is_broken(reading: &Reading) -> bool {
    reading.trouble.iter().any(|trouble| matches!(trouble, Trouble::ParseErrors { .. }))
}

fn is_too_deep(reading: &Reading) -> bool {
    reading.trouble.iter().any(|trouble| matches!(trouble, Trouble::TooDeep { .. }))
}

fn is_too_much(reading: &Reading) -> bool {
    reading.trouble.iter().any(|trouble| matches!(trouble, Trouble::TooMany { .. }))
}

#[test]
fn a_hundred_thousand_brackets_cost_no_stack() {
    let many = 100_000;
    // Well below what any thread has.
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let work = move || {
        for (before, open, within, close) in
            [("x = ", "(", "1", ")"), ("x = ", "[", "1", "]"), ("", "{", "", "}")]
        {
            let (opened, closed) = (open.repeat(many), close.repeat(many));
            let balanced = format!("{before}{opened}{within}{closed}\nfunction after() {{}}\n");
            let reading = reading_of(Language::TypeScript, &balanced);
            assert!(is_too_deep(&reading), "{open}: {:?}", reading.trouble);
            assert_eq!(reading.find("after").len(), 1, "{open}: what stands beside it is found");
            for language in Language::all() {
                // What stands before it is the text of a page.
                let begin = if language == Language::Php { "<?php " } else { "" };
                for text in [open, close].map(|it| format!("{begin}{}", it.repeat(many))) {
                    let reading = reading_of(language, &text);
                    // What a grammar takes too long for is given up.
                    let is_given_up = reading.trouble == [Trouble::TooHard];
                    let shown = text.get(..8).unwrap_or(&text);
                    assert!(is_broken(&reading) || is_given_up, "{shown} in {language:?}");
                }
            }
        }
        let python = format!("x = {}{}\ndef after(): pass\n", "[".repeat(many), "]".repeat(many));
        let reading = reading_of(Language::Python, &python);
        assert!(is_too_deep(&reading) && reading.find("after").len() == 1);
    };
    small.spawn(work).unwrap().join().unwrap();
}

#[test]
fn whatever_else_nests_a_hundred_thousand_deep_costs_no_stack() {
    let many = 100_000;
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let work = move || {
        for (language, text) in [
            (Language::TypeScript, format!("x = {}1", "a => ".repeat(many))),
            (Language::TypeScript, format!("type A = {}1{}", "A<".repeat(many), ">".repeat(many))),
            (Language::TypeScript, format!("x{}", ".a".repeat(many) + "()")),
            (Language::TypeScript, format!("x{}", "()".repeat(many))),
            (Language::TypeScript, format!("x = {}1", "1 + ".repeat(many))),
            (Language::TypeScript, format!("x = {}1", "`${".repeat(many))),
            (Language::TypeScript, format!("type A = {}1", "A | ".repeat(many))),
            (Language::TypeScript, format!("function f(a = {}1) {{}}", "(b = ".repeat(many))),
            (Language::TypeScript, format!("const {{ a{}", ": { a".repeat(many))),
            (Language::Tsx, "<a>".repeat(many)),
            (Language::JavaScript, "if (a) {} else ".repeat(20_000)),
            (Language::JavaScript, format!("{}{}", "function f() {".repeat(20_000), "}".repeat(20_000))),
            (Language::JavaScript, format!("{}{}", "class A { m() {".repeat(20_000), "}}".repeat(20_000))),
            (Language::JavaScript, format!("x = {}", "{ a: ".repeat(many))),
            (Language::Python, format!("x = {}1", "lambda: ".repeat(many))),
            (Language::Python, "f\"{".repeat(many)),
            (Language::Python, format!("x = {}1", "not ".repeat(many))),
            (Language::Python, format!("{} = 1", "(a, ".repeat(many))),
        ] {
            let reading = reading_of(language, &text);
            drop(reading.edges());
            assert!(reading.symbols.len() <= SOURCE_FACTS_MAX);
        }
    };
    small.spawn(work).unwrap().join().unwrap();
}

#[test]
fn nesting_is_followed_to_its_limit() {
    // Each call is a node in its caller, and its arguments are one more.
    let nested = |levels: usize| format!("{}deepest(){}", "f(".repeat(levels), ")".repeat(levels));
    let fine = reading_of(Language::JavaScript, &nested(SOURCE_DEPTH_MAX / 2 - 10));
    assert!(fine.is_whole() && fine.calls.iter().any(|call| &*call.callee.name == "deepest"));
    let deep = reading_of(Language::JavaScript, &nested(SOURCE_DEPTH_MAX / 2 + 10));
    assert!(is_too_deep(&deep) && deep.calls.iter().all(|call| &*call.callee.name != "deepest"));
}

#[test]
fn a_file_of_a_hundred_megabytes_is_refused_before_it_is_read() {
    let large = vec![b'('; 100 << 20];
    let reading = read(Language::TypeScript, &large, &ParseDeadline::endless());
    assert_eq!(reading.trouble, [Trouble::TooLarge { bytes: 100 << 20 }]);
    assert!(reading.symbols.is_empty());
    assert_eq!(reading.contract("f"), Err(NoSignature::Missing));
    let mut text = String::from("function f() {}\n");
    text.push_str(&" ".repeat(SOURCE_BYTES_MAX - text.len()));
    assert!(reading_of(Language::TypeScript, &text).is_whole(), "the limit itself is no trouble");
    text.push(' ');
    assert!(!reading_of(Language::TypeScript, &text).is_whole());
}

#[test]
fn more_than_is_kept_of_one_file_is_left_out_and_said() {
    let many = SOURCE_FACTS_MAX + 10;
    let symbols = reading_of(Language::JavaScript, &"let a;".repeat(many));
    assert_eq!(symbols.symbols.len(), SOURCE_FACTS_MAX);
    assert_eq!(symbols.trouble, [Trouble::TooMany { at: u32::try_from(SOURCE_FACTS_MAX * 6 + 4).unwrap() }]);
    let calls = reading_of(Language::JavaScript, &"a();".repeat(many));
    assert_eq!(calls.calls.len(), SOURCE_FACTS_MAX);
    assert!(is_too_much(&calls));
    let imports = reading_of(Language::Python, &"import a\n".repeat(many));
    assert_eq!(imports.imports.len(), SOURCE_FACTS_MAX);
    assert!(is_too_much(&imports));
    let exports = reading_of(Language::JavaScript, &"export{a};".repeat(many));
    assert_eq!(exports.exports.len(), SOURCE_FACTS_MAX);
    assert!(is_too_much(&exports));
}

#[test]
fn names_and_signatures_within_each_other_do_not_multiply() {
    let long = "n".repeat(SYMBOL_LEN_MAX + 1);
    let reading = reading_of(Language::JavaScript, &format!("function {long}() {{}} function fine() {{}}"));
    assert!(is_too_much(&reading) && reading.symbols.len() == 1);
    // Each signature contains all that follow.
    let text = format!("const o = {}1{}", "{ m(a = ".repeat(3_000), ") {} }".repeat(3_000));
    let reading = reading_of(Language::JavaScript, &text);
    assert!(is_too_much(&reading), "{:?}", reading.trouble);
    assert!(
        reading.weight() < SOURCE_TEXT_MIN + text.len() * (SOURCE_TEXT_PER_BYTE + 20),
        "{}",
        reading.weight()
    );
}

#[test]
fn thousands_of_namesakes_are_told_apart_in_no_time() {
    let classes: String =
        (0..20_000).map(|n| format!("class C{n} {{ run() {{ run(); o.run(); this.run(); }} }}\n")).collect();
    let reading = reading_of(Language::JavaScript, &classes);
    // Each calls two that nobody knows, which have one name, and itself.
    assert_eq!(reading.edges().len(), 40_000);
    assert!(matches!(reading.contract("run"), Err(NoSignature::Ambiguous(paths)) if paths.len() == 20_000));
}

#[test]
fn thousands_of_prototypes_find_their_functions_in_no_time() {
    const MANY: usize = 20_000;
    let functions: String = (0..MANY).map(|n| format!("function f{n}() {{}}\n")).collect();
    let of = |assigned: &str| functions.clone() + &assigned.repeat(MANY);
    let (prototypes, others) = (of("Z.prototype = {};\n"), of("Z.somethings = {};\n"));
    let time = |text: &str| {
        let began = Instant::now();
        assert!(!reading_of(Language::JavaScript, text).symbols.is_empty());
        began.elapsed()
    };
    // Other programs may slow one of them down, but not one of them each time.
    let is_as_fast = (0..4).any(|_| time(&prototypes) < 2 * time(&others));
    assert!(is_as_fast, "each prototype looks through all functions");
}

#[test]
fn bytes_that_are_not_utf8_move_no_offset() {
    let text = b"function a() {}\nconst s = \"\xff\xfe\xc3\"; // \xf0\x9f\nfunction b() { a(); }\n";
    let reading = read(Language::JavaScript, text, &ParseDeadline::endless());
    let range = &reading.find("b")[0].range;
    assert_eq!(&text[range.start as usize..range.end as usize], b"function b() { a(); }");
    assert_eq!(reading.trouble, [Trouble::NotUtf8 { first: 27 }]);
    let noise = read(Language::Python, &[0xff; 10_000], &ParseDeadline::endless());
    assert!(is_broken(&noise) && noise.trouble.contains(&Trouble::NotUtf8 { first: 0 }));
}

#[test]
fn a_zero_byte_is_an_error_and_no_end() {
    let reading =
        read(Language::TypeScript, b"function a() {}\n\0\nfunction b() {}\n", &ParseDeadline::endless());
    assert!(is_broken(&reading));
    assert_eq!(reading.find("b")[0].range, 18..33);
    let python = read(Language::Python, b"def a(): pass\n\0\ndef b(): pass\n", &ParseDeadline::endless());
    assert!(is_broken(&python) && python.find("a").len() == 1);
    assert!(is_broken(&read(Language::Tsx, &[0; 10_000], &ParseDeadline::endless())));
}

#[test]
fn line_ends_and_the_mark_at_the_beginning_make_no_difference() {
    let text = "class A:\n    def f(self, a: str = \"\"\"x\ny\"\"\") -> int:\n        return g()\n";
    let marked = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let (plain, marked) = (reading_of(Language::Python, text), reading_of(Language::Python, &marked));
    assert!(plain.is_whole() && marked.is_whole());
    assert_eq!(plain.contract("A.f"), marked.contract("A.f"));
    assert_eq!((plain.calls.len(), marked.calls.len()), (1, 1));
    assert_eq!(marked.find("A")[0].range.start, 3, "the mark counts: it is on disk");
}

#[test]
fn nothing_is_read_for_somebody_who_does_not_wait() {
    let text = "function f() { return g(1, 2, 3); }\n".repeat(2_000);
    let gone = AtomicBool::new(true);
    for patience in [
        ParseDeadline { until: Some(Instant::now()), cancelled: None },
        ParseDeadline { until: None, cancelled: Some(&gone) },
    ] {
        let reading = read(Language::TypeScript, text.as_bytes(), &patience);
        assert_eq!(reading.trouble, [Trouble::TooSlow]);
        assert!(reading.symbols.is_empty());
    }
    let waits = AtomicBool::new(false);
    let patience = ParseDeadline { until: None, cancelled: Some(&waits) };
    let again = read(Language::TypeScript, text.as_bytes(), &patience);
    assert_eq!(again.symbols.len(), 2_000, "one that was stopped leaves nothing behind for the next");
    assert!(again.is_whole());
}

#[test]
fn the_same_bytes_give_the_same_reading() {
    let text = "class A { m() { n(); } } export const x = memo(() => y());";
    let once = format!("{:?}", reading_of(Language::Tsx, text));
    assert_eq!(format!("{:?}", reading_of(Language::Tsx, text)), once);
    let elsewhere = std::thread::spawn(move || format!("{:?}", reading_of(Language::Tsx, text)));
    assert_eq!(elsewhere.join().unwrap(), once);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_whatever_is_too_much(
        which in 0..Language::all().count(),
        pieces in proptest::collection::vec(0..PIECES.len(), 0..60),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
        at in 0..400_usize,
    ) {
        let mut bytes: Vec<u8> = pieces.iter().flat_map(|piece| PIECES[*piece].bytes()).collect();
        let at = at.min(bytes.len());
        bytes.splice(at..at, noise);
        let language = Language::all().nth(which).unwrap();
        let reading = read(language, &bytes, &ParseDeadline::endless());
        let len = u32::try_from(bytes.len()).unwrap();
        for (number, symbol) in (0..).zip(&reading.symbols) {
            prop_assert!(symbol.range.start <= symbol.range.end && symbol.range.end <= len);
            prop_assert!(symbol.parent.is_none_or(|parent| parent < number), "{:?}", symbol);
            prop_assert!(symbol.path.ends_with(symbol.name()) && !symbol.name().is_empty());
            prop_assert!(reading.numbers_of(&symbol.path).contains(&number));
            let _ = reading.contract(&symbol.path);
            let _ = reading.contract(symbol.name());
        }
        for edge in reading.edges() {
            prop_assert!((edge.caller as usize) < reading.symbols.len() && edge.call.at <= len);
        }
    }
}

/// Pieces of programs, and pieces that break them.
const PIECES: &[&str] = &[
    "function f(",
    "a: number",
    ", ",
    ") {",
    "}",
    "(",
    ")",
    "[",
    "]",
    "{",
    " => ",
    "class A",
    " extends B ",
    " {",
    "this.",
    "x",
    "()",
    ";\n",
    "\n",
    "    ",
    "def g(",
    "):\n",
    "return ",
    "@dec",
    "async ",
    "await ",
    "export ",
    "default ",
    "const y = ",
    "import a from 'b'",
    "from . import z\n",
    "\"s\"",
    "`t${",
    "<C/>",
    "<T,>",
    ": ",
    "=",
    "*",
    "...",
    "get ",
    "static ",
    "#p",
    "lambda q: ",
    "if True:\n",
    "namespace N ",
    "interface I ",
    "type U = ",
    "enum E ",
    "module.exports.k = ",
    "A.prototype.m = function ",
    "/*",
    "*/",
    "//",
    "# ",
    "'''",
    "\u{feff}",
    "ü",
    "😀",
    "\\",
    "\r\n",
    "new ",
    "super",
    "declare ",
    "impl T for ",
    "impl A {",
    "fn f",
    "#[cfg(x)]",
    "pub ",
    "use a::{b, self};",
    "mod m {",
    "macro_rules! k ",
    "m!{ fn h(",
    "'a",
    "<'b, U: V>",
    "let z",
    ":= ",
    "func (s *S) ",
    "func ",
    "package p\n",
    "type G struct {",
    "import . \"q\"\n",
    "var (",
    "r#\"",
    "match w {",
    "class << self\n",
    "def self.f(a, *b)\n",
    "end\n",
    "<<~H\n",
    "do |x, (y, z)|\n",
    "P = Struct.new(:a) ",
    "attr_reader :x\n",
    "module A::B\n",
    "in {n:, o: [p, *q]}\n",
    "@v ||= ",
    "%w[",
    "@Foo(x) ",
    "record R(int a) {",
    "new B() { void n() {",
    "import static a.B.*;\n",
    "case P(var b) -> ",
    "#if X\n",
    "#endif\n",
    "namespace A.B;\n",
    "partial struct S<T> : U where T : new() {",
    "public T this[int i] => ",
    "using static A.B;\n",
    "fun T.e() = ",
    "companion object {",
    "object : B {",
    "when (a) { is ",
    "val (a, b) by ",
    "?.let { ",
    "extension A.B: C where T == U {",
    "init?(_ a: Int = 1) ",
    "guard let a, ",
    "func f(b c: inout D) throws(E) -> ",
    "#if os(x)\n",
    "#else\n",
    "\\(",
    "\"\"\"",
    "#\"",
    "switch ",
    "case .a(): ",
    "let (a, b) = ",
    "associatedtype F where\n",
    "nonisolated(unsafe) ",
    "A<B>.c",
];

#[test]
fn what_a_grammar_is_shown_is_made_in_a_time_that_grows_with_the_file() {
    for (language, text) in [
        (Language::CSharp, "]extension(//".repeat(30_000)),
        (Language::CSharp, "]extension(/*".repeat(30_000)),
        (Language::CSharp, ";extension(){".repeat(30_000) + ")"),
        (Language::Kotlin, "= @a(".repeat(60_000)),
        (Language::Kotlin, "{class B by(}".repeat(30_000)),
        (Language::Kotlin, format!("class A by{}", "\n".repeat(300_000))),
        (Language::Kotlin, format!("class A by b{}.c", "\n".repeat(300_000))),
        (Language::Swift, "\n".repeat(300_000)),
        (Language::Swift, "#".repeat(300_000)),
        (Language::Cpp, "new ".repeat(100_000)),
        (Language::Cpp, "class a ".repeat(50_000)),
        (Language::Cpp, format!("#if {})\n#endif\n", "(".repeat(300_000))),
        (Language::C, format!("void f() {{{}", "A(b)\n#x\n".repeat(50_000))),
        (Language::C, format!("void f() {{{}", "a:\n#x\n".repeat(50_000))),
        (Language::Cpp, "using a".repeat(50_000)),
        (Language::Cpp, "template class a ".repeat(30_000)),
        (Language::Cpp, "enum [[".repeat(50_000)),
        (Language::Cpp, "a->b::".repeat(50_000) + "~c"),
        (Language::Cpp, "a::~".repeat(50_000)),
        (Language::CSharp, format!("extension(A a){{{}x{}", "\"".repeat(300_000), "\"".repeat(299_999))),
        (Language::CSharp, "operator \n".repeat(50_000)),
        (Language::CSharp, format!("operator {}", "\n".repeat(300_000))),
    ] {
        let began = Instant::now();
        // The text for the grammar is made, but no time is left for the grammar.
        let patience = ParseDeadline { until: Some(began), cancelled: None };
        drop(read(language, text.as_bytes(), &patience));
        let shown = text.get(..12).unwrap_or(&text);
        assert!(began.elapsed().as_secs() < 30, "{language:?} takes {:?} for {shown}", began.elapsed());
    }
}

#[test]
fn what_a_grammar_is_shown_at_the_second_time_is_made_in_a_time_that_grows_with_the_file() {
    // What is searched stands in comments, so that the grammar itself takes no time for it.
    for (language, broken, sign, hostile) in [
        (Language::Ruby, "def f = a b\n", "# ", "def f("),
        (Language::Ruby, "def f = a b\n", "# ", "def f = a["),
        (Language::Ruby, "def f = a b\n", "# ", "def f = a b, ["),
        (Language::Ruby, "def f = a b\n", "# ", "def f = a \""),
        (Language::Ruby, "def f = a b\n", "# ", "def f = a.b"),
        (Language::CSharp, "class A { void F(A a) { a?.b = 1; } }\n", "// ", "?.a"),
        (Language::CSharp, "class A { void F(A a) { a?.b = 1; } }\n", "// ", "(out a,=>"),
        (Language::TypeScript, "export type * from 'a';\n", "// ", "<in out "),
        (Language::Php, "<?php (void) f();\n", "// ", "(final "),
    ] {
        let text = format!("{broken}{}\n", format!("{sign}{}\n", hostile.repeat(200)).repeat(200));
        let began = Instant::now();
        let reading = reading_of(language, &text);
        assert!(reading.is_whole(), "{language:?} with {hostile}: {:?}", reading.trouble);
        assert!(began.elapsed().as_secs() < 30, "{language:?} takes {:?} for {hostile}", began.elapsed());
    }
}

/// So many names, each with its number, with something between them.
fn many(count: usize, between: &str, name: impl Fn(usize) -> String) -> String {
    (0..count).map(name).collect::<Vec<_>>().join(between)
}

#[test]
fn one_declaration_of_tens_of_thousands_of_names_is_read_in_a_time_that_grows_with_them() {
    let names = |count| many(count, ",", |n| format!("a{n}"));
    let types = |count, between| many(count, between, |n| format!("a{n}: T"));
    let classes = |count| many(count, ",", |n| format!("T{n}"));
    for (language, text) in [
        (Language::TypeScript, format!("function f({{{}}}: P) {{}}", names(60_000))),
        (Language::TypeScript, format!("function f({{{}}}: {{{}}}) {{}}", names(20_000), types(20_000, ";"))),
        (Language::C, format!("int {};", names(60_000))),
        (Language::C, format!("extern int {};", names(60_000))),
        (Language::C, format!("{} int {};", "API_X ".repeat(10_000), names(20_000))),
        (Language::C, format!("{} int {};", "static ".repeat(2_000), names(40_000))),
        (Language::Cpp, format!("int {};", many(30_000, ",", |n| format!("a::f{n}()")))),
        (
            Language::Rust,
            format!("fn f<{}>() where {} {{}}", classes(30_000), many(30_000, ",", |n| format!("T{n}: B"))),
        ),
        (
            Language::CSharp,
            format!("class A<{}> {} {{}}", classes(40_000), many(40_000, " ", |n| format!("where T{n} : B"))),
        ),
        (
            Language::Swift,
            format!("func f<{}>() where {} {{}}", classes(30_000), many(30_000, ",", |n| format!("T{n}: B"))),
        ),
        (Language::Swift, format!("var {}", many(8_000, ", ", |n| format!("a{n} = 1")))),
        (Language::Swift, format!("class A {{ var {} }}", types(6_000, ", "))),
    ] {
        let reading = reading_of(language, &text);
        let shown = text.get(..24).unwrap_or(&text);
        // The walk looks at the time between nodes, and says that it was too late.
        assert!(!reading.trouble.contains(&Trouble::TooHard), "{language:?}: {shown}");
    }
}

#[test]
fn comments_with_types_are_read_in_a_time_that_grows_with_the_file() {
    let params = many(30_000, "\n", |n| format!(" * @param {{T{n}}} a{n}"));
    let names = many(30_000, ",", |n| format!("a{n}"));
    let classes = many(30_000, ",", |n| format!("T{n}"));
    let deep = format!("{}{}{}", "[".repeat(400), "this.f(),".repeat(60_000), "]".repeat(400));
    for text in [
        format!("/**\n * @template {classes}\n{params}\n */\nfunction f({names}) {{}}"),
        format!("/**\n{params}\n */\nconst f = {{ a: ({names}) => 1 }};"),
        format!("/** {} */ function f(a) {{}}", "@type {A} ".repeat(300_000)),
        format!("/**\n{} */ function f(a) {{}}", "@param {\n".repeat(200_000)),
        format!("/** @param {} a */ function f(a) {{}}", "{".repeat(2_000_000)),
        format!("/** @type {{{}A}} */ const a = 1;", "Partial<".repeat(200_000)),
        // Patterns that end as a comment does, and no comment before them.
        "/b*/\nlet a = 1;\n".repeat(150_000),
        format!("/** {} */ {}", "x".repeat(2_000_000), "(".repeat(300)),
        "/** @typedef {import('./a').B} C */\n".repeat(80_000),
        format!("/** @param {{{}}} a */ function f(a) {{}}", "import('./a').B | ".repeat(60_000)),
        format!("/** @import {{ {classes} }} from './a' */"),
        // More than there is room for, behind a path that is copied for each.
        format!("/** @import {{ {} }} from '{}' */", "a,b,".repeat(200_000), "x".repeat(1_000_000)),
        format!("var data = '{}',{};", "x".repeat(1_000_000), many(100_000, ",", |n| format!("b{n}"))),
        format!("class A {{ m() {{ {deep} }} }}"),
        format!("class A {{ m() {{ {} }} }}", "/** @type {A} */ this.a = this.b = ".repeat(400) + "1"),
    ] {
        // The time is looked at behind so many nodes.
        let reading = reading_of(Language::JavaScript, &format!("{text}{}", "\nx;".repeat(5_000)));
        let shown = text.get(..24).unwrap_or(&text);
        // The walk looks at the time between nodes, and says that it was too late.
        assert!(!reading.trouble.contains(&Trouble::TooHard), "{shown}");
    }
}
