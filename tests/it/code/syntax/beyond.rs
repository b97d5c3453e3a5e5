//! Constructs that the grammars lack, though the languages have them, and names that a reading easily gives to the wrong symbol.

use provost::syntax::{Language, Reading, Target};

use super::reading_of;

fn paths_of(reading: &Reading) -> Vec<&str> {
    reading.symbols.iter().map(|symbol| &*symbol.path).collect()
}

/// Who calls whom, of those within the file.
fn calls_of(reading: &Reading) -> Vec<String> {
    let edge = |edge: provost::syntax::Edge<'_>| match edge.target {
        Target::Here(at) => {
            let [caller, callee] = [edge.caller, at].map(|at| &reading.symbols[at as usize].path);
            Some(format!("{caller} -> {callee}"))
        }
        Target::Elsewhere(_) => None,
    };
    reading.edges().into_iter().filter_map(edge).collect()
}

/// Files that parse, with all their symbols.
const FILES: &[(Language, &str, &[&str])] = &[
    (
        Language::Rust,
        "unsafe extern \"C\" {\n    pub safe fn a(x: i32);\n    safe static B: u8;\n    unsafe fn c();\n}\n",
        &["a", "B", "c"],
    ),
    (
        Language::Rust,
        "lazy_static! {\n    /// Doc.\n    static ref ONE: u8 = 1; // of one\n    pub static ref TWO: u8 = 2;\n}\n",
        &["ONE", "TWO"],
    ),
    (
        Language::CSharp,
        "static class E {\n    extension(string s) { public int N => s.Length; }\n    extension<T>(IEnumerable<T> all) where T : class {\n        \
         public T First() { return F(\"}\"); }\n    }\n    static void G<T>(T x) where T : allows ref struct {}\n    int extension(int x) => x;\n}\n",
        &["E", "E.N", "E.First", "E.G", "E.extension"],
    ),
    (
        Language::Kotlin,
        "class A(val k: K) : K by k {\n    val x = 1\n    fun f() {}\n}\nobject B : K by C() { fun g() {} }\n\
         class D(val f: () -> Unit = { val y = 1 }) : K by c, L by d(1) where T : X { val z = 1 }\n",
        &["A", "A.k", "A.x", "A.f", "B", "B.g", "D", "D.f", "D.z"],
    ),
    (
        Language::Kotlin,
        "enum class A(val s: Char) {\n    P('+') { override fun f() = 1 },\n    @X\n    M('-') { override fun f() = 2 };\n    \
         abstract fun f(): Int\n}\nvalue class B(val r: Int) { init { f() } val h: Int get() = 1 }\n",
        &["A", "A.s", "A.P", "A.P.f", "A.M", "A.M.f", "A.f", "B", "B.r", "B.h"],
    ),
    (
        Language::Kotlin,
        "fun f(x: T & Any) = when (x) {\n    is A if x.b > 1 -> 1\n    else if c -> 2\n    is B -> if (d) 3 else 4\n    else -> 5\n}\n\
         class A {\n    context(a: A, _: B)\n    fun g() {}\n    var h = 1\n        @X private set(v) { field = v }\n    val i = $$\"\"\"a $$b\"\"\"\n}\n",
        &["f", "A", "A.g", "A.h", "A.i"],
    ),
    (
        Language::Kotlin,
        "class A\n@X\npublic constructor(val a: Int) : B() {\n    var b\n        get() = false\n        @X(\"y\") set(v): Unit = Unit\n    \
         fun c() {\n        val dynamic = d()\n        e(\"${dynamic.g}\")\n        return dynamic\n    }\n}\n",
        &["A", "A.a", "A.b", "A.c"],
    ),
    (
        Language::TypeScript,
        "export const a = styled.div<{ b: string }>`color: ${(p) => f()};`;\nconst c = styled(D).attrs<E>(() => 1)<F>`x`;\n\
         const g = gql<H, I>`x`;\nlet j: import(\"./k\").L<M>;\nfunction n(o: import('./k').P.Q<R>): void {}\n",
        &["a", "c", "g", "j", "n"],
    ),
    (
        Language::Tsx,
        "const A = styled.div<Props>`\n  color: red;\n`;\nconst B = <b>Terms & Conditions &amp; more</b>;\n\
         const C = (x: P & Q) => <a href=\"x?a=1&b=2\">AT&T {x && y}</a>;\n",
        &["A", "B", "C"],
    ),
    (
        Language::JavaScript,
        "const A = () => <a href='x?a=1&b=2'>R&D</a>;\nfunction b() { return c & d && e; }\n",
        &["A", "b"],
    ),
    (
        Language::JavaScript,
        "const S = module.exports = exports = class S { a() {} };\nfunction L() {}\nL.prototype = {\n  constructor: L,\n  b() { f(); },\n  \
         c: function () {},\n};\n",
        &["S", "S.a", "L", "L.constructor", "L.b", "L.c"],
    ),
    (
        Language::C,
        "int x __attribute__((aligned(8)));\nstatic int y __attribute__((unused)) = 1;\nchar z[8] __attribute__((aligned(8))) __attribute__((packed));\n\
         struct s { unsigned a : 3; unsigned : 5; int b; };\nvoid f(void) {\n    int c __attribute__((unused)) = 1;\n    switch (c) {\n    case 1:\n        \
         __attribute__((fallthrough));\n    default:;\n    }\n}\n",
        &["x", "y", "z", "s", "s.a", "s.b", "f"],
    ),
    (
        Language::C,
        "struct point { int x; } origin, *other;\nenum color { RED } paint;\nstruct { int y; } nameless;\ntypedef struct list { int z; } list_t, *list_p;\n",
        &[
            "origin",
            "other",
            "point",
            "point.x",
            "paint",
            "color",
            "color.RED",
            "nameless",
            "nameless.y",
            "list_t",
            "list_p",
            "list",
            "list.z",
        ],
    ),
    (
        Language::Cpp,
        "struct A { explicit A(B b, C c = {}, D d = {1, 2}) : b_{b} {} void f(this auto&& self); int (A::*g)(int) const; };\n\
         template <class T, template <class> class U = V> void W<T, U>::h() {}\nstruct X { struct Y { int z; } y; };\n",
        &["A", "A.A", "A.f", "A.g", "W.h", "X", "X.y", "X.Y", "X.Y.z"],
    ),
    (
        Language::Cpp,
        "void f(A* a, B b) { (a->*b.c)(1); (a->*(b.d))(2); (b.*e)(3); int x = *a * *b; }\n",
        &["f"],
    ),
    (
        Language::Cpp,
        "class A FINAL : public B { enum : char { C }; };\nclass EXPORT D FINAL_ {};\n\
         void f(A* a) { const E& e(a->e()); a->operator[](1); a->operator=(*a); return typename G::h(); }\n",
        &["A", "A.C", "D", "f"],
    ),
    (
        Language::C,
        "int f(int a,\n#ifdef X\n  int b\n#else\n  long b\n#endif\n) {\n  return g(a,\n#if Y\n    h(1)\n#else\n    0\n#endif\n  );\n}\n",
        &["f"],
    ),
    (
        Language::Cpp,
        "module;\n#include <x>\nexport module a.b;\nimport std;\nexport import :part;\nimport <vector>;\nexport int f() { return 1; }\n\
         export template <class T> class A { T x; };\nexport namespace n { void g(); }\n",
        &["f", "A", "A.x", "n", "n.g"],
    ),
    (
        Language::Cpp,
        "TEST_CASE(\"adds 1.5\", \"[tag]\") /* of all */ {\n  SECTION(\"inner\") {\n    f();\n  }\n}\nSCENARIO(\"a b\") { GIVEN(\"c\") { g(); } }\n\
         TEST(Suite, Name) // why\n{\n}\n",
        &["adds 1_5", "a b", "Suite.Name"],
    ),
    (
        Language::Ruby,
        "module Shop\n  class Store\n  end\nend\nShop::Store.class_eval do\n  def more; end\nend\n",
        &["Shop", "Shop.Store", "Shop.Store", "Shop.Store.more"],
    ),
    (
        Language::Ruby,
        "class A\n  def a = puts \"x\"\n  def b(x) = raise Error, \"no\" unless x\n  def self.c(*d) = @e&.f!(1).g :h, *d, i: 1, &j\n  \
         def k =\n    l [1, 2], # why\n      m(1) => n\n  private def o = p(1).q -> { r }\n  def s = t u, v: 1 do |w| x w end\n  \
         def ==(y) = z? y\n  def last = 1\nend\n",
        &["A", "A.a", "A.b", "A.c", "A.k", "A.o", "A.s", "A.==", "A.last"],
    ),
    (
        Language::Java,
        "import module java.base;\nimport module.b.C;\nclass A extends B {\n    final int x;\n    A(int y) {\n        // super(y)\n        if (y < 0) throw new E(\"super(\");\n        \
         int z = f(y); /* why */ super(z);\n        this.x = y;\n    }\n    A() {\n        int y = f(1);\n        this(y);\n    }\n    \
         class C extends D {\n        C(A a) {\n            int q = 1;\n            a.super(q);\n        }\n    }\n    \
         static int f(int y) { return y; }\n}\n",
        &["A", "A.x", "A.constructor", "A.constructor", "A.C", "A.C.constructor", "A.f"],
    ),
    (
        Language::CSharp,
        "struct A : I {\n    int b;\n    public void operator +=(int x) { b += x; }\n    public void operator checked -= (int x) => b -= x;\n    \
         public void operator >>>=(int x) {}\n    void I.operator *=(int x) {}\n    public void operator ++() { b++; }\n    \
         public static A operator +(A x, A y) => x;\n    public static explicit operator checked int(A x) => 1;\n    \
         void F(int _operator) { _operator += (1); }\n}\n",
        &[
            "A",
            "A.b",
            "A.operator+=",
            "A.operator-=",
            "A.operator>>>=",
            "A.I.operator*=",
            "A.operator++",
            "A.operator+",
            "A.operator(int)",
            "A.F",
        ],
    ),
    (
        Language::CSharp,
        "#:package X@1\nclass A {\n    int b;\n    void F(A a) {\n        a?.b = 1;\n        a?.c[0]?.d += 2;\n        var g = a?.b == 1 ? a?.b : 2;\n        \
         H h = (text, out  size) => int.TryParse(text, out size);\n    }\n    int K => 1;\n}\n",
        &["A", "A.b", "A.F", "A.K"],
    ),
    (
        Language::TypeScript,
        "export type * from \"./a\";\nexport type * as b from \"./b\";\nimport defer * as c from \"./c\";\n\
         import { o, out as p } from \"./q\";\n\
         interface D<in T, out U, in out V> { out: T; in(): U }\nabstract class E { static accessor f = 1; abstract accessor g: number; accessor() {} }\n\
         function h() { for (using i of j) k(i, accessor); }\nasync function l() { for (await using m of n) {} }\n",
        &["D", "D.out", "D.in", "E", "E.f", "E.g", "E.accessor", "h", "l"],
    ),
    (Language::Tsx, "type A<out T> = T;\nconst B = () => <b>Terms & Conditions</b>;\n", &["A", "B"]),
    (
        Language::Php,
        "<?php\nclass A {\n    public function __construct(final public string $b, #[C] final protected int $d = 1) {}\n    final public function e() { (void) f(); }\n}\n\
         (void) g();\n__halt_compiler();\nfunction (((\n",
        &["A", "A.__construct", "A.b", "A.d", "A.e"],
    ),
    (
        Language::Cpp,
        "template <class... Ts> struct Over : Ts... { using Ts::operator()...; int a; };\nextern template class A<int>;\ntemplate struct B<int>;\n\
         enum class [[nodiscard]] E : int { P [[deprecated(\"no\")]] = 1, Q };\n\
         struct [[nodiscard]] alignas(8) S { unsigned b : 3 = 1; ~S() = delete(\"why\"); };\n\
         void f(S* s) { s->S::~S(); s->~T<int>(); s->~S(); if consteval { g(); } else { h(); } if !consteval { k(); } }\n",
        &["Over", "Over.a", "E", "E.P", "E.Q", "S", "S.b", "S.~S", "f"],
    ),
    (
        Language::C,
        "struct s { int a : 3, : 2; int b; };\nvoid f(int x) {\n    switch (x) {\n    case 1 ... 3:\n        break;\n    case A ... B: g();\n    \
         default:;\n    }\n    goto *p[x];\n}\n",
        &["s", "s.a", "s.b", "f"],
    ),
    (
        Language::C,
        "void f(void) {\n    CHECK(a(1), b)\n#ifdef X\n    c();\n#endif\n    EACH()\n#if Y\n    {\n        d();\n    }\n#endif\n    \
         e(1)\n    g();\n#ifdef Z\nend:\n#endif\n    H(1)\n}\nint i;\n",
        &["f", "i"],
    ),
];

