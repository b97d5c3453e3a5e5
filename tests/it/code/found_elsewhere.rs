//! Calls whose receiver has a name that another thing has as well: a parameter of types, a module, `this`, a base.

use provost::graph::{FoundBy, Graph};

use crate::support::graphs::{graph_of, symbol};

/// What a symbol calls for certain.
fn certain(graph: &Graph, of: &str) -> Vec<String> {
    let found = graph.callees_found(&symbol(of)).into_iter();
    found.filter(|(_, by)| *by == FoundBy::Rules).map(|(it, _)| it.to_string()).collect()
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
