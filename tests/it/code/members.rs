//! Calls of members of a value that is a part of another one, and of what makes such a part.

use provost::graph::FoundBy;

use crate::support::graphs::{graph_of, symbol};

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