#[test]
fn what_a_grammar_does_not_know_by_itself_is_read_whole_and_named_as_it_is() {
    for (language, text, expected) in FILES {
        for text in [(*text).to_owned(), text.replace('\n', "\r\n")] {
            let reading = reading_of(*language, &text);
            assert!(reading.is_whole(), "{:?} in {text}", reading.trouble);
            assert_eq!(paths_of(&reading), *expected, "{text}");
        }
    }
}

#[test]
fn what_only_looks_like_something_that_a_grammar_does_not_know_is_left_as_it_is() {
    for (language, text, expected) in [
        (Language::Rust, "unsafe fn a() {}\nfn f() { let safe = 1; }\n", &["a", "f"][..]),
        (Language::Kotlin, "fun f() = context(1)\nval x = a && b\n", &["f", "x"]),
        (
            Language::TypeScript,
            "const a = () => `x`;\nconst b = `<b>`;\nif (c < d) { e = `f>`; }\n",
            &["a", "b"],
        ),
        (Language::TypeScript, "const a = await import(\"./b\").then((it) => it);\n", &["a"]),
        (Language::CSharp, "class A { int extension(int x) { return x; } }\n", &["A", "A.extension"]),
        (Language::Cpp, "void f() { for (A a = {}; a;) {} x = {}; g({}); }\n", &["f"]),
        (Language::Cpp, "struct A { int b : 3; void f() { g(this); } };\n", &["A", "A.b", "A.f"]),
        (Language::C, "int emit(int export) { return export; }\n", &["emit"]),
        (
            Language::Ruby,
            "class A\n  # Like def a = b c.\n  attr_accessor :d, :e\n  def show = puts \"x\"\nend\n",
            &["A", "A.d", "A.e", "A.show"],
        ),
        (Language::Ruby, "def none?(s) = s !~ /x/\ndef two = puts 1, 2\n", &["none?", "two"]),
        (
            Language::Ruby,
            "def a = b -1\ndef c = d ? e : f\ndef g = h %w[i]\ndef j = k { |l| m l }\n",
            &["a", "c", "g", "j"],
        ),
        (
            Language::Java,
            "class A { A() { this(1); } A(int b) { super(); this.c(); } }\n",
            &["A", "A.constructor", "A.constructor"],
        ),
    ] {
        let reading = reading_of(language, text);
        assert!(reading.is_whole(), "{:?} in {text}", reading.trouble);
        assert_eq!(paths_of(&reading), expected, "{text}");
    }
}

