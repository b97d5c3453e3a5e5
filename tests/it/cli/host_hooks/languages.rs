//! An edit of a file in any language takes the function that it changes, and nothing beside it.

use std::fs;

use serde_json::{Value, json};

use super::world;
use crate::support::World;
use crate::support::host_hooks::recorded;

const CLAUDE: &str = "claude-2b64a1f3c001";

const RUST: &str = "use std::fmt;\n\n/// A store.\npub struct Store {\n    size: u32,\n}\n\nimpl Store {\n    /// Finds.\n    \
                    pub fn find(&self) -> u32 {\n        1\n    }\n\n    pub fn grow(&mut self) {\n        self.size += 2;\n    \
                    }\n}\n\nimpl fmt::Display for Store {\n    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {\n        \
                    f.write_str(\"three\")\n    }\n}\n";

const RUBY: &str = "module Shop\n  # Keeps.\n  class Store\n    attr_reader :size\n\n    # Finds.\n    def find(key)\n      key + 1\n    \
                    end\n\n    def self.open\n      new\n    end\n  end\nend\n";

const PHP: &str = "<?php\nnamespace Shop;\n\nclass Store\n{\n    private int $size = 0;\n\n    /** Finds. */\n    public function \
                   find(int $key): int\n    {\n        return $key + 1;\n    }\n\n    public static function open(): self\n    {\n        \
                   return new static();\n    }\n}\n";

const GO: &str = "package main\n\ntype Store struct {\n\tsize int\n}\n\n// Find finds.\nfunc (s *Store) Find() int {\n\treturn 1\n}\n\n\
                  func main() {\n\tprintln(2)\n}\n";

const C: &str = "#include <stdio.h>\n\n#define API\n\n/** Finds. */\nAPI int find(const char *key)\n{\n    return key[0] + 1;\n}\n\n\
                 #ifdef WIDE\nint wide(int a) {\n#else\nint wide(long a) {\n#endif\n    return 7;\n}\n";

const CPP: &str = "#pragma once\n\nnamespace shop {\n\nclass Store {\npublic:\n    int find() const { return 1; }\n    int grow(int by);\n};\n\n\
                   inline int Store::grow(int by)\n{\n    return by + 2;\n}\n\n} // namespace shop\n";

fn edit(world: &World, file: &str, old: &str, new: &str) -> Value {
    let mut told = recorded(world, "claude/edit");
    told["tool_input"]["file_path"] = json!(world.repo().join(file));
    told["tool_input"]["old_string"] = json!(old);
    told["tool_input"]["new_string"] = json!(new);
    told
}

/// Returns the held symbols of a file.
fn held(world: &World, file: &str) -> Vec<String> {
    let locks = world.done("x", &["lock", "list"])["locks"].clone();
    let symbols = locks.as_array().unwrap().iter().map(|it| it["symbol"].as_str().unwrap().to_owned());
    let mut found: Vec<String> = symbols.filter(|it| it.starts_with(file)).collect();
    found.sort();
    found
}

