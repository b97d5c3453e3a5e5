//! A small file of each language, in parts from which tests make what no person writes on purpose.

use provost::syntax::Language;

/// The peculiarities of a language, to make a file that is wrong in some way.
pub(super) struct Sample {
    pub(super) language: Language,
    /// The text before all code.
    pub(super) begin: &'static str,
    /// The text before the function.
    pub(super) head: &'static str,
    /// A function that says 40.
    pub(super) function: &'static str,
    /// The text after the function.
    pub(super) tail: &'static str,
    /// The function's path.
    pub(super) path: &'static str,
    /// The beginning of a comment of one line.
    pub(super) comment: &'static str,
    /// A form that nests in itself: its beginning and its end.
    pub(super) nested: (&'static str, &'static str),
    /// A type in a type: before all, each beginning, the innermost one, each end, behind all.
    pub(super) types: Option<[&'static str; 5]>,
    /// Two branches: before the first, before the second, behind both.
    pub(super) condition: Option<(&'static str, &'static str, &'static str)>,
    /// Files that lead to each other and to themselves.
    pub(super) cycle: Cycle,
}

/// Files that lead to each other, and the two functions that call each other.
pub(super) struct Cycle {
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) edges: [&'static str; 2],
}

impl Sample {
    /// A file that is right.
    pub(super) fn text(&self) -> String {
        format!("{}{}{}", self.head, self.function, self.tail)
    }
}

const TYPED: &str = "function find(a: number): number {\n    return a + 40;\n}\n";
const OF_C: &str = "int find(int a) {\n    return a + 40;\n}\n";
const OF_C_CONDITION: (&str, &str, &str) = ("#ifdef A\n", "#else\n", "#endif\n");

/// One of each language, in the order of [`Language`].
pub(super) const SAMPLES: &[Sample] = &[
    Sample {
        language: Language::TypeScript,
        begin: "",
        head: "interface Keeper {\n    size: number;\n}\n",
        function: TYPED,
        tail: "",
        path: "find",
        comment: "// ",
        nested: ("class A { m() { ", "} }"),
        types: Some(["let x: ", "A<", "B", ">", ";\n"]),
        condition: Some(("if (A) {\n", "} else {\n", "}\n")),
        cycle: Cycle {
            files: &[
                (
                    "a.ts",
                    "import { g } from './b';\nimport { f as me } from './a';\nexport function f() { g(); me(); }\n",
                ),
                ("b.ts", "import { f } from './a';\nexport function g() { f(); }\n"),
            ],
            edges: ["a.ts:f", "b.ts:g"],
        },
    },
    Sample {
        language: Language::Tsx,
        begin: "",
        head: "interface Keeper {\n    size: number;\n}\n",
        function: TYPED,
        tail: "",
        path: "find",
        comment: "// ",
        nested: ("<a>", "</a>"),
        types: Some(["let x: ", "A<", "B", ">", ";\n"]),
        condition: Some(("if (A) {\n", "} else {\n", "}\n")),
        cycle: Cycle {
            files: &[
                (
                    "a.tsx",
                    "import { g } from './b';\nimport { f as me } from './a';\nexport function f() { g(); me(); }\n",
                ),
                ("b.tsx", "import { f } from './a';\nexport function g() { f(); }\n"),
            ],
            edges: ["a.tsx:f", "b.tsx:g"],
        },
    },
    Sample {
        language: Language::JavaScript,
        begin: "",
        head: "class Store {\n    size = 1;\n}\n",
        function: "function find(a) {\n    return a + 40;\n}\n",
        tail: "",
        path: "find",
        comment: "// ",
        nested: ("function f() { ", "}"),
        types: None,
        condition: Some(("if (A) {\n", "} else {\n", "}\n")),
        cycle: Cycle {
            files: &[
                (
                    "a.js",
                    "import { g } from './b';\nimport { f as me } from './a';\nexport function f() { g(); me(); }\n",
                ),
                ("b.js", "import { f } from './a';\nexport function g() { f(); }\n"),
            ],
            edges: ["a.js:f", "b.js:g"],
        },
    },
    Sample {
        language: Language::Python,
        begin: "x = 1",
        head: "class Store:\n    size: int = 1\n\n",
        function: "def find(a: int) -> int:\n    return a + 40\n",
        tail: "",
        path: "find",
        comment: "# ",
        nested: (" + (lambda: 1", ")"),
        types: Some(["x: ", "A[", "B", "]", " = 1\n"]),
        condition: None,
        cycle: Cycle {
            files: &[
                ("a.py", "from b import g\nfrom a import f as me\ndef f():\n    g()\n    me()\n"),
                ("b.py", "from a import f\ndef g():\n    f()\n"),
            ],
            edges: ["a.py:f", "b.py:g"],
        },
    },
    Sample {
        language: Language::Rust,
        begin: "",
        head: "struct Store {\n    size: u8,\n}\n",
        function: "fn find(a: u8) -> u8 {\n    a + 40\n}\n",
        tail: "",
        path: "find",
        comment: "// ",
        nested: ("mod a { ", "}"),
        types: Some(["type X = ", "A<", "B", ">", ";\n"]),
        condition: Some(("#[cfg(a)]\n", "#[cfg(not(a))]\n", "")),
        cycle: Cycle {
            files: &[
                ("src/lib.rs", "mod a;\nmod b;\n"),
                ("src/a.rs", "use crate::a;\nuse crate::b::g;\npub fn f() { g(); a::f(); }\n"),
                ("src/b.rs", "use crate::a::f;\npub fn g() { f(); }\n"),
            ],
            edges: ["src/a.rs:f", "src/b.rs:g"],
        },
    },
    Sample {
        language: Language::Go,
        begin: "package p\nvar x = 1",
        head: "package p\ntype Store struct {\n    size int\n}\n",
        function: "func find(a int) int {\n    return a + 40\n}\n",
        tail: "",
        path: "find",
        comment: "// ",
        nested: (" + f(1", ")"),
        types: Some(["var x ", "A[", "B", "]", "\n"]),
        condition: None,
        cycle: Cycle {
            files: &[
                ("a/a.go", "package a\nimport \"b\"\nfunc F() { b.G() }\n"),
                ("b/b.go", "package b\nimport \"a\"\nfunc G() { a.F() }\n"),
            ],
            edges: ["a/a.go:F", "b/b.go:G"],
        },
    },
    Sample {
        language: Language::Java,
        begin: "",
        head: "class Store {\n    int size;\n",
        function: "    int find(int a) {\n        return a + 40;\n    }\n",
        tail: "}\n",
        path: "Store.find",
        comment: "// ",
        nested: ("class A { ", "}"),
        types: Some(["", "A<", "B", ">", " x;\n"]),
        condition: None,
        cycle: Cycle {
            files: &[
                (
                    "p/A.java",
                    "package p; import p.A; import q.B; public class A { public static void f() { B.g(); } }",
                ),
                ("q/B.java", "package q; import p.A; public class B { public static void g() { A.f(); } }"),
            ],
            edges: ["p/A.java:A.f", "q/B.java:B.g"],
        },
    },
    Sample {
        language: Language::CSharp,
        begin: "",
        head: "class Store {\n    int size;\n",
        function: "    int Find(int a) {\n        return a + 40;\n    }\n",
        tail: "}\n",
        path: "Store.Find",
        comment: "// ",
        nested: ("class A { ", "}"),
        types: Some(["", "A<", "B", ">", " x;\n"]),
        condition: Some(("#if A\n", "#else\n", "#endif\n")),
        cycle: Cycle {
            files: &[
                (
                    "A.cs",
                    "using P; using Q; namespace P { public class A { public static void F() { B.G(); } } }",
                ),
                ("B.cs", "using P; namespace Q { public class B { public static void G() { A.F(); } } }"),
            ],
            edges: ["A.cs:A.F", "B.cs:B.G"],
        },
    },
    Sample {
        language: Language::Kotlin,
        begin: "",
        head: "class Store {\n    val size = 1\n",
        function: "    fun find(a: Int): Int {\n        return a + 40\n    }\n",
        tail: "}\n",
        path: "Store.find",
        comment: "// ",
        nested: ("class A {\n", "}\n"),
        types: Some(["    val x: ", "A<", "B", ">", "? = null\n"]),
        condition: None,
        cycle: Cycle {
            files: &[
                ("A.kt", "package p\nimport p.f\nimport q.g\nfun f() {\n    g()\n}\n"),
                ("B.kt", "package q\nimport p.f\nfun g() {\n    f()\n}\n"),
            ],
            edges: ["A.kt:f", "B.kt:g"],
        },
    },
    Sample {
        language: Language::Swift,
        begin: "",
        head: "struct Store {\n    var size = 1\n",
        function: "    func find(a: Int) -> Int {\n        return a + 40\n    }\n",
        tail: "}\n",
        path: "Store.find",
        comment: "// ",
        nested: ("struct A { ", "}"),
        types: Some(["    var x: ", "A<", "B", ">", "? = nil\n"]),
        condition: Some(("#if os(Linux)\n", "#else\n", "#endif\n")),
        cycle: Cycle {
            files: &[
                ("Sources/A/a.swift", "import A\nimport B\npublic func f() {\n    g()\n}\n"),
                ("Sources/B/b.swift", "import A\npublic func g() {\n    f()\n}\n"),
            ],
            edges: ["Sources/A/a.swift:f", "Sources/B/b.swift:g"],
        },
    },
    Sample {
        language: Language::Ruby,
        begin: "",
        head: "class Store\n    attr_reader :size\n",
        function: "    def find(a)\n        a + 40\n    end\n",
        tail: "end\n",
        path: "Store.find",
        comment: "# ",
        nested: ("module A\n", "end\n"),
        types: None,
        condition: Some(("if A\n", "else\n", "end\n")),
        cycle: Cycle {
            files: &[
                ("a.rb", "require_relative 'a'\nrequire_relative 'b'\nclass A\n  def self.f = B.g\nend\n"),
                ("b.rb", "require_relative 'a'\nclass B\n  def self.g = A.f\nend\n"),
            ],
            edges: ["a.rb:A.f", "b.rb:B.g"],
        },
    },
    Sample {
        language: Language::Php,
        begin: "<?php\n",
        head: "<?php\nclass Store {\n    public int $size = 1;\n}\n",
        function: "function find(int $a): int {\n    return $a + 40;\n}\n",
        tail: "",
        path: "find",
        comment: "// ",
        nested: ("if ($a) { ", "}"),
        types: None,
        condition: Some(("if (A) {\n", "} else {\n", "}\n")),
        cycle: Cycle {
            files: &[
                ("a.php", "<?php\nrequire_once 'a.php';\nrequire_once 'b.php';\nfunction f() { g(); }\n"),
                ("b.php", "<?php\nrequire_once 'a.php';\nfunction g() { f(); }\n"),
            ],
            edges: ["a.php:f", "b.php:g"],
        },
    },
    Sample {
        language: Language::C,
        begin: "void f(void) ",
        head: "struct store {\n    int size;\n};\n",
        function: OF_C,
        tail: "",
        path: "find",
        comment: "// ",
        nested: ("{ ", "}"),
        types: None,
        condition: Some(OF_C_CONDITION),
        cycle: Cycle {
            files: &[
                ("a.c", "#include \"a.c\"\n#include \"b.c\"\nint f(void) { return g(); }\n"),
                ("b.c", "#include \"a.c\"\nint g(void) { return f(); }\n"),
            ],
            edges: ["a.c:f", "b.c:g"],
        },
    },
    Sample {
        language: Language::Cpp,
        begin: "",
        head: "template <class T> struct Store {\n    template <class U> struct Entry { U size; };\n};\n",
        function: OF_C,
        tail: "",
        path: "find",
        comment: "// ",
        nested: ("template <class T> struct A { ", "};"),
        types: Some(["", "A<", "B", ">", " x;\n"]),
        condition: Some(OF_C_CONDITION),
        cycle: Cycle {
            files: &[
                ("a.hpp", "#include \"a.hpp\"\n#include \"b.hpp\"\ninline int f() { return g(); }\n"),
                ("b.hpp", "#include \"a.hpp\"\ninline int g() { return f(); }\n"),
            ],
            edges: ["a.hpp:f", "b.hpp:g"],
        },
    },
    Sample {
        language: Language::CHeader,
        begin: "",
        head: "struct store {\n    int size;\n};\n",
        function: OF_C,
        tail: "",
        path: "find",
        comment: "// ",
        nested: ("namespace a { ", "}"),
        types: Some(["class K;\n", "A<", "B", ">", " x;\n"]),
        condition: Some(OF_C_CONDITION),
        cycle: Cycle {
            files: &[
                ("a.h", "#include \"a.h\"\n#include \"b.h\"\nstatic int f(void) { return g(); }\n"),
                ("b.h", "#include \"a.h\"\nstatic int g(void) { return f(); }\n"),
            ],
            edges: ["a.h:f", "b.h:g"],
        },
    },
];
