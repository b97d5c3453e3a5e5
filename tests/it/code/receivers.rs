//! Calls of what is known by a bound of a parameter of types, or held by something else.

use provost::graph::FoundBy;

use crate::support::graphs::{assert_edges, graph_of, symbol};

#[test]
fn a_parameter_of_types_has_the_methods_of_its_bound() {
    let store = "pub trait Keeper { fn keep(&self) -> u32; fn twice(&self) -> u32 { self.keep() } }\n";
    let main = "mod store; use store::Keeper;\n\
                fn plain<T: Clone + Keeper>(it: &T) { it.keep(); }\n\
                fn behind<T>(it: T) where T: Send + Keeper { it.keep(); }\n\
                struct Shop<K: Keeper> { keeper: K }\n\
                impl<K: Keeper> Shop<K> { fn run(&self) { self.keeper.twice(); } }\n\
                fn free<T: Clone>(it: T) { it.clone(); }\n";
    assert_edges(
        &graph_of(&[("src/store.rs", store), ("src/main.rs", main)]),
        &[
            "src/store.rs:Keeper.twice -> src/store.rs:Keeper.keep",
            "src/main.rs:plain -> src/store.rs:Keeper.keep",
            "src/main.rs:behind -> src/store.rs:Keeper.keep",
            "src/main.rs:Shop.run -> src/store.rs:Keeper.twice",
            "src/main.rs:free -> ?:clone",
        ],
    );
    let store = "package shop\ntype Keeper interface { Keep() int }\n";
    let main = "package shop\nfunc plain[T Keeper](it T) { it.Keep() }\n\
                type Shop[K Keeper] struct { keeper K }\n\
                func (s *Shop[K]) Run() { s.keeper.Keep() }\n\
                func free[T any](it T) { it.Keep() }\n";
    assert_edges(
        &graph_of(&[("store.go", store), ("main.go", main)]),
        &[
            "main.go:plain -> store.go:Keeper.Keep",
            "main.go:Shop.Run -> store.go:Keeper.Keep",
            "main.go:free -> ?:Keep",
        ],
    );
    let store = "namespace Shop; public class Keeper { public int Keep() { return 1; } }";
    let main = "namespace Shop;\nclass Box<K> where K : Keeper { K keeper; void Run() { keeper.Keep(); } }\n\
                class Main { void Plain<T>(T it) where T : Keeper { it.Keep(); } }\n";
    assert_edges(
        &graph_of(&[("Keeper.cs", store), ("Main.cs", main)]),
        &["Main.cs:Box.Run -> Keeper.cs:Keeper.Keep", "Main.cs:Main.Plain -> Keeper.cs:Keeper.Keep"],
    );
}

#[test]
fn what_an_option_or_a_result_holds_has_its_methods_once_it_is_taken_out() {
    let store = "pub struct Entry; impl Entry { pub fn read(&self) {} pub fn get(&self) {} }\n\
                 pub struct Store { last: Option<Entry> }\n\
                 impl Store {\n\
                 pub fn get(&self) -> Option<&Entry> { self.last.as_ref() }\n\
                 pub fn find(&self) -> Result<Option<Entry>, String> { todo!() }\n\
                 pub fn open() -> std::io::Result<Store> { todo!() }\n\
                 fn own(&self) { self.last.as_ref().unwrap().read(); }\n\
                 }\n";
    let main = "mod store; use store::{Entry, Store};\n\
                struct Main { store: Store, maybe: Option<Store> }\n\
                impl Main {\n\
                fn asked(&self) -> Option<()> { self.store.get()?.read(); None }\n\
                fn unwrapped(&self) { self.store.get().unwrap().read(); }\n\
                fn expected(&self) { let it = self.store.find().expect(\"x\").unwrap(); it.read(); }\n\
                fn bound(&self) { if let Some(it) = self.store.get() { it.read(); } }\n\
                fn otherwise(&self) { let Some(it) = self.maybe.as_ref() else { return }; it.get(); }\n\
                fn opened(&self) -> std::io::Result<()> { Store::open()?.get(); Ok(()) }\n\
                fn mapped(&self) -> Result<(), u8> { Store::open().map_err(|_| 1)?.get(); Ok(()) }\n\
                fn held(&self) { self.maybe.get(); self.store.get().get(); }\n\
                fn given(it: Option<Entry>) { it.unwrap().read(); }\n\
                }\n";
    let graph = graph_of(&[("src/store.rs", store), ("src/main.rs", main)]);
    let edges: Vec<String> = graph
        .edges()
        .into_iter()
        .filter(|(_, callee)| !callee.starts_with("?:"))
        .map(|(caller, callee)| {
            let short = |it: &str| it.rsplit(':').next().unwrap().to_owned();
            format!("{} -> {}", short(&caller), short(&callee))
        })
        .collect();
    let expected = [
        "Main.asked -> Entry.read",
        "Main.asked -> Store.get",
        "Main.bound -> Entry.read",
        "Main.bound -> Store.get",
        "Main.expected -> Entry.read",
        "Main.expected -> Store.find",
        "Main.given -> Entry.read",
        // What holds a value has none of its methods.
        "Main.held -> Store.get",
        "Main.mapped -> Store.get",
        "Main.mapped -> Store.open",
        "Main.opened -> Store.get",
        "Main.opened -> Store.open",
        "Main.otherwise -> Store.get",
        "Main.unwrapped -> Entry.read",
        "Main.unwrapped -> Store.get",
        "Store.own -> Entry.read",
    ];
    assert_eq!(edges, expected);
}

