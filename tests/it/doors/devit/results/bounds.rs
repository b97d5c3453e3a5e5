//! Bounds of a result, and text that would harm its reader.

use provost::domain::Status;
use provost::effects::End;
use provost::jail::ParseMode;

use super::{case, details, json, metadata, summary, text};

#[test]
fn a_long_text_is_cut_and_says_so() {
    let done = text(&"ab".repeat(50)).at_most(7).ends_well();
    assert_eq!(done.report.original_size, Some(100));
    assert_eq!(
        details(&done),
        json!({"stdout": "abababa… [truncated]", "stderr": "", "truncated": true, "original_size": 100})
    );
    let exact = text("abcdefg").at_most(7).ends_well();
    assert_eq!(
        (exact.report.original_size, details(&exact)),
        (None, json!({"stdout": "abcdefg", "stderr": ""}))
    );
    let accents = text("ééé").at_most(3).ends_well();
    assert_eq!(details(&accents)["stdout"], "é… [truncated]");
}

#[test]
fn long_json_is_cut_behind_a_brace() {
    let done = json(r#"{"a":{"b":1},"result":"fine"}"#).at_most(20).ends_well();
    assert_eq!(summary(&done), "fine", "the summary is read before anything is cut");
    assert_eq!(details(&done)["stdout"], r#"{"a":{"b":1} … [truncated]"#);
    assert_eq!(details(&done)["original_size"], 29);
    assert_eq!(done.report.original_size, Some(29));
}

#[test]
fn the_json_line_after_a_long_log_is_kept() {
    let log = "{\"step\":\"thinking\"}\n".repeat(20_000);
    let done = json(&format!("{log}{{\"result\":\"fine\"}}\n")).ends_well();
    assert_eq!(details(&done)["stdout"], json!({"result": "fine"}));
    assert_eq!(details(&done)["truncated"], true);
    assert!(done.report.original_size.unwrap() > 400_000);
}

#[test]
fn nothing_that_moves_a_terminal_reaches_a_result() {
    let hostile = "\u{1b}]52;c;ZXZpbA==\u{7}clean\u{1b}[2J\u{1b}[31m up\u{0}\u{8}\u{202e}txt.exe\u{9b}31m\r\nnext\u{1b}P1$x\u{1b}\\";
    let done = text(hostile).stderr("\u{1b}]0;title\u{7}oops\u{2066}").ends_well();
    assert_eq!(summary(&done), "clean uptxt.exe\nnext");
    assert_eq!(details(&done), json!({"stdout": "clean uptxt.exe\nnext", "stderr": "oops"}));

    let escaped = json(r#"{"result":"\u001b]52;c;x\u0007fine\u202e\u0000"}"#).ends_well();
    assert_eq!(summary(&escaped), "fine", "escapes hidden in JSON are found too");
    let failed = text("").stderr("\u{1b}[1mbad\u{1b}[0m").ends(End::Code(2));
    assert_eq!(summary(&failed), "Worker '/opt/coder' failed: bad");
}

#[test]
fn broken_text_does_no_harm() {
    let stdout = String::from_utf8_lossy(b"a\xff\xfe\xc3(b\xed\xa0\x80").into_owned();
    let done = text(&stdout).ends_well();
    assert_eq!(done.status, Status::Completed);
    assert!(summary(&done).starts_with("a\u{fffd}"));
}

#[test]
fn a_result_fits_into_one_frame_whatever_was_written() {
    let floods = [
        "x".repeat(10 << 20),
        "\"\\\n".repeat(1 << 18),
        "\u{1b}".repeat(2 << 20),
        format!("[{}1]", "1e15,".repeat(50_000)),
        format!("{{\"result\":\"{}\"}}", "\\n".repeat(2 << 20)),
        "[".repeat(1 << 20),
    ];
    for stdout in &floods {
        for parse in [ParseMode::Json, ParseMode::Text] {
            for end in [End::Code(0), End::Code(1)] {
                let done = case(parse, stdout).stderr(stdout).compact().ends(end);
                let size = done.report.bytes();
                assert!(size < provost::base::limits::FRAME_LEN_MAX, "{size} bytes of {:.20}", stdout);
                assert!(summary(&done).len() <= 4096);
                let stored = serde_json::to_string(&done.report).unwrap();
                let read = serde_json::from_str::<provost::domain::Report>(&stored);
                assert_eq!(read.unwrap(), done.report, "what is stored can be read again");
            }
        }
    }
}

#[test]
fn no_profile_lifts_the_bound_of_a_result() {
    let done = text(&"x".repeat(1 << 20)).at_most(1 << 30).ends_well();
    let most = provost::base::limits::RESPONSE_BYTES_MAX;
    assert_eq!(details(&done)["stdout"].as_str().unwrap().len(), most + "… [truncated]".len());
    assert_eq!(done.report.original_size, Some(1 << 20));
}

#[test]
fn output_that_was_not_kept_counts_into_the_original_size() {
    let mut flooded = text("kept");
    flooded.output.stdout_dropped = 1_000_000;
    let done = flooded.ends_well();
    assert_eq!(done.report.original_size, Some(1_000_004));
    assert_eq!(details(&done)["truncated"], true);
    assert_eq!(metadata(&done)["stdout_dropped_bytes"], 1_000_000);
}
