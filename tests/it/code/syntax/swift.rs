//! Swift: what is found in a file with every construct, written down from its text.

use provost::syntax::{Kind, Language, Trouble, Version, touched};

use super::{assert_rows, reading_of};

const TEXT: &str = r##"import Foundation
@testable import struct Shop.Cache
@_exported import Words

/// Most.
public let most = 1
let shared: Store = make(), spare = Cache()
var (left, right) = pair()
private var count: Int { get { 1 } set { check(newValue) } }
typealias Handler<T> = (T) -> Void

/** Top. */
@discardableResult
func top<T: Store>(_ a: Int, named more: String..., with b: Int = x()) async throws -> [T]? where T: Sendable { nil }
infix operator <+>: AdditionPrecedence
func <+> (left: Store, right: Store) -> Store { left }
precedencegroup Loose { higherThan: AdditionPrecedence }
@freestanding(expression)
public macro stringify<T>(_ value: T) -> String = #externalMacro(module: "M", type: "S")

#if DEBUG
func debug() {}
#else
func debug(_ why: String) {}
#endif

/// A store.
// between
@MainActor
public final class Store<Key: Hashable>: Base, Keeper where Key: Codable {
    static let shared = Store()
    private(set) var size: Int = 0, other: String?
    lazy var cache: Cache = { Cache(name: "a") }()
    weak var delegate: Delegate? { didSet { told() } }
    var total: Int { size + 1 }
    var `default`: String {
        get throws { "a" }
    }
    init?(size a: Int, _ b: String = "x") throws { self.size = a }
    convenience init() { self.init(size: 1) }
    deinit { close() }
    subscript(index: Int) -> Key? { nil }
    static func == (left: Store, right: Store) -> Bool { true }
    func find(by key: String) -> Int { 1 }
    func find(_ key: Int) throws(Lost) -> Int { 2 }
    class func make() -> Self { self.init() }
    func outer() {
        let local = 1
        func inner(_ n: Int) -> Int { n }
        struct Local { func inside() {} }
        inner(local)
    }
    /// States.
    enum State: String, Codable {
        /// Open.
        case open, closed = "c"
        @available(*, deprecated)
        case paid(Int, by: String = "me")
        var label: String { rawValue }
    }
    struct Entry {
        let key: String
        var value = 1
        static var all: [Entry] = []
    }
    actor Bank { nonisolated func balance() -> Int { 1 } }
}

public protocol Keeper<Key>: AnyObject, Sendable where Key: Hashable {
    associatedtype Key: Codable = String
    var kept: Int { get }
    var both: Int { get set }
    static func keep(_ key: Key, for days: Int) throws
    init(days: Int)
    subscript(at index: Int) -> Key { get set }
}

extension Keeper {
    func twice() { }
}

extension Store: CustomStringConvertible where Key == String {
    public var description: String { "a" }
}

public extension Outer.Inner {
    func added() {}
    internal static func hidden() {}
    struct Deep {}
}

extension String { func padded() -> String { self } }
"##;

