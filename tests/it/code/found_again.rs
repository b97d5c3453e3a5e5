//! Calls whose target was the wrong one of several: members from above, names that a class binds, names that get another value.

use provost::graph::FoundBy;

use crate::support::graphs::{assert_edges, graph_of, symbol};

#[test]
fn a_class_above_in_another_file_comes_before_one_in_this_file() {
    let (a, t) = ("class A:\n def m(self): pass\n", "<?php\ntrait T { function v() {} }\n");
    let python = "from a import A\nclass B:\n def m(self): pass\n\
                  class C(A, B):\n def k(self): self.m()\n";
    let php = "<?php\nclass Base { function v() {} }\n\
               class K extends Base { use T; function m() { $this->v(); } }\n";
    assert_edges(
        &graph_of(&[("a.py", a), ("c.py", python), ("t.php", t), ("k.php", php)]),
        &["c.py:C.k -> a.py:A.m", "k.php:K.m -> t.php:T.v"],
    );
    let base = "class Base { void run() {} }\n";
    let main = "interface Able { default void run() {} }\n\
                class Main extends Base implements Able { void a() { super.run(); } void b() { this.run(); } }\n";
    assert_edges(
        &graph_of(&[("Base.java", base), ("Main.java", main)]),
        &["Main.java:Main.a -> Base.java:Base.run", "Main.java:Main.b -> Base.java:Base.run"],
    );
    let base = "open class Base { open fun run() {} }\n";
    let main = "interface Able { fun run() {} }\n\
                class Main : Base(), Able { fun a() { super.run() }\n fun b() { this.run() } }\n";
    assert_edges(
        &graph_of(&[("Base.kt", base), ("Main.kt", main)]),
        &[
            "Main.kt:Main -> Base.kt:Base",
            "Main.kt:Main.a -> Base.kt:Base.run",
            "Main.kt:Main.b -> Base.kt:Base.run",
        ],
    );
    let base = "class Base { func run() {} }\n";
    let main = "protocol Able {}\nextension Able { func run() {} }\n\
                class Main: Base, Able { func a() { super.run() }\n func b() { self.run() } }\n";
    assert_edges(
        &graph_of(&[("Sources/A/Base.swift", base), ("Sources/A/Main.swift", main)]),
        &[
            "Sources/A/Main.swift:Main.a -> Sources/A/Base.swift:Base.run",
            "Sources/A/Main.swift:Main.b -> Sources/A/Base.swift:Base.run",
        ],
    );
    let module = "module Able\n def run; end\nend\n";
    let main = "class Base\n def run; end\nend\n\
                class Main < Base\n include Able\n def run; super; end\n def a; self.run; end\nend\n\
                class Other < Base\n include Able\n def a; self.run; end\nend\n";
    assert_edges(
        &graph_of(&[("lib/able.rb", module), ("lib/main.rb", main)]),
        &[
            "lib/main.rb:Main.run -> lib/able.rb:Able.run",
            "lib/main.rb:Main.a -> lib/main.rb:Main.run",
            "lib/main.rb:Other.a -> lib/able.rb:Able.run",
        ],
    );
}

#[test]
fn a_class_of_csharp_has_no_members_of_interfaces_in_its_own_file_either() {
    let base = "class Base { public void Run() {} }\n";
    let main = "interface IRun { void Run(); void Twice(); }\n\
                class Main : Base, IRun { void A() { base.Run(); } void B() { this.Run(); } }\n\
                partial class Part : IRun { void A() { this.Twice(); } }\n\
                class Alone : IRun { void A() { this.Twice(); } }\n";
    let more = "partial class Part { public void Twice() {} }\n";
    assert_edges(
        &graph_of(&[("Base.cs", base), ("Main.cs", main), ("More.cs", more)]),
        &[
            "Main.cs:Main.A -> Base.cs:Base.Run",
            "Main.cs:Main.B -> Base.cs:Base.Run",
            "Main.cs:Part.A -> More.cs:Part.Twice",
            "Main.cs:Alone.A -> ?:Twice",
        ],
    );
}

