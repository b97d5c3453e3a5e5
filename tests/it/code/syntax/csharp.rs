//! C#: what is found in a file with every construct, written down from its text.

use provost::syntax::{Kind, Language};

use super::{assert_rows, reading_of};

const TEXT: &str = r##"// Licence.
using System;
using Sys = System.Collections.Generic;
using static Acme.Util.Text;
global using Acme.Shared;
using Point = Acme.Geo.Point;

[assembly: Foo("x")]

namespace Acme.Shop
{
    using Acme.Store;

    /// <summary>A store.</summary>
    // between
    [Serializable]
    public abstract partial class Store<T> : Base<T>, IKeeper, Sys.IThing where T : class, new()
    {
        /// <summary>Most.</summary>
        public const int Most = 1, Least = 0;
        private readonly Cache<string> cache = new Cache<string>(), other;
        private Cache quick = new();
        public event EventHandler Changed;
        public event EventHandler Moved { add { Go(); } remove { } }

        static Store() { Init(); }
        public Store(int a, params string[] more) : base(a) { this.cache.Put("a"); }
        ~Store() { }

        /// <summary>Size.</summary>
        [Obsolete]
        public int Size { get; private set; } = Make();
        public Cache Kept => cache;
        public string Name
        {
            get { return Text(); }
            set { Check(value); }
        }
        public T this[int i, string k] { get => default; set { } }

        [return: NotNull]
        public async Task<U> Find<U>(this string key, [NotNull] ref int n, int z = 3) where U : T { var x = new Thing(); x.Go(); return cache.Get(key).Second(); }
        public void Find(string key) => cache?.Put(key);
        protected abstract void None();
        void IKeeper.Keep(string k) { base.Keep(k); }
        public static Store<T> operator +(Store<T> a, Store<T> b) => a;
        public static bool operator true(Store<T> a) => true;
        public static explicit operator int(Store<T> a) => 1;
        public static implicit operator List<string>(Store<T> a) => null;
        public static extern int Native(int a);
#if DEBUG
        public void Twice() { Debug(); }
#else
        public void Twice() { Release(); }
#endif
        #region Inner
        class Inner { void Deep() { Find(null); } }
        #endregion
        public struct Nested { public int A; fixed byte b[4]; }
        public enum State : byte
        {
            /// <summary>Open.</summary>
            [Foo] Open = 1,
            Paid,
        }
        public interface IKeeper<in K> : IA, IB { int N { get; } void Keep(K k); void Twice() { Keep(default); } event Action E; }
        public delegate int Handler<U>(U a, int b);
        public record Money(int Amount, [Foo] string Currency) : IA { public Money Twice() => new(Amount * 2, Currency); }
        public readonly record struct Pair(int A);

        void Anon()
        {
            int Local(int a) { return Deeper(a); }
            Func<string, int> f = s => s.Length();
            list.ForEach(x => x.Go()); list.Map(this.Find); Take(Store.Open);
            if (o is Thing t && t.Ok()) { }
            switch (o) { case Circle c when c.Fine(): c.Go(); break; case Point { X: 1 } p: p.Go(); break; }
            var y = o switch { Square q => q.Side(), _ => None2() };
            using var r = Open(); r.Read();
            using (var r2 = Open()) { r2.Read(); }
            foreach (Item it in items) { it.Run(); }
            foreach (var it2 in items) { it2.Run(); }
            try { } catch (IOException e) when (e.Bad()) { e.Print(); }
            if (Try(out Cache got)) got.Put("a");
            var (a, b) = Pair(); ((Thing)o).Go(); (o as Thing).Go(); Foo().Bar().Baz(); "s".Trim(); a[0].X(); new Acme.Geo.Point(1).Go();
            Acme.Geo.Point.Make(); global::Acme.Geo.Point.Make(); nameof(Find); typeof(int).Go();
            Cache made = new(3); made.Put(""); await made.Save(); made!.Put(""); Generic<int>(1); Store<int>.Open<int>();
            var q2 = from s in list where s.Ok() select s.Name();
        }
    }
}
namespace Other { class Lone { } }
"##;

