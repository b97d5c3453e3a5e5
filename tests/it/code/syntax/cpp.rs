//! C++: what is found in a file with every construct, written down from its text.

use provost::syntax::{Kind, Language};

use super::c::{Row, assert_rows};
use super::{paths, reading_of};

const TEXT: &str = r##"// A file of C++ with every construct.
#include "a.hpp"
#include <vector>

namespace shop::detail {

/// Counts.
[[nodiscard]] inline int count(int a = 1) noexcept { return a; }

namespace {
int hidden;
}

inline namespace v1 {
class Versioned {};
} // namespace v1

} // namespace shop::detail

namespace shop {

template <typename T, int N>
class Store : public Base<T>, private detail::Other {
    Q_OBJECT
public:
    using Key = std::string;
    enum class Mode : char { Read, Write = 2 };
    struct Inner {
        int depth;
    };

    explicit Store(int size);
    Store(const Store &) = delete;
    ~Store();

    /** Finds. */
    virtual T *find(const Key &key) const noexcept override;
    virtual int size() const = 0;
    int find(int at);
    static Store open();
    Store &operator=(const Store &other);
    bool operator()(int a) const { return a; }
    operator bool() const;
    friend bool operator==(const Store &a, const Store &b) { return true; }

signals:
    void changed(int to);

protected:
    int size_ = 0, *more_;
    std::unique_ptr<Inner> inner_;
    void (*callback_)(int);
};

template <>
struct Hash<Store<int, 1>> {
    int operator()(const Store<int, 1> &it) const;
};

template <typename T, int N>
T *Store<T, N>::find(const Key &key) const noexcept
{
    return nullptr;
}

template <>
int Store<int, 1>::size() const { return 1; }

} // namespace shop

shop::Plain::Plain(int a) : a_(a) {}
shop::Plain::~Plain() {}
int shop::Plain::get() const { return a_; }
int shop::Plain::shared = 0;

extern "C" {
int c_function(void);
}
extern "C" int c_alone(int);

template <typename T>
concept Addable = requires(T a) { a + a; };

template <typename T>
using Vec = std::vector<T>;

template <Addable T, FMT_ENABLE_IF(true)>
auto sum(T a, T b) -> T { return a + b; }

class EXPORT_API Exported final : public QObject {};

auto twice = [](int a) { return a * 2; };
static const int limit = 3;
constexpr int operator""_km(unsigned long long a) { return a; }

int outer()
{
    auto inner = [&](int a) { return a; };
    return inner(1);
}
"##;