#[test]
fn an_initialiser_that_nobody_has_written_is_the_type_wherever_it_is_defined() {
    let only = "struct Only { let base: Int\n static var one: Only { self.init(base: 1) } }\n";
    let more = "extension Only { static var two: Only { self.init(base: 2) } }\n";
    assert_edges(
        &graph_of(&[("Sources/A/Only.swift", only), ("Sources/A/More.swift", more)]),
        &[
            "Sources/A/Only.swift:Only.one -> Sources/A/Only.swift:Only",
            "Sources/A/More.swift:Only.two -> Sources/A/Only.swift:Only",
        ],
    );
}

#[test]
fn a_type_within_another_one_is_where_it_is_defined_however_many_files_extend_it() {
    let first = "extension Rope { func a() {} }\nextension Rope.Node { func b() {} }\n";
    let append = "extension Rope.Node { mutating func append() { ensureUnique(); _ = Path(height: 1) } }\n";
    let node = "extension Rope { struct Node { typealias Path = Rope.Path } }\n\
                extension Rope.Node { mutating func ensureUnique() {} }\n";
    let path = "extension Rope { typealias Path = RopePath }\nstruct RopePath { let height: Int }\n";
    assert_edges(
        &graph_of(&[
            ("Sources/A/A.swift", first),
            ("Sources/A/Append.swift", append),
            ("Sources/A/Node.swift", node),
            ("Sources/A/Path.swift", path),
            ("Sources/A/Rope.swift", "public struct Rope {}\n"),
        ]),
        &[
            "Sources/A/Append.swift:Rope.Node.append -> Sources/A/Node.swift:Rope.Node.ensureUnique",
            // Another name for a type makes an instance of the type.
            "Sources/A/Append.swift:Rope.Node.append -> Sources/A/Node.swift:Rope.Node.Path",
            "Sources/A/Append.swift:Rope.Node.append -> Sources/A/Path.swift:RopePath",
        ],
    );
}

#[test]
fn a_type_of_swifts_library_has_what_extensions_add_to_its_protocols() {
    let text = "extension StringProtocol { func indented() {}\n func prefix() {}\n func doubled() {} }\nextension Sequence { func total() {} }\n";
    let more = "extension StringProtocol { func doubled() {} }\nextension Collection { func doubled() {} }\n";
    let main = "struct Mine: Collection {}\n\
                struct Main { var name: String; var all: [Int]\n\
                func run(text: Substring) { name.indented(); text.indented(); \"a\".indented() }\n\
                func sum(mine: Mine) { all.total(); mine.total() }\n\
                func unknown() { name.prefix(); name.other(); name.doubled(); Main.total() } }\n";
    assert_edges(
        &graph_of(&[
            ("Sources/A/Text.swift", text),
            ("Sources/A/More.swift", more),
            ("Sources/A/Main.swift", main),
        ]),
        &[
            "Sources/A/Main.swift:Main.run -> Sources/A/Text.swift:StringProtocol.indented",
            "Sources/A/Main.swift:Main.sum -> Sources/A/Text.swift:Sequence.total",
            // The library has a method of this name itself.
            "Sources/A/Main.swift:Main.unknown -> ?:prefix",
            "Sources/A/Main.swift:Main.unknown -> ?:other",
            // Two files add it to the narrowest protocol.
            "Sources/A/Main.swift:Main.unknown -> ?:doubled",
            "Sources/A/Main.swift:Main.unknown -> ?:total",
        ],
    );
}

