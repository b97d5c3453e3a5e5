//! C: what is found in a file with every construct, written down from its text, and what is made of macros and conditions that
//! the grammar does not know.

use provost::syntax::{Kind, Language, NoSignature, Reading};

use super::{paths, reading_of};

const TEXT: &str = r#"/* A file of C with every construct. */
#ifndef GUARD
#define GUARD
#endif

#include "a.h"
#include <sys/b.h>

/** How many. */
#define LIMIT 10
#define EMPTY
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define CALLS(x) \
    do { \
        first(x); \
    } while (0)

typedef unsigned long size;
typedef int (*callback)(int value, void *data);
typedef struct opaque opaque;
typedef struct { int x, y; } point;
typedef struct node_s {
    struct node_s *next;
    int (*visit)(struct node_s *self);
    unsigned flag : 1;
    union { int i; float f; } value;
} node, *node_ptr;

struct store {
    size count; /**< Behind. */
    /// Names.
    char *names[LIMIT];
#ifdef WIDE
    long wide;
#else
    int wide;
#endif
};

union number {
    int i;
    float f;
};

enum color { RED, GREEN = 2 };

extern int shared;
static const int table[] = { 1, 2 };
int one = 1, *two;

int find(const char *key, int n);
static struct store *open_store(const char *, int flags);

/// Finds.
// By key.
int find(const char *k, int n)
{
    struct local { int a; } l;
    static int calls;
    return (int)k[0] + n + l.a + calls;
}

static inline struct store *open_store(const char *name, int flags)
{
    return helper(name, flags);
}

API_EXPORT void NOTHROW exported(void) UNUSED;

EXTERN(int) wrapped(int a)
{
    return a;
}

void (*signal_of(int number, void (*handler)(int)))(int)
{
    return handler;
}

int (quoted)(int a) { return a; }

int old_style(a, b)
    int a;
    char *b;
{
    return a + *b;
}

#if defined(A)
int either(int a) { return a; }
#elif defined(B)
int either(long a) { return a; }
#else
int either(void) { return 0; }
#endif

#ifdef OPEN
int half(int a)
#else
int half(long a)
#endif
{
    return a;
}

TEST(suite, works)
{
    check(1);
}
"#;