const ROWS: &[Row] = &[
    ("shop", Kind::Namespace, "namespace shop::detail {", "}", ""),
    ("shop.detail", Kind::Namespace, "detail {", "}", ""),
    ("shop.detail.count", Kind::Function, "/// Counts.", "cept { return a; }", "int (int a = 1) noexcept"),
    ("shop.detail.hidden", Kind::Variable, "int hidden;", "int hidden;", "int"),
    ("shop.detail.Versioned", Kind::Class, "class Versioned {}", "class Versioned {}", "class"),
    (
        "shop.Store",
        Kind::Class,
        "template <typename T, int",
        "}",
        "template <typename T, int N> class : public Base<T>, private detail::Other; explicit (int size); (const Store &) = delete",
    ),
    ("shop.Store.Key", Kind::TypeAlias, "using Key = std::string;", "Key = std::string;", "= std::string"),
    (
        "shop.Store.Mode",
        Kind::Enum,
        "enum class Mode : char { R",
        "Read, Write = 2 }",
        "enum : char { Read, Write = 2 }",
    ),
    ("shop.Store.Mode.Read", Kind::Field, "Read", "Read", ""),
    ("shop.Store.Mode.Write", Kind::Field, "Write = 2", "Write = 2", "= 2"),
    ("shop.Store.Inner", Kind::Class, "struct Inner {", "}", "struct { int depth; }"),
    ("shop.Store.Inner.depth", Kind::Field, "int depth;", "int depth;", "int"),
    (
        "shop.Store.Store",
        Kind::Constructor,
        "explicit Store(int size);",
        "t Store(int size);",
        "explicit (int size); (const Store &) = delete",
    ),
    ("shop.Store.~Store", Kind::Method, "~Store();", "~Store();", "()"),
    (
        "shop.Store.find",
        Kind::Method,
        "/** Finds. */",
        "noexcept override;",
        "T *(const Key &key) const noexcept; int (int at); template <typename T, int N> T *(const Key &key) const noexcept",
    ),
    ("shop.Store.size", Kind::Method, "virtual int size() const =", "size() const = 0;", "int () const"),
    ("shop.Store.open", Kind::Method, "static Store open();", "atic Store open();", "static Store ()"),
    (
        "shop.Store.operator=",
        Kind::Method,
        "Store &operator=(const Sto",
        "nst Store &other);",
        "Store &(const Store &other)",
    ),
    (
        "shop.Store.operator()",
        Kind::Method,
        "bool operator()(int a) con",
        "onst { return a; }",
        "bool (int a) const",
    ),
    (
        "shop.Store.operator bool",
        Kind::Method,
        "operator bool() const;",
        "ator bool() const;",
        "bool() const",
    ),
    (
        "shop.Store.operator==",
        Kind::Method,
        "friend bool operator==(con",
        ") { return true; }",
        "bool (const Store &a, const Store &b)",
    ),
    ("shop.Store.changed", Kind::Method, "void changed(int to);", "d changed(int to);", "void (int to)"),
    ("shop.Store.size_", Kind::Field, "int size_", "size_", "int"),
    ("shop.Store.more_", Kind::Field, "*more_;", "*more_;", "int *"),
    (
        "shop.Store.inner_",
        Kind::Field,
        "std::unique_ptr<Inner> inn",
        "ptr<Inner> inner_;",
        "std::unique_ptr<Inner>",
    ),
    ("shop.Store.callback_", Kind::Field, "void (*callback_)(int);", "(*callback_)(int);", "void (*)(int)"),
    ("shop.Hash<Store<int,1>>", Kind::Class, "template <>", "}", "struct"),
    (
        "shop.Hash<Store<int,1>>.operator()",
        Kind::Method,
        "int operator()(const Store",
        "nt, 1> &it) const;",
        "int (const Store<int, 1> &it) const",
    ),
    ("shop.Store<int,1>.size", Kind::Method, "template <>", "onst { return 1; }", "int () const"),
    ("shop.Plain.Plain", Kind::Constructor, "shop::Plain::Plain(int a)", "(int a) : a_(a) {}", "(int a)"),
    ("shop.Plain.~Plain", Kind::Method, "shop::Plain::~Plain() {}", "Plain::~Plain() {}", "()"),
    ("shop.Plain.get", Kind::Method, "int shop::Plain::get() con", "nst { return a_; }", "int () const"),
    ("shop.Plain.shared", Kind::Variable, "int shop::Plain::shared =", "Plain::shared = 0;", "int"),
    ("c_function", Kind::Function, "int c_function(void);", "c_function(void);", "int (void)"),
    ("c_alone", Kind::Function, "extern \"C\" int c_alone(int", "int c_alone(int);", "int (int)"),
    (
        "Addable",
        Kind::Interface,
        "template <typename T>",
        "s(T a) { a + a; };",
        "template <typename T> concept = requires(T a) { a + a; }",
    ),
    (
        "Vec",
        Kind::TypeAlias,
        "template <typename T>",
        "= std::vector<T>;",
        "template <typename T> = std::vector<T>",
    ),
    (
        "sum",
        Kind::Function,
        "template <Addable T, FMT_E",
        "{ return a + b; }",
        "template <Addable T, FMT> auto (T a, T b) -> T",
    ),
    ("Exported", Kind::Class, "class EXPORT_API Exported", "public QObject {}", "class : public QObject"),
    ("twice", Kind::Function, "auto twice = [](int a) { r", "{ return a * 2; };", "(int a)"),
    ("limit", Kind::Variable, "static const int limit = 3", "nst int limit = 3;", "static const int"),
    (
        "operator\"\"_km",
        Kind::Function,
        "constexpr int operator\"\"_k",
        "g a) { return a; }",
        "constexpr int (unsigned long long a)",
    ),
    ("outer", Kind::Function, "int outer()", "}", "int ()"),
    ("outer.inner", Kind::Function, "auto inner = [&](int a) {", "a) { return a; };", "(int a)"),
];

#[test]
fn everything_in_a_cpp_file_is_found_with_its_range_and_its_contract_and_nothing_else() {
    assert_rows(Language::Cpp, TEXT, ROWS);
    let reading = reading_of(Language::Cpp, TEXT);
    assert_eq!(reading.find("shop.Store.find").len(), 3, "overloads and the definition outside of the class");
    assert_eq!(reading.find("shop").len(), 2, "a namespace that is opened twice");
    assert_eq!(paths(&reading, "get"), ["shop.Plain.get"]);
    let hidden: Vec<&str> = reading.symbols.iter().filter(|it| !it.exported).map(|it| &*it.path).collect();
    assert_eq!(hidden, ["shop.detail.hidden", "limit"]);
}

