//! The fixture in which everything occurs: what is to be found in it, written down from its sources.

use provost::syntax::{Kind, NoSignature, Reading, Trouble};

use super::{fixture, paths, reading};

/// Path, kind, how its source begins and ends, and its contract; empty for one that declares nothing.
type Row = (&'static str, Kind, &'static str, &'static str, &'static str);

fn check(file: &str, rows: &[Row]) {
    let reading = reading(file);
    let source = fixture(file);
    for (path, kind, begins, ends, contract) in rows {
        let found = reading.find(path);
        let symbol = found.first().unwrap_or_else(|| panic!("{file} has no {path}"));
        assert_eq!(*symbol.path, **path);
        assert_eq!(symbol.kind, *kind, "{path}");
        let range = symbol.range.start as usize..symbol.range.end as usize;
        let text = String::from_utf8_lossy(&source[range]);
        assert!(text.starts_with(begins) && text.ends_with(ends), "{path} is {text:?}");
        let said = match reading.contract(path) {
            Ok(signature) => signature.text.to_string(),
            Err(NoSignature::Undeclared) => String::new(),
            Err(why) => panic!("{path}: {why:?}"),
        };
        assert_eq!(said, *contract, "{path}");
    }
    // And nothing but that.
    let mut missing: Vec<&str> = reading.symbols.iter().map(|symbol| &*symbol.path).collect();
    missing.retain(|path| rows.iter().all(|row| row.0 != *path));
    assert_eq!(missing, [""; 0], "symbols of {file} that nobody expects");
}

#[test]
fn typescript_functions_of_every_form_are_found() {
    let reading = reading("src/tricky.ts");
    let found = |path: &str| reading.find(path).first().map(|symbol| symbol.kind);
    for path in [
        "plain",
        "defaulted",
        "fetchAll",
        "destructured",
        "over",
        "isStr",
        "assertStr",
        "thisParam",
        "commented",
        "gen",
        "agen",
        "arrow",
        "asyncArrow",
        "bare",
        "curried",
        "typedArrow",
        "fnExpr",
        "namedFnExpr",
        "ambient",
        "foo.inModule",
        "outer",
        "outer.nested",
        "outer.nestedArrow",
        "recursive",
        "sameName",
        "blockScoped",
        "üñïçødé",
        "afterUnicode",
        "multi",
        "NS.inNs",
    ] {
        assert_eq!(found(path), Some(Kind::Function), "{path}");
    }
    assert_eq!(reading.find("over").len(), 3, "each overload, and the code");
    assert!(reading.is_whole());
}