const ROWS: &[Row] = &[
    ("LIMIT", Kind::Variable, "/** How many. */", "#define LIMIT 10", ""),
    ("EMPTY", Kind::Variable, "#define EMPTY", "#define EMPTY", ""),
    ("MAX", Kind::Function, "#define MAX(a, b) ((a) > (", "> (b) ? (a) : (b))", "(a, b)"),
    ("CALLS", Kind::Function, "#define CALLS(x) \\", "} while (0)", "(x)"),
    ("size", Kind::TypeAlias, "typedef unsigned long size", "nsigned long size;", "unsigned long"),
    (
        "callback",
        Kind::TypeAlias,
        "typedef int (*callback)(in",
        "alue, void *data);",
        "int (*)(int value, void *data)",
    ),
    ("opaque", Kind::TypeAlias, "typedef struct opaque opaq", "uct opaque opaque;", "struct opaque"),
    ("point", Kind::Class, "typedef struct { int x, y;", "int x, y; } point;", "struct { int x, y; }"),
    ("point.x", Kind::Field, "int x", "x", "int"),
    ("point.y", Kind::Field, "y;", "y;", "int"),
    ("node", Kind::TypeAlias, "node", "node", "struct node_s"),
    ("node_ptr", Kind::TypeAlias, "*node_ptr", "*node_ptr", "struct node_s *"),
    (
        "node_s",
        Kind::Class,
        "typedef struct node_s {",
        "} value;\n}",
        "struct { struct node_s *next; int (*visit)(struct node_s *self); unsigned flag : 1; union { int i; float f; } value; }",
    ),
    ("node_s.next", Kind::Field, "struct node_s *next;", "ruct node_s *next;", "struct node_s *"),
    (
        "node_s.visit",
        Kind::Field,
        "int (*visit)(struct node_s",
        "uct node_s *self);",
        "int (*)(struct node_s *self)",
    ),
    ("node_s.flag", Kind::Field, "unsigned flag : 1;", "unsigned flag : 1;", "unsigned"),
    ("node_s.value", Kind::Field, "union { int i; float f; }", "float f; } value;", "union"),
    ("node_s.value.i", Kind::Field, "int i;", "int i;", "int"),
    ("node_s.value.f", Kind::Field, "float f;", "float f;", "float"),
    (
        "store",
        Kind::Class,
        "struct store {",
        "}",
        "struct { size count; char *names[LIMIT]; long wide; int wide; }",
    ),
    ("store.count", Kind::Field, "size count;", "size count;", "size"),
    ("store.names", Kind::Field, "/// Names.", "har *names[LIMIT];", "char *[LIMIT]"),
    ("store.wide", Kind::Field, "long wide;", "long wide;", "long; int"),
    ("number", Kind::Class, "union number {", "}", "union { int i; float f; }"),
    ("number.i", Kind::Field, "int i;", "int i;", "int"),
    ("number.f", Kind::Field, "float f;", "float f;", "float"),
    ("color", Kind::Enum, "enum color { RED, GREEN =", "{ RED, GREEN = 2 }", "enum { RED, GREEN = 2 }"),
    ("color.RED", Kind::Field, "RED", "RED", ""),
    ("color.GREEN", Kind::Field, "GREEN = 2", "GREEN = 2", "= 2"),
    ("shared", Kind::Variable, "extern int shared;", "extern int shared;", "int"),
    ("table", Kind::Variable, "static const int table[] =", "able[] = { 1, 2 };", "static const int []"),
    ("one", Kind::Variable, "int one = 1", "one = 1", "int"),
    ("two", Kind::Variable, "*two;", "*two;", "int *"),
    ("find", Kind::Function, "int find(const char *key,", "char *key, int n);", "int (const char *k, int n)"),
    (
        "open_store",
        Kind::Function,
        "static struct store *open_",
        "har *, int flags);",
        "static struct store *(const char *name, int flags)",
    ),
    ("find.local", Kind::Class, "struct local { int a; }", "t local { int a; }", "struct { int a; }"),
    ("find.local.a", Kind::Field, "int a;", "int a;", "int"),
    ("exported", Kind::Function, "API_EXPORT void NOTHROW ex", "rted(void) UNUSED;", "void (void)"),
    ("wrapped", Kind::Function, "EXTERN(int) wrapped(int a)", "}", "int (int a)"),
    (
        "signal_of",
        Kind::Function,
        "void (*signal_of(int numbe",
        "}",
        "void (*(int number, void (*handler)(int)))(int)",
    ),
    ("quoted", Kind::Function, "int (quoted)(int a) { retu", "t a) { return a; }", "int (int a)"),
    ("old_style", Kind::Function, "int old_style(a, b)", "}", "int (a, b) int a; char *b;"),
    (
        "either",
        Kind::Function,
        "int either(int a) { return",
        "t a) { return a; }",
        "int (int a); int (long a); int (void)",
    ),
    ("half", Kind::Function, "int half(int a)", "}", "int (int a)"),
    ("suite.works", Kind::Function, "TEST(suite, works)", "}", ""),
];

/// Each row: its path, kind, the words it begins and ends with, and its contract.
pub(super) type Row = (&'static str, Kind, &'static str, &'static str, &'static str);

pub(super) fn assert_rows(language: Language, text: &str, rows: &[Row]) {
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        let reading = reading_of(language, &text);
        assert!(reading.is_whole(), "{:?}", reading.trouble);
        for (path, kind, begins, ends, contract) in rows {
            let found = reading.find(path);
            let symbol = found.first().unwrap_or_else(|| panic!("no {path}"));
            assert_eq!((&*symbol.path, symbol.kind), (*path, *kind));
            let own = text[symbol.range.start as usize..symbol.range.end as usize].replace("\r\n", "\n");
            assert!(own.starts_with(begins) && own.ends_with(ends), "{path} is {own:?}");
            assert_eq!(contract_of(&reading, path), *contract, "{path}");
        }
        let mut more: Vec<&str> = reading.symbols.iter().map(|symbol| &*symbol.path).collect();
        more.retain(|path| rows.iter().all(|row| row.0 != *path));
        assert_eq!(more, [""; 0]);
    }
}