/// Path, kind, how its source begins and ends, and its contract; empty for one that declares nothing.
const ROWS: &[(&str, Kind, &str, &str, &str)] = &[
    ("most", Kind::Variable, "/// Most.\npubl", "t most = 1", ""),
    ("shared", Kind::Variable, "let shared: St", "e = make()", "let: Store"),
    ("spare", Kind::Variable, "spare = Cache(", " = Cache()", ""),
    ("left", Kind::Variable, "var (left, rig", ") = pair()", ""),
    ("right", Kind::Variable, "right", "right", ""),
    ("count", Kind::Getter, "private var co", "Value) } }", "private var: Int"),
    ("Handler", Kind::TypeAlias, "typealias Hand", "T) -> Void", "typealias<T> = (T) -> Void"),
    (
        "top",
        Kind::Function,
        "/** Top. */\n@d",
        "le { nil }",
        "<T: Store>(_ a: Int, named more: String..., with b: Int = …) async throws -> [T]? where T: Sendable",
    ),
    (
        "operator<+>",
        Kind::Function,
        "infix operator",
        "Precedence",
        "infix operator <+>: AdditionPrecedence; (_: Store, _: Store) -> Store",
    ),
    (
        "Loose",
        Kind::Variable,
        "precedencegrou",
        "ecedence }",
        "precedencegroup Loose { higherThan: AdditionPrecedence }",
    ),
    ("stringify", Kind::Function, "@freestanding(", "type: \"S\")", "public macro<T>(_ value: T) -> String"),
    ("debug", Kind::Function, "func debug() {", "debug() {}", "(); (_ why: String)"),
    (
        "Store",
        Kind::Class,
        "/// A store.\n/",
        " { 1 } }\n}",
        "public final class<Key: Hashable>: Base, Keeper where Key: Codable; extension: CustomStringConvertible where Key == String; ?(size a: Int, _ b: String = …) throws; convenience ()",
    ),
    ("Store.shared", Kind::Field, "static let sha", " = Store()", ""),
    ("Store.size", Kind::Field, "private(set) v", "e: Int = 0", "private(set) var: Int"),
    ("Store.other", Kind::Field, "other: String?", "r: String?", "private(set) var: String?"),
    ("Store.cache", Kind::Field, "lazy var cache", ": \"a\") }()", "var: Cache"),
    ("Store.delegate", Kind::Field, "weak var deleg", "told() } }", "var: Delegate?"),
    ("Store.total", Kind::Getter, "var total: Int", "size + 1 }", "var: Int { get }"),
    ("Store.default", Kind::Getter, "var `default`:", "a\" }\n    }", "var: String { get throws }"),
    (
        "Store.init",
        Kind::Constructor,
        "init?(size a: ",
        "size = a }",
        "?(size a: Int, _ b: String = …) throws; convenience ()",
    ),
    ("Store.deinit", Kind::Method, "deinit { close", " close() }", ""),
    ("Store.subscript", Kind::Getter, "subscript(inde", "y? { nil }", "(_: Int) -> Key? { get }"),
    ("Store.operator==", Kind::Method, "static func ==", "l { true }", "static (_: Store, _: Store) -> Bool"),
    (
        "Store.find",
        Kind::Method,
        "func find(by k",
        " Int { 1 }",
        "(by key: String) -> Int; (_ key: Int) throws(Lost) -> Int",
    ),
    ("Store.make", Kind::Method, "class func mak", "f.init() }", "class () -> Self"),
    ("Store.outer", Kind::Method, "func outer() {", "cal)\n    }", "()"),
    ("Store.outer.inner", Kind::Function, "func inner(_ n", " Int { n }", "(_ n: Int) -> Int"),
    ("Store.outer.Local", Kind::Class, "struct Local {", "ide() {} }", "struct"),
    ("Store.outer.Local.inside", Kind::Method, "func inside() ", "nside() {}", "()"),
    (
        "Store.State",
        Kind::Enum,
        "/// States.\n  ",
        "ue }\n    }",
        "enum: String, Codable { case open, closed = \"c\"; case paid(Int, by: String = \"me\") }",
    ),
    ("Store.State.open", Kind::Field, "/// Open.\n    ", " case open", ""),
    ("Store.State.closed", Kind::Field, "closed = \"c\"", "osed = \"c\"", ""),
    ("Store.State.paid", Kind::Field, "@available(*, ", "ng = \"me\")", "(Int, by: String = \"me\")"),
    ("Store.State.label", Kind::Getter, "var label: Str", "rawValue }", "var: String { get }"),
    (
        "Store.Entry",
        Kind::Class,
        "struct Entry {",
        "= []\n    }",
        "struct { let key: String; var value = … }",
    ),
    ("Store.Entry.key", Kind::Field, "let key: Strin", "ey: String", "let: String"),
    ("Store.Entry.value", Kind::Field, "var value = 1", " value = 1", ""),
    ("Store.Entry.all", Kind::Field, "static var all", "ntry] = []", "static var: [Entry]"),
    ("Store.Bank", Kind::Class, "actor Bank { n", "nt { 1 } }", "actor"),
    ("Store.Bank.balance", Kind::Method, "nonisolated fu", " Int { 1 }", "nonisolated () -> Int"),
    (
        "Keeper",
        Kind::Interface,
        "public protoco",
        "et set }\n}",
        "public protocol<Key>: AnyObject, Sendable where Key: Hashable { associatedtype Key: Codable = String; var kept: Int { get }; var both: Int { get set }; static func keep(_ key: Key, for days: Int) throws; init(days: Int); subscript(at index: Int) -> Key { get set } }",
    ),
    ("Keeper.Key", Kind::TypeAlias, "associatedtype", "e = String", "associatedtype: Codable = String"),
    ("Keeper.kept", Kind::Field, "var kept: Int ", "nt { get }", "var: Int { get }"),
    ("Keeper.both", Kind::Field, "var both: Int ", " get set }", "var: Int"),
    (
        "Keeper.keep",
        Kind::Method,
        "static func ke",
        "nt) throws",
        "static (_ key: Key, for days: Int) throws",
    ),
    ("Keeper.init", Kind::Constructor, "init(days: Int", "days: Int)", "(days: Int)"),
    ("Keeper.subscript", Kind::Getter, "subscript(at i", " get set }", "(at index: Int) -> Key"),
    ("Keeper.twice", Kind::Method, "func twice() {", "wice() { }", "()"),
    (
        "Store.description",
        Kind::Getter,
        "public var des",
        "ng { \"a\" }",
        "public var: String { get } where Key == String",
    ),
    ("Outer.Inner", Kind::Class, "public extensi", " Deep {}\n}", ""),
    ("Outer.Inner.added", Kind::Method, "func added() {", "added() {}", "public ()"),
    ("Outer.Inner.hidden", Kind::Method, "internal stati", "idden() {}", "static ()"),
    ("Outer.Inner.Deep", Kind::Class, "struct Deep {}", "ct Deep {}", "public struct"),
    ("String", Kind::Class, "extension Stri", "{ self } }", ""),
    ("String.padded", Kind::Method, "func padded() ", "g { self }", "() -> String"),
];

