//! Bad input in every language, as people and their editors make it: long lines, deep nesting, other encodings and line ends, names
//! that are there twice, conditions of the compiler, files that include themselves and each other, and files that take too long.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use provost::syntax::{
    Language, NoSignature, ParseDeadline, Reading, Trouble, Version, language_of, read, touched,
};

use super::reading_of;
use super::samples::{SAMPLES, Sample};
use crate::support::graphs::graph_of;

const LONG_LINE: usize = 50 << 20;
const DEEP: usize = 20_000;

fn contracts(reading: &Reading) -> Vec<(String, String)> {
    let said = |path: &str| reading.contract(path).map(|it| it.text.split_whitespace().collect());
    let of = |path: &str| said(path).unwrap_or_else(|why: NoSignature| format!("{why:?}"));
    reading.symbols.iter().map(|it| (it.path.to_string(), of(&it.path))).collect()
}

/// Work on a stack that is far smaller than that of any thread of the program.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn every_language_has_a_sample_that_is_read_whole() {
    for language in Language::all() {
        let sample = SAMPLES.iter().find(|it| it.language == language);
        let sample = sample.unwrap_or_else(|| panic!("no sample of {language:?}"));
        let reading = reading_of(language, &sample.text());
        assert!(reading.is_whole(), "{language:?}: {:?}", reading.trouble);
        assert_eq!(reading.find(sample.path).len(), 1, "{language:?}");
    }
}

#[test]
fn fifty_megabytes_on_one_line_are_refused_and_a_long_line_ends() {
    for sample in SAMPLES {
        let line = sample.function.replace('\n', " ");
        let begin = sample.head.replace('\n', " ");
        let large = format!("{begin}{}", line.repeat(LONG_LINE / line.len() + 1));
        let reading = read(sample.language, large.as_bytes(), &ParseDeadline::endless());
        assert_eq!(
            reading.trouble,
            [Trouble::TooLarge { bytes: large.len() as u64 }],
            "{:?}",
            sample.language
        );
        assert!(reading.symbols.is_empty() && reading.contract(sample.path) == Err(NoSignature::Missing));
        // What is short enough to be read is read to its end, or the answer says why not.
        let long = &large[..large.floor_char_boundary(200_000)];
        let reading = reading_of(sample.language, long);
        assert!(!reading.symbols.is_empty() || !reading.is_whole(), "{:?}", sample.language);
    }
}

#[test]
fn what_nests_in_itself_is_read_and_twenty_thousand_of_it_cost_no_stack() {
    on_a_small_stack(|| {
        for Sample { language, begin, nested: (open, close), .. } in SAMPLES {
            let few = format!("{begin}{}{}", open.repeat(40), close.repeat(40));
            let reading = reading_of(*language, &few);
            assert!(reading.is_whole(), "{language:?}: {:?} in {few}", reading.trouble);
            for text in [
                format!("{begin}{}{}", open.repeat(DEEP), close.repeat(DEEP)),
                format!("{begin}{}", open.repeat(DEEP)),
            ] {
                let reading = reading_of(*language, &text);
                assert!(!reading.is_whole(), "{language:?} takes what nests {DEEP} deep for whole");
                drop(reading.edges());
            }
        }
    });
}

#[test]
fn types_within_types_are_read_and_twenty_thousand_of_them_cost_no_stack() {
    on_a_small_stack(|| {
        let mut with_types = 0;
        for Sample { language, head, function, tail, path, types, .. } in SAMPLES {
            let Some([before, open, within, close, behind]) = types else { continue };
            let text = |many: usize| {
                let (opened, closed) = (open.repeat(many), close.repeat(many));
                format!("{head}{before}{opened}{within}{closed}{behind}{function}{tail}")
            };
            let reading = reading_of(*language, &text(6));
            assert!(reading.is_whole(), "{language:?}: {:?} in {}", reading.trouble, text(6));
            assert_eq!(reading.find(path).len(), 1, "{language:?}");
            let deep = reading_of(*language, &text(DEEP));
            assert!(!deep.is_whole() || deep.find(path).len() == 1, "{language:?}");
            with_types += 1;
        }
        assert!(with_types >= 10, "{with_types}");
    });
}

#[test]
fn bytes_of_another_encoding_move_nothing_and_a_file_of_it_is_no_file_of_ours() {
    for sample in SAMPLES {
        let (text, language) = (sample.text(), sample.language);
        let whole = reading_of(language, &text);
        let at = sample.head.len();
        let bytes =
            [&text.as_bytes()[..at], sample.comment.as_bytes(), b"caf\xe9 \xff\n", &text.as_bytes()[at..]]
                .concat();
        let mixed = read(language, &bytes, &ParseDeadline::endless());
        let first = u32::try_from(at + sample.comment.len() + 3).unwrap();
        assert_eq!(mixed.trouble, [Trouble::NotUtf8 { first }], "{language:?}");
        let of = |reading: &Reading, bytes: &[u8]| {
            let range = reading.ranges(sample.path).remove(0);
            String::from_utf8_lossy(&bytes[range.start as usize..range.end as usize]).into_owned()
        };
        let body = |it: String| it.split_once("caf").map_or(it.clone(), |(_, rest)| rest[8..].to_owned());
        assert_eq!(body(of(&mixed, &bytes)).trim(), of(&whole, text.as_bytes()).trim(), "{language:?}");
        let wide: Vec<u8> =
            "\u{feff}".chars().chain(text.chars()).flat_map(|it| (it as u16).to_le_bytes()).collect();
        let wide = read(language, &wide, &ParseDeadline::endless());
        assert!(!wide.is_whole() && wide.contract(sample.path).is_err(), "{language:?}");
    }
}

