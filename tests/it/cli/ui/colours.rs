//! Differences in colours: those of the language, beside the colours of what comes and goes; without colours the text is the same.

use provost::api::wire;
use provost::ui::{Got, Model, News, Repository, Screen, Theme, UiRequest, draw};
use provost::view::{self, Block};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier, Style};
use serde_json::json;

use super::{Desk, approval, needs, now};

const SIZE: (u16, u16) = (120, 60);

/// An apply that changes a line of Python, with blanks where a line is parted.
fn apply(text: &str) -> wire::Approval {
    let diff = format!("--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n # why\n-def f(a): return 'x'\n+{text}\n");
    let request = json!({ "diff": diff, "task": "t1" });
    approval(7, "high", "human", &json!({ "verb": "ApplyFiles", "request": request, "goal": null }))
}

/// Each sign on the screen with its style, line by line.
fn drawn(look: Theme, it: &wire::Approval) -> Vec<Vec<(String, Style)>> {
    use provost::client::approvals::{facts, words};
    let mut desk = Desk::new(SIZE, &["shop"]);
    desk.model = Model::new(look, SIZE, now());
    let found = Repository { name: "shop".into(), root: "/home/ada/shop".into(), program: "provost".into() };
    desk.news(News::Found(found));
    desk.news(News::Searched);
    desk.news(News::Live { repository: 0, page: None });
    desk.list(0, Screen::Needs, "", needs(vec![it.clone()], vec![], vec![]));
    desk.keys("\n");
    let mut shown = view::approval(it, facts(it, str::to_owned), words(it));
    for block in &mut shown.blocks {
        if let Block::Diff { files, .. } = block {
            view::mark(files);
        }
    }
    let got = Got::Approval { shown: Box::new(shown), digest: it.digest.clone(), by: it.by.clone() };
    desk.news(News::Got { repository: 0, asked: UiRequest::Approval(7), got: Ok(got) });
    desk.keys("G");
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).unwrap();
    terminal.draw(|frame| draw(&desk.model, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let cell = |x, y| (buffer[(x, y)].symbol().to_owned(), buffer[(x, y)].style());
    (0..SIZE.1).map(|y| (0..SIZE.0).map(|x| cell(x, y)).collect()).collect()
}

/// The style of the first sign of a text in the line that has it.
#[track_caller]
fn style_of(lines: &[Vec<(String, Style)>], in_line: &str, text: &str) -> Style {
    let read = |line: &Vec<(String, Style)>| line.iter().map(|it| it.0.as_str()).collect::<String>();
    let line = lines.iter().find(|it| read(it).contains(in_line)).unwrap_or_else(|| panic!("{in_line}"));
    let at = read(line).find(in_line).unwrap() + in_line.find(text).unwrap();
    let cells = read(line)[..at].chars().count();
    line[cells].1
}

#[test]
fn a_difference_has_the_colours_of_its_language_and_of_what_comes_and_goes() {
    let line = "def f(a, b): return 'x'";
    let it = apply(line);
    for light in [false, true] {
        let lines = drawn(Theme { colour: true, light }, &it);
        let added = format!("+{line}");
        let at = |text: &str| style_of(&lines, &added, text);
        assert_eq!(at("+").fg, Some(Color::Green));
        assert!(
            at("def").fg != Some(Color::Green) && at("def").fg != at("'x'").fg,
            "{:?} {:?}",
            at("def"),
            at("'x'")
        );
        assert!(at("f(").add_modifier.contains(Modifier::BOLD));
        assert!(at(", b").add_modifier.contains(Modifier::UNDERLINED), "what has changed in the line");
        assert!(!at("return").add_modifier.contains(Modifier::UNDERLINED));
        assert!(style_of(&lines, " # why", "#").add_modifier.contains(Modifier::ITALIC));
    }
    // Without colours the same text stands there, and nothing but the ground's style.
    let (plain, coloured) = (Theme { colour: false, light: false }, Theme { colour: true, light: false });
    let text = |lines: &[Vec<(String, Style)>]| -> Vec<String> {
        lines.iter().map(|line| line.iter().map(|it| it.0.as_str()).collect()).collect()
    };
    let lines = drawn(plain, &it);
    assert_eq!(text(&lines), text(&drawn(coloured, &it)));
    for line in &lines {
        assert!(line.iter().all(|it| !matches!(it.1.fg, Some(Color::Green | Color::Yellow | Color::Red))));
    }
}

#[test]
fn a_line_that_is_long_and_hostile_is_drawn_at_once_and_acts_on_nothing() {
    let line = format!("x = [{}] # \u{1b}[2J \u{202e}", "'a', 1,   ".repeat(15_000));
    let it = apply(&line);
    let begun = std::time::Instant::now();
    let lines = drawn(Theme { colour: true, light: false }, &it);
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    let text: String = lines.iter().flatten().map(|it| it.0.as_str()).collect();
    assert!(text.contains("\\u{1b}[2J") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
}