#[test]
fn calls_of_what_was_lost_are_those_of_the_symbol_around_them() {
    for (language, text, expected) in [
        (
            Language::Rust,
            "fn f() {}\nstatic A: fn() = || f();\nconst B: u8 = f();\n",
            &["A -> f", "B -> f"][..],
        ),
        (Language::Go, "package p\nfunc f() int { return 1 }\nvar a = f()\n", &["a -> f"]),
        (Language::Cpp, "int f();\nstatic int a = f();\n", &["a -> f"]),
        (Language::Cpp, "void f();\nvoid g() { emit f(); Q_EMIT f(); }\n", &["g -> f"]),
        (
            Language::C,
            "int find(int a) { return a; }\nint delete(int a) { return a; }\nint f(int k) { int r = delete(find(k)); return r; }\n",
            &["f -> delete", "f -> find"],
        ),
        (
            Language::C,
            "void format(int);\nvoid f(const char *x, ...) __attribute__((format(printf, 1, 2)));\nvoid f(const char *x, ...) { format(1); }\n",
            &["f -> format"],
        ),
        (Language::Cpp, "void f();\nTEST_CASE(\"a b\") { SECTION(\"c\") { f(); } }\n", &["a b -> f"]),
        (
            Language::JavaScript,
            "function f() {}\nfunction L() {}\nL.prototype = { a() { this.b(); }, b() { f(); }, c: f() };\n",
            &["L.a -> L.b", "L.b -> f", "L.c -> f"],
        ),
        (Language::Tsx, "const f = () => 1;\nconst A = styled.div<P>`${() => f()}`;\n", &["A -> f"]),
        (
            Language::Ruby,
            "class A\n  def a(x) = b c(x), d: e(x)\n  def b(*) = 1\n  def c(x) = 2\n  def e(x) = 3\nend\n",
            &["A.a -> A.b", "A.a -> A.c", "A.a -> A.e"],
        ),
        (
            Language::Java,
            "class A extends B {\n    A(int b) {\n        f();\n        super(g());\n    }\n    A() {\n        f();\n        this(1);\n    }\n    \
             void f() {}\n    int g() { return 1; }\n}\nclass B { B(int b) {} }\n",
            &[
                "A.constructor -> A.f",
                "A.constructor -> B.constructor",
                "A.constructor -> A.g",
                "A.constructor -> A.constructor",
            ],
        ),
        (
            Language::C,
            "#define EACH(x) x(1)\nvoid a(void);\nvoid f(void) {\n#define X(it) a();\n    EACH(X)\n#undef X\n}\n",
            &["f.X -> a", "f -> EACH"],
        ),
        (
            Language::Kotlin,
            "class Users { fun find() {} }\ncontext(users: Users, _: Log)\nfun f() { users.find() }\n",
            &["f -> Users.find"],
        ),
    ] {
        let reading = reading_of(language, text);
        assert!(reading.is_whole(), "{:?} in {text}", reading.trouble);
        assert_eq!(calls_of(&reading), expected, "{text}");
    }
}