#[test]
fn a_protocol_of_ones_own_with_the_name_of_one_of_swifts_library_is_not_the_librarys() {
    let main = "struct Main { func sum(mine: Mine) { mine.total() }\nfunc all(others: Others) { others.total() } }\n";
    // The second one is known in its own file alone.
    for protocol in ["protocol", "private protocol"] {
        let own = format!(
            "{protocol} Collection {{}}\nstruct Mine: Collection {{}}\nstruct Others: Sequence {{}}\n"
        );
        assert_edges(
            &graph_of(&[
                ("Sources/A/Text.swift", "extension Sequence { func total() {} }\n"),
                ("Sources/A/Own.swift", &own),
                ("Sources/A/Main.swift", main),
            ]),
            &[
                "Sources/A/Main.swift:Main.all -> Sources/A/Text.swift:Sequence.total",
                "Sources/A/Main.swift:Main.sum -> ?:total",
            ],
        );
    }
    let own = "private protocol Sequence {}\nextension Sequence { func total() {} }\n";
    let main = "struct Main { func run() { \"a\".total() } }\n";
    assert_edges(
        &graph_of(&[("Sources/A/Own.swift", own), ("Sources/A/Main.swift", main)]),
        &["Sources/A/Main.swift:Main.run -> ?:total"],
    );
    // What the library's types keep to is not the protocol of one's own.
    assert_edges(
        &graph_of(&[
            ("Sources/A/Own.swift", "protocol Sequence {}\n"),
            ("Sources/A/Text.swift", "extension Sequence { func total() {} }\n"),
            ("Sources/A/Main.swift", "struct Main { func run() { \"a\".total() } }\n"),
        ]),
        &["Sources/A/Main.swift:Main.run -> ?:total"],
    );
}

#[test]
fn a_member_without_its_type_is_one_of_the_type_that_is_expected() {
    let kind = "enum Kind { case name(Int), other(Int)\nstatic func made(_ a: Int) -> Kind { .name(a) } }\n\
                enum Noise { case name(Int), other(Int)\nstatic func made(_ a: Int) {} }\n";
    let item = "struct Item { var kind: Kind = .name(1)\n\
                var first: Kind { get { .other(2) } }\n\
                func of(a: Bool) throws -> Kind? { if a { return .other(1) }\n\
                switch a { case true: return try a ? .name(2) : .other(3)\n default: return .made(1) } }\n\
                func chosen(a: Bool) -> Kind { switch a { case true: .name(1)\n default: .made(1) } }\n\
                mutating func set() { kind = .made(2); let x: Kind? = .other(3) }\n\
                func hidden(n: Noise) -> Noise { var k: Kind { .name(1) }\n return n }\n\
                func within() -> Kind { let all = [1].each { return .name($0) }\n return all.kind(.made(2)) } }\n";
    assert_edges(
        &graph_of(&[("Sources/A/Kind.swift", kind), ("Sources/A/Item.swift", item)]),
        &[
            "Sources/A/Kind.swift:Kind.made -> Sources/A/Kind.swift:Kind.name",
            "Sources/A/Item.swift:Item.kind -> Sources/A/Kind.swift:Kind.name",
            "Sources/A/Item.swift:Item.first -> Sources/A/Kind.swift:Kind.other",
            "Sources/A/Item.swift:Item.of -> Sources/A/Kind.swift:Kind.other",
            "Sources/A/Item.swift:Item.of -> Sources/A/Kind.swift:Kind.name",
            "Sources/A/Item.swift:Item.of -> Sources/A/Kind.swift:Kind.made",
            "Sources/A/Item.swift:Item.chosen -> Sources/A/Kind.swift:Kind.name",
            "Sources/A/Item.swift:Item.chosen -> Sources/A/Kind.swift:Kind.made",
            "Sources/A/Item.swift:Item.set -> Sources/A/Kind.swift:Kind.made",
            "Sources/A/Item.swift:Item.set -> Sources/A/Kind.swift:Kind.other",
            "Sources/A/Item.swift:Item.hidden -> Sources/A/Kind.swift:Kind.name",
            // What a closure gives back, or a function takes, is not looked at.
            "Sources/A/Item.swift:Item.within -> ?:each",
            "Sources/A/Item.swift:Item.within -> ?:name",
            "Sources/A/Item.swift:Item.within -> ?:kind",
            "Sources/A/Item.swift:Item.within -> ?:made",
        ],
    );
}

