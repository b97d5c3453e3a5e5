//! Tokens of a text for people: what each part is, also where the text is a part of a file, broken, hostile or too long.

use std::time::Instant;

use provost::base::limits::{COLOURED_BYTES_MAX, COLOURED_TOKENS_MAX};
use provost::syntax::{Language, ParseDeadline, TokenKind, tokens};

/// The parts of a kind, as they are written.
fn parts(language: Language, text: &str, kind: TokenKind) -> Vec<String> {
    let found = tokens(language, text, &ParseDeadline::endless());
    found.into_iter().filter(|it| it.kind == kind).map(|it| text[it.range].to_owned()).collect()
}

#[test]
fn each_kind_of_part_is_told_in_each_language() {
    let python = "# why\nclass Door(Base):\n    def open(self):\n        return knock(\"a\\n\", 3.5, None)\n";
    let of = |kind| parts(Language::Python, python, kind);
    assert_eq!(of(TokenKind::Comment), ["# why"]);
    assert_eq!(of(TokenKind::Text), ["\"a\\n\""]);
    assert_eq!(of(TokenKind::Number), ["3.5"]);
    assert_eq!(of(TokenKind::Name), ["Door", "open", "knock"]);
    assert_eq!(of(TokenKind::Word), ["class", "def", "return", "None"]);
    let script = "/* why */ export class Door { open(n: number): Key { return this.knock(`a${n + 1}b`, /x+/g, true); } }\n";
    let of = |kind| parts(Language::TypeScript, script, kind);
    assert_eq!(of(TokenKind::Comment), ["/* why */"]);
    assert_eq!(of(TokenKind::Text), ["`a", "b`", "/x+/g"]);
    assert_eq!(of(TokenKind::Number), ["1"]);
    assert!(of(TokenKind::Type).contains(&"Key".to_owned()), "{:?}", of(TokenKind::Type));
    for word in ["export", "class", "return", "this", "true"] {
        assert!(of(TokenKind::Word).contains(&word.to_owned()), "{word}: {:?}", of(TokenKind::Word));
    }
    for language in Language::all() {
        assert_eq!(parts(language, "", TokenKind::Word), [""; 0]);
        // What stands before it is the text of a page.
        let begin = if language == Language::Php { "<?php $" } else { "" };
        let text = format!("{begin}x = \"text\";\n");
        assert!(!parts(language, &text, TokenKind::Text).is_empty(), "{}", language.name());
    }
}

#[test]
fn a_part_of_a_file_and_noise_have_tokens_in_order_none_within_another() {
    let noise: String =
        (0..20_000_u32).map(|n| char::from(b" \"'`/*#(){}[]<>ab1\n"[(n * n % 19) as usize])).collect();
    let texts = [
        "    return knock(\"a\")\n}\n\nfunction next() {\n",
        "\"\"\"a text that never ends\nreturn 1\n",
        "ünï = \"\u{1f431}\"  # \u{202e}\n",
        &noise,
    ];
    for language in Language::all() {
        for text in texts {
            let found = tokens(language, text, &ParseDeadline::endless());
            for pair in found.windows(2) {
                assert!(pair[0].range.end <= pair[1].range.start, "{pair:?}");
            }
            for it in &found {
                assert!(
                    !it.range.is_empty() && text.get(it.range.clone()).is_some(),
                    "{it:?} cuts a character"
                );
            }
        }
    }
    assert!(parts(Language::JavaScript, texts[0], TokenKind::Word).contains(&"return".to_owned()));
}

#[test]
fn what_is_too_long_or_too_late_has_none_and_no_text_has_too_many() {
    let line = "x = 1\n";
    let long = line.repeat(COLOURED_BYTES_MAX / line.len() + 1);
    assert_eq!(tokens(Language::Python, &long, &ParseDeadline::endless()), []);
    let late = ParseDeadline { until: Some(Instant::now()), cancelled: None };
    let all = line.repeat(COLOURED_BYTES_MAX / line.len());
    assert_eq!(tokens(Language::Python, &all, &late), []);
    let many = "1,".repeat(COLOURED_BYTES_MAX / 2);
    let found = tokens(Language::JavaScript, &many, &ParseDeadline::endless());
    assert_eq!(found.len(), COLOURED_TOKENS_MAX);
    // Nested as deep as it is long, which no stack bears.
    let deep = "(".repeat(COLOURED_BYTES_MAX);
    let _none = tokens(Language::JavaScript, &deep, &ParseDeadline::endless());
}
