//! The compact form of a result.

use provost::effects::End;

use super::{details, json, summary, text};

#[test]
fn compact_lists_what_a_reader_looks_for() {
    let said = "\
I read the parser.
- New function `parse_frame` reads one line
* modified function: Decoder::next
There were changes in src/lib.rs too.
- Risk: the queue is unbounded
A concern about time.
";
    let done = text(said).stderr("slow").compact().ends_well();
    assert_eq!(summary(&done), "Analysis complete. See structured_data.");
    assert_eq!(
        details(&done),
        json!({
            "structured_data": {
                "new_funcs": ["parse_frame"],
                "modified_funcs": ["Decoder::next", "src"],
                "risks": ["Risk: the queue is unbounded", "A concern about time."],
                "highlights": [
                    "New function `parse_frame` reads one line",
                    "modified function: Decoder::next",
                    "Risk: the queue is unbounded",
                ],
            },
            "raw_excerpt": said.trim(),
            "stderr": "slow",
            "format": "compact",
        })
    );
}

#[test]
fn compact_without_points_takes_five_sentences() {
    let done = text("One. Two! Three? v1.2 is four\nFive. Six. Seven.").compact().ends_well();
    let expected = json!({"highlights": ["One.", "Two!", "Three?", "v1.2 is four", "Five."]});
    assert_eq!(details(&done)["structured_data"], expected);
}

#[test]
fn compact_keeps_an_excerpt_and_five_points() {
    let said: String = (0..200).map(|i| format!("- issue number {i}\n")).collect();
    let done = text(&said).compact().at_most(50).ends_well();
    let details = details(&done);
    assert_eq!(details["structured_data"]["risks"].as_array().unwrap().len(), 5);
    assert_eq!(details["structured_data"]["highlights"].as_array().unwrap().len(), 5);
    let excerpt = details["raw_excerpt"].as_str().unwrap();
    assert!(excerpt.ends_with("… [excerpt]") && excerpt.len() <= 600 + "… [excerpt]".len());
    assert_eq!((&details["truncated"], &details["original_size"]), (&json!(true), &json!(said.len())));
    assert_eq!(details.get("stdout"), None);
    assert_eq!(done.report.original_size, Some(said.len() as u64));
}

#[test]
fn compact_leaves_data_failures_and_silence_alone() {
    let data = text(r#" {"already":"data"} "#).compact().ends_well();
    assert_eq!(details(&data)["stdout"], r#" {"already":"data"} "#);
    let parsed = json(r#"{"structured_data":{"x":1}}"#).compact().ends_well();
    assert_eq!(details(&parsed), json!({"stdout": {"structured_data": {"x": 1}}}));
    let last_line = json("- risk: none\n[1]").compact().ends_well();
    assert_eq!(details(&last_line)["stdout"], json!([1]));
    let mostly_words = text("- risk: none\n[1]").compact().ends_well();
    assert_eq!(details(&mostly_words)["structured_data"]["risks"], json!(["risk: none"]));
    let failed = text("- risk").compact().ends(End::Code(1));
    assert_eq!(details(&failed)["stdout"], "- risk");
    let silent = text("\n").compact().ends_well();
    assert_eq!(summary(&silent), "Worker coder completed without output");
    let words = json(r#""New function go()""#).compact().ends_well();
    assert_eq!(details(&words)["structured_data"]["new_funcs"], json!(["go"]));
}
