//! Callers and callees within a file.

use provost::syntax::{Form, Language, Reading, Receiver, Target};

use super::reading_of;

/// Edges as `caller -> callee`; what is not in the file has a question mark.
fn edges(reading: &Reading) -> Vec<String> {
    let edge = |edge: provost::syntax::Edge<'_>| {
        let callee = match edge.target {
            Target::Here(at) => reading.symbols[at as usize].path.to_string(),
            Target::Elsewhere(name) => format!("?{name}"),
        };
        format!("{} -> {callee}", reading.symbols[edge.caller as usize].path)
    };
    reading.edges().into_iter().map(edge).collect()
}

#[test]
fn this_and_super_mean_the_class_around() {
    let reading = reading_of(
        Language::TypeScript,
        "class A { m() {} n() {} }
         class B extends A { m() { this.m(); this.n(); super.m(); [1].map(() => this.n()); } k = () => this.m(); }
         class C { m() { other.m(); } }
         const o = { f() { this.g(); }, g: () => 1 };",
    );
    assert_eq!(
        edges(&reading),
        ["B.m -> B.m", "B.m -> A.n", "B.m -> A.m", "B.m -> ?map", "B.k -> B.m", "C.m -> ?m", "o.f -> o.g"]
    );
}

#[test]
fn the_nearest_of_several_namesakes_is_meant() {
    let reading = reading_of(
        Language::TypeScript,
        "function f() {} function outer() { function f() {} f(); }
         class K { f() { f(); } static s() { K.s(); ns.inner.deep(); } }
         namespace ns { export namespace inner { export function deep() { f(); deep(); } } }",
    );
    assert_eq!(
        edges(&reading),
        [
            "outer -> outer.f",
            "K.f -> f",
            "K.s -> K.s",
            "K.s -> ns.inner.deep",
            "ns.inner.deep -> f",
            "ns.inner.deep -> ns.inner.deep"
        ]
    );
}

#[test]
fn python_methods_call_each_other_through_self_cls_and_super() {
    let reading = reading_of(
        Language::Python,
        "class A:
    def m(self): pass
class B(A):
    def n(self):
        self.m()
        super().m()
        sorted(xs, key=lambda x: self.k(x))
    @classmethod
    def k(cls):
        cls.k()
        return [helper(i) for i in cls.m()]
def helper(x): A().m(); return B()
class C(B):
    pass
",
    );
    assert_eq!(
        edges(&reading),
        [
            "B.n -> A.m",
            "B.n -> ?super",
            "B.n -> ?sorted",
            "B.n -> B.k",
            "B.k -> ?classmethod",
            "B.k -> B.k",
            "B.k -> helper",
            "B.k -> A.m",
            "helper -> A.m",
            "helper -> A",
            "helper -> B"
        ]
    );
}

#[test]
fn a_receiver_that_nobody_knows_leads_to_the_only_method_of_that_name() {
    let one = reading_of(
        Language::TypeScript,
        "class A { go() {} } function go2() {} function f(a) { a.go(); a.go2(); }",
    );
    assert_eq!(edges(&one), ["f -> A.go", "f -> ?go2"], "and never to a function");
    let two =
        reading_of(Language::TypeScript, "class A { go() {} } class B { go() {} } function f(a) { a.go(); }");
    assert_eq!(edges(&two), ["f -> ?go"]);
}

#[test]
fn classes_that_extend_each_other_are_looked_through_once() {
    let reading = reading_of(Language::Python, "class A(B):\n  def f(self): self.g()\nclass B(A): pass\n");
    assert_eq!(edges(&reading), ["A.f -> ?g"]);
}

#[test]
fn calls_say_how_they_are_made_and_through_what() {
    let reading = reading_of(
        Language::Tsx,
        "@dec class D { @log() m(@inject() a) {} }
         function f() { g(); new a.b.C(); x.y.z(); this.q.r(); w()(); tag`x`; a['k'](); return <Foo.Bar x={() => h()}><p/></Foo.Bar>; }
         g();",
    );
    let calls: Vec<_> = reading
        .calls
        .iter()
        .map(|call| {
            let caller = call.caller.map(|at| &*reading.symbols[at as usize].path);
            (caller, &*call.callee.name, call.callee.receiver.clone(), call.callee.form)
        })
        .collect();
    let path = |path: &str| Receiver::Path(path.into());
    assert_eq!(
        calls,
        [
            (Some("D"), "dec", Receiver::None, Form::Decorator),
            (Some("D.m"), "log", Receiver::None, Form::Decorator),
            (Some("D.m"), "inject", Receiver::None, Form::Decorator),
            (Some("f"), "g", Receiver::None, Form::Plain),
            (Some("f"), "C", path("a.b"), Form::New),
            (Some("f"), "z", path("x.y"), Form::Plain),
            (Some("f"), "r", Receiver::Other, Form::Plain),
            (Some("f"), "w", Receiver::None, Form::Plain),
            (Some("f"), "tag", Receiver::None, Form::Tag),
            (Some("f"), "k", path("a"), Form::Plain),
            (Some("f"), "Bar", path("Foo"), Form::Jsx),
            (Some("f"), "h", Receiver::None, Form::Plain),
            (None, "g", Receiver::None, Form::Plain),
        ]
    );
    assert_eq!(edges(&reading).last().unwrap(), "f -> ?h", "the module's own calls are nobody's");
}

#[test]
fn members_that_are_added_later_belong_to_what_they_are_added_to() {
    let reading = reading_of(
        Language::JavaScript,
        "function Old() { this.x = 1; } Old.prototype.go = function () { this.stop(); }; Old.make = () => new Old();
         Old.prototype.stop = function () {};",
    );
    let paths: Vec<&str> = reading.symbols.iter().map(|symbol| &*symbol.path).collect();
    assert_eq!(paths, ["Old", "Old.go", "Old.make", "Old.stop"]);
    assert!(reading.is_within(1, 0) && reading.is_within(3, 0) && !reading.is_within(0, 1));
    assert_eq!(edges(&reading), ["Old.go -> Old.stop", "Old.make -> Old"]);
}
