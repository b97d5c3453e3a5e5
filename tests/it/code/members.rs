//! Calls of members of a value that is a part of another one, and of what makes such a part.

use provost::graph::FoundBy;

use crate::support::graphs::{assert_edges, graph_of, symbol};

#[test]
fn a_field_of_a_tuple_struct_has_its_type() {
    let store = "pub struct Store; impl Store { pub fn total(&self) {} pub fn size(&self) {} }\n";
    let main = "mod store; use store::Store;\n\
                /// Keeps.\npub struct Keeper(/** The store. */ pub(crate) Store, Box<Store>, u32);\n\
                impl Keeper {\n\
                fn first(&self) { self.0.total() }\n\
                fn second(&self) { self.1.size() }\n\
                fn number(&self) { self.2.total() }\n\
                fn bound(&self) { let it = &self.0; it.size() }\n\
                }\n\
                struct Outer(Keeper);\n\
                impl Outer { fn deep(&self) { self.0.0.total(); self.0.first() } }\n\
                fn beside(it: Keeper) { it.0.total() }\n\
                enum State { Kept(Store), Gone }\n\
                impl State { fn none(&self) { self.0.total() } }\n";
    let graph = graph_of(&[("src/store.rs", store), ("src/main.rs", main)]);
    for (caller, callee) in [
        ("Keeper.first", "src/store.rs:Store.total"),
        ("Keeper.second", "src/store.rs:Store.size"),
        ("Keeper.bound", "src/store.rs:Store.size"),
        ("beside", "src/store.rs:Store.total"),
    ] {
        let found = graph.callees_found(&symbol(&format!("src/main.rs:{caller}")));
        assert_eq!(found, [(symbol(callee), FoundBy::Rules)], "{caller}");
    }
    let deep = graph.callees_found(&symbol("src/main.rs:Outer.deep"));
    let sure = |it: &str| (symbol(it), FoundBy::Rules);
    assert_eq!(deep, [sure("src/store.rs:Store.total"), sure("src/main.rs:Keeper.first")]);
    let number = graph.callees_found(&symbol("src/main.rs:Keeper.number"));
    assert_eq!(number, [(symbol("src/store.rs:Store.total"), FoundBy::Guess)], "a number has no such method");
}

#[test]
fn a_variable_that_is_declared_keeps_its_type_in_python_and_any_other_does_not() {
    let main = "from other import make_other\n\nclass A:\n    def run(self): pass\n\nclass B:\n    def run(self): pass\n\n\
                def declared(x):\n    a: A = x\n    a = make_other()\n    a.run()\n\n\
                def plain(x):\n    a = A()\n    a = make_other()\n    a.run()\n\n\
                def parameter(a: A):\n    a = make_other()\n    a.run()\n\n\
                def untyped(a):\n    a.run()\n    a = A()\n";
    let other = "def make_other():\n    return unknown()\n";
    let graph = graph_of(&[("main.py", main), ("other.py", other)]);
    let found = |caller: &str| graph.callees_found(&symbol(&format!("main.py:{caller}")));
    let sure = (symbol("main.py:A.run"), FoundBy::Rules);
    assert!(found("declared").contains(&sure), "{:?}", found("declared"));
    for caller in ["plain", "parameter", "untyped"] {
        assert!(!found(caller).contains(&sure), "{caller}: {:?}", found(caller));
    }
}