#[test]
fn line_ends_tabs_and_the_mark_at_the_beginning_make_no_difference_in_any_language() {
    for sample in SAMPLES {
        let text = sample.text();
        let expected = contracts(&reading_of(sample.language, &text));
        assert!(!expected.is_empty());
        for other in [
            text.replace('\n', "\r\n"),
            text.replace("    ", "\t"),
            text.replace('\n', "\r\n").replace("    ", "\t"),
            format!("\u{feff}{text}"),
            text.replacen('\n', "\r\n", 2),
        ] {
            let reading = reading_of(sample.language, &other);
            assert!(reading.is_whole(), "{:?}: {:?} in {other:?}", sample.language, reading.trouble);
            assert_eq!(contracts(&reading), expected, "{:?} in {other:?}", sample.language);
        }
    }
}

/// Returns the symbols that an edit touches.
fn touches(language: Language, old: &str, new: &str) -> Vec<String> {
    let [before, after] = [old, new].map(|it| reading_of(language, it));
    let old = Version { reading: &before, bytes: old.as_bytes() };
    touched(old, Version { reading: &after, bytes: new.as_bytes() }).into_iter().map(String::from).collect()
}

#[test]
fn two_definitions_of_one_name_are_held_together() {
    for sample in SAMPLES {
        let (language, function) = (sample.language, sample.function);
        let twice = format!("{}{function}{function}{}", sample.head, sample.tail);
        let reading = reading_of(language, &twice);
        assert!(reading.is_whole(), "{language:?}: {:?}", reading.trouble);
        assert_eq!(reading.ranges(sample.path).len(), 2, "{language:?}");
        assert!(function.contains("40"), "{language:?} has nothing to edit");
        for edited in [
            twice.replacen("40", "41", 1),
            format!("{}{function}{}{}", sample.head, function.replace("40", "41"), sample.tail),
        ] {
            assert_eq!(touches(language, &twice, &edited), [sample.path], "{language:?}");
        }
    }
}

#[test]
fn both_branches_of_a_condition_count() {
    let mut with_conditions = 0;
    for Sample { language, head, function, tail, path, condition, .. } in SAMPLES {
        let Some((first, second, end)) = condition else { continue };
        let text = format!("{head}{first}{function}{second}{}{end}{tail}", function.replace("40", "50"));
        let reading = reading_of(*language, &text);
        assert!(reading.is_whole(), "{language:?}: {:?} in {text}", reading.trouble);
        assert_eq!(reading.ranges(path).len(), 2, "{language:?}");
        for (old, new) in [("40", "41"), ("50", "51")] {
            assert_eq!(touches(*language, &text, &text.replace(old, new)), [*path], "{language:?}");
        }
        with_conditions += 1;
    }
    assert!(with_conditions >= 8, "{with_conditions}");
}

#[test]
fn files_that_include_themselves_and_each_other_are_followed_once() {
    for Sample { language, cycle, .. } in SAMPLES {
        let [first, second] = cycle.edges;
        let mut backwards = cycle.files.to_vec();
        backwards.reverse();
        for files in [cycle.files, backwards.as_slice()] {
            assert!(files.iter().all(|(name, _)| language_of(name) == Some(*language)), "{language:?}");
            let edges = graph_of(files).edges();
            for (caller, callee) in [(first, second), (second, first)] {
                let edge = (caller.to_owned(), callee.to_owned());
                assert!(edges.contains(&edge), "{language:?}: no {edge:?} in {edges:?}");
            }
        }
    }
}

#[test]
fn a_circle_of_two_hundred_files_ends() {
    let mut files = Vec::new();
    for number in 0..200 {
        let (next, mut text) = ((number + 1) % 200, String::new());
        write!(text, "#include \"f{next}.h\"\n#include \"f{number}.h\"\nstatic int f{number}(void) {{ return f{next}(); }}\n").unwrap();
        files.push((format!("f{number}.h"), text));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(graph_of(&files).edges().len(), 200);
}

#[test]
fn what_takes_too_long_in_any_language_is_given_up_and_said() {
    for sample in SAMPLES {
        let many = (1 << 20) / sample.function.len();
        let text = format!("{}{}{}", sample.head, sample.function.repeat(many), sample.tail);
        let begun = Instant::now();
        let until = begun + Duration::from_millis(3);
        let reading =
            read(sample.language, text.as_bytes(), &ParseDeadline { until: Some(until), cancelled: None });
        let took = begun.elapsed();
        assert_eq!(reading.trouble, [Trouble::TooSlow], "{:?}", sample.language);
        assert!(!reading.is_whole() && took < Duration::from_secs(5), "{:?} took {took:?}", sample.language);
        let gone = AtomicBool::new(true);
        let patience = ParseDeadline { until: None, cancelled: Some(&gone) };
        assert_eq!(read(sample.language, text.as_bytes(), &patience).trouble, [Trouble::TooSlow]);
        // An edit of what could not be read is one of the whole file, unless it is told by what stands around it.
        let edited = text.replacen("40", "41", 1);
        let old = Version { reading: &reading, bytes: text.as_bytes() };
        let found = touched(old, Version { reading: &reading, bytes: edited.as_bytes() });
        assert!(
            found.iter().all(|it| it.is_empty() || **it == *sample.path),
            "{:?}: {found:?}",
            sample.language
        );
    }
}