#[test]
fn everything_in_a_swift_file_is_found_with_its_range_and_its_contract_and_nothing_else() {
    assert_rows(Language::Swift, TEXT, ROWS);
}

#[test]
fn an_extension_is_a_part_of_its_type_and_one_of_a_type_from_elsewhere_says_so() {
    let reading = reading_of(Language::Swift, TEXT);
    let stores = reading.find("Store");
    assert_eq!(stores.len(), 2, "the class and its extension");
    // The first speaks for both.
    assert_eq!(stores[0].bases.join(" "), "Base Keeper CustomStringConvertible");
    assert_eq!(reading.find("Store.description")[0].parent, reading.numbers_of("Store").last().copied());
    for (name, bases) in
        [("String", "^String"), ("Outer.Inner", "^Outer.Inner"), ("Keeper", "AnyObject Sendable")]
    {
        assert_eq!(reading.find(name)[0].bases.join(" "), bases, "{name}");
    }
    let hidden = reading_of(Language::Swift, "private func a() {}\nfileprivate let b = 1\nfunc c() {}\n");
    let exported: Vec<bool> = hidden.symbols.iter().map(|it| it.exported).collect();
    assert_eq!(exported, [false, false, true]);
}

fn canon(text: &str) -> Box<str> {
    let text = format!("public extension A where B: C {{\n{text}\n}}\n");
    reading_of(Language::Swift, &text).contract("A.f").unwrap_or_else(|why| panic!("{text}: {why:?}")).canon
}