#[test]
fn a_class_that_several_classes_extend_is_asked_behind_all_of_them() {
    let base = "class Base:\n def m(self): pass\n";
    let (a, b) = ("class A(Base): pass\n", "class B(Base):\n def m(self): pass\n");
    let c = "class C(A, B):\n def k(self): self.m()\n def own(it: C): it.m()\n";
    assert_edges(
        &graph_of(&[("c.py", &[base, a, b, c].concat())]),
        &["c.py:C.k -> c.py:B.m", "c.py:C.own -> c.py:B.m"],
    );
    let import = "from base import Base\n";
    assert_edges(
        &graph_of(&[
            ("base.py", base),
            ("a.py", &[import, a].concat()),
            ("b.py", &[import, b].concat()),
            ("c.py", &["from a import A\nfrom b import B\n", c].concat()),
        ]),
        &["c.py:C.k -> b.py:B.m", "c.py:C.own -> b.py:B.m"],
    );
    let ruby = "module Base\n def go; end\nend\nmodule A\n include Base\nend\n\
                module B\n include Base\n def go; end\nend\n\
                class Main\n include B\n include A\n def a; go; end\n def b; self.go; end\nend\n";
    assert_edges(
        &graph_of(&[("lib/main.rb", ruby)]),
        &["lib/main.rb:Main.a -> lib/main.rb:B.go", "lib/main.rb:Main.b -> lib/main.rb:B.go"],
    );
    // A trait gives a class of PHP its members once more.
    let php = "<?php\ntrait T { function v() {} }\nclass Base { use T; function v() {} }\n\
               class K extends Base { use T; function m() { $this->v(); } }\n";
    assert_edges(&graph_of(&[("a.php", php)]), &["a.php:K.m -> a.php:T.v"]);
}

#[test]
fn a_method_of_go_that_is_embedded_less_deep_counts() {
    let main = "package a\ntype Base struct{}\nfunc (b *Base) Run() {}\ntype A struct{ Base }\n\
                type B struct{}\nfunc (b *B) Run() {}\ntype C struct { A; B }\nfunc (c *C) Go() { c.Run() }\n";
    assert_edges(&graph_of(&[("a.go", main)]), &["a.go:C.Go -> a.go:B.Run"]);
}

#[test]
fn what_a_class_has_from_above_comes_before_what_is_further_out() {
    let base = "class Base { void run() {} }\n";
    let main = "class Outer { void run() {} void own() {}\n\
                class Inner extends Base { void a() { run(); } void b() { own(); } }\n\
                class Other { void a() { run(); } } }\n";
    assert_edges(
        &graph_of(&[("Base.java", base), ("Outer.java", main)]),
        &[
            "Outer.java:Outer.Inner.a -> Base.java:Base.run",
            "Outer.java:Outer.Inner.b -> Outer.java:Outer.own",
            "Outer.java:Outer.Other.a -> Outer.java:Outer.run",
        ],
    );
    let base = "open class Base { open fun run() {} }\n";
    let main = "fun run() {}\nfun own() {}\nclass Main : Base() { fun a() { run() }\n fun b() { own() } }\n";
    assert_edges(
        &graph_of(&[("Base.kt", base), ("Main.kt", main)]),
        &[
            "Main.kt:Main -> Base.kt:Base",
            "Main.kt:Main.a -> Base.kt:Base.run",
            "Main.kt:Main.b -> Main.kt:own",
        ],
    );
    let base = "class Base\n def go; end\nend\n";
    let main = "def go; end\ndef own; end\nclass Main < Base\n def a; go; end\n def b; own; end\nend\n";
    assert_edges(
        &graph_of(&[("lib/base.rb", base), ("lib/main.rb", main)]),
        &["lib/main.rb:Main.a -> lib/base.rb:Base.go", "lib/main.rb:Main.b -> lib/main.rb:own"],
    );
}

#[test]
fn a_name_that_a_class_of_python_binds_is_known_behind_the_statement() {
    let main = "def helper(): pass\ndef two(): pass\ndef item(): pass\nclass Item: pass\n\
                class K:\n helper = helper()\n a, two = two()\n item: Item = item()\n again = helper()\n";
    assert_edges(
        &graph_of(&[("a.py", main)]),
        &[
            "a.py:K.helper -> a.py:helper",
            "a.py:K.a -> a.py:two",
            "a.py:K.item -> a.py:item",
            "a.py:K.again -> a.py:K.helper",
        ],
    );
}

#[test]
fn decorators_and_default_values_see_the_names_of_the_class_around() {
    let main = "def cached(f): pass\nclass K:\n @cached\n def cached(f): pass\n\
                \x20@cached\n def bare(self): pass\n\
                \x20@cached(1)\n def called(self): pass\n\
                \x20def given(self, x=cached(1)): pass\n\
                \x20late = lambda x=cached(1): x\n\
                \x20def later(self, x=lambda: cached(1)): cached(2)\n\
                \x20first = [x for x in cached(1)]\n\
                \x20then = [y for x in z for y in cached(1)]\n\
                \x20@cached\n class Inner: pass\n\
                @cached\nclass L:\n def cached(f): pass\n";
    assert_edges(
        &graph_of(&[("a.py", main)]),
        &[
            "a.py:K.cached -> a.py:cached",
            "a.py:K.bare -> a.py:K.cached",
            "a.py:K.called -> a.py:K.cached",
            "a.py:K.given -> a.py:K.cached",
            "a.py:K.late -> a.py:K.cached",
            "a.py:K.later -> a.py:cached",
            "a.py:K.first -> a.py:K.cached",
            "a.py:K.then -> a.py:cached",
            "a.py:K.Inner -> a.py:K.cached",
            "a.py:L -> a.py:cached",
        ],
    );
}