#[test]
fn a_call_of_swift_behind_an_operator_is_one_of_the_operand_beside_it() {
    let item = "struct Two { func three() -> Int { 1 } }\n\
                struct One { let two: Two\nfunc one() -> Int { 1 }\nfunc make() -> Two { two }\nfunc same() -> One { self } }\n\
                func other() -> Int { 1 }\nenum Kind { case name(Int) }\n";
    let main = "struct Main { let it: One\nlet maybe: One?\n\
                func bare() { let x = 1 + other() }\n\
                func both() throws { let x = try it.one() + it.make().three() }\n\
                func third(n: Int) { let x = n + n + it.one() }\n\
                func minus() { let x = -it.one() }\n\
                func not() { if !self.it.two.three() {} }\n\
                func product() { let x = 2 * it.make().three() % other() }\n\
                func certainly() { let x = 1 + maybe!.one() - maybe!.same().two.three() }\n\
                func around() { let x = (1 + it.make()).three() }\n\
                func value() { let x = 1 + it.make(); x.three() }\n\
                func member() { let x: Kind = 1 + .name(1) }\n\
                func library() { let x = 1 + \"a\".three() } }\n";
    assert_edges(
        &graph_of(&[("Sources/A/Item.swift", item), ("Sources/A/Main.swift", main)]),
        &[
            "Sources/A/Main.swift:Main.bare -> Sources/A/Item.swift:other",
            "Sources/A/Main.swift:Main.both -> Sources/A/Item.swift:One.one",
            "Sources/A/Main.swift:Main.both -> Sources/A/Item.swift:One.make",
            "Sources/A/Main.swift:Main.both -> Sources/A/Item.swift:Two.three",
            "Sources/A/Main.swift:Main.third -> Sources/A/Item.swift:One.one",
            "Sources/A/Main.swift:Main.minus -> Sources/A/Item.swift:One.one",
            "Sources/A/Main.swift:Main.not -> Sources/A/Item.swift:Two.three",
            "Sources/A/Main.swift:Main.product -> Sources/A/Item.swift:One.make",
            "Sources/A/Main.swift:Main.product -> Sources/A/Item.swift:Two.three",
            "Sources/A/Main.swift:Main.product -> Sources/A/Item.swift:other",
            "Sources/A/Main.swift:Main.certainly -> Sources/A/Item.swift:One.one",
            "Sources/A/Main.swift:Main.certainly -> Sources/A/Item.swift:One.same",
            "Sources/A/Main.swift:Main.certainly -> Sources/A/Item.swift:Two.three",
            // What an operator makes of its operands is not known: these are guesses.
            "Sources/A/Main.swift:Main.around -> Sources/A/Item.swift:One.make",
            "Sources/A/Main.swift:Main.around -> Sources/A/Item.swift:Two.three",
            "Sources/A/Main.swift:Main.value -> Sources/A/Item.swift:One.make",
            "Sources/A/Main.swift:Main.value -> Sources/A/Item.swift:Two.three",
            "Sources/A/Main.swift:Main.member -> ?:name",
            "Sources/A/Main.swift:Main.library -> ?:three",
        ],
    );
}

