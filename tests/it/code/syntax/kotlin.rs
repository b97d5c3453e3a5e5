//! Kotlin: what is found in a file with every construct, written down from its text.

use provost::syntax::{Kind, Language, Version, touched};

use super::{assert_rows, reading_of};

const TEXT: &str = r##"@file:JvmName("Shop")
package com.acme.shop

import com.acme.store.Cache
import com.acme.util.*
import com.acme.util.trimmed as trim

/** Most. */
const val MOST = 1
val shared: Store by lazy { make() }
var other = Cache()
private val String.label: String get() = upper()
typealias Handler<T> = (T) -> Unit

/** Top. */
@JvmStatic
fun <T : Store> top(a: Int, vararg more: String = x()): List<T>? where T : Any { return null }
suspend inline fun <reified T> Store.extended(key: String) = find(key)
fun String?.padded() = this
fun List<Int>.total(): Int = sum()
infix fun Int.times2(n: Int): Int = n
operator fun Store.plus(o: Store): Store = this

/** A store. */
@Serializable
// between
abstract class Store<T : Any>(private val cache: Cache, size: Int = 3, @Foo var named: String) : Base<T>(size), Keeper by cache, java.io.Closeable {
    private val list = mutableListOf<String>()
    lateinit var late: Cache
    val kept: Cache get() = cache
    var count: Int = 0
        get() = field + go()
        private set(value) { check(value); field = value }
    init { start() }
    constructor(a: Int) : this(Cache(), a) { late = Cache() }
    override fun find(key: String): Thing? { val x = Thing(); x.go(); return cache.get(key)?.second() }
    fun find(key: Int) = this.cache.put(key)
    abstract fun none()
    inner class Inner {
        fun deep() {
            find(1)
            this@Store.find(2)
        }
    }
    class Nested
    companion object : Factory {
        const val K = 1
        fun create(): Store<Int> = TODO()
        @JvmStatic fun other() {}
    }
    object Single { fun one() {} }
    enum class State(val code: Int) : Keeper {
        /** Open. */
        OPEN(1) { override fun f() = 1 },
        @Deprecated("x") PAID(2);
        open fun f() = 0
    }
    interface Shape {
        val area: Int
        fun side(): Int
        fun twice() { side() }
    }
    fun interface Single2 {
        fun run()
    }
    sealed interface Res
    data class Point(val x: Int, val y: Int = 2) {
        operator fun component3() = x
    }
    data object Nothing2
    annotation class Mark(val a: String)
    @JvmInline value class Id(val raw: String)
    fun anon(a: Any, items: List<Item>, f: (Int) -> Unit) {
        val r = object : Runnable {
            var c = 1
            override fun run() { this.go(); helper() }
        }
        fun local(n: Int): Int { return deeper(n) }
        class Local {
            fun inside() {}
        }
        items.forEach { it.run() }
        items.map { item -> item.run() }
        cache.apply { put(1) }.also { c -> c.put(2) }
        when (a) {
            is Circle -> none()
            else -> none()
        }
        when (val q = make()) {
            is Square -> none()
            else -> {}
        }
        for (i in items) {
            deeper(i)
        }
        for ((k, v) in map) {
            deeper(v)
        }
        try { } catch (e: IOException) { deeper(e) }
        val (p, q2) = pair()
        (a as Thing).go()
        foo().bar().baz()
        "s".length()
        super.find("x")
        super<Keeper>.find("x")
        Store.create().find("x")
        "text ${go2()} $a"
    }
}
"##;