#[test]
fn what_makes_a_field_of_cpp_is_called_and_a_value_that_may_be_a_copy_is_a_guess() {
    let store = "#pragma once\nnamespace shop {\nclass Store { public: explicit Store(int size); Store(int a, int b); int total(); };\n\
                 class Plain { public: int size; };\n}\n";
    let keeper = "#include \"store.hpp\"\n#include <memory>\nnamespace shop {\n\
                  class Keeper {\npublic:\n Keeper(int size);\n Keeper(int a, Store other);\n Keeper(Store* it);\n Keeper();\n\
                 private:\n Store store_;\n Store twin_{1, 2};\n Store made_ = Store(3);\n Store* at_;\n Store& by_;\n\
                 std::unique_ptr<Store> kept_;\n Plain plain_;\n int size_;\n};\n}\n";
    let code = "#include \"keeper.hpp\"\nnamespace shop {\n\
                Keeper::Keeper(int size) : store_(size), plain_{1}, size_(size) {}\n\
                Keeper::Keeper(int a, Store other) : store_(std::move(other)), size_(a) {}\n\
                Keeper::Keeper(Store* it) : at_(it), by_(*it), kept_(it) {}\n\
                Keeper::Keeper() : store_(1, 2) {}\n}\n";
    let graph = graph_of(&[("store.hpp", store), ("keeper.hpp", keeper), ("keeper.cpp", code)]);
    let found = |caller: &str| -> Vec<(String, FoundBy)> {
        let all = graph.callees_found(&symbol(caller)).into_iter().map(|(it, by)| (it.to_string(), by));
        all.filter(|(it, _)| it.contains("Store") || it.contains("Plain")).collect()
    };
    let made = |by: FoundBy| ("store.hpp:shop.Store.Store".to_owned(), by);
    assert_eq!(found("keeper.hpp:shop.Keeper.twin_"), [made(FoundBy::Rules)]);
    assert_eq!(found("keeper.hpp:shop.Keeper.made_"), [made(FoundBy::Rules)]);
    assert_eq!(
        found("keeper.cpp:shop.Keeper.Keeper"),
        [made(FoundBy::Rules)],
        "of all overloads, which are one symbol"
    );
    let one = |made: &str| {
        let code = format!("#include \"keeper.hpp\"\nnamespace shop {{\nKeeper::Keeper({made}) {{}}\n}}\n");
        let graph = graph_of(&[("store.hpp", store), ("keeper.hpp", keeper), ("keeper.cpp", &code)]);
        let all = graph.callees_found(&symbol("keeper.cpp:shop.Keeper.Keeper"));
        let all = all.into_iter().map(|(it, by)| (it.to_string(), by));
        all.filter(|(it, _)| it.contains("Store") || it.contains("Plain")).collect::<Vec<_>>()
    };
    assert_eq!(one("int size) : store_(size), plain_{1}, size_(size"), [made(FoundBy::Rules)]);
    assert_eq!(one("const std::string& path) : store_(path"), [made(FoundBy::Rules)]);
    assert_eq!(one(") : store_(1, 2"), [made(FoundBy::Rules)]);
    for copied in
        ["Store other) : store_(std::move(other)", "Store& other) : store_(other", "It it) : store_(it.store"]
    {
        assert_eq!(one(copied), [made(FoundBy::Guess)], "{copied}");
    }
    assert_eq!(
        one("Store* it) : at_(it), by_(*it), kept_(it"),
        [],
        "no instance is made for a pointer or a reference"
    );
}