#[test]
fn a_call_through_a_trait_leads_to_its_declaration_and_to_the_code_of_the_only_impl_as_a_guess() {
    let shape = "pub trait Shape { fn area(&self) -> u32; }\n\
                 pub struct Sq; impl Shape for Sq { fn area(&self) -> u32 { 1 } }\n";
    let circle =
        "use crate::shape; pub struct Circle; impl shape::Shape for Circle { fn area(&self) -> u32 { 1 } }\n";
    let main = "mod shape; mod circle; use shape::Shape;\n\
                fn held(t: &dyn Shape) { t.area(); }\n\
                fn boxed(t: Box<dyn Shape>) { t.area(); }\n\
                fn given(t: impl Shape) { t.area(); }\n\
                fn bound<T: Shape>(t: T) { t.area(); }\n";
    let all = |target: &str| {
        let callers = ["held", "boxed", "given", "bound"];
        callers.map(|caller| format!("src/main.rs:{caller} -> {target}")).to_vec()
    };
    let is = |files: &[(&str, &str)], expected: Vec<String>| {
        assert_edges(&graph_of(files), &expected.iter().map(String::as_str).collect::<Vec<_>>());
    };
    let files = [("src/shape.rs", shape), ("src/circle.rs", circle), ("src/main.rs", main)];
    is(&files, all("src/shape.rs:Shape.area"));
    // Which file has the only one makes no difference.
    let alone = shape.lines().next().unwrap();
    for (files, code) in [
        ([("src/shape.rs", shape), ("src/main.rs", main)].to_vec(), "src/shape.rs:Sq.Shape.area"),
        (
            [("src/shape.rs", alone), ("src/circle.rs", circle), ("src/main.rs", main)].to_vec(),
            "src/circle.rs:Circle.Shape.area",
        ),
    ] {
        is(&files, [all("src/shape.rs:Shape.area"), all(code)].concat());
        let graph = graph_of(&files);
        let found: Vec<(String, FoundBy)> = graph
            .callees_found(&symbol("src/main.rs:held"))
            .into_iter()
            .map(|(path, found)| (path.to_string(), found))
            .collect();
        assert!(found.contains(&("src/shape.rs:Shape.area".to_owned(), FoundBy::Rules)), "{found:?}");
        assert!(found.contains(&(code.to_owned(), FoundBy::Guess)), "{found:?}");
    }
}

#[test]
fn a_call_of_rust_along_a_type_leads_to_the_impl_or_the_bound_that_it_names() {
    let store = "pub trait Keep { fn keep(&self); fn more(&self) {} }\n\
                 pub struct Store; impl Store { pub fn new() -> Self { Store } pub fn keep(&self) {} pub fn only(&self) {} }\n\
                 impl Keep for Store { fn keep(&self) {} }\n";
    let main = "mod store; use store::{Keep, Store};\n\
                fn named(it: &Store) { <Store as Keep>::keep(it); <store::Store as store::Keep>::more(it); }\n\
                fn bound<T: Keep>(it: &T) { T::keep(it); <T as Keep>::more(it); }\n\
                fn bytes(it: &[u8]) { <[u8] as Keep>::keep(it); }\n\
                fn hidden<Store>(it: &Store) { Store::keep(it); }\n\
                fn library() { std::sync::LazyLock::new(1); }\n\
                struct Own; impl Own { fn own(&self) {} }\n\
                mod inner { fn above(it: &super::Own, other: super::store::Store) { it.own(); other.only(); }\n\
                struct Own; impl Own { fn own(&self) {} } fn here(it: &self::Own) { it.own(); } }\n";
    assert_edges(
        &graph_of(&[("src/store.rs", store), ("src/main.rs", main)]),
        &[
            "src/main.rs:named -> src/store.rs:Store.Keep.keep",
            "src/main.rs:named -> src/store.rs:Keep.more",
            "src/main.rs:bound -> src/store.rs:Keep.keep",
            "src/main.rs:bound -> src/store.rs:Store.Keep.keep",
            "src/main.rs:bound -> src/store.rs:Keep.more",
            "src/main.rs:bytes -> src/store.rs:Keep.keep",
            "src/main.rs:bytes -> src/store.rs:Store.Keep.keep",
            "src/main.rs:hidden -> ?:keep",
            "src/main.rs:library -> ?:new",
            "src/main.rs:inner.above -> src/main.rs:Own.own",
            "src/main.rs:inner.above -> src/store.rs:Store.only",
            "src/main.rs:inner.here -> src/main.rs:inner.Own.own",
        ],
    );
}

