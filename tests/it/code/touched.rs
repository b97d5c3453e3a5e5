//! The symbols that an edit touches, by the text before and after it.

use provost::syntax::{Language, Moves, ParseDeadline, Version, read, touched};

const PYTHON: &str = "import os\n\n\n# Opens.\ndef open_it():\n    return 1\n\n\nclass S:\n    x = 1\n\n    def a(self):\n        \
                      return 1\n\n    def b(self):\n        return 2\n";

const SCRIPT: &str = "import { x } from './x'\n\n/** Opens. */\nexport function open() { return 1 }\n\nexport class S {\n  a() { \
                      return 1 }\n\n  b() { return 2 }\n}\n";

#[track_caller]
fn touches(language: Language, old: &str, new: &str) -> Vec<String> {
    let patience = ParseDeadline::default();
    let (before, after) =
        (read(language, old.as_bytes(), &patience), read(language, new.as_bytes(), &patience));
    let old = Version { reading: &before, bytes: old.as_bytes() };
    let new = Version { reading: &after, bytes: new.as_bytes() };
    touched(old, new).into_iter().map(String::from).collect()
}

#[test]
fn an_edit_touches_the_innermost_symbols_that_change_and_the_file_for_what_is_in_none() {
    use Language::{Python, TypeScript};
    let cases = [
        (Python, PYTHON, "return 1\n\n\nclass", "return 3\n\n\nclass", &["open_it"][..]),
        (Python, PYTHON, "# Opens.", "# Opens it.", &["open_it"]),
        (Python, PYTHON, "        return 2", "        return 3", &["S.b"]),
        (Python, PYTHON, "    x = 1", "    x = 2", &["S.x"]),
        (Python, PYTHON, "class S:", "class S(T):", &["S"]),
        (
            Python,
            PYTHON,
            "    def b(self)",
            "    def c(self):\n        return 3\n\n    def b(self)",
            &["S.c"],
        ),
        (Python, PYTHON, "import os", "import io", &[""]),
        (Python, PYTHON, "\n\n\nclass", "\n\n\n\n\nclass", &[]),
        (Python, PYTHON, "def open_it", "def close_it", &["close_it", "open_it"]),
        (TypeScript, SCRIPT, "return 1 }\n\nexport", "return 3 }\n\nexport", &["open"]),
        (TypeScript, SCRIPT, "/** Opens. */", "/** Opens it. */", &["open"]),
        (TypeScript, SCRIPT, "export function", "function", &["open"]),
        (TypeScript, SCRIPT, "return 2", "return 3", &["S.b"]),
        (TypeScript, SCRIPT, "\nexport class", "\n// New.\nexport const y = 1;\n\nexport class", &["y"]),
        (TypeScript, SCRIPT, "import { x }", "import { y }", &[""]),
        // What does not parse is around the change.
        (TypeScript, SCRIPT, "return 2 }", "return ( }", &["S.b"]),
        (TypeScript, SCRIPT, "import { x }", "import { x", &[""]),
        (TypeScript, "function (((", "(((", "((((", &[""]),
    ];
    for (language, text, old, new, expected) in cases {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        assert_eq!(touches(language, text, &text.replace(old, new)), expected, "{old:?} -> {new:?}");
    }
    assert!(touches(Python, PYTHON, PYTHON).is_empty());
}

#[test]
fn what_is_put_into_a_function_from_outside_is_touched_alone() {
    let text = "function S() {\n  zero();\n}\n\nS.a = function (x) {\n  one();\n  function b() {\n    two();\n  }\n};\n\nS.c = () => {\n  \
                three();\n};\n";
    for (call, expected) in [("zero", "S"), ("one", "S.a"), ("two", "S.a.b"), ("three", "S.c")] {
        let (old, new) = (format!("{call}();"), format!("{call}(1);"));
        assert_eq!(touches(Language::JavaScript, text, &text.replace(&old, &new)), [expected]);
        assert_eq!(touches(Language::TypeScript, text, &text.replace(&old, &new)), [expected]);
    }
}