#[test]
fn an_edit_in_rust_and_go_holds_the_symbol_and_an_edit_that_another_has_is_refused_by_name() {
    let world = world("claude");
    world.configure("");
    world.write("src/store.rs", RUST);
    world.write("main.go", GO);
    world.write("lib/store.rb", RUBY);
    world.write("src/Store.php", PHP);
    world.write("src/find.c", C);
    world.write("src/store.h", CPP);
    world.write("page.zig", "const one = 1;\n");
    let _daemon = world.start();
    for (file, old, new, symbol) in [
        ("src/store.rs", "        1\n", "        4\n", "src/store.rs:Store.find"),
        ("src/store.rs", "three", "four", "src/store.rs:Store.Display.fmt"),
        // It does not parse, and is known by its place.
        ("src/store.rs", "+= 2;", "+= (2;", "src/store.rs:Store.grow"),
        ("main.go", "return 1", "return 3", "main.go:Store.Find"),
        ("main.go", "println(2)", "println((2", "main.go:main"),
        ("lib/store.rb", "key + 1", "key + 2", "lib/store.rb:Shop.Store.find"),
        ("lib/store.rb", "      new\n", "      new((\n", "lib/store.rb:Shop.Store.open"),
        ("src/Store.php", "$key + 1", "$key + 2", "src/Store.php:Store.find"),
        ("src/Store.php", "new static()", "new static((", "src/Store.php:Store.open"),
        ("src/find.c", "+ 1", "+ 3", "src/find.c:find"),
        ("src/find.c", "return 7", "return (8", "src/find.c:wide"),
        ("src/store.h", "return 1", "return 3", "src/store.h:shop.Store.find"),
        ("src/store.h", "by + 2", "by + ((2", "src/store.h:shop.Store.grow"),
        ("page.zig", "one", "two", "page.zig:"),
    ] {
        world.goes_on("claude", &edit(&world, file, old, new));
        let all = held(&world, file);
        assert!(
            all.iter().any(|it| it == symbol || *it == symbol.trim_end_matches(':')),
            "{symbol}: {all:?}"
        );
    }
    let mut other = edit(&world, "src/store.rs", "        1\n", "        5\n");
    other["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    let why = world.is_refused("claude", &other);
    assert!(why.contains("src/store.rs:Store.find") && why.contains(CLAUDE), "{why}");
    // The field beside is free.
    let mut beside = edit(&world, "src/store.rs", "size: u32", "size: u64");
    beside["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    world.goes_on("claude", &beside);
    assert!(fs::metadata(world.repo().join("src/store.rs")).is_ok());
}

const JAVA: &str = "package p;\n\n/** A store. */\nclass Store {\n    int size;\n\n    /** Finds. */\n    @Deprecated\n    int find() {\n        \
                    return 1;\n    }\n\n    enum State {\n        OPEN { int code() { return 2; } };\n        int code() { return 3; }\n    \
                    }\n}\n";

const CSHARP: &str = "namespace P\n{\n    /// <summary>A store.</summary>\n    public partial class Store\n    {\n        int size;\n\n        \
                      [Obsolete]\n        public int Find()\n        {\n            return 1;\n        }\n\n#if X\n        int Code() { return 2; \
                      }\n#else\n        int Code() { return 3; }\n#endif\n    }\n}\n";

#[test]
fn an_edit_in_c_sharp_holds_the_member_that_it_is_in() {
    let world = world("claude");
    world.configure("");
    world.write("src/Store.cs", CSHARP);
    let _daemon = world.start();
    for (old, new, symbol) in [
        ("return 1", "return 4", "Store.Find"),
        ("return 3", "return (5", "Store.Code"),
        ("int size", "long size", "Store.size"),
    ] {
        world.goes_on("claude", &edit(&world, "src/Store.cs", old, new));
        let all = held(&world, "src/Store.cs");
        assert!(all.contains(&format!("src/Store.cs:{symbol}")), "{symbol}: {all:?}");
    }
    let mut other = edit(&world, "src/Store.cs", "return 1", "return 6");
    other["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    let why = world.is_refused("claude", &other);
    assert!(why.contains("src/Store.cs:Store.Find") && why.contains(CLAUDE), "{why}");
}

const KOTLIN: &str = "package p\n\n/** A store. */\nclass Store(val size: Int) {\n    /** Finds. */\n    @Deprecated\n    fun find(): Int {\n        \
                      return 1\n    }\n\n    companion object {\n        fun code() = 2\n    }\n}\n\nfun Store.total() = 3\n";

#[test]
fn an_edit_in_kotlin_holds_the_function_that_it_is_in() {
    let world = world("claude");
    world.configure("");
    world.write("src/Store.kt", KOTLIN);
    let _daemon = world.start();
    for (old, new, symbol) in [
        ("return 1", "return 4", "Store.find"),
        ("code() = 2", "code() = (5", "Store.Companion.code"),
        ("total() = 3", "total() = 6", "Store.total"),
        ("val size: Int", "val size: Long", "Store.size"),
    ] {
        world.goes_on("claude", &edit(&world, "src/Store.kt", old, new));
        let all = held(&world, "src/Store.kt");
        assert!(all.contains(&format!("src/Store.kt:{symbol}")), "{symbol}: {all:?}");
    }
    let mut other = edit(&world, "src/Store.kt", "return 1", "return 6");
    other["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    let why = world.is_refused("claude", &other);
    assert!(why.contains("src/Store.kt:Store.find") && why.contains(CLAUDE), "{why}");
}

#[test]
fn an_edit_in_java_holds_the_method_that_it_is_in() {
    let world = world("claude");
    world.configure("");
    world.write("src/Store.java", JAVA);
    let _daemon = world.start();
    for (old, new, symbol) in [
        ("return 1", "return 4", "Store.find"),
        ("return 2", "return (5", "Store.State.OPEN.code"),
        ("int size", "long size", "Store.size"),
    ] {
        world.goes_on("claude", &edit(&world, "src/Store.java", old, new));
        let all = held(&world, "src/Store.java");
        assert!(all.contains(&format!("src/Store.java:{symbol}")), "{symbol}: {all:?}");
    }
    let mut other = edit(&world, "src/Store.java", "return 1", "return 6");
    other["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    let why = world.is_refused("claude", &other);
    assert!(why.contains("src/Store.java:Store.find") && why.contains(CLAUDE), "{why}");
}

#[test]
fn a_file_that_a_program_has_written_is_held_whole_and_the_answer_says_why() {
    let world = world("claude");
    world.write("api.pb.go", "// Code generated by protoc. DO NOT EDIT.\n\npackage api\n\nfunc F() {}\n");
    let _daemon = world.start();
    let granted = world.done("codex-1", &["lock", "api.pb.go:F"]);
    assert!(granted.to_string().contains("a program has written it"), "{granted}");
}

#[test]
fn a_lock_in_a_file_whose_language_is_not_read_says_that_the_whole_file_is_held() {
    let world = world("claude");
    world.configure("");
    world.write("page.zig", "const one = 1;\n");
    let _daemon = world.start();
    let granted = world.done("codex-1", &["lock", "page.zig:one"]).to_string();
    assert!(granted.contains("unread_file") && granted.contains("takes the whole file"), "{granted}");
    // And it is so.
    let why = world.is_refused("claude", &edit(&world, "page.zig", "= 1", "= 2"));
    assert!(why.contains("page.zig") && why.contains("codex-1"), "{why}");
    let whole = world.done("codex-2", &["lock", "README.md"]).to_string();
    assert!(!whole.contains("unread_file"), "{whole}");
}

#[test]
fn a_lock_on_a_name_in_a_part_that_does_not_parse_says_so() {
    let world = world("claude");
    world.write("half.rs", "pub fn one() -> u32 {\n    1\n}\n\npub fn two( -> {{{\n");
    let _daemon = world.start();
    let kinds = |symbol: &str| {
        let granted = world.done("codex-1", &["lock", &format!("half.rs:{symbol}")]);
        let warnings = granted["warnings"].as_array().expect("warnings").clone();
        let kinds = warnings.iter().map(|it| it["kind"].as_str().unwrap_or_default().to_owned());
        // Each answer says that a file does not parse, so that callers may be missing.
        kinds.filter(|it| it != "incomplete").collect::<Vec<_>>()
    };
    assert_eq!(kinds("one"), [""; 0]);
    assert_eq!(kinds("two"), ["unread_file"]);
    assert_eq!(kinds("three"), ["unknown_symbol"]);
}

const SWIFT: &str = "import Foundation\n\n/// A store.\npublic final class Store {\n    var size: Int = 0\n\n    /// Finds.\n    \
                     @discardableResult\n    func find(by key: String) -> Int {\n        return 1\n    }\n}\n\nextension Store: \
                     Keeper {\n    func keep() { code(2) }\n    func drop(by key: Int, at: Int) {}\n}\n\n#if os(iOS)\nfunc wide() { code(3) }\n#else\nfunc wide() { code(4) \
                     }\n#endif\n";

#[test]
fn an_edit_in_swift_holds_the_member_that_it_is_in() {
    let world = world("claude");
    world.configure("");
    world.write("Sources/Shop/Store.swift", SWIFT);
    let _daemon = world.start();
    for (old, new, symbol) in [
        ("return 1", "return 5", "Store.find"),
        ("code(2)", "code((6", "Store.keep"),
        ("code(4)", "code(7)", "wide"),
        ("size: Int", "size: Int64", "Store.size"),
    ] {
        world.goes_on("claude", &edit(&world, "Sources/Shop/Store.swift", old, new));
        let all = held(&world, "Sources/Shop/Store.swift");
        assert!(all.contains(&format!("Sources/Shop/Store.swift:{symbol}")), "{symbol}: {all:?}");
    }
    let mut other = edit(&world, "Sources/Shop/Store.swift", "return 1", "return 6");
    other["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    let why = world.is_refused("claude", &other);
    assert!(why.contains("Store.swift:Store.find") && why.contains(CLAUDE), "{why}");
    // A name as people write it there.
    let granted = world.done("codex-1", &["lock", "Sources/Shop/Store.swift:Store.drop(by:at:)"]).to_string();
    assert!(!granted.contains("unknown_symbol"), "{granted}");
}

#[test]
fn what_is_known_of_each_language_is_told_without_a_daemon() {
    let world = World::new();
    let said = world.command(&["graph", "languages", "--json"]).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    let names: Vec<&str> =
        said["languages"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    let expected = [
        "TypeScript",
        "TSX",
        "JavaScript",
        "Python",
        "Rust",
        "Go",
        "Java",
        "C#",
        "Kotlin",
        "Ruby",
        "PHP",
        "Swift",
        "C",
        "C++",
        "C or C++ header",
    ];
    assert_eq!(names, expected);
    for row in said["languages"].as_array().unwrap() {
        for part in ["exact", "guessed", "unknown"] {
            assert!(row[part].as_str().unwrap().len() > 20, "{row}");
        }
    }
    assert!(said["others"].as_str().unwrap().contains("as a whole"), "{said}");
    let text = world.command(&["graph", "languages"]).output().unwrap();
    assert!(String::from_utf8_lossy(&text.stdout).contains("Rust (.rs)"), "{text:?}");
}
