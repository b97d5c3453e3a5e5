//! Calls whose receiver has a name that another thing has as well: a parameter of types, a module, `this`, a base.

use provost::graph::{FoundBy, Graph};

use crate::support::graphs::{callees, graph_of, symbol};

/// What a symbol calls for certain.
fn certain(graph: &Graph, of: &str) -> Vec<String> {
    let found = graph.callees_found(&symbol(of)).into_iter();
    found.filter(|(_, by)| *by == FoundBy::Rules).map(|(it, _)| it.to_string()).collect()
}

/// What a symbol calls as a guess.
fn guessed(graph: &Graph, of: &str) -> Vec<String> {
    let found = graph.callees_found(&symbol(of)).into_iter();
    found.filter(|(_, by)| *by == FoundBy::Guess).map(|(it, _)| it.to_string()).collect()
}

#[test]
fn a_callback_is_given_nothing_certain_where_the_caller_chooses_the_type() {
    let text = "class Base { go() {} }\nclass Derived extends Base { go() {} }\n\
                function each<T extends Base>(a: T[], then: (t: T) => void) {}\n\
                class Box<T extends Base> {\n\
                each(then: (t: T) => void) {}\nwhole(then: (t: Readonly<T>) => void) {}\n}\n\
                type Then<T extends Base> = (t: T) => void;\n\
                function named(then: Then<Derived>) {}\n\
                function plain(then: (t: Base) => void) {}\n\
                function run(d: Derived[]) { each(d, (t) => t.go()); }\n\
                function boxed(b: Box<Derived>) { b.each((t) => t.go()); }\n\
                function wholly(b: Box<Derived>) { b.whole((t) => t.go()); }\n\
                function by_name() { named((t) => t.go()); }\n\
                function written() { plain((t) => t.go()); }\n";
    let graph = graph_of(&[("main.ts", text)]);
    for (caller, called) in
        [("run", "each"), ("boxed", "Box.each"), ("wholly", "Box.whole"), ("by_name", "named")]
    {
        assert_eq!(certain(&graph, &format!("main.ts:{caller}")), [&format!("main.ts:{called}"), "?:go"]);
    }
    assert_eq!(certain(&graph, "main.ts:written"), ["main.ts:plain", "main.ts:Base.go"]);
}

#[test]
fn the_types_of_a_receiver_in_go_are_no_types_of_their_names() {
    let text = "package a\ntype Node struct{}\nfunc (n Node) Walk() {}\n\
                type Keeper interface { Keep() }\n\
                type Tree[T any] struct{}\n\
                func (t *Tree[Node]) Each(n Node) { n.Walk() }\n\
                func (t *Tree[_]) Other(n Node) { n.Walk() }\n\
                type Pair[K, V Keeper, W any] struct{}\n\
                func (p Pair[A, B, C]) Run(a A, b B, c C) { a.Keep(); b.Keep(); c.Walk() }\n\
                func (l *Late[T]) Run(v T) { v.Keep() }\n\
                type Late[K Keeper] struct{}\n";
    let graph = graph_of(&[("a.go", text)]);
    assert_eq!(certain(&graph, "a.go:Tree.Each"), [""; 0]);
    assert_eq!(certain(&graph, "a.go:Tree.Other"), ["a.go:Node.Walk"]);
    assert_eq!(certain(&graph, "a.go:Pair.Run"), ["a.go:Keeper.Keep"]);
    assert_eq!(certain(&graph, "a.go:Late.Run"), ["a.go:Keeper.Keep"]);
}

#[test]
fn a_parameter_of_types_in_python_is_no_class_of_its_name() {
    let text = "class A:\n    def foo(self): pass\nclass Base:\n    def bar(self): pass\n\
                def free[A](a: A):\n    a.foo()\n    A.foo()\n\
                def quoted[A](a: \"A\"): a.foo()\n\
                def several[*A, **Base](a: A, b: Base):\n    a.foo()\n    b.bar()\n\
                def bound[A: Base](a: A): a.bar()\n\
                def other[B](a: A): a.foo()\n\
                class Box[A]:\n    def put(self, a: A): a.foo()\n";
    let graph = graph_of(&[("a.py", text)]);
    for caller in ["free", "quoted", "several", "Box.put"] {
        assert_eq!(certain(&graph, &format!("a.py:{caller}")), [""; 0], "{caller}");
    }
    assert_eq!(certain(&graph, "a.py:bound"), ["a.py:Base.bar"]);
    assert_eq!(certain(&graph, "a.py:other"), ["a.py:A.foo"]);
}

