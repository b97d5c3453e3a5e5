//! The answers of wit's daemon about the same files, answer by answer. Where Provost's answer differs, it differs on
//! purpose: each such place is listed with Provost's answer and the reason, and the list has no entry that does not
//! differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use provost::syntax::Target;
use serde_json::Value;

use super::{fixture, reading};
use crate::support::source::project_root;

fn vectors(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(project_root().join("tests/it/vectors/wit").join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Offsets in bytes for each of wit's, which count UTF-16 units of the decoded text without its mark.
fn bytes_by_unit(bytes: &[u8]) -> Vec<u64> {
    let mut at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut found = Vec::new();
    for chunk in bytes[at..].utf8_chunks() {
        for mark in chunk.valid().chars() {
            found.extend(std::iter::repeat_n(at as u64, mark.len_utf16()));
            at += mark.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            found.push(at as u64);
            at += chunk.invalid().len();
        }
    }
    found.push(at as u64);
    found
}

/// Compares two answers per key with the list of those that differ on purpose.
fn compare<T: std::fmt::Debug + PartialEq>(
    theirs: &BTreeMap<String, T>,
    ours: &BTreeMap<String, T>,
    listed: &BTreeMap<String, (T, &str)>,
) {
    let mut wrong = Vec::new();
    for (key, theirs) in theirs {
        let ours = &ours[key];
        match listed.get(key) {
            None if ours != theirs => wrong.push(format!("{key}: wit {theirs:?}, ours {ours:?}, not listed")),
            Some(_) if ours == theirs => wrong.push(format!("{key}: listed, and does not differ")),
            Some((said, _)) if ours != said => {
                wrong.push(format!("{key}: listed as {said:?}, ours {ours:?}"))
            }
            _ => {}
        }
    }
    wrong.extend(
        listed.keys().filter(|key| !theirs.contains_key(*key)).map(|key| format!("{key}: not one of wit's")),
    );
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn signatures_are_those_of_wit_but_for_what_is_listed() {
    let (mut theirs, mut ours) = (BTreeMap::new(), BTreeMap::new());
    for vector in vectors("sig-vectors.jsonl") {
        let (file, name) = (vector["f"].as_str().unwrap(), vector["s"].as_str().unwrap());
        let key = format!("{file}:{name}");
        theirs.insert(key.clone(), vector["sig"].as_str().map(String::from));
        ours.insert(key, reading(file).contract(name).ok().map(|signature| signature.text.into()));
    }
    assert_eq!(theirs.len(), 142);
    let mut listed = BTreeMap::new();
    for (file, reason, entries) in SIGNATURES {
        for (name, ours) in *entries {
            let entry = (ours.map(String::from), *reason);
            assert!(listed.insert(format!("{file}:{name}"), entry).is_none(), "{name} twice");
        }
    }
    compare(&theirs, &ours, &listed);
}

#[test]
fn ranges_are_those_of_wit_but_for_what_is_listed() {
    let (mut theirs, mut ours) = (BTreeMap::new(), BTreeMap::new());
    for vector in vectors("sig-vectors.jsonl") {
        let (file, name) = (vector["f"].as_str().unwrap(), vector["s"].as_str().unwrap());
        let key = format!("{file}:{name}");
        let bytes = bytes_by_unit(&fixture(file));
        let at = |end: usize| bytes[usize::try_from(vector["range"][end].as_u64().unwrap()).unwrap()];
        theirs.insert(key.clone(), vector["range"].is_array().then(|| at(0)..at(1)));
        let ranges = reading(file).ranges(name);
        let union =
            ranges.iter().map(|range| range.start).min().zip(ranges.iter().map(|range| range.end).max());
        ours.insert(key, union.map(|(start, end)| u64::from(start)..u64::from(end)));
    }
    let mut listed = BTreeMap::new();
    for (file, reason, entries) in RANGES {
        let source = fixture(file);
        for (name, begins, ends) in *entries {
            // Written as text, so that one sees what it is; found in the file, so that it is right.
            let find = |text: &str, from: usize| {
                let at = source[from..].windows(text.len()).position(|window| window == text.as_bytes());
                from + at.unwrap_or_else(|| panic!("{file} has no {text:?}"))
            };
            let start = find(begins, 0);
            let end = find(ends, start) + ends.len();
            let entry = (Some(start as u64..end as u64), *reason);
            assert!(listed.insert(format!("{file}:{name}"), entry).is_none(), "{name} twice");
        }
    }
    compare(&theirs, &ours, &listed);
}

#[test]
fn edges_are_those_of_wit_but_for_what_is_listed() {
    let pair = |vector: &Value| {
        let end = |side: &str| vector[side].as_str().map(|path| path.replace("src/", "").replace("lib/", ""));
        end("caller").zip(end("callee"))
    };
    let theirs: BTreeSet<(String, String)> = vectors("edge-vectors.jsonl").iter().filter_map(pair).collect();
    assert_eq!(theirs.len(), 47);
    let mut ours = BTreeSet::new();
    for file in [
        "src/tricky.ts",
        "src/widget.tsx",
        "src/legacy.jsx",
        "lib/tricky.py",
        "src/calls_a.ts",
        "src/auth.ts",
    ] {
        let reading = reading(file);
        let file = file.rsplit('/').next().unwrap();
        for edge in reading.edges() {
            let caller = reading.symbols[edge.caller as usize].name();
            let callee = match edge.target {
                Target::Here(at) => format!("{file}:{}", reading.symbols[at as usize].name()),
                Target::Elsewhere(name) => format!("?:{name}"),
            };
            ours.insert((format!("{file}:{caller}"), callee));
        }
    }
    let listed = |list: &[(&str, &[(&str, &str)])]| -> BTreeSet<(String, String)> {
        let all: Vec<_> = list.iter().flat_map(|(_, pairs)| *pairs).collect();
        let set: BTreeSet<_> =
            all.iter().map(|(caller, callee)| (caller.to_string(), callee.to_string())).collect();
        assert_eq!(set.len(), all.len(), "listed twice");
        set
    };
    let missing: BTreeSet<_> = theirs.difference(&ours).cloned().collect();
    let more: BTreeSet<_> = ours.difference(&theirs).cloned().collect();
    assert_eq!(missing, listed(EDGES_LESS), "edges that wit has and we have not");
    assert_eq!(more, listed(EDGES_MORE), "edges that we have and wit has not");
}

type Signatures = &'static [(&'static str, &'static str, &'static [(&'static str, Option<&'static str>)])];
type Ranges =
    &'static [(&'static str, &'static str, &'static [(&'static str, &'static str, &'static str)])];
type Edges = &'static [(&'static str, &'static [(&'static str, &'static str)])];

/// File, reason, and for each name what we say.
const SIGNATURES: Signatures = &[
    (
        "src/tricky.ts",
        "async, type parameters, type guards and the kind of accessor are part of what callers rely on",
        &[
            (
                "fetchAll",
                Some(
                    "async <T extends { id: string }, K extends keyof T = keyof T>(items: T[], key: K, cb?: (v: T[K], i: number) => void): Promise<Map<string, T[K]>>",
                ),
            ),
            ("isStr", Some("(x: unknown): x is string")),
            ("assertStr", Some("(x: unknown): asserts x is string")),
            ("asyncArrow", Some("async <T>(v: T): Promise<T>")),
            ("asyncObjMethod", Some("async (): Promise<void>")),
            ("prop", Some("get (): number")),
            ("value", Some("get (): T; set (v: T)")),
        ],
    ),
    (
        "src/tricky.ts",
        "comments, line breaks and trailing commas are not",
        &[
            ("commented", Some("(a: number, b: string): number")),
            ("multi", Some("(a: number, b: string): Promise<Record<string, number>>")),
        ],
    ),
    (
        "src/tricky.ts",
        "of overloads, those that callers see, in order",
        &[
            ("over", Some("(a: string): string; (a: number): number")),
            ("overloaded", Some("(a: string): string; (a: number): number")),
        ],
    ),
    (
        "src/tricky.ts",
        "what is a function by any other form is one",
        &[
            ("gen", Some("*(n: number): Generator<number>")),
            ("agen", Some("async *(n: number): AsyncGenerator<number>")),
            ("bare", Some("(x)")),
            ("typedArrow", Some("(a: number) => string")),
            ("fnExpr", Some("(a: number): number")),
            ("namedFnExpr", Some("(a: number): number")),
            ("inner2", Some("(a: number): number")),
            ("wrapped", Some("(a: number): number")),
            ("reassigned", Some("(q: string): string")),
            ("ambient", Some("(a: string): number")),
            ("inModule", Some("(a: string): number")),
        ],
    ),
    (
        "src/tricky.ts",
        "members of objects and classes of every kind",
        &[
            ("objArrow", Some("(a: number): string")),
            ("objFn", Some("(a: number): string")),
            ("quoted-name", Some("(a: number)")),
            ("computedKey", Some("(a: number)")),
            ("Base.run", Some("async <U>(arg: U, opts: Opts = {}): Promise<U>")),
            ("Second.run", Some("(different: boolean): string")),
            ("NS.inNs", Some("(a: number): number")),
            ("#priv", Some("(a: number): number")),
            ("todo", Some("(a: string): void")),
            ("handler", Some("(e: Event): void")),
            ("optional", Some("?(): void")),
        ],
    ),
    (
        "src/tricky.ts",
        "a name that several things have says nothing of any of them",
        &[("constructor", None), ("run", None)],
    ),
    (
        "src/tricky.ts",
        "classes with their constructors, and types with their bodies, have contracts",
        &[
            ("Base", Some("class<T> implements Iface; (private readonly name: string, public age?: number)")),
            ("Second", Some("class; ()")),
            ("Decorated", Some("class")),
            ("Iface", Some("{ helper(x: unknown): void; field: string; (call: number): string }")),
            ("Alias", Some("<T> { [K in keyof T]: T[K] }")),
            ("Color", Some("{ Red, Green }")),
            ("CE", Some("const { A }")),
            ("Window", Some("{ z: number }")),
        ],
    ),
    (
        "src/tricky.ts",
        "names by which something is exported lead to it",
        &[
            ("renamed", Some("(a: number, b: string): boolean")),
            ("default", Some("(x = 1, y: string = \"a, b\", ...rest: number[])")),
        ],
    ),
    (
        "src/widget.tsx",
        "TSX is read as TSX",
        &[
            ("Props", Some("{ title: string; onClick?: () => void }")),
            ("Card", Some("React.FC<Props>")),
            ("Memo", Some("({ title }: Props)")),
            ("MemoInner", Some("({ title }: Props)")),
            ("generic", Some("<T>(x: T): T")),
            ("Panel", Some("class extends React.Component<Props>")),
            ("toggle", Some("()")),
            ("render", Some("()")),
            ("App", Some("(props: { items: string[] })")),
            ("afterJsx", Some("(a: number): number")),
        ],
    ),
    (
        "src/legacy.jsx",
        "JavaScript is read as JavaScript",
        &[
            ("Plain", Some("(props)")),
            ("helper", Some("(x, y = { a: 1 }, ...z)")),
            ("oldFn", Some("(a, b)")),
            ("exported", Some("(a)")),
            ("K", Some("class extends React.Component")),
            ("render", Some("()")),
            ("s", Some("(a)")),
            ("arrow1", Some("(a)")),
            ("load", Some("async (url)")),
        ],
    ),
    ("src/bom.ts", "line breaks are not part of it", &[("crlf", Some("(a: number, b: string): void"))]),
    (
        "src/broken.ts",
        "what does not parse has no contract; the class around it does",
        &[("broken", None), ("X", Some("class"))],
    ),
    (
        "lib/tricky.py",
        "results are written with their arrow",
        &[
            (
                "typed",
                Some(
                    "(a: int, b: str = \"x, y\", *args: int, key: bool = False, **kwargs: object) -> dict[str, list[int]]",
                ),
            ),
            ("posonly", Some("(a, b=1, /, c=2, *, d, e=None) -> None")),
            ("cached", Some("(n: int) -> int")),
            ("__init__", Some("(self, name: str, *, age: int | None = None) -> None")),
            ("create", Some("(cls, n: int = 0) -> \"Base\"")),
            ("deep", Some("(self, q: int) -> int")),
            ("inner", Some("(m: int) -> int")),
            ("recursive", Some("(n: int) -> int")),
            ("tuple_ret", Some("() -> (int, str)")),
            ("ünïcode", Some("(naïve: str) -> str")),
            ("after_unicode", Some("(a: int) -> None")),
            ("decorator", Some("(fn: Callable[..., T]) -> Callable[..., T]")),
            ("last", Some("(a: int,b:int=3) -> int")),
        ],
    ),
    (
        "lib/tricky.py",
        "async, type parameters and the kind of accessor are part of what callers rely on",
        &[
            ("fetch", Some("async (url: str) -> \"Response\"")),
            ("generic", Some("[U: (int, str)](x: U) -> U")),
            ("arun", Some("async (self) -> None")),
            ("value", Some("get (self) -> int; set (self, v: int) -> None")),
        ],
    ),
    (
        "lib/tricky.py",
        "comments and trailing commas are not, and what is in a string is left alone",
        &[(
            "multi",
            Some("(a: int, b: str = \"\"\"multi\n    line\"\"\", *, c: float = 1.0) -> tuple[int, str]"),
        )],
    ),
    (
        "lib/tricky.py",
        "every definition counts, and of overloads those that callers see",
        &[
            ("over", Some("(a: int) -> int; (a: str) -> str")),
            ("conditional", Some("(a: int) -> int; (a: str) -> str")),
            ("run", None),
            ("Base.run", Some("(self, x: T) -> T")),
            ("Second.run", Some("(self, different: bool) -> str")),
        ],
    ),
    (
        "lib/tricky.py",
        "classes, lambdas and annotated names have contracts",
        &[
            ("Base", Some("class(Generic[T]); (self, name: str, *, age: int | None = None) -> None")),
            ("Inner", Some("class")),
            ("Second", Some("class(Base)")),
            ("square", Some("(x)")),
            ("add", Some("Callable[[int, int], int]")),
            ("f", Some("(z)")),
            ("method_lambda", Some("(self)")),
            ("MAX_RETRIES", Some("int")),
            ("attr", Some("int")),
        ],
    ),
];

/// File, reason, and for each name how our range begins and ends.
const RANGES: Ranges = &[
    (
        "src/tricky.ts",
        "what is a function by any other form, and every constant, is a symbol",
        &[
            ("MAX_RETRIES", "MAX_RETRIES = 3", "3"),
            ("counter", "counter = 0", "0"),
            ("gen", "function* gen", "yield n; }"),
            ("agen", "async function* agen", "yield n; }"),
            ("fnExpr", "fnExpr = function", "return a; }"),
            ("namedFnExpr", "namedFnExpr = ", "inner2(a - 1); }"),
            ("inner2", "namedFnExpr = ", "inner2(a - 1); }"),
            ("wrapped", "wrapped = memo", "arrow(a))"),
            ("reassigned", "reassigned;", "string => q"),
            ("ambient", "function ambient", ";"),
            ("inModule", "function inModule", ";"),
            ("destr1", "destr1", "destr1"),
            ("default", "function defaulted", "\n}"),
            ("renamed", "function plain", "\n}"),
        ],
    ),
    (
        "src/tricky.ts",
        "members of every kind, whole classes, enumerations and namespaces",
        &[
            ("obj", "obj = {", "\n}"),
            ("objArrow", "objArrow: ", "String(a)"),
            ("objFn", "objFn: ", "String(a); }"),
            ("quoted-name", "\"quoted-name\"", "{}"),
            ("computedKey", "[computedKey]", "{}"),
            ("Base", "abstract class Base", "\n}"),
            ("Base.run", "public async run", "return arg; }"),
            ("Second.run", "run(different", "\"second\"; }"),
            ("#priv", "#priv(", "return a; }"),
            ("todo", "abstract todo", "void"),
            ("handler", "handler = ", "helper(e); }"),
            ("bound", "bound = ", "bind(this)"),
            ("optional", "optional?", "void"),
            ("Color", "enum Color", "}"),
            ("CE", "const enum CE", "}"),
            ("NS", "namespace NS", "0; } }"),
            ("NS.inNs", "function inNs", "0; }"),
        ],
    ),
    (
        "src/tricky.ts",
        "overloads are part of a function, and decorators of a method",
        &[
            ("over", "function over(a: string)", "return a;\n}"),
            ("overloaded", "overloaded(a: string)", "return a; }"),
            ("decoratedMethod", "@log()", "{}"),
        ],
    ),
    (
        "src/widget.tsx",
        "TSX is read as TSX",
        &[
            ("Memo", "Memo = ", "\n})"),
            ("MemoInner", "Memo = ", "\n})"),
            ("Panel", "class Panel", "\n}"),
            ("toggle", "toggle = ", "open })"),
            ("render", "render()", ";\n  }"),
            ("App", "function App", "\n}"),
            ("afterJsx", "function afterJsx", "}"),
        ],
    ),
    (
        "src/legacy.jsx",
        "JavaScript is read as JavaScript",
        &[
            ("Plain", "function Plain", "</p>; }"),
            ("helper", "function helper", "return x; }"),
            ("oldFn", "oldFn = ", "}"),
            ("exported", "module.exports.exported", "helper(a)"),
            ("K", "class K", "static s(a) {} }"),
            ("render", "render()", "/>; }"),
            ("s", "static s", "{}"),
        ],
    ),
    (
        "lib/tricky.py",
        "decorators are part of what they decorate",
        &[
            ("cached", "@functools.lru_cache", "cached(n - 2)"),
            ("over", "@overload", "def over(a):\n    return a"),
            ("value", "@property", "self._v = v"),
            ("create", "@classmethod", "cls(str(n))"),
            ("util", "@staticmethod", "return a"),
            ("wrapper", "@functools.wraps", "fn(*a, **k)"),
        ],
    ),
    (
        "lib/tricky.py",
        "variables, lambdas and members by their path are symbols",
        &[
            ("T", "T = ", ")"),
            ("MAX_RETRIES", "MAX_RETRIES: int", "3"),
            ("square", "square = ", "x * x"),
            ("add", "add: ", "a + b"),
            ("attr", "attr: int", "0"),
            ("method_lambda", "method_lambda", "self.attr"),
            ("f", "f = lambda", "inner(z)"),
            ("Base.run", "def run(self, x", "plain(x, 1)"),
            ("Second.run", "def run(self, different", "\"second\""),
        ],
    ),
];

/// Why we have no such edge, and which.
const EDGES_LESS: Edges = &[
    ("it is known: JavaScript is read as JavaScript", &[("legacy.jsx:arrow2", "?:helper")]),
    ("the one above is meant, and it is not in this file", &[("tricky.py:__init__", "tricky.py:__init__")]),
];

/// Why we have such an edge, and which.
const EDGES_MORE: Edges = &[
    (
        "a constant or a field calls what its value calls",
        &[
            ("tricky.py:T", "?:TypeVar"),
            ("tricky.ts:bound", "?:bind"),
            ("tricky.ts:destr1", "?:makeThings"),
            ("tricky.ts:wrapped", "?:memo"),
            ("widget.tsx:Memo", "?:memo"),
        ],
    ),
    (
        "callbacks belong to the function or constant in which they are written",
        &[
            ("tricky.ts:fetchAll", "?:cb"),
            ("tricky.ts:fetchAll", "?:set"),
            ("tricky.ts:wrapped", "tricky.ts:arrow"),
            ("widget.tsx:App", "widget.tsx:format"),
            ("widget.tsx:Card", "?:track"),
        ],
    ),
    (
        "making an instance is a call, and so is an element of JSX",
        &[
            ("tricky.ts:fetchAll", "?:Map"),
            ("tricky.ts:assertStr", "?:Error"),
            ("tricky.ts:outer", "?:Base2"),
            ("widget.tsx:Card", "widget.tsx:Button"),
            ("widget.tsx:render", "widget.tsx:Card"),
            ("legacy.jsx:render", "legacy.jsx:Plain"),
        ],
    ),
    (
        "whatever form the caller has",
        &[
            ("tricky.ts:namedFnExpr", "tricky.ts:namedFnExpr"),
            ("tricky.ts:objArrow", "?:String"),
            ("tricky.ts:objFn", "?:String"),
            ("tricky.ts:handler", "tricky.ts:helper"),
            ("legacy.jsx:oldFn", "legacy.jsx:helper"),
            ("legacy.jsx:exported", "legacy.jsx:helper"),
            ("tricky.py:f", "tricky.py:inner"),
        ],
    ),
    (
        "parentheses and quotes around a name do not hide it",
        &[("tricky.ts:outer", "tricky.ts:plain"), ("tricky.ts:outer", "?:dyn")],
    ),
    (
        "JSX is understood",
        &[
            ("widget.tsx:App", "?:map"),
            ("widget.tsx:Button", "widget.tsx:format"),
            ("widget.tsx:render", "widget.tsx:format"),
            ("widget.tsx:toggle", "?:setState"),
            ("legacy.jsx:Plain", "legacy.jsx:helper"),
            ("legacy.jsx:arrow2", "legacy.jsx:helper"),
        ],
    ),
    (
        "what is decorated depends on its decorators",
        &[
            ("tricky.ts:Decorated", "?:decorate"),
            ("tricky.ts:decoratedMethod", "?:log"),
            ("tricky.py:cached", "?:lru_cache"),
            ("tricky.py:over", "?:overload"),
            ("tricky.py:value", "?:property"),
            ("tricky.py:value", "?:setter"),
            ("tricky.py:create", "?:classmethod"),
            ("tricky.py:util", "?:staticmethod"),
        ],
    ),
    ("the one above is meant, and it is not in this file", &[("tricky.py:__init__", "?:__init__")]),
];