fn contract_of(reading: &Reading, path: &str) -> String {
    match reading.contract(path) {
        Ok(signature) => signature.text.split_whitespace().collect::<Vec<_>>().join(" "),
        Err(NoSignature::Undeclared) => String::new(),
        Err(why) => panic!("{path}: {why:?}"),
    }
}

#[test]
fn everything_in_a_c_file_is_found_with_its_range_and_its_contract_and_nothing_else() {
    assert_rows(Language::C, TEXT, ROWS);
    let reading = reading_of(Language::C, TEXT);
    assert_eq!(reading.find("either").len(), 3, "each branch counts");
    assert_eq!(paths(&reading, "works"), ["suite.works"]);
    let hidden: Vec<&str> = reading.symbols.iter().filter(|it| !it.exported).map(|it| &*it.path).collect();
    assert_eq!(hidden, ["table", "open_store", "open_store"], "what is static is the file's own");
}

#[test]
fn a_contract_of_c_is_the_same_however_it_is_written_and_whatever_its_parameters_are_called() {
    let canon = |text: &str| reading_of(Language::C, &format!("{text}\n")).contract("f").unwrap().canon;
    let one = canon("int f(const char *key, int n[4]) { return 0; }");
    for same in [
        "int f(const char *, int [4]);",
        "extern int f(const char *k, int m[4]);",
        "API int\nf(const char *key, /* how many */\n  int n[4]) UNUSED;",
        "inline int f(const char *key, int n[4]) { return 1; }",
        "int f(const char *key, int n[4]);\nint f(const char *key, int n[4]) { return 2; }",
    ] {
        assert_eq!(canon(same), one, "{same}");
    }
    for other in [
        "int f(char *key, int n[4]);",
        "int f(const char *key, int n[5]);",
        "int *f(const char *key, int n[4]);",
        "static int f(const char *key, int n[4]);",
        "int f(int n[4], const char *key);",
    ] {
        assert_ne!(canon(other), one, "{other}");
    }
    assert_eq!(canon("struct f { int a; };"), canon("struct f\n{\n    int a; // one\n};"));
    assert_ne!(canon("struct f { int a; };"), canon("struct f { long a; };"));
    assert_ne!(canon("enum f { A, B };"), canon("enum f { B, A };"));
}