#[test]
fn super_in_a_bound_and_in_a_value_is_that_of_the_module_in_the_file() {
    let types = "pub trait Keep { fn keep(&self); }\n\
                 pub struct Own { a: u8 }\nimpl Own { pub fn own(&self) {} }\n\
                 pub enum State { Paid, Owed { a: u8 } }\nimpl State { pub fn state(&self) {} }\n";
    let inner = "mod inner {\n\
                 fn bound<T: super::Keep>(t: &T) { t.keep() }\n\
                 fn behind<T>(t: &T) where T: super::Keep { t.keep() }\n\
                 fn outside<T: super::super::Keep>(t: &T) { t.keep() }\n\
                 fn made() { let x = super::Own { a: 1 }; x.own() }\n\
                 fn case() { let x = super::State::Paid; x.state() }\n\
                 fn with_fields() { let x = super::State::Owed { a: 1 }; x.state() }\n\
                 }\n";
    let (lib, a) = (format!("mod a;\n{types}"), format!("{types}{inner}"));
    let graph = graph_of(&[("src/lib.rs", &lib), ("src/a.rs", &a)]);
    for (caller, called) in [
        ("bound", "src/a.rs:Keep.keep"),
        ("behind", "src/a.rs:Keep.keep"),
        ("outside", "src/lib.rs:Keep.keep"),
        ("made", "src/a.rs:Own.own"),
        ("case", "src/a.rs:State.state"),
        ("with_fields", "src/a.rs:State.state"),
    ] {
        assert_eq!(certain(&graph, &format!("src/a.rs:inner.{caller}")), [called], "{caller}");
    }
}

#[test]
fn this_within_a_function_or_a_method_of_an_object_is_not_the_class_around() {
    let text = "class Shop { go() {} }\nclass Other { go() {} }\n\
                class Main {\nshop!: Shop;\neach(then: (s: Shop) => void) {}\n\
                of_object() { return { shop: new Other(), run() { const s = this.shop; s.go(); } }; }\n\
                of_function() { return function () { const s = this.shop; s.go(); }; }\n\
                itself() { return { run() { const it = this; it.each(null); } }; }\n\
                given() { return { run() { this.each((s) => s.go()); } }; }\n\
                of_arrow() { return () => { const s = this.shop; s.go(); }; }\n\
                own() { const s = this.shop; s.go(); }\n}\n\
                class Second {\nset() { return { run() { this.shop = new Other(); } }; }\n\
                run() { this.shop.go(); }\n}\n";
    let graph = graph_of(&[("main.ts", text)]);
    let goes = |caller: &str| {
        let found = certain(&graph, &format!("main.ts:{caller}"));
        found
            .into_iter()
            .filter(|it| it.ends_with("s:Shop.go") || it.ends_with("s:Other.go"))
            .collect::<Vec<_>>()
    };
    for caller in ["Main.of_object", "Main.of_object.run", "Main.of_function", "Main.given", "Second.run"] {
        assert_eq!(goes(caller), [""; 0], "{caller}");
    }
    assert!(!certain(&graph, "main.ts:Main.itself.run").contains(&"main.ts:Main.each".to_owned()));
    for caller in ["Main.of_arrow", "Main.own"] {
        assert_eq!(goes(caller), ["main.ts:Shop.go"], "{caller}");
    }
}

#[test]
fn a_base_is_the_one_whose_namespace_its_constructor_writes() {
    let text = "namespace n1 { struct Base { Base(int) {} }; }\n\
                namespace n2 { struct Base { Base(int) {} }; }\n\
                struct Both : n1::Base, n2::Base { Both() : n1::Base(1), n2::Base(2) {} };\n\
                struct Second : n1::Base, n2::Base { Second() : n2::Base(2) {} };\n\
                struct Bare : n2::Base { Bare() : Base(1) {} };\n\
                struct Outside : boost::Base { Outside() : boost::Base(1) {} };\n\
                using namespace n1;\n\
                struct Used : Base { Used() : n1::Base(1) {} };\n";
    let graph = graph_of(&[("a.cpp", text)]);
    let (one, two) = ("a.cpp:n1.Base.Base", "a.cpp:n2.Base.Base");
    for (caller, called) in [
        ("Both", &[one, two][..]),
        ("Second", &[two]),
        ("Bare", &[two]),
        ("Outside", &["?:Base"]),
        ("Used", &[one]),
    ] {
        assert_eq!(callees(&graph, &format!("a.cpp:{caller}.{caller}")), called, "{caller}");
    }
}