#[test]
fn a_file_that_does_not_parse_is_not_whole_because_of_a_comment() {
    for text in [
        "<?php\n// Data stands behind it; __halt_compiler();\nclass A { function f() {\nclass B {}\n",
        "<?php\n/* { __halt_compiler(); */ class A { function f() {\nclass B {}\n",
        "<?php\n# ; __halt_compiler();\nclass A { function f() {\nclass B {}\n",
    ] {
        let reading = reading_of(Language::Php, text);
        assert!(!reading.is_whole(), "{text}");
    }
    let reading = reading_of(Language::Php, "<?php\nfunction a() {}\n__HALT_COMPILER ();\nfunction (((\n");
    assert!(reading.is_whole() && paths_of(&reading) == ["a"], "{:?}", reading.trouble);
}

#[test]
fn what_a_block_is_given_without_a_name_is_no_call() {
    let reading = reading_of(Language::Ruby, "def f\n  [1].each { _1.g(it) }\nend\n");
    let called: Vec<&str> = reading.calls.iter().map(|it| &*it.callee.name).collect();
    assert_eq!(called, ["each", "g"]);
}

#[test]
fn a_contract_says_all_that_callers_and_those_who_implement_it_rely_on() {
    for (language, text, of, expected) in [
        (
            Language::Kotlin,
            "class A(private val a: Int, vararg b: Int, private vararg val c: Int)\n",
            "A",
            "class(val a: Int, vararg b: Int, vararg val c: Int)",
        ),
        (Language::Kotlin, "class A @Inject internal constructor(val a: Int)\n", "A", "class(val a: Int)"),
        (
            Language::Kotlin,
            "interface A {\n    @X\n    public suspend fun f()\n    operator fun plus(a: A): A\n}\n",
            "A",
            "interface { suspend fun f(); operator fun plus(a: A): A }",
        ),
        (
            Language::CSharp,
            "interface A { static abstract A operator +(A a, A b); static virtual A operator -(A a) => a; }\n",
            "A",
            "interface { static abstract A operator +(A a, A b); }",
        ),
        (
            Language::Cpp,
            "void f(A a = {}, std::vector<int> b = {1, 2});\n",
            "f",
            "void (A a = {}, std::vector<int> b = {1, 2})",
        ),
        (
            Language::CSharp,
            "class A { void F<T>() where T : allows ref struct {} }\n",
            "F",
            "void <T>() where T : allows ref struct",
        ),
        (Language::TypeScript, "let a: import(\"./b\").C<D>;\n", "a", "import(\"./b\").C<D>"),
        (
            Language::Kotlin,
            "class A {\n    context(users: Users, _: Map<String, (Int) -> Log>)\n    @X\n    private suspend fun f(a: Int): B = users.get(a)\n}\n",
            "f",
            "context(users: Users, _: Map<String, (Int) -> Log>) suspend (a: Int): B",
        ),
        (
            Language::Kotlin,
            "context(Log, /* of all */ Users<A>)\nval g: Int get() = 1\n",
            "g",
            "context(Log, Users<A>) val: Int",
        ),
        (
            Language::Kotlin,
            "interface I {\n    context(a: A)\n    fun f()\n}\n",
            "I",
            "interface { context(a: A) fun f() }",
        ),
        (
            Language::C,
            "struct s { unsigned a : 3; unsigned : 5; int b; unsigned int : 0; };\n",
            "s",
            "struct { unsigned a : 3; unsigned : 5; int b; unsigned int : 0; }",
        ),
    ] {
        let reading = reading_of(language, text);
        assert!(reading.is_whole(), "{:?} in {text}", reading.trouble);
        assert_eq!(&*reading.contract(of).unwrap().text, expected, "{text}");
    }
}

