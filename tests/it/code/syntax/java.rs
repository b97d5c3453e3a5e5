//! Java: what is found in a file with every construct, written down from its text.

use provost::syntax::{Kind, Language};

use super::{assert_rows, reading_of};

const TEXT: &str = r##"/* Licence */
package com.acme.shop;

import java.util.List;
import java.util.*;
import static com.acme.Util.helper;
import static com.acme.Util.*;
import com.acme.Outer.Inner;

/** A store. */
@Deprecated
// between
@SuppressWarnings("x")
public abstract class Store<T extends Comparable<T>> extends Base<T> implements Keeper, java.io.Closeable {
    /** Most. */
    public static final int MOST = 1, LEAST = 0;
    private final Cache<String> cache = new Cache<>(), other;
    static { init(); }
    { helper(); }

    public Store(int a, final String... more) throws java.io.IOException { this(a); super.run(); }

    @Override
    public <U> List<U> find(@Nullable String key, int[] n) { var x = new Thing(); x.go(); return cache.get(key).second(); }
    public List<T> find(String key) { this.cache.put(key); Store.open(); for (Item it : items) it.run(); return null; }
    abstract void none();
    int arr()[] { return null; }
    class Inner { void deep() { find(null); } }
    static class Nested {}
    enum State implements Keeper {
        /** Open. */
        OPEN("a") { int f() { return 1; } },
        @Deprecated PAID;
        private int v;
        State(String a) {}
        int f() { return 0; }
    }
    interface Keeper<K> extends A, B { int N = 2; void keep(K k); default void twice() { keep(null); } static int s() { return 1; } }
    record Point(int x, @Foo int... y) implements A { Point { check(x); } Point(int a) { this(a, 2); } double len() { return x; } static int q; }
    @interface Mark { String value() default "a"; int[] n(); int K = 1; }
    sealed interface Shape permits A, B {}
    void anon() {
        Runnable r = new Runnable() { int c; @Override public void run() { this.go(); helper(); } };
        class Local { void in() {} }
        Function<String, Integer> f = s -> s.length();
        list.forEach(Store::open); list.map(this::find);
        if (o instanceof Thing t && t.ok()) {}
        switch (o) { case Circle c -> c.go(); case Point(int x, var y) -> y.go(); default -> {} }
        try (Reader r2 = open()) { r2.read(); } catch (IOException | Foo e) { e.print(); }
        outer.new Inner(); new a.b.C(); ((Thing) o).go(); foo().bar().baz(); "s".length(); super.go(); Outer.this.go(); a[0].x();
        int y = switch (k) { case 1: yield go(); default: yield 2; };
    }
}
"##;