#[test]
fn what_a_trait_does_by_itself_may_be_done_by_its_only_impl() {
    let text = "pub trait Keep { fn more(&self) {} fn twice(&self) { self.more() } fn alone(&self) {} }\n\
                pub struct Store;\nimpl Keep for Store { fn more(&self) {} }\n\
                fn bound<T: Keep>(t: &T) { t.more(); t.alone(); }\n\
                fn behind(t: &dyn Keep) { t.more(); }\n\
                fn own(t: &Store) { t.more(); t.alone(); }\n";
    let graph = graph_of(&[("src/lib.rs", text)]);
    let (declared, code, alone) =
        ("src/lib.rs:Keep.more", "src/lib.rs:Store.Keep.more", "src/lib.rs:Keep.alone");
    for (caller, sure) in
        [("bound", &[declared, alone][..]), ("behind", &[declared]), ("Keep.twice", &[declared])]
    {
        let caller = format!("src/lib.rs:{caller}");
        assert_eq!(
            (certain(&graph, &caller), guessed(&graph, &caller)),
            (sure.iter().map(ToString::to_string).collect(), vec![code.to_owned()]),
            "{caller}"
        );
    }
    assert_eq!(certain(&graph, "src/lib.rs:own"), [code, alone]);
    // A second `impl` makes it one of two.
    let second = format!("{text}pub struct Other;\nimpl Keep for Other {{ fn more(&self) {{}} }}\n");
    assert_eq!(guessed(&graph_of(&[("src/lib.rs", &second)]), "src/lib.rs:bound"), [""; 0]);
}

#[test]
fn a_member_behind_a_base_of_which_nothing_is_known_is_a_guess() {
    let mixins = "class Mixin:\n    def run(self): pass\n\n";
    let text = "from abc import ABC\nfrom elsewhere import Unknown\nfrom mixins import Mixin\n\n\
                class Own(Unknown):\n    def own(self): pass\n    def go(self): self.own()\n\n\
                class Behind(Unknown, Mixin):\n    def go(self): self.run()\n\n\
                class Before(Mixin, Unknown):\n    def go(self): self.run()\n\n\
                class Above(Own, Mixin):\n    def go(self): self.run()\n    def its(self): self.own()\n\n\
                class Empty(ABC, Mixin):\n    def go(self): self.run()\n\n\
                def by_hand(it: Behind): it.run()\n\n\
                def both(it: Behind, other: Before):\n    it.run()\n    other.run()\n";
    let graph = graph_of(&[("mixins.py", mixins), ("main.py", text)]);
    let run = "mixins.py:Mixin.run";
    for behind in ["Behind.go", "Above.go", "by_hand"] {
        assert_eq!(guessed(&graph, &format!("main.py:{behind}")), [run], "{behind}");
    }
    for (known, called) in [
        ("Own.go", "main.py:Own.own"),
        ("Before.go", run),
        ("Above.its", "main.py:Own.own"),
        ("Empty.go", run),
        ("both", run),
    ] {
        assert_eq!(certain(&graph, &format!("main.py:{known}")), [called], "{known}");
    }

    let text = "package a;\nimport other.Unknown;\n\
                interface Named { default void name() {} }\n\
                class Behind extends Unknown implements Named { void go() { this.name(); } }\n\
                class Last implements Named, Unknown { void go() { this.name(); } }\n";
    let graph = graph_of(&[("a/A.java", text)]);
    assert_eq!(guessed(&graph, "a/A.java:Behind.go"), ["a/A.java:Named.name"]);
    assert_eq!(certain(&graph, "a/A.java:Last.go"), ["a/A.java:Named.name"]);
}
