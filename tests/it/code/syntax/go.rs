//! Go: what is found in a file with every construct, written down from its text.

use provost::syntax::{Kind, Language, NoSignature};

use super::{paths, reading_of};

const TEXT: &str = r#"// Package p does things.
package p

import (
	"fmt"
	str "strings"
)

const One = 1

const (
	// A is first.
	A, B = iota, 2
	_    = 3
	C    string = "c"
)

var (
	shared = New()
	other  map[string]int
)

var _ fmt.Stringer = (*Store)(nil)

// Store keeps.
type Store struct {
	Base
	*str.Builder
	names, more map[string]int `json:"x"`
	inner       struct{ hidden int }
}

type (
	Base  struct{ count int }
	Alias = Base
	Func  func(a int) error
	List[T any] struct{ items []T }
)

type Keeper interface {
	fmt.Stringer
	// Keep keeps.
	Keep(key string, more ...int) (ok bool, err error)
	~int | ~string
}

// New makes one.
func New() *Store { return &Store{} }

func Map[T, U any](all []T, each func(T) U) []U { return nil }

func (s *Store) Find(key string) (int, error) {
	type local struct{ a int }
	const inside = 1
	return len(key), nil
}

func (Store) Size() int { return 0 }

func (l *List[T]) Add(item T) {}

func init() {}

func init() {}

func external(a, b int)
"#;

const ROWS: &[(&str, Kind, &str, &str, &str)] = &[
    ("One", Kind::Variable, "const One", "1", ""),
    ("A", Kind::Variable, "A", "A", ""),
    ("B", Kind::Variable, "B", "B", ""),
    ("C", Kind::Variable, "C ", "\"c\"", "string"),
    ("shared", Kind::Variable, "shared", "New()", ""),
    ("other", Kind::Variable, "other", "map[string]int", "map[string]int"),
    (
        "Store",
        Kind::Class,
        "type Store struct",
        "}",
        "type struct { Base; *str.Builder; names, more map[string]int `json:\"x\"`; inner struct{ hidden int } }",
    ),
    ("Store.Base", Kind::Field, "Base", "Base", "Base"),
    ("Store.Builder", Kind::Field, "*str", "Builder", "str.Builder"),
    ("Store.names", Kind::Field, "names", "`", "map[string]int"),
    ("Store.more", Kind::Field, "names", "`", "map[string]int"),
    ("Store.inner", Kind::Field, "inner", "}", "struct{ hidden int }"),
    ("Base", Kind::Class, "Base", "}", "type struct{ count int }"),
    ("Base.count", Kind::Field, "count", "int", "int"),
    ("Alias", Kind::TypeAlias, "Alias", "Base", "type = Base"),
    ("Func", Kind::Class, "Func", "error", "type func(a int) error"),
    ("List", Kind::Class, "List[T", "}", "type[T any] struct{ items []T }"),
    ("List.items", Kind::Field, "items", "[]T", "[]T"),
    (
        "Keeper",
        Kind::Interface,
        "type Keeper",
        "}",
        "type interface { fmt.Stringer; Keep(key string, more ...int) (ok bool, err error); ~int | ~string }",
    ),
    ("Keeper.Keep", Kind::Method, "Keep(", "error)", "(key string, more ...int) (ok bool, err error)"),
    ("New", Kind::Function, "func New", "}", "() *Store"),
    ("Map", Kind::Function, "func Map", "}", "[T, U any](all []T, each func(T) U) []U"),
    ("Store.Find", Kind::Method, "func (s", "nil\n}", "*(key string) (int, error)"),
    ("Store.Find.local", Kind::Class, "type local", "}", "type struct{ a int }"),
    ("Store.Find.local.a", Kind::Field, "a", "int", "int"),
    ("Store.Size", Kind::Method, "func (Store", "}", "() int"),
    ("List.Add", Kind::Method, "func (l", "}", "*(item T)"),
    ("init", Kind::Function, "func init", "}", "(); ()"),
    ("external", Kind::Function, "func external", ")", "(a, b int)"),
];

