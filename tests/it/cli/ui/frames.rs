//! The drawn screens, as text beside this file; `UPDATE=1` writes it again.

use std::fs;

use provost::api::wire::{self, Note};
use provost::ui::{Input, Model, News, Screen, Theme, draw};
use provost::view::{self, Filter};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use super::{Desk, NOW, approval, at, needs, now, question, task, tasks};
use crate::support::source::project_root;

/// The lines of a frame, without the blanks at their ends.
pub(super) fn drawn(model: &Model) -> Vec<String> {
    let (columns, rows) = size_of(model);
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(model, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| {
        let mut text = String::new();
        let mut x = 0;
        while x < columns {
            let symbol = buffer[(x, y)].symbol();
            text.push_str(symbol);
            // Behind a wide character stands a cell that is none.
            x += u16::try_from(ratatui::text::Span::raw(symbol).width().max(1)).unwrap();
        }
        text.trim_end().to_owned()
    };
    (0..rows).map(line).collect()
}

fn size_of(model: &Model) -> (u16, u16) {
    model.size()
}

/// A frame with times of the zone of this machine as in UTC, so that it is the same anywhere.
fn anywhere(lines: &[String]) -> String {
    let mut text = lines.join("\n") + "\n";
    for minute in 0..300 {
        let ms = at("2026-07-01T09:00:00Z") + minute * 60_000;
        let utc = chrono::DateTime::from_timestamp_millis(ms).unwrap();
        let local = utc.with_timezone(&chrono::Local);
        text = text.replace(&local.format("%H:%M:%S").to_string(), &utc.format("<%H:%M>").to_string());
    }
    text
}

#[track_caller]
fn is_as_kept(desk: &Desk, name: &str) {
    let file = project_root().join("tests/it/cli/ui/frames").join(format!("{name}.txt"));
    let drawn = anywhere(&desk.drawn());
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &drawn).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == drawn, "{name} is drawn otherwise:\n{drawn}\nand was kept as:\n{kept}");
}

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

fn name(what: &str, size: (u16, u16)) -> String {
    format!("{what}-{}x{}", size.0, size.1)
}

fn several() -> Vec<wire::Approval> {
    vec![
        approval(7, "high", "human", &json!({})),
        approval(
            8,
            "low",
            "human, client:approver",
            &json!({ "goal": "漢字 and a long goal that goes on and on and on until it is cut off", "expires_at": "2026-07-01T12:00:41.000Z" }),
        ),
        approval(9, "medium", "client:approver", &json!({ "asked_by": "feat-auth" })),
    ]
}

fn failed() -> wire::Task {
    task("3f0c2a", "failed", &json!({ "updated_at": "2026-07-01T11:40:00.000Z", "exit_code": 2 }))
}

/// A screen over two repositories with something of everything that needs a person.
fn busy(size: (u16, u16)) -> Desk {
    let mut desk = Desk::new(size, &["shop", "site"]);
    desk.list(0, Screen::Needs, "", needs(several(), vec![question(4)], vec![failed()]));
    desk.list(1, Screen::Needs, "", needs(vec![approval(2, "medium", "human", &json!({}))], vec![], vec![]));
    desk
}

#[test]
fn what_needs_a_person_in_several_repositories() {
    for size in SIZES {
        let desk = busy(size);
        is_as_kept(&desk, &name("needs", size));
    }
}

#[test]
fn nothing_needs_a_person_and_no_daemon_runs() {
    let mut desk = Desk::new((80, 24), &["shop"]);
    desk.list(0, Screen::Needs, "", needs(vec![], vec![], vec![]));
    is_as_kept(&desk, "calm-80x24");
    let none = Desk::new((80, 24), &[]);
    is_as_kept(&none, "no-daemon-80x24");
}

/// Locks of a repository, one of them a resource; and who waits for one.
fn held(file: &str) -> view::Shown {
    let lock = |symbol: &str, holder: &str| {
        json!({
            "symbol": symbol, "asked": symbol, "holder": holder, "name": null, "fence": 7, "since": "2026-07-01T11:30:00.000Z",
            "until": "2026-07-01T12:30:00.000Z", "reason": "a new form", "pid": null, "task": null,
        })
    };
    let waiter = json!({
        "symbol": format!("{file}:login"), "agent": "eve", "since": "2026-07-01T11:50:00.000Z", "until": "2026-07-01T12:10:00.000Z",
    });
    let locks: wire::Locks = serde_json::from_value(json!({
        "locks": [lock(&format!("{file}:login"), "ada"), lock("src/b.py", "bob"), lock("@db:test", "ada")],
        "waiting": [waiter],
    }))
    .unwrap();
    let from = view::HeldSources { locks: &locks, claims: &[], intents: &[] };
    view::locks(from, &Filter::default(), 100, NOW)
}

