//! What an edit touches, by the text before and after it.

use provost::syntax::{Language, Moves, ParseDeadline, Version, read, touched};

const PYTHON: &str = "import os\n\n\n# Opens.\ndef open_it():\n    return 1\n\n\nclass S:\n    x = 1\n\n    def a(self):\n        \
                      return 1\n\n    def b(self):\n        return 2\n";

const SCRIPT: &str = "import { x } from './x'\n\n/** Opens. */\nexport function open() { return 1 }\n\nexport class S {\n  a() { \
                      return 1 }\n\n  b() { return 2 }\n}\n";

#[track_caller]
fn touches(language: Language, old: &str, new: &str) -> Vec<String> {
    let patience = ParseDeadline::default();
    let (before, after) =
        (read(language, old.as_bytes(), &patience), read(language, new.as_bytes(), &patience));
    let old = Version { reading: &before, bytes: old.as_bytes() };
    let new = Version { reading: &after, bytes: new.as_bytes() };
    touched(old, new).into_iter().map(String::from).collect()
}

#[test]
fn an_edit_touches_the_innermost_symbols_that_change_and_the_file_for_what_is_in_none() {
    use Language::{Python, TypeScript};
    let cases = [
        (Python, PYTHON, "return 1\n\n\nclass", "return 3\n\n\nclass", &["open_it"][..]),
        (Python, PYTHON, "# Opens.", "# Opens it.", &["open_it"]),
        (Python, PYTHON, "        return 2", "        return 3", &["S.b"]),
        (Python, PYTHON, "    x = 1", "    x = 2", &["S.x"]),
        (Python, PYTHON, "class S:", "class S(T):", &["S"]),
        (
            Python,
            PYTHON,
            "    def b(self)",
            "    def c(self):\n        return 3\n\n    def b(self)",
            &["S.c"],
        ),
        (Python, PYTHON, "import os", "import io", &[""]),
        (Python, PYTHON, "\n\n\nclass", "\n\n\n\n\nclass", &[]),
        (Python, PYTHON, "def open_it", "def close_it", &["close_it", "open_it"]),
        (TypeScript, SCRIPT, "return 1 }\n\nexport", "return 3 }\n\nexport", &["open"]),
        (TypeScript, SCRIPT, "/** Opens. */", "/** Opens it. */", &["open"]),
        (TypeScript, SCRIPT, "export function", "function", &["open"]),
        (TypeScript, SCRIPT, "return 2", "return 3", &["S.b"]),
        (TypeScript, SCRIPT, "\nexport class", "\n// New.\nexport const y = 1;\n\nexport class", &["y"]),
        (TypeScript, SCRIPT, "import { x }", "import { y }", &[""]),
        // What does not parse is around the change.
        (TypeScript, SCRIPT, "return 2 }", "return ( }", &["S.b"]),
        (TypeScript, SCRIPT, "import { x }", "import { x", &[""]),
        (TypeScript, "function (((", "(((", "((((", &[""]),
    ];
    for (language, text, old, new, expected) in cases {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        assert_eq!(touches(language, text, &text.replace(old, new)), expected, "{old:?} -> {new:?}");
    }
    assert!(touches(Python, PYTHON, PYTHON).is_empty());
}

#[test]
fn a_symbol_has_moved_if_its_place_among_the_others_has() {
    let file =
        |names: &str| -> String { names.chars().map(|it| format!("def {it}():\n    pass\n\n")).collect() };
    let moved = |old: &str, new: &str, name: &str| {
        let patience = ParseDeadline::default();
        let read = |text: &str| read(Language::Python, file(text).as_bytes(), &patience);
        Moves::of(&read(old), &read(new)).has(name)
    };
    assert!(!moved("abc", "abc", "b") && !moved("abc", "axbyc", "b") && !moved("abc", "ac", "b"));
    assert!(moved("abc", "bca", "a") && !moved("abc", "bca", "b") && !moved("abc", "bca", "c"));
    // Of two that change places, it cannot be told which one has moved.
    assert!(moved("ab", "ba", "a") && moved("ab", "ba", "b"));
}