#[test]
fn a_contract_of_swift_is_the_same_however_it_is_written() {
    let one =
        canon("func f<T: Any>(_ a: Int, at b: [String], c: Int = 1) async throws -> T? where T: Q { nil }");
    for same in [
        "/// Doc.\n@discardableResult\npublic override func f<T: Any>(\n    _ a: Int, // first\n    at b: [String],\n    c: Int = 2\n) async throws -> T?\nwhere T: Q { g() }",
        "func f <T: Any> ( _ other: Int , at more: [ String ], c : Int = h() ) async throws -> T? where T: Q { }",
        "@MainActor func f<T: Any>(_ a: Int, at b: [String], c: Int = 1) async throws -> T? where T: Q { nil }",
    ] {
        assert_eq!(canon(same), one, "{same}");
    }
    for other in [
        "func f<T: Any>(_ a: Int, b: [String], c: Int = 1) async throws -> T? where T: Q { nil }",
        "func f<T: Any>(a: Int, at b: [String], c: Int = 1) async throws -> T? where T: Q { nil }",
        "func f<T: Any>(_ a: Int, at b: [String], c: Int) async throws -> T? where T: Q { nil }",
        "func f<T: Any>(_ a: Int, at b: [String], d: Int = 1) async throws -> T? where T: Q { nil }",
        "func f<T: Any>(_ a: Int, at b: [String], c: Int = 1) throws -> T? where T: Q { nil }",
        "func f<T: Any>(_ a: Int, at b: [String], c: Int = 1) async -> T? where T: Q { nil }",
        "func f<T: Any>(_ a: Int, at b: [String], c: Int = 1) async throws(E) -> T? where T: Q { nil }",
        "func f<T: Any>(_ a: Int, at b: [String], c: Int = 1) async throws -> T? { nil }",
        "func f<T: Some>(_ a: Int, at b: [String], c: Int = 1) async throws -> T? where T: Q { nil }",
        "func f<T: Any>(_ a: inout Int, at b: [String], c: Int = 1) async throws -> T? where T: Q { nil }",
        "func f<T: Any>(_ a: Int, at b: [String], c: Int = 1) async throws -> T where T: Q { nil }",
        "internal func f<T: Any>(_ a: Int, at b: [String], c: Int = 1) async throws -> T? where T: Q { nil }",
        "static func f<T: Any>(_ a: Int, at b: [String], c: Int = 1) async throws -> T? where T: Q { nil }",
    ] {
        assert_ne!(canon(other), one, "{other}");
    }
    // What is stored and what is computed look the same, as long as both can be set.
    assert_eq!(canon("var f: Int = 1"), canon("var f: Int { get { 1 } set { } }"));
    assert_ne!(canon("var f: Int = 1"), canon("var f: Int { 1 }"));
    assert_ne!(canon("var f: Int = 1"), canon("private(set) var f: Int = 1"));
    assert_ne!(canon("var f: Int = 1"), canon("let f: Int = 1"));
    let condition = |condition: &str| {
        let text = format!("extension A where {condition} {{ func f() {{}} }}\n");
        reading_of(Language::Swift, &text).contract("A.f").unwrap()
    };
    assert_eq!(condition("B: C"), condition("B:  C").clone());
    assert_ne!(condition("B: C"), condition("B: D"), "under which conditions it is there");
}

#[test]
fn what_the_grammar_does_not_know_by_itself_is_read_all_the_same() {
    for text in [
        "func f() { g(value: ()) ; return () }\n",
        "let a = [~b, ~c.self]\n",
        "func f() { nonisolated(unsafe) let a = 1; nonisolated let b = 2 }\n",
        "func f(@A @B(c) body: () -> Int, d: sending @escaping () -> sending Int) {}\n",
        "func f(_ a: __owned some Sequence<Int>, b: __shared C) {}\npublic __consuming func g() {}\n",
        "let a = b // what\n  * c(d) // why\n  % e\n",
        "protocol P {\n  associatedtype A: B where // which\n    A.C == D,\n    A.E: F\n  var a: A { get }\n}\n",
        "func f() { switch a {\n#if X\ncase .b(): c()\n#endif\ncase .d, .e():\n  g()\ndefault: ()\n} }\n",
        "let a = [\n  1,\n  #if X\n  2,\n  #endif\n]\n",
        "class A {\n#if X\n  func a() {\n#else\n  func b() {\n#if Y\n#endif\n#endif\n    c()\n  }\n  func d() {}\n}\n",
        "func f() { switch consume a { default: break } }\n",
        "let a = A<B>.make(), b = \"\\(c(\"d\\(e())\"))\", d = #\"\\(\"#, g = #\"\\#(h(1))\"#, i = /[\"(]/\n",
        "class A { func a() {}; var b: Int { 1 }; enum C { case d, e }; func f() {} }\n",
        "func f() -> Result<(), E> { g { () -> Void in } }\nlet h: () -> (() -> Void) = { {} }\n",
    ] {
        for text in [text.to_owned(), text.replace('\n', "\r\n"), text.replace("  ", "\t")] {
            let reading = reading_of(Language::Swift, &text);
            assert!(reading.is_whole(), "{text:?}: {:?}", reading.trouble);
        }
    }
    let reading = reading_of(
        Language::Swift,
        "class A {\n#if X\n  func a() {\n#else\n  func b() {\n#endif\n  }\n  func c() {}\n}\n",
    );
    let paths: Vec<&str> = reading.symbols.iter().map(|it| &*it.path).collect();
    assert_eq!(paths, ["A", "A.a", "A.c"], "of branches that do not stand alone, the first is read");
    let generic = reading_of(Language::Swift, "func f() { A<B>.make() }\n");
    assert_eq!(generic.calls.len(), 1);
}