#[test]
fn what_is_held_stands_below_its_folder_and_file() {
    for size in SIZES {
        let mut desk = Desk::new(size, &["shop"]);
        desk.keys("4");
        desk.list(0, Screen::Locks, "", held("src/a.py"));
        desk.keys("j");
        is_as_kept(&desk, &name("locks", size));
    }
    // Over several repositories each has a tree of its own, and the keys pass over the headings.
    let mut desk = Desk::new((120, 40), &["shop", "site"]);
    desk.keys("4");
    desk.list(0, Screen::Locks, "", held("src/a.py"));
    desk.list(1, Screen::Locks, "", held("lib/c.py"));
    desk.keys("jjj");
    let chosen = desk.drawn().into_iter().find(|it| it.starts_with("> ")).unwrap();
    assert!(chosen.contains("site") && chosen.contains("login"), "{chosen}");
    assert_eq!(desk.drawn().iter().filter(|it| it.trim() == "src/").count(), 2);
}

/// The agents of a repository, each with its host where the repository has several.
fn agents(known: &[(&str, Option<&str>)]) -> view::Shown {
    let agent = |(id, host): &(&str, Option<&str>)| -> wire::Agent {
        serde_json::from_value(json!({
            "id": id, "version": null, "caps": [], "alive": true, "last_seen": "2026-07-01T11:50:00.000Z",
            "registered_at": null, "doors": ["own"], "host": host, "mail": 0, "asked": 0,
        }))
        .unwrap()
    };
    let from = view::AgentSources { known: known.iter().map(agent).collect(), ..Default::default() };
    view::agents(&from, &Filter::default(), 100)
}

#[test]
fn agents_of_several_hosts_have_their_hosts_on_the_smallest_screen_too() {
    for size in [(60, 15), (80, 24), (120, 40)] {
        let mut desk = Desk::new(size, &["shop"]);
        desk.keys("3");
        desk.list(0, Screen::Agents, "", agents(&[("ada", Some("7f3a21c9")), ("bob", Some("0b44de10"))]));
        for (one, other) in [("Because", "Host"), (" ada ", "7f3a21c9"), (" bob ", "0b44de10")] {
            let drawn = desk.drawn();
            assert!(drawn.iter().any(|it| it.contains(one) && it.contains(other)), "{size:?}: {drawn:?}");
        }
    }
}

#[test]
fn beside_a_repository_of_several_hosts_the_agents_of_another_one_stand_in_their_columns() {
    let (one, several) = (agents(&[("ada", None)]), agents(&[("bob", Some("0b44de10"))]));
    for (first, second) in [(&one, &several), (&several, &one)] {
        let mut desk = Desk::new((140, 40), &["shop", "site"]);
        desk.keys("3");
        desk.list(0, Screen::Agents, "", first.clone());
        desk.list(1, Screen::Agents, "", second.clone());
        let drawn = desk.drawn().iter().map(|it| anywhere(std::slice::from_ref(it))).collect::<Vec<_>>();
        let line =
            |has: &str| drawn.iter().find(|it| it.contains(has)).unwrap_or_else(|| panic!("{drawn:?}"));
        let place = |line: &str, text: &str| line.find(text).map(|at| line[..at].chars().count());
        let heads = line("Because");
        let (host, seen) = (place(heads, "Host"), place(heads, "Seen"));
        assert!(host.is_some() && host < seen, "{heads}");
        assert_eq!(place(line(" bob "), "0b44de10"), host, "{drawn:?}");
        for agent in [" ada ", " bob "] {
            assert_eq!(place(line(agent), "<11:50>"), seen, "{drawn:?}");
        }
    }
}