#[test]
fn a_case_of_a_match_knows_what_is_taken_out_of_the_value() {
    let store = "pub struct Store; impl Store { pub fn only(&self) {} }\n";
    let main = "mod store; use store::Store; pub struct Other; impl Other { pub fn only(&self) {} }\n\
                fn some(it: Option<Store>) { match it { Some(x) => x.only(), None => {} } }\n\
                fn fine(it: Result<Store, Other>) { match it { Ok(x) if x.only() == () => {}, Ok(_) | Err(_) => {} } }\n\
                fn wrong(it: Result<Store, Other>) { match it { Ok(_) => {}, Err(x) => x.only() } }\n\
                fn whole(it: &Store) { match it { x => x.only() } }\n";
    assert_edges(
        &graph_of(&[("src/store.rs", store), ("src/main.rs", main)]),
        &[
            "src/main.rs:some -> src/store.rs:Store.only",
            "src/main.rs:fine -> src/store.rs:Store.only",
            // What an error is, the name alone has to say.
            "src/main.rs:wrong -> src/main.rs:Other.only",
            "src/main.rs:whole -> src/store.rs:Store.only",
        ],
    );
}

#[test]
fn a_parameter_that_is_bound_once_more_has_no_type() {
    let classes = "class A:\n def foo(self): pass\nclass B:\n def foo(self): pass\n";
    for body in [
        "for a in range(3): a.foo()",
        "for x, (a, *b) in y: a.foo()",
        "with open('x') as a: a.foo()",
        "with x as (a, b): a.foo()",
        "a, b = 1, 2\n a.foo()",
        "try: pass\n except E as a: a.foo()",
        "a = B()\n a.foo()",
        "a = y\n a.foo()",
        "match x:\n  case {'k': a}: a.foo()",
        "match x:\n  case [1, a]: a.foo()",
        "match x:\n  case K(a): a.foo()",
    ] {
        for head in ["def f(a: A):", "def f():\n a: A = x"] {
            let bound_again = format!("{classes}{head}\n {body}\n");
            let graph = graph_of(&[("a.py", &bound_again)]);
            let callees = graph.callees(&symbol("a.py:f"));
            let is_written = head.contains("= x") && (body.starts_with("a = ") || body.contains("open"));
            let leads_on = callees.iter().any(|it| it.to_string() == "a.py:A.foo");
            assert_eq!(leads_on, is_written, "{bound_again}");
            assert_eq!(callees.iter().any(|it| it.to_string() == "?:foo"), !is_written, "{bound_again}");
        }
    }
    let kept = "def f(a: A | None = None):\n if a is None: a = A()\n a.foo()\n";
    let graph = graph_of(&[("a.py", &format!("{classes}{kept}"))]);
    assert_edges(&graph, &["a.py:f -> a.py:A", "a.py:f -> a.py:A.foo"]);
    let php = "<?php\nclass A { function foo() {} }\nclass B { function foo() {} }\n\
               function plain(A $a) { $a->foo(); }\n\
               function through(A $a) { foreach ($x as $a) { $a->foo(); } }\n\
               function listed(A $a) { [$a, $b] = $x; $a->foo(); }\n\
               function made(A $a) { $a = new B; $a->foo(); }\n\
               function same(?A $a) { $a = $a ?? new A; $a->foo(); }\n";
    assert_edges(
        &graph_of(&[("a.php", php)]),
        &[
            "a.php:plain -> a.php:A.foo",
            "a.php:through -> ?:foo",
            "a.php:listed -> ?:foo",
            "a.php:made -> ?:foo",
            "a.php:made -> a.php:B",
            "a.php:same -> a.php:A",
            "a.php:same -> a.php:A.foo",
        ],
    );
}

#[test]
fn a_parameter_of_types_is_no_class_of_its_name() {
    let main = "interface Props { close(): void }\nclass Item { cost() {} }\nclass Shop { go() {} }\n\
                function wrap<Props extends { close(): void }>(p: Props) { p.close() }\n\
                class Box<Item> { v!: Item; get() { this.v.cost() } put(i: Item) { i.cost() } one() { new Item().cost() } }\n\
                function bound<T extends Shop>(t: T) { t.go() }\n\
                const arrow = <T extends Shop>(t: T) => t.go();\n\
                class Kept<T extends Shop> { constructor(private t: T) {} m() { this.t.go() } }\n\
                function plain(p: Props, i: Item) { p.close(); i.cost() }\n";
    assert_edges(
        &graph_of(&[("a.ts", main)]),
        &[
            "a.ts:wrap -> ?:close",
            "a.ts:Box.get -> ?:cost",
            "a.ts:Box.put -> ?:cost",
            "a.ts:Box.one -> a.ts:Item",
            "a.ts:Box.one -> a.ts:Item.cost",
            "a.ts:bound -> a.ts:Shop.go",
            "a.ts:arrow -> a.ts:Shop.go",
            "a.ts:Kept.m -> a.ts:Shop.go",
            "a.ts:plain -> a.ts:Props.close",
            "a.ts:plain -> a.ts:Item.cost",
        ],
    );
    let main = "package a\ntype Node struct{}\nfunc (n Node) Walk() {}\ntype Tree struct{}\nfunc (t Tree) Walk() {}\n\
                func Each[Node interface{ Walk() }](n Node) { n.Walk() }\nfunc Plain(n Node) { n.Walk() }\n";
    assert_edges(&graph_of(&[("a.go", main)]), &["a.go:Each -> ?:Walk", "a.go:Plain -> a.go:Node.Walk"]);
}