#[test]
fn in_csharp_a_type_with_parameters_is_told_from_one_without_that_has_its_name() {
    let plain = "namespace Shop; public partial class Store { public int Total() { return 1; } public void Run() { Total(); Size(); } }\n\
                 class Near { Store<int> far; void Go() { far.Total(); far.Only(); new Store<int>(); } }\n";
    let generic = "namespace Shop; public class Store<T> { public int Total() { return 2; } public int Size() { return 3; } public int Only() { return 4; } }\n";
    let more = "namespace Shop; public partial class Store { public int Size() { return 5; } }\n";
    let main =
        "namespace Shop; class Main { void Go(Store one, Store<int> two) { one.Total(); two.Total(); } }\n";
    let files = [("Store.cs", plain), ("StoreOfT.cs", generic), ("Yet.More.cs", more), ("Main.cs", main)];
    let graph = graph_of(&files);
    let found = |graph: &provost::graph::Graph, caller: &str| -> Vec<(String, FoundBy)> {
        let all = graph.callees_found(&symbol(caller)).into_iter();
        all.map(|(it, by)| (it.to_string(), by)).filter(|(it, _)| !it.starts_with("?:")).collect()
    };
    let of = |it: &str, by: FoundBy| (it.to_owned(), by);
    let (sure, guess) = (FoundBy::Rules, FoundBy::Guess);
    let within = found(&graph, "Store.cs:Store.Run");
    assert_eq!(
        within,
        [of("Store.cs:Store.Total", sure), of("Yet.More.cs:Store.Size", sure)],
        "the parts of one type"
    );
    let near = found(&graph, "Store.cs:Near.Go");
    assert!(near.contains(&of("StoreOfT.cs:Store.Total", guess)), "{near:?}");
    assert!(near.contains(&of("StoreOfT.cs:Store", guess)), "{near:?}");
    assert!(!near.iter().any(|(it, by)| it.starts_with("Store.cs") && *by == sure), "{near:?}");
    let far = found(&graph, "Main.cs:Main.Go");
    assert!(
        far.contains(&of("StoreOfT.cs:Store.Total", guess))
            && far.contains(&of("Store.cs:Store.Total", guess)),
        "{far:?}"
    );
    // Without the one that takes types, nothing is in doubt.
    let near = "namespace Shop; public class Store { public int Total() { return 1; } }\nclass Near { void Go(Store it) { it.Total(); } }\n";
    let graph = graph_of(&[
        ("Store.cs", near),
        ("Other.cs", "namespace Other; public class Store<T> { public int Total() { return 2; } }\n"),
    ]);
    assert_eq!(found(&graph, "Store.cs:Near.Go"), [of("Store.cs:Store.Total", sure)]);
}

#[test]
fn this_is_the_class_in_what_has_its_this_alone() {
    let main = "class Keeper {\n  go() {}\n  shop = new Shop();\n\
                  method() { this.go(); [1].map(() => this.go()); const run = () => this.go(); }\n\
                  field = () => this.go();\n  own = function () { this.go(); };\n\
                  callback() { run(function () { this.go(); }); }\n\
                  object() { return { f() { this.go(); } }; }\n\
                  inner() { function f() { this.go(); } }\n\
                  value() { const f = function () { this.go(); }; }\n\
                  path() { run(function () { this.shop.go(); }); }\n\
                  back = (x) => function () { this.go(); };\n\
                  nameless() { return class extends Shop { x = this.go(); static { this.go(); } }; }\n\
                  static { this.all(); use({ f() { this.go(); } }); }\n  static all() {}\n}\n\
                class Shop { go() {} }\n\
                function Old() {}\nOld.prototype.go = function () {};\nOld.prototype.all = function () { this.go(); };\n";
    assert_edges(
        &graph_of(&[("main.js", main)]),
        &[
            "main.js:Keeper -> ?:use",
            "main.js:Keeper -> main.js:Keeper.all",
            "main.js:Keeper.back -> ?:go",
            "main.js:Keeper.callback -> ?:go",
            "main.js:Keeper.callback -> ?:run",
            "main.js:Keeper.f -> ?:go",
            "main.js:Keeper.field -> main.js:Keeper.go",
            "main.js:Keeper.inner.f -> ?:go",
            "main.js:Keeper.method -> ?:map",
            "main.js:Keeper.method -> main.js:Keeper.go",
            "main.js:Keeper.method.run -> main.js:Keeper.go",
            "main.js:Keeper.nameless -> ?:go",
            "main.js:Keeper.object.f -> ?:go",
            "main.js:Keeper.own -> main.js:Keeper.go",
            "main.js:Keeper.path -> ?:go",
            "main.js:Keeper.path -> ?:run",
            "main.js:Keeper.shop -> main.js:Shop",
            "main.js:Keeper.value.f -> ?:go",
            "main.js:Old.all -> main.js:Old.go",
        ],
    );
}
