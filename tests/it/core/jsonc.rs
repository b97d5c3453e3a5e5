//! JSON with comments: what is read, and what is refused in which words.

use provost::base::jsonc::{parse, parse_with_trailing_commas};
use provost::base::limits::JSONC_DEPTH_MAX;
use serde_json::{Value, json};

/// Reads a text with both readers: the one that takes no comma before a closing bracket, and the one that does.
fn read(text: &str) -> [Result<Value, String>; 2] {
    [parse(text), parse_with_trailing_commas(text)].map(|it| it.map(|tree| tree.value.into()))
}

#[test]
fn json_and_comments_are_read_and_commas_before_a_bracket_where_they_may_stand() {
    for (text, value) in [
        ("{}", json!({})),
        (" \t\r\n[ ] \r\n", json!([])),
        (
            "// a\r\n{ /* [ , */ \"a\": /**/ 1 // }\n, \"b\":[true,null]}// end",
            json!({ "a": 1, "b": [true, null] }),
        ),
        (
            r#"["\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t", "//", "/*", ","]"#,
            json!(["é😀\"\\/\u{8}\u{c}\n\r\t", "//", "/*", ","]),
        ),
        ("[-0.5, 2.5e3, 1E-2, 18446744073709551615]", json!([-0.5, 2500.0, 0.01, u64::MAX])),
        (r#"{"z":1,"a":2,"z":3}"#, json!({ "z": 3, "a": 2 })),
    ] {
        assert_eq!(read(text), [Ok(value.clone()), Ok(value)], "{text}");
    }
    for (text, value) in [("[1,]", json!([1])), ("{\"a\":[2, /* x */ ], // y\n}", json!({ "a": [2] }))] {
        let [strict, loose] = read(text);
        assert!(strict.unwrap_err().contains("Trailing commas are not allowed"), "{text}");
        assert_eq!(loose, Ok(value), "{text}");
    }
}

#[test]
fn what_is_no_json_is_refused_and_the_line_is_told() {
    for (text, line, why) in [
        ("", 1, "too early"),
        ("// a\n/* b */\n", 3, "too early"),
        ("{", 1, "object"),
        ("[\n1", 1, "array"),
        ("{}\n{}", 2, "more than one"),
        ("{}}", 1, "more than one"),
        ("[1\n2]", 1, "comma"),
        ("[,]", 1, "comma"),
        ("[1,,2]", 1, "comma"),
        ("{\"a\" 1}", 1, "colon"),
        ("{\n\"a\":\n}", 3, "brace"),
        ("{a: 1}", 1, "string"),
        ("{'a': 1}", 1, "quoted"),
        ("[\"a\n\"]", 1, "control character"),
        ("[\n\"\t\"]", 2, "control character"),
        (r#"["\x41"]"#, 1, "escape"),
        (r#"["\ud800"]"#, 1, "escape"),
        ("[\"a]", 1, "Unterminated string"),
        ("[1]\n/* a", 2, "Unterminated comment"),
        ("[+1]", 1, "plus"),
        ("[0x1]", 1, "Hexadecimal"),
        ("[01]", 1, "comma"),
        ("[.5]", 1, "decimal point"),
        ("[NaN]", 1, "token"),
        ("[tru]", 1, "token"),
        ("[1,\u{a0}2]", 1, "blank"),
        ("[1]\u{c}", 1, "blank"),
        ("\u{feff}[]", 1, "token"),
    ] {
        for refused in read(text) {
            let said = refused.unwrap_err();
            assert!(said.starts_with(&format!("line {line}: ")) && said.contains(why), "{text:?}: {said}");
        }
    }
}

#[test]
fn nesting_is_read_up_to_the_bound_and_refused_beyond_it_however_deep() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
        let levels = open.matches(['[', '{']).count();
        let nested = |count: usize| {
            let count = count / levels;
            format!("{}1{}", open.repeat(count), close.repeat(count))
        };
        assert!(read(&nested(JSONC_DEPTH_MAX)).iter().all(Result::is_ok), "{open}");
        for text in [nested(JSONC_DEPTH_MAX + levels), nested(200_000), open.repeat(100_000)] {
            let said = read(&text).map(Result::unwrap_err);
            assert_eq!(said, ["line 1: it is nested too deeply"; 2], "{open}");
        }
    }
    // Side by side, and in texts and comments, brackets are no nesting.
    let wide = format!("[{}[]]", "[],".repeat(100_000));
    let quiet = format!("[\"{0}\" /* {0} */ // {0}\n]", "[{".repeat(100_000));
    assert!([wide, quiet].iter().all(|it| read(it).iter().all(Result::is_ok)));
}