#[test]
fn a_field_that_an_interface_declares_has_its_type() {
    let shop = "export class Shop { go() {} } export class Other { go() {} }\n\
                export interface Deep { shop: Shop }\n\
                export interface Props { shop: Shop; more?: Deep; all: Shop[] }\n\
                export type Alias = { shop: Shop };\n";
    let main = "import { Shop, Other, Props, Alias } from './shop';\n\
                function named(p: Props) { p.shop.go(); }\n\
                function aliased(p: Alias) { p.shop.go(); }\n\
                function deep(p: Props) { p.more?.shop.go(); }\n\
                function kept(p: Props) { const s = p.shop; s.go(); }\n\
                function apart(p: Props) { const { shop: s } = p; s.go(); }\n\
                function given({ shop }: Props) { shop.go(); }\n\
                const written = ({ shop }: { shop: Shop }) => shop.go();\n\
                class Main { p: Props; constructor(private own: Props) {}\n\
                field() { this.p.shop.go(); } owned() { this.own.shop.go(); } out() { const { shop } = this.p; shop.go(); }\n\
                get one(): Shop { return this.p.shop; } got() { this.one.go(); } }\n\
                function all(p: Props) { p.all.go(); }\n\
                function missing(p: Props) { p.nothing.go(); }\n\
                function changed(p: Props) { let s = p.shop; s = other; s.go(); }\n";
    assert_edges(
        &graph_of(&[("shop.ts", shop), ("main.tsx", main)]),
        &[
            "main.tsx:named -> shop.ts:Shop.go",
            "main.tsx:aliased -> shop.ts:Shop.go",
            "main.tsx:deep -> shop.ts:Shop.go",
            "main.tsx:kept -> shop.ts:Shop.go",
            "main.tsx:apart -> shop.ts:Shop.go",
            "main.tsx:given -> shop.ts:Shop.go",
            "main.tsx:written -> shop.ts:Shop.go",
            "main.tsx:Main.field -> shop.ts:Shop.go",
            "main.tsx:Main.owned -> shop.ts:Shop.go",
            "main.tsx:Main.out -> shop.ts:Shop.go",
            "main.tsx:Main.got -> shop.ts:Shop.go",
            "main.tsx:all -> ?:go",
            "main.tsx:missing -> ?:go",
            "main.tsx:changed -> ?:go",
        ],
    );
}

#[test]
fn in_a_case_of_one_type_a_switch_over_types_gives_the_name_that_type() {
    let main = "package a\ntype A struct{}\nfunc (a A) Run() {}\ntype B struct{}\nfunc (b *B) Run() {}\n\
                func one(x any) {\n switch v := x.(type) {\n case A:\n v.Run()\n }\n}\n\
                func pointer(x any) {\n switch v := x.(type) {\n case *B:\n v.Run()\n }\n}\n\
                func several(x any) {\n switch v := x.(type) {\n case A, *B:\n v.Run()\n }\n}\n\
                func other(x any) {\n switch v := x.(type) {\n case A:\n default:\n v.Run()\n }\n}\n";
    assert_edges(
        &graph_of(&[("a.go", main)]),
        &[
            "a.go:one -> a.go:A.Run",
            "a.go:pointer -> a.go:B.Run",
            "a.go:several -> ?:Run",
            "a.go:other -> ?:Run",
        ],
    );
}