#[test]
fn typescript_classes_have_members_of_every_kind() {
    let reading = reading("src/tricky.ts");
    let members = |path: &str| -> Vec<(String, Kind)> {
        let of = reading.numbers_of(path)[0];
        let members = reading.children(of).map(|at| &reading.symbols[at as usize]);
        members.map(|symbol| (symbol.name().to_owned(), symbol.kind)).collect()
    };
    let expected = [
        ("count", Kind::Field),
        ("#secret", Kind::Field),
        ("constructor", Kind::Constructor),
        ("run", Kind::Method),
        ("helper", Kind::Method),
        ("create", Kind::Method),
        ("value", Kind::Getter),
        ("value", Kind::Setter),
        ("#priv", Kind::Method),
        ("todo", Kind::Method),
        ("handler", Kind::Method),
        ("bound", Kind::Field),
        ("[Symbol.iterator]", Kind::Method),
        ("optional", Kind::Method),
        ("overloaded", Kind::Method),
        ("overloaded", Kind::Method),
        ("overloaded", Kind::Method),
    ];
    assert_eq!(members("Base"), expected.map(|(name, kind)| (name.to_owned(), kind)));
    let expected = [
        ("objMethod", Kind::Method),
        ("objArrow", Kind::Method),
        ("objFn", Kind::Method),
        ("prop", Kind::Getter),
        ("asyncObjMethod", Kind::Method),
        ("quoted-name", Kind::Method),
        ("[computedKey]", Kind::Method),
    ];
    assert_eq!(members("obj"), expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(members("Iface"), [("helper".into(), Kind::Method), ("field".into(), Kind::Field)]);
    assert_eq!(members("Color"), [("Red".into(), Kind::Field), ("Green".into(), Kind::Field)]);
    assert_eq!(members("Decorated"), [("decoratedMethod".into(), Kind::Method)]);
}

#[test]
fn typescript_types_are_found_with_their_bodies() {
    let reading = reading("src/tricky.ts");
    for (path, kind, contract) in [
        ("Iface", Kind::Interface, "{ helper(x: unknown): void; field: string; (call: number): string }"),
        ("Iface.helper", Kind::Method, "(x: unknown): void"),
        ("Iface.field", Kind::Field, "string"),
        ("Alias", Kind::TypeAlias, "<T> { [K in keyof T]: T[K] }"),
        ("Color", Kind::Enum, "{ Red, Green }"),
        ("CE", Kind::Enum, "const { A }"),
        ("Window", Kind::Interface, "{ z: number }"),
    ] {
        assert_eq!(reading.find(path)[0].kind, kind, "{path}");
        assert_eq!(&*reading.contract(path).unwrap().text, contract, "{path}");
    }
    assert_eq!(reading.find("NS")[0].kind, Kind::Namespace);
    assert_eq!(reading.contract("NS"), Err(NoSignature::Undeclared));
    for path in ["MAX_RETRIES", "counter", "other", "wrapped", "destr1", "destr2", "obj"] {
        assert_eq!(reading.find(path)[0].kind, Kind::Variable, "{path}");
    }
}

#[test]
fn a_bare_name_is_enough_if_only_one_thing_has_it() {
    let reading = reading("src/tricky.ts");
    assert_eq!(paths(&reading, "nested"), ["outer.nested"]);
    assert_eq!(paths(&reading, "inNs"), ["NS.inNs"]);
    assert_eq!(paths(&reading, "computedKey"), ["obj.[computedKey]"]);
    assert_eq!(paths(&reading, "helper"), ["Base.helper"], "code goes before what is only declared");
    assert_eq!(paths(&reading, "run"), ["Base.run", "Second.run"]);
    let ambiguous = NoSignature::Ambiguous(vec!["Base.run".into(), "Second.run".into()]);
    assert_eq!(reading.contract("run"), Err(ambiguous));
    assert_eq!(reading.contract("nowhere"), Err(NoSignature::Missing));
    assert_eq!(reading.contract("Base.nowhere"), Err(NoSignature::Missing));
    assert_eq!(reading.contract("ase.run"), Err(NoSignature::Missing), "half a name is none");
    assert_eq!(reading.contract(""), Err(NoSignature::Missing));
}

#[test]
fn what_has_another_name_outside_is_found_by_it() {
    let reading = reading("src/tricky.ts");
    assert_eq!(paths(&reading, "renamed"), ["plain"]);
    assert_eq!(paths(&reading, "default"), ["defaulted"]);
    assert_eq!(paths(&reading, "inner2"), ["namedFnExpr"]);
}

#[test]
fn others_can_import_what_is_exported_and_what_is_in_it() {
    let reading = reading("src/tricky.ts");
    let exported = |path: &str| reading.find(path)[0].exported;
    for path in ["plain", "Base", "Base.run", "NS.inNs", "obj.objFn", "destr2", "Iface.field", "defaulted"] {
        assert!(exported(path), "{path}");
    }
    for path in ["Second", "Second.run", "wrapped", "outer", "outer.nested", "Decorated", "multi"] {
        assert!(!exported(path), "{path}");
    }
}

#[test]
fn tsx_is_read_to_its_end() {
    check(
        "src/widget.tsx",
        &[
            ("Props", Kind::TypeAlias, "type Props", "};", "{ title: string; onClick?: () => void }"),
            ("Props.title", Kind::Field, "title", "string", "string"),
            ("Props.onClick", Kind::Field, "onClick?", "void", "() => void"),
            ("Button", Kind::Function, "function Button", "\n}", "({ title, onClick }: Props): JSX.Element"),
            ("Button.handle", Kind::Function, "handle = ", "onClick?.()", "()"),
            ("Card", Kind::Function, "Card: ", "\n)", "React.FC<Props>"),
            ("Memo", Kind::Variable, "Memo = ", "\n})", "({ title }: Props)"),
            ("format", Kind::Function, "function format", "\n}", "(t: string): string"),
            ("generic", Kind::Function, "generic = ", "=> x", "<T>(x: T): T"),
            ("Panel", Kind::Class, "class Panel", "\n}", "class extends React.Component<Props>"),
            ("Panel.state", Kind::Field, "state = ", "}", ""),
            ("Panel.state.open", Kind::Field, "open", "false", ""),
            ("Panel.toggle", Kind::Method, "toggle = ", "})", "()"),
            ("Panel.render", Kind::Method, "render()", "}", "()"),
            ("App", Kind::Function, "function App", "\n}", "(props: { items: string[] })"),
            ("afterJsx", Kind::Function, "function afterJsx", "}", "(a: number): number"),
        ],
    );
    assert!(reading("src/widget.tsx").is_whole());
}

#[test]
fn javascript_is_read_with_its_jsx_and_its_modules() {
    check(
        "src/legacy.jsx",
        &[
            ("Plain", Kind::Function, "function Plain", "}", "(props)"),
            ("helper", Kind::Function, "function helper", "}", "(x, y = { a: 1 }, ...z)"),
            ("oldFn", Kind::Function, "oldFn = ", "}", "(a, b)"),
            ("exported", Kind::Function, "module.exports.exported", "helper(a)", "(a)"),
            ("short", Kind::Method, "short(a, b)", "}", "(a, b)"),
            ("K", Kind::Class, "class K", "} }", "class extends React.Component"),
            ("K.render", Kind::Method, "render()", "/>; }", "()"),
            ("K.s", Kind::Method, "static s", "{}", "(a)"),
            ("arrow1", Kind::Function, "arrow1 = ", "a", "(a)"),
            ("arrow2", Kind::Function, "arrow2 = ", "}", "(a, b)"),
            ("load", Kind::Function, "async function load", "}", "async (url)"),
            ("Last", Kind::Function, "function Last", "}", "(a)"),
        ],
    );
}

#[test]
fn python_is_read_with_everything_in_it() {
    let base = "class(Generic[T]); (self, name: str, *, age: int | None = None) -> None";
    let typed = "(a: int, b: str = \"x, y\", *args: int, key: bool = False, **kwargs: object) -> dict[str, list[int]]";
    let multi = "(a: int, b: str = \"\"\"multi\n    line\"\"\", *, c: float = 1.0) -> tuple[int, str]";
    check(
        "lib/tricky.py",
        &[
            ("T", Kind::Variable, "T = ", ")", ""),
            ("MAX_RETRIES", Kind::Variable, "MAX_RETRIES", "3", "int"),
            ("DEFAULT", Kind::Variable, "DEFAULT", "}", ""),
            ("square", Kind::Function, "square", "x * x", "(x)"),
            ("add", Kind::Function, "add", "a + b", "Callable[[int, int], int]"),
            ("plain", Kind::Function, "def plain", "a + b", "(a, b)"),
            ("typed", Kind::Function, "def typed", "helper(a)", typed),
            (
                "posonly",
                Kind::Function,
                "def posonly",
                "plain(a, b)",
                "(a, b=1, /, c=2, *, d, e=None) -> None",
            ),
            ("starred", Kind::Function, "def starred", ")", "(*args, **kwargs)"),
            ("fetch", Kind::Function, "async def fetch", "plain(1, 2)", "async (url: str) -> \"Response\""),
            ("generic", Kind::Function, "def generic", "return x", "[U: (int, str)](x: U) -> U"),
            ("cached", Kind::Function, "@functools", "cached(n - 2)", "(n: int) -> int"),
            ("over", Kind::Function, "@overload", "...", "(a: int) -> int; (a: str) -> str"),
            ("multi", Kind::Function, "def multi", "(a, b)", multi),
            ("Base", Kind::Class, "class Base", "return q", base),
            ("Base.attr", Kind::Field, "attr", "0", "int"),
            ("Base.method_lambda", Kind::Method, "method_lambda", "self.attr", "(self)"),
            ("Base.__init__", Kind::Constructor, "def __init__", "= name", &base[19..]),
            ("Base.run", Kind::Method, "def run", "plain(x, 1)", "(self, x: T) -> T"),
            ("Base._helper", Kind::Method, "def _helper", "...", "(self, x)"),
            (
                "Base.value",
                Kind::Getter,
                "@property",
                "self._v",
                "get (self) -> int; set (self, v: int) -> None",
            ),
            ("Base.create", Kind::Method, "@classmethod", "cls(str(n))", "(cls, n: int = 0) -> \"Base\""),
            ("Base.util", Kind::Method, "@staticmethod", "return a", "(a, b=2)"),
            ("Base.arun", Kind::Method, "async def arun", "self.run(1)", "async (self) -> None"),
            ("Base.Inner", Kind::Class, "class Inner", "return q", "class"),
            ("Base.Inner.deep", Kind::Method, "def deep", "return q", "(self, q: int) -> int"),
            ("Second", Kind::Class, "class Second", "\"second\"", "class(Base)"),
            ("Second.run", Kind::Method, "def run", "\"second\"", "(self, different: bool) -> str"),
            ("outer", Kind::Function, "def outer", "range(n)]", "(n)"),
            ("outer.inner", Kind::Function, "def inner", "plain(m, n)", "(m: int) -> int"),
            ("outer.f", Kind::Function, "f = lambda", "inner(z)", "(z)"),
            ("recursive", Kind::Function, "def recursive", "(n - 1)", "(n: int) -> int"),
            ("tuple_ret", Kind::Function, "def tuple_ret", "\"a\"", "() -> (int, str)"),
            ("ünïcode", Kind::Function, "def ünïcode", "\"😀\"", "(naïve: str) -> str"),
            ("after_unicode", Kind::Function, "def after_unicode", "...", "(a: int) -> None"),
            (
                "decorator",
                Kind::Function,
                "def decorator",
                "return wrapper",
                "(fn: Callable[..., T]) -> Callable[..., T]",
            ),
            ("decorator.wrapper", Kind::Function, "@functools", "fn(*a, **k)", "(*a, **k)"),
            (
                "conditional",
                Kind::Function,
                "def conditional",
                "return a",
                "(a: int) -> int; (a: str) -> str",
            ),
            ("guarded", Kind::Function, "def guarded", "...", "()"),
            ("last", Kind::Function, "def last", "return a", "(a: int,b:int=3) -> int"),
        ],
    );
    let reading = reading("lib/tricky.py");
    assert_eq!(reading.find("conditional").len(), 2, "in either branch");
    assert_eq!(reading.find("Base.value").len(), 2, "the getter and the setter");
    assert_eq!(reading.find("Inner.deep")[0].name(), "deep", "the end of a path is enough");
    assert_eq!(*reading.find("Second")[0].bases, ["Base".into()]);
}

#[test]
fn what_does_not_parse_has_no_contract_and_what_stands_beside_it_has() {
    let reading = reading("src/broken.ts");
    assert!(
        matches!(reading.trouble[..], [Trouble::ParseErrors { first: 32, count: 2 }]),
        "{:?}",
        reading.trouble
    );
    assert_eq!(reading.contract("broken"), Err(NoSignature::Unparsable));
    assert_eq!(&*reading.contract("ok").unwrap().text, "(b: string): void");
    assert_eq!(reading.contract("X.m"), Err(NoSignature::Unparsable), "lost in an error");
    assert_eq!(reading.contract("X.n"), Err(NoSignature::Missing), "not even there");
}

#[test]
fn offsets_are_those_on_disk() {
    let text = |file: &str, name: &str| -> String {
        let (reading, source): (Reading, Vec<u8>) = (reading(file), fixture(file));
        let range = reading.ranges(name).remove(0);
        String::from_utf8_lossy(&source[range.start as usize..range.end as usize]).into_owned()
    };
    assert_eq!(text("src/bom.ts", "bomFn"), "function bomFn(a: number): void {}");
    assert!(text("src/bom.ts", "crlf").starts_with("function crlf(\r\n"));
    assert_eq!(text("src/tricky.ts", "afterUnicode"), "function afterUnicode(a: number): void {}");
    assert_eq!(text("src/badutf.ts", "badUtf"), "function badUtf(a: \"\u{fffd}\u{fffd}\"): void {}");
    assert_eq!(reading("src/badutf.ts").trouble, [Trouble::NotUtf8 { first: 27 }]);
}