#[test]
fn everything_in_a_go_file_is_found_with_its_range_and_its_contract_and_nothing_else() {
    for text in [TEXT.to_owned(), TEXT.replace('\n', "\r\n")] {
        let reading = reading_of(Language::Go, &text);
        assert!(reading.is_whole(), "{:?}", reading.trouble);
        for (path, kind, begins, ends, contract) in ROWS {
            let found = reading.find(path);
            let symbol = found.first().unwrap_or_else(|| panic!("no {path}"));
            assert_eq!((&*symbol.path, symbol.kind), (*path, *kind));
            let own = text[symbol.range.start as usize..symbol.range.end as usize].replace("\r\n", "\n");
            assert!(own.starts_with(begins) && own.ends_with(ends), "{path} is {own:?}");
            let said = match reading.contract(path) {
                Ok(signature) => signature.text.split_whitespace().collect::<Vec<_>>().join(" "),
                Err(NoSignature::Undeclared) => String::new(),
                Err(why) => panic!("{path}: {why:?}"),
            };
            assert_eq!(said, *contract, "{path}");
        }
        let mut more: Vec<&str> = reading.symbols.iter().map(|symbol| &*symbol.path).collect();
        more.retain(|path| ROWS.iter().all(|row| row.0 != *path));
        assert_eq!(more, [""; 0]);
        assert_eq!(reading.find("init").len(), 2, "each of several");
        assert_eq!(paths(&reading, "Find"), ["Store.Find"]);
    }
}

#[test]
fn a_contract_of_go_is_the_same_however_it_is_written() {
    let canon =
        |text: &str| reading_of(Language::Go, &format!("package p\n{text}\n")).contract("F").unwrap().canon;
    let one = canon("func F(a int, b []string) (int, error) { return 0, nil }");
    assert_eq!(canon("// F does.\nfunc F(\n\ta int, // first\n\tb []string,\n) (int, error) {\n}"), one);
    // Callers do not say the names of parameters.
    for same in [
        "func F(key int, names []string) (n int, err error) { return }",
        "func F(int, []string) (int, error) { return 0, nil }",
    ] {
        assert_eq!(canon(same), one, "{same}");
    }
    assert_eq!(
        canon("func F(a, b int, c string) error"),
        canon("func F(x int, y int, z string) (err error)")
    );
    assert_ne!(canon("func F(a, b int, c string)"), canon("func F(a int, c string)"));
    assert_eq!(canon("func F(f func(a int) error)"), canon("func F(g func(int) error)"));
    assert_eq!(canon("type F interface { G(a int) }"), canon("type F interface { G(b int) }"));
    let shown = reading_of(Language::Go, "package p\nfunc F(a, b int, c ...string) (ok bool) { return }\n");
    assert_eq!(&*shown.contract("F").unwrap().text, "(a, b int, c ...string) (ok bool)");
    for other in
        ["func F(a int, b ...string) (int, error) {}", "func F(a int) (int, error) {}", "func F() {}"]
    {
        assert_ne!(canon(other), one, "{other}");
    }
    assert_eq!(
        canon("type F struct { A int; B string }"),
        canon("type F struct {\n\tA int\n\n\t// B.\n\tB string\n}")
    );
    assert_ne!(canon("type F struct { A int; B string }"), canon("type F struct { B string; A int }"));
    assert_ne!(canon("type F int"), canon("type F = int"));
}

#[test]
fn what_a_function_without_a_name_declares_is_known_to_it_alone() {
    let text = "package p\nvar a = 1\nfunc _() {\n\tvar b [1]byte\n\ttype C struct{}\n\t_ = b[a]\n}\nfunc (T) _() { const d = 2 }\nfunc next() {}\n";
    let reading = reading_of(Language::Go, text);
    assert!(reading.is_whole(), "{:?}", reading.trouble);
    let found: Vec<&str> = reading.symbols.iter().map(|it| &*it.path).collect();
    assert_eq!(found, ["a", "next"]);
}