/// Path, kind, how its source begins and ends, and its contract; empty for one that declares nothing.
const ROWS: &[(&str, Kind, &str, &str, &str)] = &[
    ("MOST", Kind::Variable, "/** Most. */\nc", "MOST = 1", ""),
    ("shared", Kind::Variable, "val shared: St", "make() }", "val: Store"),
    ("other", Kind::Variable, "var other = Ca", "= Cache()", ""),
    ("String.label", Kind::Getter, "private val St", "= upper()", "val: String.String"),
    ("Handler", Kind::TypeAlias, "typealias Hand", ") -> Unit", "typealias<T> = (T) -> Unit"),
    (
        "top",
        Kind::Function,
        "/** Top. */\n@J",
        "rn null }",
        "<T : Store>(a: Int, vararg more: String = x()): List<T>? where T : Any",
    ),
    (
        "Store.extended",
        Kind::Method,
        "suspend inline",
        "find(key)",
        "suspend inline <reified T> Store.(key: String)",
    ),
    ("String.padded", Kind::Method, "fun String?.pa", "() = this", "String?.()"),
    ("List.total", Kind::Method, "fun List<Int>.", "t = sum()", "List<Int>.(): Int"),
    ("Int.times2", Kind::Method, "infix fun Int.", ": Int = n", "infix Int.(n: Int): Int"),
    ("Store.plus", Kind::Method, "operator fun S", "re = this", "operator Store.(o: Store): Store"),
    (
        "Store",
        Kind::Class,
        "/** A store. *",
        "\"\n    }\n}",
        "abstract class<T : Any>(val cache: Cache, size: Int = 3, var named: String) : Base<T>(size), Keeper by cache, java.io.Closeable; (a: Int)",
    ),
    ("Store.cache", Kind::Field, "private val ca", "he: Cache", "val: Cache"),
    ("Store.named", Kind::Field, "@Foo var named", "d: String", "var: String"),
    ("Store.list", Kind::Field, "private val li", "String>()", ""),
    ("Store.late", Kind::Field, "lateinit var l", "te: Cache", "lateinit var: Cache"),
    ("Store.kept", Kind::Getter, "val kept: Cach", ") = cache", "val: Cache"),
    ("Store.count", Kind::Getter, "var count: Int", "= value }", "var: Int"),
    ("Store.constructor", Kind::Constructor, "constructor(a:", "Cache() }", "(a: Int)"),
    ("Store.find", Kind::Method, "override fun f", "econd() }", "(key: String): Thing?; (key: Int)"),
    ("Store.none", Kind::Method, "abstract fun n", "un none()", "abstract ()"),
    ("Store.Inner", Kind::Class, "inner class In", "}\n    }", "inner class"),
    ("Store.Inner.deep", Kind::Method, "fun deep() {", "}", "()"),
    ("Store.Nested", Kind::Class, "class Nested", "ss Nested", "class"),
    ("Store.Companion", Kind::Class, "companion obje", "{}\n    }", "companion object : Factory"),
    ("Store.Companion.K", Kind::Field, "const val K =", "val K = 1", ""),
    ("Store.Companion.create", Kind::Method, "fun create():", "= TODO()", "(): Store<Int>"),
    ("Store.Companion.other", Kind::Method, "@JvmStatic fun", "ther() {}", "()"),
    ("Store.Single", Kind::Class, "object Single", "ne() {} }", "object"),
    ("Store.Single.one", Kind::Method, "fun one() {}", "one() {}", "()"),
    (
        "Store.State",
        Kind::Enum,
        "enum class Sta",
        "= 0\n    }",
        "enum class(val code: Int) : Keeper { OPEN, PAID }",
    ),
    ("Store.State.code", Kind::Field, "val code: Int", "code: Int", "val: Int"),
    ("Store.State.OPEN", Kind::Field, "/** Open. */", "f() = 1 }", ""),
    ("Store.State.OPEN.f", Kind::Method, "override fun f", "n f() = 1", "()"),
    ("Store.State.PAID", Kind::Field, "@Deprecated(\"x", ") PAID(2)", ""),
    ("Store.State.f", Kind::Method, "open fun f() =", "n f() = 0", "()"),
    (
        "Store.Shape",
        Kind::Interface,
        "interface Shap",
        ") }\n    }",
        "interface { val area: Int; fun side(): Int }",
    ),
    ("Store.Shape.area", Kind::Field, "val area: Int", "area: Int", "val: Int"),
    ("Store.Shape.side", Kind::Method, "fun side(): In", "de(): Int", "(): Int"),
    ("Store.Shape.twice", Kind::Method, "fun twice() {", "side() }", "()"),
    ("Store.Single2", Kind::Interface, "fun interface", "n()\n    }", "interface { fun run() }"),
    ("Store.Single2.run", Kind::Method, "fun run()", "fun run()", "()"),
    ("Store.Res", Kind::Interface, "sealed interfa", "rface Res", "sealed interface"),
    ("Store.Point", Kind::Class, "data class Poi", "= x\n    }", "data class(val x: Int, val y: Int = 2)"),
    ("Store.Point.x", Kind::Field, "val x: Int", "al x: Int", "val: Int"),
    ("Store.Point.y", Kind::Field, "val y: Int = 2", ": Int = 2", "val: Int"),
    ("Store.Point.component3", Kind::Method, "operator fun c", "nt3() = x", "operator ()"),
    ("Store.Nothing2", Kind::Class, "data object No", "Nothing2", "data object"),
    ("Store.Mark", Kind::Class, "annotation cla", ": String)", "annotation class(val a: String)"),
    ("Store.Mark.a", Kind::Field, "val a: String", "a: String", "val: String"),
    ("Store.Id", Kind::Class, "@JvmInline val", ": String)", "value class(val raw: String)"),
    ("Store.Id.raw", Kind::Field, "val raw: Strin", "w: String", "val: String"),
    (
        "Store.anon",
        Kind::Method,
        "fun anon(a: An",
        "$a\"\n    }",
        "(a: Any, items: List<Item>, f: (Int) -> Unit)",
    ),
    ("Store.anon.local", Kind::Function, "fun local(n: I", "eper(n) }", "(n: Int): Int"),
    ("Store.anon.Local", Kind::Class, "class Local {", "}", "class"),
    ("Store.anon.Local.inside", Kind::Method, "fun inside() {", "side() {}", "()"),
];

