//! Every way to write a rate, and what is none.

use super::*;

fn rate(text: &str) -> Result<Rate, Broken> {
    user(&format!("[screenshot]\nrate_limit = {text}\n")).map(|loaded| loaded.config.screenshot.rate_limit)
}

#[test]
fn a_rate_is_read_in_every_spelling() {
    for (text, count, per_s) in [
        ("\"10/minute\"", 10, 60),
        ("\"10/min\"", 10, 60),
        ("\"10/m\"", 10, 60),
        ("\"10per minute\"", 10, 60),
        ("\"10 per minute\"", 10, 60),
        ("\" 10 / Minute \"", 10, 60),
        ("\"4/hour\"", 4, 3_600),
        ("\"4/hr\"", 4, 3_600),
        ("\"4/2h\"", 4, 7_200),
        ("\"1/second\"", 1, 1),
        ("\"1/sec\"", 1, 1),
        ("\"1/s\"", 1, 1),
        ("\"2/30s\"", 2, 30),
        ("\"2/30 seconds\"", 2, 30),
        ("\"3/5m\"", 3, 300),
        ("\"0/minute\"", 0, 60),
        ("12", 12, 60),
        ("12.0", 12, 60),
        ("{ count = 3, per_seconds = 30 }", 3, 30),
        ("{ max = 3, window_secs = 30 }", 3, 30),
        ("{ max_actions = 3, interval = 30 }", 3, 30),
        ("{ count = 3.0, every = 30.0 }", 3, 30),
        ("{ count = 3, every = \"2m\" }", 3, 120),
        ("{ count = 3 }", 3, 60),
        ("{ max_actions = 0 }", 0, 60),
    ] {
        let read = rate(text).unwrap_or_else(|broken| panic!("{text}: {broken}"));
        assert_eq!(read, Rate { count, per_s }, "{text}");
    }
}

#[test]
fn what_is_no_rate_is_an_error_at_its_line() {
    for (text, why) in [
        ("\"\"", "expected a rate"),
        ("\"10\"", "expected a rate"),
        ("\"10/\"", "expected a rate"),
        ("\"/minute\"", "expected a rate"),
        ("\"10/fortnight\"", "expected a rate"),
        ("\"10/minute/2\"", "expected a rate"),
        ("\"-1/minute\"", "expected a rate"),
        ("\"+1/minute\"", "expected a rate"),
        ("\"1.5/minute\"", "expected a rate"),
        ("\"1/99999999999999999999s\"", "expected a rate"),
        ("\"1/0s\"", "1 to 604800 seconds"),
        ("\"1/8000h\"", "1 to 604800 seconds"),
        ("\"5000000000/minute\"", "must not be above"),
        ("-1", "from 0 upwards"),
        ("1.5", "whole number"),
        ("-1.0", "whole number"),
        ("nan", "whole number"),
        ("inf", "whole number"),
        ("1e3", "whole number"),
        ("true", "expected a rate"),
        ("[10, 60]", "expected a rate"),
        ("{}", "expected a rate"),
        ("{ per_seconds = 30 }", "expected a rate"),
        ("{ count = 3, max = 4 }", "`count` and `max` mean the same"),
        ("{ count = 3, every = 1, interval = 1 }", "mean the same"),
        ("{ count = 3, per = 30 }", "`per` is not a part of a rate"),
        ("{ count = 3, every = \"soon\" }", "expected"),
        ("{ count = 3, every = 0 }", "1 to 604800 seconds"),
        ("{ count = \"3\" }", "expected"),
        ("{ count = 1.5 }", "whole number"),
    ] {
        let broken = rate(text).expect_err(text);
        assert!(broken.to_string().contains(why), "{text}: {broken}");
        assert_eq!(broken.note.line, Some(2), "{text}: {broken}");
    }
}