/// Path, kind, how its source begins and ends, and its contract; empty for one that declares nothing.
const ROWS: &[(&str, Kind, &str, &str, &str)] = &[
    (
        "Store",
        Kind::Class,
        "/** A store. *",
        ";\n    }\n}",
        "abstract class<T extends Comparable<T>> extends Base<T> implements Keeper, java.io.Closeable; (int a, String... more) throws java.io.IOException",
    ),
    ("Store.MOST", Kind::Field, "/** Most. */", "MOST = 1", "static int"),
    ("Store.LEAST", Kind::Field, "LEAST = 0;", "EAST = 0;", "static int"),
    ("Store.cache", Kind::Field, "private final", "Cache<>()", "Cache<String>"),
    ("Store.other", Kind::Field, "other;", "other;", "Cache<String>"),
    (
        "Store.constructor",
        Kind::Constructor,
        "public Store(i",
        ".run(); }",
        "(int a, String... more) throws java.io.IOException",
    ),
    (
        "Store.find",
        Kind::Method,
        "@Override",
        "cond(); }",
        "<U> List<U> (String key, int[] n); List<T> (String key)",
    ),
    ("Store.none", Kind::Method, "abstract void", "d none();", "abstract void ()"),
    ("Store.arr", Kind::Method, "int arr()[] {", "n null; }", "int ()[]"),
    ("Store.Inner", Kind::Class, "class Inner {", "ull); } }", "class"),
    ("Store.Inner.deep", Kind::Method, "void deep() {", "(null); }", "void ()"),
    ("Store.Nested", Kind::Class, "static class N", "Nested {}", "static class"),
    ("Store.State", Kind::Enum, "enum State imp", "; }\n    }", "enum implements Keeper { OPEN, PAID }"),
    ("Store.State.OPEN", Kind::Field, "/** Open. */", "rn 1; } }", ""),
    ("Store.State.OPEN.f", Kind::Method, "int f() { retu", "turn 1; }", "int ()"),
    ("Store.State.PAID", Kind::Field, "@Deprecated PA", "ated PAID", ""),
    ("Store.State.v", Kind::Field, "private int v;", "te int v;", "int"),
    ("Store.State.constructor", Kind::Constructor, "State(String a", "ing a) {}", "(String a)"),
    ("Store.State.f", Kind::Method, "int f() { retu", "turn 0; }", "int ()"),
    (
        "Store.Keeper",
        Kind::Interface,
        "interface Keep",
        "rn 1; } }",
        "interface<K> extends A, B { void keep(K k); }",
    ),
    ("Store.Keeper.N", Kind::Field, "int N = 2;", "nt N = 2;", "int"),
    ("Store.Keeper.keep", Kind::Method, "void keep(K k)", "eep(K k);", "void (K k)"),
    ("Store.Keeper.twice", Kind::Method, "default void t", "(null); }", "void ()"),
    ("Store.Keeper.s", Kind::Method, "static int s()", "turn 1; }", "static int ()"),
    (
        "Store.Point",
        Kind::Class,
        "record Point(i",
        "int q; }",
        "record(int x, int... y) implements A; (int a)",
    ),
    ("Store.Point.x", Kind::Field, "int x", "int x", "int"),
    ("Store.Point.y", Kind::Field, "@Foo int... y", "int... y", "int"),
    ("Store.Point.constructor", Kind::Constructor, "Point { check(", "eck(x); }", "(int a)"),
    ("Store.Point.len", Kind::Method, "double len() {", "turn x; }", "double ()"),
    ("Store.Point.q", Kind::Field, "static int q;", "ic int q;", "static int"),
    (
        "Store.Mark",
        Kind::Interface,
        "@interface Mar",
        "K = 1; }",
        "@interface { String value() default \"a\"; int[] n(); }",
    ),
    ("Store.Mark.value", Kind::Method, "String value()", "ault \"a\";", "String default \"a\""),
    ("Store.Mark.n", Kind::Method, "int[] n();", "nt[] n();", "int[]"),
    ("Store.Mark.K", Kind::Field, "int K = 1;", "nt K = 1;", "int"),
    ("Store.Shape", Kind::Interface, "sealed interfa", "s A, B {}", "sealed interface permits A, B"),
    ("Store.anon", Kind::Method, "void anon() {", "};\n    }", "void ()"),
    ("Store.anon.Local", Kind::Class, "class Local {", "in() {} }", "class"),
    ("Store.anon.Local.in", Kind::Method, "void in() {}", "d in() {}", "void ()"),
];

#[test]
fn everything_in_a_java_file_is_found_with_its_range_and_its_contract_and_nothing_else() {
    assert_rows(Language::Java, TEXT, ROWS);
}

#[test]
fn overloads_of_java_are_one_symbol_that_has_a_definition_for_each() {
    let reading = reading_of(Language::Java, TEXT);
    assert_eq!(reading.find("Store.find").len(), 2);
    assert_eq!(reading.find("com.acme.shop.Store").len(), 1, "by its full name");
    assert_eq!(reading.find("Store.Point.constructor").len(), 2);
}