#[test]
fn everything_in_a_kotlin_file_is_found_with_its_range_and_its_contract_and_nothing_else() {
    assert_rows(Language::Kotlin, TEXT, ROWS);
}

#[test]
fn what_extends_a_type_goes_by_its_name_and_stands_apart_from_it() {
    let reading = reading_of(Language::Kotlin, TEXT);
    let found = reading.find("Store.extended");
    assert_eq!((found.len(), found[0].parent), (1, None));
    let exports: Vec<&str> = reading.exports.iter().map(|it| &*it.name).collect();
    for name in [
        "com.acme.shop.extended",
        "com.acme.shop.Store+extended",
        "com.acme.shop.Store",
        "com.acme.shop.MOST",
    ] {
        assert!(exports.contains(&name), "{name}: {exports:?}");
    }
    assert_eq!(reading.find("Store.find").len(), 2);
    assert_eq!(reading.find("com.acme.shop.top").len(), 1, "by its full name");
}

#[test]
fn a_contract_of_kotlin_is_the_same_however_it_is_written() {
    let canon = |text: &str| {
        let text = format!("class A {{\n{text}\n}}\n");
        reading_of(Language::Kotlin, &text).contract("A.f").unwrap().canon
    };
    let one = canon("suspend fun <T : Any> f(a: Int, vararg b: String): List<T>? { return null }");
    for same in [
        "/** Doc. */\n@Foo\ninternal suspend fun <T : Any> f(\n    a: Int, // first\n    vararg b: String,\n): List<T>? = null",
        "suspend  fun < T : Any > f( a : Int , vararg b : String ) : List < T >? { }",
    ] {
        assert_eq!(canon(same), one, "{same}");
    }
    for other in [
        "fun <T : Any> f(a: Int, vararg b: String): List<T>? { return null }",
        "suspend fun <T : Any> f(a: Int, vararg b: String): List<T> { return null }",
        "suspend fun <T : Any> f(a: Int, b: String): List<T>? { return null }",
        "val f: Int = 1",
    ] {
        assert_ne!(canon(other), one, "{other}");
    }
    assert_ne!(canon("val f: Int = 1"), canon("var f: Int = 1"));
}

#[test]
fn what_a_program_has_written_in_kotlin_is_left_out() {
    use provost::syntax::Trouble;
    for text in [
        "// This file was automatically generated from guide.md by Knit tool. Do not edit.\npackage p\nfun f() {}\n",
        "/**\n * @generated SignedSource<<x>>\n */\n\npackage p\n",
        "// Generated by the protocol buffer compiler. DO NOT EDIT!\n@file:Suppress(\"x\")\nfun f() {}\n",
    ] {
        assert_eq!(reading_of(Language::Kotlin, text).trouble, [Trouble::Generated], "{text}");
    }
    assert!(reading_of(Language::Kotlin, "package p\n// generated, do not edit\nfun f() {}\n").is_whole());
}