#[test]
fn where_nothing_waits_the_newest_decision_over_all_repositories_is_told() {
    let mut desk = Desk::new((80, 24), &["shop", "site"]);
    for (repository, at) in [(0, "2026-07-01T11:50:00.000Z"), (1, "2026-07-01T11:20:00.000Z")] {
        let from = view::NeedSources { last_decision: Some(at.into()), ..view::NeedSources::default() };
        desk.list(repository, Screen::Needs, "", view::needs(from, now()));
    }
    let text = anywhere(&desk.drawn());
    assert!(text.contains("Last decision: <11:50>"), "{text}");
}

#[test]
fn an_approval_beside_the_list_or_instead_of_it() {
    for size in SIZES {
        let mut desk = busy(size);
        desk.keys("\n");
        desk.approval(0, &several()[1]);
        is_as_kept(&desk, &name("approval", size));
        desk.keys("a");
        is_as_kept(&desk, &name("confirm", size));
    }
}

#[test]
fn a_passkey_is_asked_for_by_an_address_and_its_picture() {
    let by = approval(7, "high", "passkey", &json!({}));
    // A phone finds nothing at an address of this machine, so that only the other one is drawn as a picture.
    let pages = [
        ("passkey", (80, 24), None),
        ("passkey", (120, 40), Some("http://provost.localhost:4720/".to_owned())),
        ("passkey-public", (120, 40), Some("https://box.example.ts.net".to_owned())),
    ];
    for (kept, size, page) in pages {
        let mut desk = Desk::new(size, &["shop"]);
        desk.news(News::Live { repository: 0, page });
        desk.list(0, Screen::Needs, "", needs(vec![by.clone()], vec![], vec![]));
        desk.keys("a");
        desk.approval(0, &by);
        is_as_kept(&desk, &name(kept, size));
    }
}

#[test]
fn tasks_and_one_of_them() {
    let notes = vec![Note {
        at: "2026-07-01T11:31:00.000Z".into(),
        from: "shell".into(),
        status: "running".into(),
        summary: "half of it\nand a second line".into(),
        details: None,
        evidence: None,
        metadata: None,
    }];
    let mut running = task("7d22b1", "running", &json!({}));
    running.notes = notes;
    for size in SIZES {
        let mut desk = Desk::new(size, &["shop"]);
        desk.keys("2");
        desk.list(0, Screen::Tasks, "", tasks(&[running.clone(), failed()]));
        is_as_kept(&desk, &name("tasks", size));
        desk.keys("\n");
        desk.task(0, &running);
        is_as_kept(&desk, &name("task", size));
        desk.keys("t");
        assert!(desk.shows("half of it") && desk.shows("and a second line"));
    }
}

fn event(seq: u64, kind: &Value) -> Value {
    json!({ "seq": seq, "at": "2026-07-01T11:59:00.000Z", "actor": "orch", "kind": kind })
}

#[test]
fn events_and_the_keys() {
    let mut desk = Desk::new((80, 24), &["shop"]);
    desk.keys("6");
    let found = [
        event(41, &json!({ "approval_asked": { "approval": 7, "task": "t1" } })),
        event(42, &json!("started")),
    ];
    desk.list(0, Screen::Events, "", view::events(&found, &Filter::default()));
    is_as_kept(&desk, "events-80x24");
    desk.keys("?");
    is_as_kept(&desk, "keys-80x24");
    desk.keys("copy");
    assert!(desk.shows("copy the first command") && !desk.shows("a page down"));
}

#[test]
fn a_terminal_that_is_too_small_is_asked_to_be_larger_and_none_is_too_small_to_be_drawn_upon() {
    let mut desk = busy((80, 24));
    desk.keys("\n");
    desk.approval(0, &several()[1]);
    for mode in ["", "?", "\u{1b}:", "\u{1b}a", "\u{1b}d"] {
        desk.keys(mode);
        for columns in 1..70 {
            for rows in 1..18 {
                desk.take(Input::Size(columns, rows));
                let drawn = desk.drawn().concat();
                let is_small = columns < 60 || rows < 15;
                if columns > 30 && rows > 3 {
                    assert_eq!(
                        drawn.contains("A larger terminal, please"),
                        is_small,
                        "{columns}x{rows}: {drawn}"
                    );
                }
            }
        }
    }
}

/// Words that would move a cursor, set a title, colour a screen, turn text around or hide in it.
fn hostile() -> String {
    let words = "\u{1b}[2J\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}5A\r\u{8}\u{202e}desrever\u{2066}\u{200b}\u{e0041}\u{0} 漢字 ";
    words.repeat(200_000 / words.len())
}