#[test]
fn a_contract_of_java_is_the_same_however_it_is_written() {
    let canon = |text: &str| {
        let text = format!("package p;\nclass A {{\n{text}\n}}\n");
        reading_of(Language::Java, &text).contract("A.f").unwrap().canon
    };
    let one = canon("<T> List<T> f(int a, String... b) throws E { return null; }");
    for same in [
        "/** Doc. */\n@Override\npublic final <T> List<T> f(\n    final int a, // first\n    @Nullable String... b\n) throws E {\n}",
        "synchronized < T > List < T > f( int a , String ... b ) throws E { }",
    ] {
        assert_eq!(canon(same), one, "{same}");
    }
    for other in [
        "<T> List<T> f(int a, String[] b) throws E { return null; }",
        "static <T> List<T> f(int a, String... b) throws E { return null; }",
        "<T> List<T> f(int a, String... b) { return null; }",
        "<T> Set<T> f(int a, String... b) throws E { return null; }",
        "void f() {}",
    ] {
        assert_ne!(canon(other), one, "{other}");
    }
}

#[test]
fn a_class_without_a_name_and_a_lambda_belong_to_the_method_around() {
    let text = "class A {\n  Runnable r = new Runnable() { public void run() { f(); } };\n  void f() {}\n  void g() {\n    new B() {\n      \
                int n;\n      void h() { f(); h(); this.h(); n.i(); }\n    };\n    all.forEach(it -> f());\n  }\n}\n";
    let reading = reading_of(Language::Java, text);
    assert!(reading.is_whole());
    let paths: Vec<&str> = reading.symbols.iter().map(|it| &*it.path).collect();
    assert_eq!(paths, ["A", "A.r", "A.f", "A.g"]);
    let edges = reading.edges();
    let edges: Vec<String> = edges
        .iter()
        .map(|it| {
            let to = match it.target {
                provost::syntax::Target::Here(at) => reading.symbols[at as usize].path.to_string(),
                provost::syntax::Target::Elsewhere(name) => format!("?{name}"),
            };
            format!("{} {to}", reading.symbols[it.caller as usize].path)
        })
        .collect();
    assert_eq!(edges, ["A.r ?Runnable", "A.r A.f", "A.g ?B", "A.g A.f", "A.g ?h", "A.g ?i", "A.g ?forEach"]);
}

#[test]
fn what_a_program_has_written_says_so_in_a_comment_or_by_an_annotation() {
    use provost::syntax::Trouble;
    for text in [
        "// Generated by the protocol buffer compiler.  DO NOT EDIT!\n// source: a.proto\n\npackage p;\nclass A {}\n",
        "// Generated from Expr.g4 by ANTLR 4.13\npackage p;\nclass A {}\n",
        "/* Generated By:JavaCC: Do not edit this line. Parser.java */\npackage p;\nclass A {}\n",
        "/**\n * Autogenerated by Thrift Compiler (0.19.0)\n *\n * DO NOT EDIT UNLESS YOU ARE SURE\n *  @generated\n */\nclass A {}\n",
        "package p;\n\nimport a.B;\n\n/** Doc. */\n@SuppressWarnings(\"all\")\n@javax.annotation.Generated(\"x\")\npublic class A { void f() {} }\n",
    ] {
        let reading = reading_of(Language::Java, text);
        assert_eq!(reading.trouble, [Trouble::Generated], "{text}");
        assert!(reading.symbols.is_empty());
    }
    for text in [
        "package p;\n// Generated by x. DO NOT EDIT.\nclass A {}\n",
        "/* This makes what others have generated. */\npackage p;\nclass A {}\n",
        "package p;\nclass A { @Generated void f() {} }\n",
        "// Quotes:\n/*\n// Generated by the protocol buffer compiler. DO NOT EDIT!\n*/\nclass A {}\n",
    ] {
        assert!(reading_of(Language::Java, text).is_whole(), "{text}");
    }
}
