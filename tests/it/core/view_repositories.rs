//! The view of all repositories together: order, names, and outdated rows.

use provost::view::{
    self, Block, Cell, Command, Empty, Here, Lead, RepositoryOverview, Row, Rows, Shown, State,
};

fn known(id: &str, name: &str, state: State, rows: Vec<Row>) -> RepositoryOverview {
    let (columns, empty) = (vec!["What", "Until"], Empty::new("", None));
    let count = rows.len();
    let list = Rows { title: "Waiting for your word".into(), columns, rows, more: 0, empty };
    let shown = Shown { needs: Some(count), ..Shown::new("Needs you", vec![Block::List(list)]) };
    RepositoryOverview {
        id: id.into(),
        name: name.into(),
        root: format!("/home/ann/{id}/{name}"),
        lead: Lead { base: format!("/r/{id}"), program: format!("provost -C /home/ann/{id}/{name}") },
        state,
        since: "2026-01-01T00:00:00Z".into(),
        needs: Some((shown, "2026-01-01T00:00:00Z".into())),
    }
}

fn row(number: u64, until: Option<&str>) -> Row {
    let end = until.map_or(Cell::None, |at| Cell::Until { at: at.into(), from: None });
    let command = Command::new("Approve", format!("provost approve {number}"));
    Row {
        key: format!("approval:{number}"),
        to: Some(format!("/a/{number}")),
        cells: vec![Cell::text(&format!("approval {number}")), end],
        commands: vec![command.or_here(Here::Answer { approval: number })],
    }
}

fn list(shown: &Shown) -> &Rows {
    let mut lists =
        shown.blocks.iter().filter_map(|it| if let Block::List(rows) = it { Some(rows) } else { None });
    lists.next_back().unwrap()
}

#[test]
fn what_ends_first_comes_first_over_all_repositories_and_leads_to_its_own() {
    let one = known("1", "a", State::Live, vec![row(1, Some("2026-01-01T00:00:05Z")), row(2, None)]);
    let other = known("2", "b", State::Live, vec![row(1, Some("2026-01-01T00:00:03Z"))]);
    let shown = view::needs_of_all(&[one, other]);
    assert_eq!(shown.needs, Some(3));
    let rows = &list(&shown).rows;
    let to: Vec<&str> = rows.iter().map(|it| it.to.as_deref().unwrap()).collect();
    assert_eq!(to, ["/r/2/a/1", "/r/1/a/1", "/r/1/a/2"]);
    assert_eq!(list(&shown).columns, ["What", "Repository", "Until"]);
    assert_eq!(rows[0].cells[1], Cell::link("b", "/r/2/".into()));
    let command = &rows[0].commands[0];
    assert_eq!(command.line, "provost -C /home/ann/2/b approve 1");
    assert_eq!(command.base.as_deref(), Some("/r/2"));
    let keys: std::collections::BTreeSet<&str> = rows.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(keys.len(), 3, "the same number of two repositories is two rows");
}

#[test]
fn of_a_daemon_that_does_not_answer_what_was_known_stays_and_nothing_can_be_signed() {
    let stale = State::Stale("its daemon does not answer".into(), "provost status".into());
    for state in [stale, State::Stopped("provost up".into())] {
        let shown = view::needs_of_all(&[known("1", "a", state, vec![row(1, None)])]);
        assert!(list(&shown).rows[0].commands.iter().all(|it| it.here.is_none()), "{shown:?}");
        let said = serde_json::to_string(&shown).unwrap();
        assert!(said.contains("what is shown of it is of 2026"), "{said}");
    }
    let live = view::needs_of_all(&[known("1", "a", State::Live, vec![row(1, None)])]);
    assert!(list(&live).rows[0].commands[0].here.is_some());
}