#[test]
fn a_variable_of_java_is_no_method() {
    let main = "class A { int size() { return 1; } int sum(int size) { return size + size(); }\n\
                int local() { int later = 1; return later(); } }\n";
    assert_edges(
        &graph_of(&[("A.java", main)]),
        &["A.java:A.sum -> A.java:A.size", "A.java:A.local -> ?:later"],
    );
}

#[test]
fn a_class_of_csharp_has_no_members_of_its_interfaces() {
    let main = "using static Three.Maths;\nnamespace Two;\n\
                interface IKeeper { int Twice(int n) => n; }\n\
                interface IMore : IKeeper { int More() => Twice(1); }\n\
                class Keeper : IKeeper { public int Each() => Twice(2); }\n";
    let maths = "namespace Three;\npublic static class Maths { public static int Twice(int n) => n * 2; }\n";
    assert_edges(
        &graph_of(&[("a.cs", main), ("b.cs", maths)]),
        &["a.cs:IMore.More -> a.cs:IKeeper.Twice", "a.cs:Keeper.Each -> b.cs:Maths.Twice"],
    );
}

#[test]
fn the_value_that_a_property_is_given_has_the_type_of_the_property() {
    let shop = "namespace A;\nclass Item { public int Sum() => 1; }\nclass Other { public int Sum() => 1; }\n\
                class Shop { Item Last { get; set { value.Sum(); field = value; } } }\n";
    assert_edges(&graph_of(&[("a.cs", shop)]), &["a.cs:Shop.Last -> a.cs:Item.Sum"]);
    let main = "class Item:\n def cost(self): pass\nclass Other:\n def cost(self): pass\n\
                class Shop:\n @property\n def last(self) -> Item: pass\n def last_one(self) -> Item: pass\n\
                \x20def a(self): self.last.cost()\n def b(self): self.last_one.cost()\n";
    assert_edges(
        &graph_of(&[("a.py", main)]),
        &["a.py:Shop.last -> ?:property", "a.py:Shop.a -> a.py:Item.cost", "a.py:Shop.b -> ?:cost"],
    );
}

#[test]
fn what_is_asked_for_its_class_in_php_has_it_in_the_branch() {
    let main = "<?php\nclass Square { function only() {} }\nclass Circle { function only() {} }\n\
                function asked($s) { if ($s instanceof Square) { $s->only(); } }\n\
                function both($s) { if ($t && $s instanceof Square) { $s->only(); } }\n\
                function either($s) { if ($t || $s instanceof Square) { $s->only(); } }\n\
                function behind($s) { if ($s instanceof Square) {} $s->only(); }\n\
                function changed($s) { if ($s instanceof Square) { $s = make(); $s->only(); } }\n";
    assert_edges(
        &graph_of(&[("a.php", main)]),
        &[
            "a.php:asked -> a.php:Square.only",
            "a.php:both -> a.php:Square.only",
            "a.php:either -> ?:only",
            "a.php:behind -> ?:only",
            "a.php:changed -> ?:make",
            "a.php:changed -> ?:only",
        ],
    );
}

#[test]
fn a_name_that_a_class_of_php_gives_to_a_method_of_a_trait_leads_to_it() {
    let main = "<?php\ntrait T { function t() {} function v() {} }\ntrait U { function v() {} }\n\
                class A { use T { t as t2; t as protected; } function t() {} function m() { $this->t2(); } }\n\
                class B { use T, U { T::v insteadof U; U::v as uv; } function m() { $this->uv(); $this->v(); } }\n";
    assert_edges(
        &graph_of(&[("a.php", main)]),
        &[
            "a.php:A.m -> a.php:A.t2",
            "a.php:A.t2 -> a.php:T.t",
            "a.php:B.m -> a.php:B.uv",
            "a.php:B.uv -> a.php:U.v",
            "a.php:B.m -> a.php:T.v",
        ],
    );
}

#[test]
fn of_several_classes_above_in_one_file_the_first_counts() {
    let python = "class A:\n def m(self): pass\nclass B:\n def m(self): pass\nclass C(A, B):\n def k(self): self.m()\n";
    let php = "<?php\ntrait T { function v() {} }\nclass Base { function v() {} }\n\
               class K extends Base { use T; function m() { $this->v(); } }\n";
    assert_edges(
        &graph_of(&[("a.py", python), ("a.php", php)]),
        &["a.py:C.k -> a.py:A.m", "a.php:K.m -> a.php:T.v"],
    );
}