#[test]
fn a_contract_of_cpp_is_the_same_however_it_is_written() {
    let canon = |text: &str| reading_of(Language::Cpp, &format!("{text}\n")).contract("f").unwrap().canon;
    let one = canon("int f(const std::string &key, int n = 2) noexcept;");
    assert_eq!(
        canon(
            "[[nodiscard]] inline int f(\n    const std::string &k, // first\n    int m = 2) noexcept { return 1; }"
        ),
        one
    );
    for other in [
        "int f(std::string &key, int n = 2) noexcept;",
        "int f(const std::string &key, int n = 3) noexcept;",
        "int f(const std::string &key, int n = 2);",
        "template <class T> int f(const std::string &key, int n = 2) noexcept;",
    ] {
        assert_ne!(canon(other), one, "{other}");
    }
    let method = |text: &str| {
        reading_of(Language::Cpp, &format!("struct s {{ {text} }};\n")).contract("s.f").unwrap().canon
    };
    assert_eq!(
        method("int f() const override;"),
        method("virtual int f() const final { return 1; }"),
        "what its callers see"
    );
    assert_ne!(method("int f() const;"), method("int f();"));
    assert_ne!(method("int f();"), method("static int f();"));
    assert_ne!(method("int f();"), method("int f() = delete;"));
}

#[test]
fn templates_within_templates_and_scopes_within_scopes_keep_their_names() {
    let text = "namespace a { namespace b {\ntemplate <class T> struct X {\n  template <class U> struct Y { U get(); };\n  template <class U> void take(U u);\n};\n\
                template <class T> template <class U> U X<T>::Y<U>::get() { return {}; }\n\
                template <class T> template <class U> void X<T>::take(U u) {}\n\
                template <> template <> inline int X<int>::Y<long>::get() { return 1; }\n} }\n";
    let reading = reading_of(Language::Cpp, text);
    assert!(reading.is_whole(), "{:?}", reading.trouble);
    let found: Vec<&str> = reading.symbols.iter().map(|it| &*it.path).collect();
    assert_eq!(
        found,
        [
            "a",
            "a.b",
            "a.b.X",
            "a.b.X.Y",
            "a.b.X.Y.get",
            "a.b.X.take",
            "a.b.X.Y.get",
            "a.b.X.take",
            "a.b.X<int>.Y<long>.get"
        ]
    );
}

#[test]
fn templates_of_any_depth_are_read_and_comparisons_and_shifts_are_none() {
    for depth in [2, 7, 9, 12, 60] {
        let text = format!("{}int{} x;\nint next() {{ return 1; }}\n", "A<".repeat(depth), ">".repeat(depth));
        let reading = reading_of(Language::Cpp, &text);
        assert!(reading.is_whole(), "{depth}: {:?}", reading.trouble);
        assert_eq!(reading.find("next").len(), 1, "{depth}");
    }
    let text = "bool f(int a) { return a < 1 && a < 2 && a < 3 && a < 4 && a < 5 && a < 6 && a < 7 && g<int>(a >> 1) > p->q; }\n\
                int h() { return call(1) << 1 << 2 << 3 << 4 << 5 << 6 << 7 >> 8 >> other(2); }\n";
    let reading = reading_of(Language::Cpp, text);
    let called: Vec<&str> = reading.calls.iter().map(|it| &*it.callee.name).collect();
    assert!(reading.is_whole() && called == ["g", "call", "other"], "{called:?} {:?}", reading.trouble);
}

#[test]
fn macros_in_classes_and_before_members_are_read_around() {
    for (text, expected) in [
        ("class A : public B {\n  Q_OBJECT\npublic slots:\n  void go();\n};", &["A", "A.go"][..]),
        (
            "struct A {\n  int size GUARDED_BY(mutex);\n  std::vector<int *> all GUARDED_BY(mutex);\n};",
            &["A", "A.size", "A.all"],
        ),
        (
            "class RE2 {\npublic:\n  RE2(const char *p);\n  API RE2(int a) : n(a) {}\n};",
            &["RE2", "RE2.RE2", "RE2.RE2"],
        ),
        (
            "LIB_BEGIN_NAMESPACE\ntemplate <class T, ENABLE_IF(true)> API void f(T t) {}\nLIB_END_NAMESPACE\n",
            &["f"],
        ),
        ("template class A<int>;\nextern template class B<int>;\nint f();", &["f"]),
        ("#if HAS(<a>)\nint f() { return 1; }\n#endif\n", &["f"]),
        ("void f() { auto a = new const char *[3]; }", &["f"]),
    ] {
        let reading = reading_of(Language::Cpp, text);
        assert!(reading.is_whole(), "{text}: {:?}", reading.trouble);
        let found: Vec<&str> = reading.symbols.iter().map(|it| &*it.path).collect();
        assert_eq!(found, expected, "{text}");
    }
}