#[test]
fn repositories_that_look_the_same_go_by_their_folders() {
    let all = [
        known("1", "shop", State::Live, Vec::new()),
        // With a Cyrillic letter.
        known("2", "sh\u{43e}p", State::Live, Vec::new()),
        known("3", "other\u{202e}", State::Live, Vec::new()),
    ];
    let shown = view::repositories(&all);
    let names: Vec<&Cell> = list(&shown).rows.iter().map(|it| &it.cells[1]).collect();
    assert_eq!(names[0], &Cell::text("/home/ann/1/shop"));
    assert_eq!(names[1], &Cell::text("/home/ann/2/sh\u{43e}p"));
    assert_eq!(names[2], &Cell::text("other\\u{202e}"));
    assert!(view::needs_of_all(&[]).blocks.len() == 1, "what would be here is said");
}

#[test]
fn a_repository_that_is_read_at_its_own_page_is_named_with_the_command_that_opens_it() {
    let mut apart = known("1", "a", State::Apart("provost -C /home/ann/1/a web open".into()), Vec::new());
    apart.needs = None;
    let live = known("2", "b", State::Live, vec![row(1, None)]);
    let shown = view::needs_of_all(&[apart.clone(), live]);
    assert_eq!(shown.needs, Some(1));
    let Block::Notice(line) = &shown.blocks[0] else { panic!("{shown:?}") };
    let text = "a: it is read at its own page, after a passkey has signed in; try: provost -C /home/ann/1/a web open";
    assert_eq!(line.text, text);
    let row = list(&view::repositories(&[apart])).rows[0].clone();
    assert_eq!((row.cells[2].clone(), row.commands[0].line.ends_with("web open")), (Cell::None, true));
}

#[test]
fn what_is_found_in_all_repositories_leads_to_its_own_newest_first_and_a_silent_one_is_named() {
    use provost::api::wire::{Found, Hit};

    let hit = |seq: u64, at: &str, excerpt: &str| Hit {
        kind: "event".into(),
        seq: Some(seq),
        at: format!("2026-01-01T00:00:0{at}Z"),
        what: "denied".into(),
        actor: "orch".into(),
        excerpt: excerpt.into(),
        ..Hit::default()
    };
    let task =
        Hit { kind: "task".into(), task: Some("a/b".into()), what: "failed".into(), ..hit(1, "1", "x") };
    let stale = State::Stale("its daemon does not answer".into(), "provost status".into());
    let all = [
        known("1", "shop", State::Live, Vec::new()),
        // With a Cyrillic letter.
        known("2", "sh\u{43e}p", State::Live, Vec::new()),
        known("3", "stale\u{202e}", stale, Vec::new()),
        known("4", "busy", State::Live, Vec::new()),
    ];
    let one = Found { hits: vec![hit(9, "5", "<b>\u{1b}[2J\u{202e}"), hit(7, "1", "y")], ..Found::default() };
    let other = Found { hits: vec![task, hit(9, "3", "z")], next: Some(4), not_yet: 2, ..Found::default() };
    let found = [Ok(one), Ok(other), Err("no".into()), Err("it has too much to do".into())];
    let shown = view::search_of_all("x y", &all, &found);
    let text = serde_json::to_string(&shown).unwrap();
    assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains("\\\\u{1b}[2J"), "{text}");
    for there in [
        "was not searched: its daemon does not answer; try: provost status",
        "busy was not searched: it has too much to do",
        "The last 2 events of the journal cannot be searched yet",
        "/r/2/search?q=x%20y",
        "/r/2/t/a%2Fb",
    ] {
        assert!(text.contains(there), "{there}: {text}");
    }
    let rows = &list(&shown).rows;
    let to: Vec<&str> = rows.iter().map(|it| it.to.as_deref().unwrap()).collect();
    assert_eq!(to, ["/r/1/e?before=10", "/r/2/e?before=10", "/r/1/e?before=8"]);
    assert_eq!(
        rows[0].cells[1],
        Cell::link("/home/ann/1/shop", "/r/1/".into()),
        "names that look alike go by their folders"
    );
    let none = view::search_of_all("x", &all[..1], &[Ok(Found::default())]);
    assert!(serde_json::to_string(&none).unwrap().contains("Nothing has all of these words."));
}