#[test]
fn a_symbol_has_moved_if_its_place_among_the_others_has() {
    let file =
        |names: &str| -> String { names.chars().map(|it| format!("def {it}():\n    pass\n\n")).collect() };
    let moved = |old: &str, new: &str, name: &str| {
        let patience = ParseDeadline::default();
        let read = |text: &str| read(Language::Python, file(text).as_bytes(), &patience);
        Moves::of(&read(old), &read(new)).has(name)
    };
    assert!(!moved("abc", "abc", "b") && !moved("abc", "axbyc", "b") && !moved("abc", "ac", "b"));
    assert!(moved("abc", "bca", "a") && !moved("abc", "bca", "b") && !moved("abc", "bca", "c"));
    // Of two that change places, it cannot be told which one has moved.
    assert!(moved("ab", "ba", "a") && moved("ab", "ba", "b"));
}

#[test]
fn what_is_declared_together_is_touched_together() {
    use Language::{C, CSharp, Cpp, Go, Java, Kotlin, Php, Python, Ruby, TypeScript};
    let cases = [
        (Go, "package a\n\nvar p, q = two(6)\n\nvar r = 1\n", "two(6)", "two(66)", &["p", "q"][..]),
        (Go, "package a\n\nvar u, v int = 1, 2\n", "int", "int64", &["u", "v"]),
        (Go, "package a\n\nvar p, q = 1, 2\n\nvar r = 1\n", "r = 1", "r = 2", &["r"]),
        // Each of a list of constants has a line of its own.
        (Go, "package a\n\nconst (\n\tA = iota\n\tB\n\tC\n)\n", "\tC\n", "\tC\n\tD\n", &["D"]),
        (Python, "a, b = divmod(7, 2)\nc = 1\n", "(7", "(8", &["a", "b"]),
        (Python, "a, b = divmod(7, 2)\nc = 1\n", "c = 1", "c = 2", &["c"]),
        (Python, "class A:\n    a, b = f(1)\n    c = 1\n", "f(1)", "f(2)", &["A.a", "A.b"]),
        (TypeScript, "const [m, n] = f(1);\nconst x = 1;\n", "f(1)", "f(2)", &["m", "n"]),
        (
            TypeScript,
            "const {\n  o,\n  k: l,\n} = f(\n  1,\n);\nconst x = 1;\n",
            "  1,\n",
            "  2,\n",
            &["l", "o"],
        ),
        (TypeScript, "const {\n  o,\n} = f(1);\nconst x = 1;\n", "x = 1", "x = 2", &["x"]),
        (TypeScript, "enum E { Red, Green }\n", "Green", "Green, Blue", &["E"]),
        // A type that is said once is that of each.
        (Java, "class A {\n    private int a = 1, b = 2;\n}\n", "int", "long", &["A.a", "A.b"]),
        (Java, "class A {\n    private int a = 1, b = 2;\n}\n", "= 1", "= 3", &["A.a"]),
        (Java, "class A {\n    private int a = 1, b = 2;\n}\n", "= 2", "= 3", &["A.b"]),
        (Java, "class A {\n    private int a = 1, b = 2;\n}\n", "private", "public", &["A.a", "A.b"]),
        // Where it does not parse any more, too.
        (Java, "class A {\n    private int a = 1, b = 2;\n}\n", "private", "private ((", &["A.a", "A.b"]),
        (CSharp, "class A {\n    public int a = 1, b = 2;\n}\n", "int", "long", &["A.a", "A.b"]),
        (CSharp, "class A {\n    public int a = 1, b = 2;\n}\n", "= 2", "= 3", &["A.b"]),
        (Php, "<?php\nclass A {\n    private int $a = 1, $b = 2;\n}\n", "int", "string", &["A.a", "A.b"]),
        (
            Php,
            "<?php\nclass A {\n    const int A = 1, B = 2;\n}\n",
            "const int",
            "final const int",
            &["A.A", "A.B"],
        ),
        (TypeScript, "let a = 1, b = 2;\n", "let", "var", &["a", "b"]),
        (TypeScript, "let a = 1, b = 2;\n", "= 2", "= 3", &["b"]),
        // Names in a pattern are names.
        (Kotlin, "val (a, b) = pair(1)\nval c = 1\n", "pair(1)", "pair(2)", &["a", "b"]),
        (Cpp, "auto [a, b] = f(1);\nint c = 1;\n", "f(1)", "f(2)", &["a", "b"]),
        (Cpp, "const auto& [a, b] = f(1);\nint c = 1;\n", "c = 1", "c = 2", &["c"]),
        (C, "/** Doc. */\nstatic int a = 1, b = 2;\n", "int", "long", &["a", "b"]),
        (C, "/** Doc. */\nstatic int a = 1, b = 2;\n", "Doc", "Word", &["a", "b"]),
        (C, "static int a = 1, b = 2;\n", "= 2", "= 3", &["b"]),
        (C, "int f(int), *g;\n", "int f", "long f", &["f", "g"]),
        (C, "struct S { int a, b; };\n", "int", "long", &["S.a", "S.b"]),
        (C, "struct S {\n    unsigned a : 3,\n        b : 4;\n    int c;\n};\n", "un", "", &["S.a", "S.b"]),
        (C, "typedef int A, *B;\n", "int", "long", &["A", "B"]),
        (C, "typedef int A, *B;\n", "*B", "**B", &["B"]),
        (Cpp, "namespace n {\nstruct S {\n    int a = 1, b{2};\n};\n}\n", "int", "long", &["n.S.a", "n.S.b"]),
        (Ruby, "class A\n  delegate :a,\n    :b, to: :c\n  def d; end\nend\n", ":c", ":e", &["A.a", "A.b"]),
        (Ruby, "class A\n  def_delegators :@c, :a, :b\nend\n", "@c", "@d", &["A.a", "A.b"]),
        (Ruby, "class A\n  private attr_reader :x, :y\nend\n", "private", "public", &["A.x", "A.y"]),
        (Ruby, "class A\n  # Doc.\n  attr_reader :x, :y\nend\n", "Doc", "Word", &["A.x", "A.y"]),
        (Ruby, "class A\n  attr_reader :x, :y\nend\n", ":y", ":y # y", &["A.y"]),
        (Ruby, "A, (B, *C) = f(1)\nD = 1\n", "f(1)", "f(2)", &["A", "B", "C"]),
        (Ruby, "class K\n  X, Y = 1, 2\n  Z = 1\nend\n", "1, 2", "1, 3", &["K.X", "K.Y"]),
    ];
    for (language, text, old, new, expected) in cases {
        assert_eq!(
            touches(language, text, &text.replacen(old, new, 1)),
            expected,
            "{text:?}: {old:?} -> {new:?}"
        );
    }
}