/// Code that only a preprocessor makes sense of is read as far as it goes, and every symbol keeps its place.
#[test]
fn macros_and_conditions_that_the_grammar_does_not_know_are_read_around() {
    for (text, expected) in [
        ("API static INLINE int f(void) { return 1; }\nint g(void);", &["f", "g"][..]),
        (
            "int f(int a) {\n#if A\n  if (a) {\n#else\n  if (!a) {\n#endif\n    return g();\n  }\n  return 0;\n}\nint h(void) {}",
            &["f", "h"],
        ),
        (
            "static int table[] = {\n#ifdef A\n  1,\n#endif\n  ENTRY(int, 2),\n};\nint f(void) {}",
            &["table", "f"],
        ),
        ("int f(int a\n#ifdef B\n  , int b\n#endif\n) { return 0; }\nint g(void) {}", &["f", "g"]),
        (
            "void f(void) {\n  EACH(a, b) {\n    g(va_arg(ap, char *));\n  }\n  CHECK(a)\n}\nint h(void) {}",
            &["f", "h"],
        ),
        ("BEGIN_DECLS\nDECLARE(a)\nint f(void);\nEND_DECLS\n", &["f"]),
        (
            "SYSCALL_DEFINE3(open, const char __user *, name, int, flags)\n{\n  return 0;\n}\nint f(void) {}",
            &["open", "f"],
        ),
        ("const char *f(void) { return \"a\" QUOTE(b) \"c\" D E; }", &["f"]),
        ("int f(void) {\n  goto out;\nout:\n#ifdef A\n  g();\n#endif\n}\nint h(void) {}", &["f", "h"]),
        ("#define A(x) first(x); /* one */ \\\n  second(x)\nint f(void) {}", &["A", "f"]),
        ("enum e { A DEPRECATED(1, \"\") = 1, B };\nint f(void) {}", &["e", "e.A", "e.B", "f"]),
    ] {
        for text in [text.to_owned(), text.replace('\n', "\r\n")] {
            let reading = reading_of(Language::C, &text);
            assert!(reading.is_whole(), "{text}: {:?}", reading.trouble);
            let found: Vec<&str> = reading.symbols.iter().map(|it| &*it.path).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}

/// The reading says that it is incomplete, and knows the symbols beside the unreadable part.
#[test]
fn what_cannot_be_read_says_so_and_leaves_the_rest() {
    let reading =
        reading_of(Language::C, "int f(void) { return 1; }\n\nint )( g;\n\nint h(void) { return 2; }\n");
    assert!(!reading.is_whole());
    assert!(!reading.find("f").is_empty() && !reading.find("h").is_empty());
}

#[test]
fn a_header_is_read_as_c_or_cpp_by_what_it_says() {
    for (text, language) in [
        ("int f(int class_of);\nstruct s *new(void);", Language::C),
        ("// class A {};\nconst char *s = \"namespace a {\";", Language::C),
        (
            "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint f(void);\n#ifdef __cplusplus\n}\n#endif",
            Language::C,
        ),
        ("int f(int public);\nint g(int a) { return a ? b : c; }", Language::C),
        ("class A {};", Language::Cpp),
        ("namespace a { int f(); }", Language::Cpp),
        ("template <class T> T f();", Language::Cpp),
        ("struct A { private: int a; };", Language::Cpp),
        ("std::string f();", Language::Cpp),
        ("#include <vector>\nint f();", Language::Cpp),
        ("using A = int;", Language::Cpp),
        ("", Language::C),
    ] {
        assert_eq!(reading_of(Language::CHeader, text).language, language, "{text}");
    }
}

#[test]
fn files_of_c_that_programs_have_written_are_left_out() {
    for head in [
        "/* A Bison parser, made by GNU Bison 3.8.2.  */\n",
        "/****************************************************************************\n** Meta object code from reading C++ file 'a.h'\n**/\n",
        "// Generated by the protocol buffer compiler.  DO NOT EDIT!\n// source: a.proto\n",
        "#line 1 \"lex.yy.c\"\n",
        "/* Automatically @generated by tree-sitter */\n",
        "/* ----\n * This file was automatically generated by SWIG (http://www.swig.org).\n */\n",
        "/* ANSI-C code produced by gperf version 3.1 */\n",
    ] {
        let reading = reading_of(Language::C, &format!("{head}\nint f(void);\n"));
        assert_eq!(reading.trouble, [provost::syntax::Trouble::Generated], "{head}");
    }
    for text in
        ["/* Generated tables are in b.c. */\nint f(void);", "// Do not edit the tables below.\nint f(void);"]
    {
        assert!(reading_of(Language::C, text).is_whole(), "{text}");
    }
}

/// Nothing of this may take long, or fail.
#[test]
fn deep_and_hostile_c_is_read_in_time() {
    for text in [
        "(".repeat(4_000),
        "{".repeat(4_000),
        "#if A\n".repeat(4_000),
        "#endif\n".repeat(4_000),
        "#else\n".repeat(4_000),
        format!("{}{}", "#if A\n".repeat(4_000), "#endif\n".repeat(4_000)),
        format!("{}{}", "#if A\n{\n".repeat(1_000), "#endif\n".repeat(1_000)),
        "A ".repeat(4_000),
        "A(".repeat(2_000),
        "template <".repeat(4_000),
        "a<b<c<".repeat(4_000),
        "\"".repeat(3_999),
        "R\"(".to_owned(),
        "R\"x(".repeat(2_000),
        "/*".repeat(2_000),
        "#define A /*".repeat(1_000),
        "class A ".repeat(4_000),
        "a::".repeat(2_000),
        "\\\n".repeat(2_000),
        "case A: ".repeat(2_000),
        "int a, ".repeat(2_000),
        "\u{fffd}#'\"\\".repeat(1_000),
    ] {
        for language in [Language::C, Language::Cpp] {
            let begun = std::time::Instant::now();
            let _ = reading_of(language, &text);
            assert!(begun.elapsed().as_secs() < 120, "{:?} {}", language, &text[..20.min(text.len())]);
        }
    }
}