/// Path, kind, how its source begins and ends, and its contract; empty for one that declares nothing.
const ROWS: &[(&str, Kind, &str, &str, &str)] = &[
    (
        "Store",
        Kind::Class,
        "/// <summary>A",
        "}\n    }",
        "abstract class<T> : Base<T>, IKeeper, Sys.IThing where T : class, new(); static (); (int a, params string[] more)",
    ),
    ("Store.Most", Kind::Field, "/// <summary>M", "Most = 1", "const int"),
    ("Store.Least", Kind::Field, "Least = 0;", "east = 0;", "const int"),
    ("Store.cache", Kind::Field, "private readon", "string>()", "readonly Cache<string>"),
    ("Store.other", Kind::Field, "other;", "other;", "readonly Cache<string>"),
    ("Store.quick", Kind::Field, "private Cache", "= new();", "Cache"),
    ("Store.Changed", Kind::Field, "public event E", "Changed;", "event EventHandler"),
    ("Store.Moved", Kind::Getter, "public event E", "ove { } }", "event EventHandler"),
    (
        "Store.constructor",
        Kind::Constructor,
        "static Store()",
        "Init(); }",
        "static (); (int a, params string[] more)",
    ),
    ("Store.~Store", Kind::Method, "~Store() { }", "ore() { }", "()"),
    ("Store.Size", Kind::Field, "/// <summary>S", "= Make();", "int { get; private set; }"),
    ("Store.Kept", Kind::Getter, "public Cache K", "=> cache;", "Cache { get; }"),
    ("Store.Name", Kind::Getter, "public string", "}", "string { get; set; }"),
    ("Store.this[]", Kind::Getter, "public T this[", "set { } }", "T [int i, string k] { get; set; }"),
    (
        "Store.Find",
        Kind::Method,
        "[return: NotNu",
        "cond(); }",
        "Task<U> <U>(this string key, ref int n, int z = 3) where U : T; void (string key)",
    ),
    ("Store.None", Kind::Method, "protected abst", "d None();", "abstract void ()"),
    ("Store.IKeeper.Keep", Kind::Method, "void IKeeper.K", "eep(k); }", "void (string k); void (K k)"),
    (
        "Store.operator+",
        Kind::Method,
        "public static",
        "b) => a;",
        "static Store<T> (Store<T> a, Store<T> b)",
    ),
    ("Store.operator(true)", Kind::Method, "public static", "=> true;", "static bool (Store<T> a)"),
    ("Store.operator(int)", Kind::Method, "public static", "a) => 1;", "static int (Store<T> a)"),
    (
        "Store.operator(List<string>)",
        Kind::Method,
        "public static",
        "=> null;",
        "static List<string> (Store<T> a)",
    ),
    ("Store.Native", Kind::Method, "public static", "e(int a);", "static int (int a)"),
    ("Store.Twice", Kind::Method, "public void Tw", "ebug(); }", "void (); void ()"),
    ("Store.Inner", Kind::Class, "class Inner {", "ull); } }", "class"),
    ("Store.Inner.Deep", Kind::Method, "void Deep() {", "(null); }", "void ()"),
    ("Store.Nested", Kind::Class, "public struct", "e b[4]; }", "struct"),
    ("Store.Nested.A", Kind::Field, "public int A;", "ic int A;", "int"),
    ("Store.Nested.b", Kind::Field, "fixed byte b[4", "yte b[4];", "byte"),
    ("Store.State", Kind::Enum, "public enum St", "}", "enum : byte { Open, Paid }"),
    ("Store.State.Open", Kind::Field, "/// <summary>O", "Open = 1", ""),
    ("Store.State.Paid", Kind::Field, "Paid", "Paid", ""),
    (
        "Store.IKeeper",
        Kind::Interface,
        "public interfa",
        "tion E; }",
        "interface<in K> : IA, IB { int N { get; } void Keep(K k); event Action E; }",
    ),
    ("Store.IKeeper.N", Kind::Field, "int N { get; }", "{ get; }", "int { get; }"),
    ("Store.IKeeper.Twice", Kind::Method, "void Twice() {", "fault); }", "void ()"),
    ("Store.IKeeper.E", Kind::Field, "event Action E", "Action E;", "event Action"),
    ("Store.Handler", Kind::TypeAlias, "public delegat", ", int b);", "delegate int <U>(U a, int b)"),
    ("Store.Money", Kind::Class, "public record", "rency); }", "record(int Amount, string Currency) : IA"),
    ("Store.Money.Amount", Kind::Field, "int Amount", "nt Amount", "int"),
    ("Store.Money.Currency", Kind::Field, "[Foo] string C", "Currency", "string"),
    ("Store.Money.Twice", Kind::Method, "public Money T", "urrency);", "Money ()"),
    ("Store.Pair", Kind::Class, "public readonl", "r(int A);", "readonly record(int A)"),
    ("Store.Pair.A", Kind::Field, "int A", "int A", "int"),
    ("Store.Anon", Kind::Method, "void Anon()", "}", "void ()"),
    ("Store.Anon.Local", Kind::Function, "int Local(int", "per(a); }", "int (int a)"),
    ("Lone", Kind::Class, "class Lone { }", "Lone { }", "class"),
];