#[test]
fn the_comments_directly_above_a_symbol_belong_to_it_in_all_their_forms() {
    use Language::{Go, Python, Ruby, Rust, Swift, TypeScript};
    let cases = [
        (Ruby, "x = 1\n\n=begin\nf does f.\n=end\ndef f; end\n", "does f", "does g", &["f"][..]),
        (Ruby, "=begin\nf does f.\n=end\ndef f; end\n", "does f", "does g", &["f"]),
        // A comment about what is around it is not of what follows it.
        (Rust, "pub mod m {\n    //! Doc.\n    pub fn f() {}\n}\n", "Doc", "Word", &["m"]),
        (Rust, "pub mod m {\n    /*! Doc.\n     More. */\n    pub fn f() {}\n}\n", "Doc", "Word", &["m"]),
        (Rust, "//! Doc.\npub fn f() {}\n", "Doc", "Word", &[""]),
        (Rust, "//! Doc.\n/// f.\npub fn f() {}\n", "/// f", "/// g", &["f"]),
        // What Sorbet says of a method's types stands above it.
        (
            Ruby,
            "class A\n  def e; end\n  # f.\n  sig { returns(B) }\n  def f; end\nend\n",
            "B",
            "C",
            &["A.f"],
        ),
        (Ruby, "class A\n  sig do\n    returns(B)\n  end\n  private def f; end\nend\n", "B", "C", &["A.f"]),
        (Ruby, "class A\n  sig { returns(B) }\n  attr_reader :f\nend\n", "B", "C", &["A.f"]),
        // A line with more than a comment or an attribute is not of the symbol below it.
        (TypeScript, "/* x */ init();\nfunction f() {}\n", "init", "start", &[""]),
        (TypeScript, "/* x */ // y\nfunction f() {}\n", "y", "z", &["f"]),
        (Rust, "#[macro_use] extern crate x;\nfn f() {}\n", "crate x", "crate y", &[""]),
        (Rust, "#[a(b[0])] #[c] // d\nfn f() {}\n", "// d", "// e", &["f"]),
        (Rust, "#[a(\n    b\n)]\nfn f() {}\n", "#[a(", "#[c(", &["f"]),
        (Swift, "@testable import Shop\nfunc f() {}\n", "Shop", "Store", &[""]),
        (Swift, "@objc public\nfunc f() {}\n", "public", "open", &["f"]),
        (Go, "package a\n\n/* F does f.\n   It does. */\nfunc F() {}\n", "does f", "does g", &["F"][..]),
        (Go, "package a\n\n/* A remark. */\n\nfunc F() {}\n", "remark", "word", &[""]),
        (Rust, "fn a() {}\n\n/* f does f.\nIt does. */\nfn f() {}\n", "It does", "It did", &["f"]),
        (TypeScript, "/* f does f.\n   It does. */\nfunction f() {}\n", "It does", "It did", &["f"]),
        (Python, "#no space\ndef f():\n    pass\n", "no space", "a space", &["f"]),
        (Python, "#: sphinx\nf = 1\n", "sphinx", "other", &["f"]),
        (Python, "#!/usr/bin/python3\ndef f():\n    pass\n", "python3", "python", &[""]),
    ];
    for (language, text, old, new, expected) in cases {
        assert_eq!(
            touches(language, text, &text.replacen(old, new, 1)),
            expected,
            "{text:?}: {old:?} -> {new:?}"
        );
    }
}