#[test]
fn broken_swift_is_read_as_far_as_it_goes_wherever_it_is_cut() {
    let text = format!("{TEXT}\n#if X\nfunc open() {{\n#else\nlet a = \"\"\"\n \\(b(\"\\(c)\"))\n\"\"\"\n");
    for at in (0..text.len()).step_by(10).filter(|at| text.is_char_boundary(*at)) {
        let reading = reading_of(Language::Swift, &text[..at]);
        for symbol in &reading.symbols {
            assert!(symbol.range.end as usize <= at);
            let _ = reading.contract(&symbol.path);
        }
    }
    let nested = format!("{}{}", "func f() { if a { ".repeat(400), "}}".repeat(400));
    assert!(!reading_of(Language::Swift, &nested).symbols.is_empty());
    let commented = format!("{}\nfunc f() {{}}\n", "/*".repeat(50_000));
    assert!(reading_of(Language::Swift, &commented).find("f").is_empty());
    let marked = reading_of(Language::Swift, "\u{feff}func f(ü: Int) -> Ö { \"😀\" }\r\n");
    assert_eq!(&*marked.contract("f").unwrap().text, "(ü: Int) -> Ö");
}

#[test]
fn what_a_program_has_written_in_swift_is_left_out() {
    for text in [
        "// DO NOT EDIT.\n// swift-format-ignore-file\n// swiftlint:disable all\n//\n// Generated by the Swift generator plugin for the protocol buffer compiler.\nimport SwiftProtobuf\n",
        "// Generated using Sourcery 2.0.2 — https://github.com/krzysztofzablocki/Sourcery\n// DO NOT EDIT\nfunc f() {}\n",
        "/*\n * @generated by a tool\n */\nfunc f() {}\n",
    ] {
        assert_eq!(reading_of(Language::Swift, text).trouble, [Trouble::Generated], "{text}");
    }
    for text in ["// swift-format-ignore-file\nfunc f() {}\n", "import A\n// do not edit\nfunc f() {}\n"] {
        assert!(reading_of(Language::Swift, text).is_whole(), "{text}");
    }
}

#[test]
fn what_one_declaration_of_swift_declares_shares_its_beginning() {
    let touches = |old: &str, new: &str| {
        let (before, after) = (reading_of(Language::Swift, old), reading_of(Language::Swift, new));
        let old = Version { reading: &before, bytes: old.as_bytes() };
        let new = Version { reading: &after, bytes: new.as_bytes() };
        touched(old, new)
    };
    let text = "struct A {\n    private let a: Int, b: String = c(1)\n    var (d, e) = f(2)\n    case\n}\n"
        .replace("    case\n", "");
    for (old, new, expected) in [
        ("private", "public", &["A.a", "A.b"][..]),
        ("let a", "var a", &["A.a", "A.b"]),
        ("a: Int", "a: Long", &["A.a"]),
        ("c(1)", "c(2)", &["A.b"]),
        ("f(2)", "f(3)", &["A.d", "A.e"]),
        ("private let a: Int", "private (let a: Int", &["A.a", "A.b"]),
    ] {
        let found: Vec<String> =
            touches(&text, &text.replace(old, new)).into_iter().map(Into::into).collect();
        assert_eq!(found, expected, "{old} -> {new}");
    }
    let calls = reading_of(Language::Swift, "let a = b(), c = d { e() }\n");
    let callers: Vec<Option<u32>> = calls.calls.iter().map(|it| it.caller).collect();
    assert_eq!(callers, [Some(0), Some(1), Some(1)]);
}