#[test]
fn the_name_of_a_context_makes_no_difference_to_callers_and_its_type_does() {
    let contract = |context: &str| {
        let text = format!("{context}\nfun f() {{}}\n");
        reading_of(Language::Kotlin, &text).contract("f").unwrap()
    };
    let of_users = contract("context(users: Users)");
    assert!(of_users.same(&contract("context(_:  Users)")));
    assert!(!of_users.same(&contract("context(users: Logs)")));
    assert!(!of_users.same(&contract("")));
}

#[test]
fn bits_without_a_name_make_a_difference_to_a_struct() {
    let contract = |text: &str| reading_of(Language::C, text).contract("s").unwrap();
    let with = contract("struct s { unsigned a : 3; unsigned : 5; int b; };\n");
    assert!(with.same(&contract("struct s { unsigned a : 3; unsigned: 5 ; int b; };\n")));
    assert!(!with.same(&contract("struct s { unsigned a : 3; unsigned : 6; int b; };\n")));
    assert!(!with.same(&contract("struct s { unsigned a : 3; int b; };\n")));
}

#[test]
fn what_commonjs_gives_a_name_too_is_an_export_under_that_name() {
    let text = "const S = module.exports = { a() {}, b, 'c': d };\nconst e = exports.f = function () {};\nfunction b() {}\nfunction d() {}\n";
    let reading = reading_of(Language::JavaScript, text);
    let exports: Vec<String> =
        reading.exports.iter().map(|it| format!("{} {:?}", it.name, it.what)).collect();
    assert_eq!(
        exports,
        ["export= Local(\"S\")", "a Local(\"S.a\")", "b Local(\"b\")", "c Local(\"d\")", "f Local(\"e\")",]
    );
    assert_eq!(paths_of(&reading), ["S", "S.a", "S.c", "e", "b", "d"]);
}