#[test]
fn a_body_that_is_an_expression_with_annotations_belongs_to_its_function() {
    for body in [
        "@Suppress(\"x\")\n    made().also {\n        it.next()\n    }",
        "@Suppress(\"a) = @b\", 'c') @a.b.Own made().also { it.next() }",
        "@[Own Other(1)] made().also { it.next() }",
        "@Suppress(\"x\")\n    made().last ?: other(this).also {\n        made().last = it\n    }",
    ] {
        // By what follows the grammar would find another end.
        let text = format!(
            "package p\npublic fun Window.first(): Any =\n    {body}\n\n/** Doc. */\npublic fun second() {{}}\n"
        );
        let reading = reading_of(Language::Kotlin, &text);
        assert!(reading.is_whole(), "{:?} in {text}", reading.trouble);
        let first = &reading.symbols[reading.numbers_of("Window.first")[0] as usize];
        let end = u32::try_from(text.find("\n\n/** Doc. */").unwrap()).unwrap();
        assert_eq!(first.range.end, end, "{text}");
        let callers: Vec<Option<u32>> = reading.calls.iter().map(|it| it.caller).collect();
        assert!(callers.iter().all(Option::is_some) && callers.len() >= 2, "{:?} in {text}", reading.calls);
    }
    // What stands in a text or a comment is shown as it is.
    let text = "val text = \"a = @b\"\n/* = @c( */\nval other = 1 // = @d(\nval last = a() == @E b\n";
    let reading = reading_of(Language::Kotlin, text);
    let found: Vec<&str> = reading.symbols.iter().map(|it| &*it.path).collect();
    assert_eq!(found, ["text", "other", "last"]);
}

#[test]
fn a_comment_on_the_line_of_a_declaration_does_not_join_it_to_the_one_before() {
    let text = "package p\n/* a */ val one = 1\n/* b */ val two = 2\n/** C. */ fun three() {}\n/* d\n e */ fun four(/* f */ a: Int) {}\n\
                class Five { /* g */ fun six() {}\n/** H. */ val seven = 1\n    /** I. */ /* j */ val eight = \"/* k */\"\n}\n\
                enum class Nine {\n    /** L. */ TEN,\n    /** M. */ ELEVEN\n}\n";
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        let reading = reading_of(Language::Kotlin, &text);
        assert!(reading.is_whole(), "{:?} in {text}", reading.trouble);
        let found: Vec<&str> = reading.symbols.iter().map(|it| &*it.path).collect();
        let of_five = ["Five", "Five.six", "Five.seven", "Five.eight"];
        let expected = [&["one", "two", "three", "four"][..], &of_five, &["Nine", "Nine.TEN", "Nine.ELEVEN"]];
        assert_eq!(found, expected.concat(), "{text}");
        // An edit of the comment is one of what stands behind it.
        let edited = text.replace("C.", "Changed.");
        let after = reading_of(Language::Kotlin, &edited);
        let old = Version { reading: &reading, bytes: text.as_bytes() };
        let found = touched(old, Version { reading: &after, bytes: edited.as_bytes() });
        assert_eq!(found.iter().map(|it| &**it).collect::<Vec<_>>(), ["three"]);
    }
}

#[test]
fn a_type_whose_body_is_on_one_line_is_read_whole() {
    let text = "package p\nclass One { fun a() {} }\ninterface Two { fun b(): Int }\nobject Three { val c = 1 }\n\
                enum class Four { D, E }\nclass Five { companion object { fun f() {} } }\n\
                fun g(then: () -> Int = { 1 }) = listOf(1).map { it + 1 }\nclass Six\nfun h() { One::class }\n";
    let reading = reading_of(Language::Kotlin, text);
    assert!(reading.is_whole(), "{:?} in {text}", reading.trouble);
    let found: Vec<(&str, Kind)> = reading.symbols.iter().map(|it| (&*it.path, it.kind)).collect();
    let members = [
        ("One", Kind::Class),
        ("One.a", Kind::Method),
        ("Two", Kind::Interface),
        ("Two.b", Kind::Method),
        ("Three", Kind::Class),
        ("Three.c", Kind::Field),
        ("Four", Kind::Enum),
        ("Four.D", Kind::Field),
        ("Four.E", Kind::Field),
        ("Five", Kind::Class),
        ("Five.Companion", Kind::Class),
        ("Five.Companion.f", Kind::Method),
    ];
    assert_eq!(found[..members.len()], members);
    let contract = |text: &str, of| reading_of(Language::Kotlin, text).contract(of).unwrap().canon;
    assert_eq!(contract(text, "Two"), contract("interface Two {\n    fun b(): Int\n}\n", "Two"));
    assert_eq!(&*reading.contract("g").unwrap().text, "(then: () -> Int = { 1 })");
}