#[test]
fn a_line_is_of_the_symbol_whose_brackets_are_on_it() {
    use Language::{
        C, CSharp, Cpp, Go, Java, JavaScript, Kotlin, Php, Python, Ruby, Rust, Swift, TypeScript,
    };
    let kotlin = "@Table\ndata class A(val x: Int, val y: Int) : Base(1) {\n    fun f() {}\n}\n";
    let record = "record A(int x, int y) implements B<C> {\n    int f() { return 1; }\n}\n";
    let constant = "enum A {\n    @Old P(\"p\") {\n        @Override int f() { return 1; }\n    };\n}\n";
    let typedef = "/** Doc. */\ntypedef struct p {\n    int x;\n    int y;\n} p_t, *p_p;\n";
    let php = "<?php\nclass A {\n    function __construct(\n        private B $b,\n    ) { f(1); }\n}\n";
    let cases = [
        // The text before and behind the parameters of a head belongs to the class.
        (Kotlin, kotlin, "Base(1)", "Base(2)", &["A"][..]),
        (Kotlin, kotlin, "data class", "class", &["A"]),
        (Kotlin, kotlin, "@Table", "@Table // x", &["A"]),
        (Kotlin, kotlin, "val x: Int", "val x: Long", &["A.x"]),
        (Kotlin, kotlin, "val y: Int", "val y: Long", &["A.y"]),
        (Java, record, "B<C>", "B<D>", &["A"]),
        (Java, record, "record", "public record", &["A"]),
        (Java, record, "int y", "long y", &["A.y"]),
        (CSharp, "record A(int X) : B(X);\n", "B(X)", "C(X)", &["A"]),
        (Ruby, "A = Struct.new(:x, :y, keyword_init: true) do\nend\n", "true", "false", &["A"]),
        // A member on the line of its class has only its own text.
        (TypeScript, "class A { f() {} }\n", "class A", "export class A", &["A"]),
        (TypeScript, "class A { f() {} }\n", "f() {} }", "f() {} } // x", &["A"]),
        (Cpp, "namespace n { int x; struct A { int y; } a; }\n", "a; }", "a; } // x", &["n"]),
        // An attribute belongs to the construct that opens on its line.
        (Java, constant, "@Old P(", "@Old P(1, ", &["A.P"]),
        (Java, constant, "@Override int", "int", &["A.P.f"]),
        (Java, "class A {\n    @X\n    int f() { return 1; }\n}\n", "@X", "@Y", &["A.f"]),
        // In these languages, the sign begins no comment and no attribute.
        (Swift, "#Preview { f() }\nlet x = 1\n", "f()", "g()", &[""]),
        (Ruby, "class A\n  @all = {}\n  def f; end\nend\n", "{}", "[]", &["A"]),
        (JavaScript, "class A {\n  #x = 1\n  f() {}\n}\n", "= 1", "= 2", &["A.#x"]),
        // An edit of a type's member does not touch the type's other names.
        (C, typedef, "int x", "long x", &["p.x"]),
        (C, typedef, "Doc.", "Word.", &["p"]),
        (C, typedef, "*p_p", "**p_p", &["p_p"]),
        (C, "struct p { int x; } a;\n", "int x", "long x", &["p.x"]),
        // A promoted parameter lies within the constructor.
        (Php, php, "f(1)", "f(2)", &["A.__construct"]),
        (Php, php, "f(1); }", "f(1); } // x", &["A.__construct"]),
        // Declarations below each other are several.
        (Go, "package a\n\nvar p, q = f(1, 2)\nvar r, s = f(3, 4)\n", "(1", "(5", &["p", "q"]),
        (Go, "package a\n\nvar (\n\ta, b = f(1)\n)\n", "f(1)", "f(2)", &["a", "b"]),
        (Python, "a, b = f(1, 2)\nc, d = f(3, 4)\n", "(3", "(5", &["c", "d"]),
        (Python, "(a,  # one\n b) = f(1)\nc, d = f(3)\n", "f(1)", "f(2)", &["a", "b"]),
        (JavaScript, "const { a, b } = f(1, 2)\nconst { c, d } = f(3, 4)\n", "(1", "(5", &["a", "b"]),
        (Kotlin, "val (a, b) = f(1, 2)\nval (c, d) = f(3, 4)\n", "(3", "(5", &["c", "d"]),
        // A comment behind an item between the brackets of a macro belongs to the item.
        (Rust, "m! {\n    static A: u8 = 1; // a\n    static B: u8 = 2;\n}\n", "// a", "// b", &["A"]),
        (Rust, "m! { // a\n    static A: u8 = 1;\n}\n", "// a", "// b", &[""]),
    ];
    for (language, text, old, new, expected) in cases {
        assert_eq!(
            touches(language, text, &text.replacen(old, new, 1)),
            expected,
            "{text:?}: {old:?} -> {new:?}"
        );
    }
}

#[test]
fn tens_of_thousands_of_names_of_one_declaration_cost_no_memory_for_each() {
    let names: Vec<String> = (0..30_000).map(|n| format!("name_{n}")).collect();
    let old = format!("const {{ {} }} = one();\n", names.join(", "));
    let new = old.replace("one()", "two()");
    assert_eq!(touches(Language::TypeScript, &old, &new).len(), names.len());
}