#[test]
fn what_is_asked_for_a_further_class_in_php_keeps_the_members_of_its_own() {
    let main = "<?php\nclass Foo { function own() {} }\nclass Bar extends Foo { function only() {} }\n\
                class Able { function able() {} }\n\
                function outside(Foo $s) { if ($s instanceof \\Countable) { $s->own(); } }\n\
                function below(Foo $s) { if ($s instanceof Bar) { $s->only(); } }\n\
                function both(Foo $s) { if ($s instanceof Able && $s instanceof Bar) { $s->only(); $s->able(); $s->own(); } }\n\
                function neither(Foo $s) { if ($s instanceof Bar) { $s->none(); } }\n\
                function given(Foo $s) { if ($s instanceof Bar) { $t = $s; $t->only(); } }\n";
    assert_edges(
        &graph_of(&[("a.php", main)]),
        &[
            "a.php:outside -> a.php:Foo.own",
            "a.php:below -> a.php:Bar.only",
            "a.php:both -> a.php:Bar.only",
            "a.php:both -> a.php:Able.able",
            "a.php:both -> a.php:Foo.own",
            "a.php:neither -> ?:none",
            "a.php:given -> a.php:Bar.only",
        ],
    );
}

/// Asserts that a call is there, and that it is no more than a guess.
fn assert_guess(text: &str, caller: &str, callee: &str) {
    let graph = graph_of(&[("a.php", text)]);
    let found = graph.callees_found(&symbol(caller));
    assert!(found.iter().any(|(it, by)| it.to_string() == callee && *by == FoundBy::Guess), "{found:?}");
}

#[test]
fn the_first_value_that_a_branch_of_php_gives_to_a_name_counts() {
    let main = "<?php\nclass Square { function only() {} }\nclass Circle { function own() {} }\n\
                function set() { global $s; if ($s instanceof Square) { $s = make(); $s->only(); } }\n\
                function each() { global $s; if ($s instanceof Square) { foreach (a() as $s) { $s->only(); } } }\n\
                function outer($s) { if ($s instanceof Circle) { if ($s instanceof Square) { $s = make(); } $s->own(); } }\n\
                function kept() { global $s; if ($s instanceof Square) { $s->only(); } }\n";
    assert_guess(main, "a.php:set", "a.php:Square.only");
    assert_guess(main, "a.php:each", "a.php:Square.only");
    assert_guess(main, "a.php:outer", "a.php:Circle.own");
    let kept = graph_of(&[("a.php", main)]).callees_found(&symbol("a.php:kept"));
    assert_eq!(kept, [(symbol("a.php:Square.only"), FoundBy::Rules)]);
}

#[test]
fn a_name_that_an_operator_changes_has_another_value() {
    let php = "<?php\nclass A { function foo() {} }\nclass B { function foo() {} }\n\
               function other(?A $a) { $a ??= new B; $a->foo(); }\n\
               function made(?A $a) { $a ??= make(); $a->foo(); }\n\
               function same(?A $a) { $a ??= new A; $a->foo(); }\n\
               function text(A $a) { $a .= \"x\"; $a->foo(); }\n";
    assert_edges(
        &graph_of(&[("a.php", php)]),
        &[
            "a.php:other -> a.php:B",
            "a.php:other -> ?:foo",
            "a.php:made -> ?:make",
            "a.php:made -> ?:foo",
            "a.php:same -> a.php:A",
            "a.php:same -> a.php:A.foo",
            "a.php:text -> ?:foo",
        ],
    );
    let script = "class A { foo() {} }\nclass B { foo() {} }\n\
                  function f() { let a = new A(); a += 1; a.foo(); }\n";
    assert_edges(&graph_of(&[("a.js", script)]), &["a.js:f -> a.js:A", "a.js:f -> ?:foo"]);
    let python = "class A:\n def foo(self): pass\nclass B:\n def foo(self): pass\n\
                  def f(a: A):\n a |= 1\n a.foo()\n\
                  class C:\n def __init__(self): self.a = A()\n def g(self):\n  self.a += 1\n  self.a.foo()\n";
    assert_edges(
        &graph_of(&[("a.py", python)]),
        &["a.py:f -> ?:foo", "a.py:C.__init__ -> a.py:A", "a.py:C.g -> ?:foo"],
    );
}