#[test]
fn words_of_an_agent_move_no_cursor_and_hide_nothing_however_long() {
    let it = approval(7, "high", "human", &json!({ "goal": hostile(), "asked_by": "or\u{202e}ch\u{1b}[2J" }));
    for size in [(60, 15), (80, 24), (120, 40)] {
        let mut desk = Desk::new(size, &["sh\u{1b}[2Jop\u{202e}"]);
        desk.list(0, Screen::Needs, "", needs(vec![it.clone()], vec![], vec![]));
        desk.keys("\n");
        desk.approval(0, &it);
        let begun = std::time::Instant::now();
        desk.keys("j");
        let lines = desk.drawn();
        eprintln!("a key in a request of 200 kB: {} ms", begun.elapsed().as_millis());
        for step in 0..40 {
            let text = desk.drawn().concat();
            let acts = |c: char| {
                c.is_control()
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{e0000}'..='\u{e007f}')
            };
            assert!(!text.contains(acts), "page {step}: {text:?}");
            desk.take(Input::Key(ratatui::crossterm::event::KeyCode::PageDown.into()));
        }
        assert!(lines.iter().any(|it| it.contains("\\u{1b}") || it.contains("\\u{202e}")), "{lines:?}");
        // Each line of the agent's stands behind the bar.
        let all = desk.drawn();
        assert!(all.iter().filter(|it| it.contains("desrever")).all(|it| it.contains('│')), "{all:?}");
    }
}

#[test]
fn ten_thousand_tasks_answer_keys_at_once() {
    let many: Vec<wire::Task> =
        (0..10_000).map(|n| task(&format!("task-{n}"), "queued", &json!({}))).collect();
    let mut desk = Desk::new((120, 40), &["shop"]);
    desk.keys("2");
    desk.list(0, Screen::Tasks, "", tasks(&many));
    assert!(desk.shows("Not finished (10000)"), "{:?}", desk.drawn());
    let begun = std::time::Instant::now();
    for _ in 0..20 {
        desk.keys("j");
        desk.drawn();
    }
    let each = begun.elapsed().as_millis() / 20;
    eprintln!("a key among 10,000 tasks: {each} ms, in a build for tests");
    assert!(each < 500, "{each} ms");
    desk.keys("G");
    assert!(desk.shows("9000 more; a filter finds them"), "{:?}", desk.drawn());
}

#[test]
fn colours_only_repeat_what_words_say() {
    let cells = |colour, light| {
        let mut desk = busy((120, 40));
        let mut model = Model::new(Theme { colour, light }, (120, 40), now());
        std::mem::swap(&mut desk.model, &mut model);
        let mut again = Desk { model: desk.model, now_ms: now(), orders: Vec::new() };
        again.news(News::Found(provost::ui::Repository {
            name: "shop".into(),
            root: "/shop".into(),
            program: "provost".into(),
        }));
        again.news(News::Live { repository: 0, page: None });
        again.list(0, Screen::Needs, "", needs(several(), vec![question(4)], vec![failed()]));
        let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
        terminal.draw(|frame| draw(&again.model, frame)).unwrap();
        let cells = terminal.backend().buffer().content().to_vec();
        (again.drawn(), cells.iter().any(|it| it.fg != ratatui::style::Color::Reset))
    };
    let (plain, has_none) = cells(false, false);
    assert!(!has_none, "NO_COLOR");
    for light in [false, true] {
        let (coloured, has_some) = cells(true, light);
        assert!(has_some);
        assert_eq!(plain, coloured);
    }
}

#[test]
fn the_environment_says_how_a_terminal_is_drawn_upon() {
    let of = |set: &[(&str, &str)], typed| {
        let set: Vec<(String, String)> = set.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
        Theme::of(|name| set.iter().find(|it| it.0 == name).map(|it| it.1.clone()), typed)
    };
    assert_eq!(of(&[], None), Theme { colour: true, light: false });
    assert!(!of(&[("NO_COLOR", "1")], None).colour);
    assert!(of(&[("NO_COLOR", "")], None).colour, "an empty one is none");
    assert!(of(&[("COLORFGBG", "0;15")], None).light);
    assert!(!of(&[("COLORFGBG", "15;0")], None).light);
    assert!(!of(&[("COLORFGBG", "0;15")], Some(false)).light, "what is typed counts more");
    assert_eq!(NOW.len(), 20);
}