#[test]
fn everything_in_a_c_sharp_file_is_found_with_its_range_and_its_contract_and_nothing_else() {
    assert_rows(Language::CSharp, TEXT, ROWS);
}

#[test]
fn both_branches_of_a_condition_are_there_and_overloads_are_definitions_of_one_symbol() {
    let reading = reading_of(Language::CSharp, TEXT);
    assert_eq!(reading.find("Store.Twice").len(), 2);
    assert_eq!(reading.find("Store.Find").len(), 2);
    assert_eq!(reading.find("Acme.Shop.Store").len(), 1, "by its full name");
    let calls: Vec<&str> = reading.calls.iter().map(|it| &*it.callee.name).collect();
    assert!(calls.contains(&"Debug") && calls.contains(&"Release"), "{calls:?}");
}

#[test]
fn a_namespace_makes_no_difference_to_names_whichever_form_it_has() {
    let of = |text: &str| {
        let reading = reading_of(Language::CSharp, text);
        assert!(reading.is_whole(), "{:?}", reading.trouble);
        let names: Vec<String> = reading.symbols.iter().map(|it| it.path.to_string()).collect();
        let exports: Vec<String> = reading.exports.iter().map(|it| it.name.to_string()).collect();
        (names, exports)
    };
    let one = of("namespace A.B;\nclass C { int d; }\n");
    assert_eq!(one, (vec!["C".into(), "C.d".into()], vec!["A.B.C".into()]));
    assert_eq!(of("namespace A.B { class C { int d; } }\n"), one);
    assert_eq!(of("namespace A { namespace B { class C { int d; } } }\n"), one);
}

#[test]
fn a_contract_of_c_sharp_is_the_same_however_it_is_written() {
    let canon = |text: &str| {
        let text = format!("class A {{\n{text}\n}}\n");
        reading_of(Language::CSharp, &text).contract("A.F").unwrap().canon
    };
    let one = canon("public List<T> F<T>(int a, ref string b) where T : class { return null; }");
    for same in [
        "/// <summary>Doc.</summary>\n[Obsolete]\ninternal List<T> F<T>(\n    int a, // first\n    [In] ref string b\n) where T : class => null;",
        "List < T > F < T >( int a , ref string b )\n  where T : class { }",
    ] {
        assert_eq!(canon(same), one, "{same}");
    }
    for other in [
        "public List<T> F<T>(int a, string b) where T : class { return null; }",
        "public List<T> F<T>(int a, ref string b) { return null; }",
        "public static List<T> F<T>(int a, ref string b) where T : class { return null; }",
        "public int F { get; set; }",
    ] {
        assert_ne!(canon(other), one, "{other}");
    }
    assert_ne!(canon("public int F { get; set; }"), canon("public int F { get; private set; }"));
    assert_eq!(canon("public int F { get { return 1; } }"), canon("public int F => 2;"));
}

#[test]
fn what_a_program_has_written_in_c_sharp_is_left_out() {
    use provost::syntax::Trouble;
    for text in [
        "//------------------------------------------------------------------------------\n// <auto-generated>\n//     This code was \
         generated by a tool.\n// </auto-generated>\nnamespace A { class B { } }\n",
        "/* <autogenerated /> */\nclass B { }\n",
        "#pragma warning disable 1591\n// <auto-generated/>\nclass B { }\n",
    ] {
        assert_eq!(reading_of(Language::CSharp, text).trouble, [Trouble::Generated], "{text}");
    }
    for text in
        ["using A; // not generated\nclass B { }\n", "// This is by hand, do not edit.\nclass B { }\n"]
    {
        assert!(reading_of(Language::CSharp, text).is_whole(), "{text}");
    }
}
