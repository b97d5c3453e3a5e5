//! The view of waits for people: the list has every wait, and no label of the drawing lies on another thing.

use std::time::{Duration, Instant};

use provost::api::wire;
use provost::view::{self, Block, Cell, Drawing, Filter, Placed, Rows};

fn wait(kind: &str, agent: &str, wanted: &str, by: &[&str]) -> wire::Wait {
    wire::Wait {
        kind: kind.into(),
        agent: agent.into(),
        wanted: wanted.into(),
        by: by.iter().map(|it| (*it).to_owned()).collect(),
        since: "2026-07-01T10:00:00.000Z".into(),
        ..wire::Wait::default()
    }
}

fn edges(pairs: &[(usize, usize)]) -> Vec<(String, String, String)> {
    let named = |n: usize| format!("agent-{n}");
    pairs.iter().map(|(a, b)| (named(*a), named(*b), format!("lock: src/file-{a}.rs:symbol_{b}"))).collect()
}

fn meet(a: &Placed, b: &Placed) -> bool {
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

/// Whether a piece of a line goes through a box, by its height at many places of it.
fn crosses(from: (u32, u32), to: (u32, u32), it: &Placed) -> bool {
    (1..64).any(|n| {
        let at = |a: u32, b: u32| f64::from(a) + (f64::from(b) - f64::from(a)) * f64::from(n) / 64.0;
        let (x, y) = (at(from.0, to.0), at(from.1, to.1));
        let within = |at: f64, from: u32, long: u32| at > f64::from(from) && at < f64::from(from + long);
        within(x, it.x, it.width) && within(y, it.y, it.height)
    })
}

#[track_caller]
fn is_readable(drawing: &Drawing) {
    let boxes: Vec<&Placed> = drawing.nodes.iter().chain(drawing.edges.iter().map(|it| &it.label)).collect();
    for (n, one) in boxes.iter().enumerate() {
        assert!(one.x + one.width <= drawing.width && one.y + one.height <= drawing.height, "{one:?}");
        for other in &boxes[n + 1..] {
            assert!(!meet(one, other), "{one:?} lies on {other:?}");
        }
    }
    for edge in &drawing.edges {
        for pair in edge.points.windows(2) {
            for it in &boxes {
                assert!(!crosses(pair[0], pair[1], it) || **it == edge.label, "an edge crosses {it:?}");
            }
        }
    }
}

#[test]
fn no_label_lies_on_another_and_who_waits_stands_left_of_what_it_waits_for() {
    let chain = view::draw(&edges(&[(0, 1), (1, 2), (0, 2), (3, 2)]));
    is_readable(&chain);
    let x = |name: &str| chain.nodes.iter().find(|it| it.text == name).unwrap().x;
    assert!(x("agent-0") < x("agent-1") && x("agent-1") < x("agent-2") && x("agent-3") < x("agent-2"));
    assert_eq!(chain.edges.iter().filter(|it| it.backwards).count(), 0);
    // A circle is drawn with one edge against the others.
    let circle = view::draw(&edges(&[(0, 1), (1, 2), (2, 0)]));
    is_readable(&circle);
    assert_eq!((circle.edges.len(), circle.edges.iter().filter(|it| it.backwards).count()), (3, 1));
    // Two between the same are one line, and one who waits for itself has none.
    let mut twice = edges(&[(0, 1), (0, 1), (4, 4)]);
    twice[1].2 = "another".into();
    let drawn = view::draw(&twice);
    assert_eq!((drawn.edges.len(), drawn.nodes.len(), drawn.more), (1, 2, 1));
    assert!(drawn.edges[0].label.text.ends_with("and 1 more") || drawn.edges[0].label.text.ends_with('…'));
    assert_eq!(view::draw(&[]), Drawing::default());
}

#[test]
fn sixty_agents_are_laid_out_at_once_and_more_are_left_to_the_list() {
    // A tangle with circles: each waits for two others.
    let pairs: Vec<(usize, usize)> =
        (0..60).flat_map(|n| [(n, (n * 7 + 1) % 60), (n, (n * 11 + 5) % 60)]).collect();
    let from = Instant::now();
    let drawing = view::draw(&edges(&pairs));
    let took = from.elapsed();
    eprintln!("60 nodes and {} edges were laid out in {took:?}", drawing.edges.len());
    is_readable(&drawing);
    assert_eq!(drawing.nodes.len(), 60);
    // This is a build without optimisation, beside other tests: a release takes a tenth of it.
    assert!(took < Duration::from_millis(200), "{took:?}");
    let crowd: Vec<(usize, usize)> = (0..5_000).map(|n| (n, n + 1)).collect();
    let drawing = view::draw(&edges(&crowd));
    assert_eq!((drawing.nodes.len(), drawing.more), (60, 5_000 - 59));
    is_readable(&drawing);
}

#[test]
fn ways_in_which_a_person_answers_are_one_person() {
    let approval = wait("approval", "orch", "7", &["passkey-if-enrolled", "human", "passkey"]);
    let answer = wait("answer", "eve", "12", &["a person"]);
    let found = wire::Waits { waits: vec![approval, answer], ..wire::Waits::default() };
    let shown = view::waits(&found, &Filter::default(), 100);
    let drawing = shown
        .blocks
        .iter()
        .find_map(|it| if let Block::Graph { drawing, .. } = it { Some(drawing) } else { None });
    let names: Vec<&str> = drawing.unwrap().nodes.iter().map(|it| it.text.as_str()).collect();
    assert_eq!((names.len(), names.contains(&"a person")), (3, true), "{names:?}");
    assert!(serde_json::to_string(&shown.blocks[0]).unwrap().contains("a person: 2 waits depend on it"));
}

#[test]
fn the_list_alone_says_who_waits_for_what_behind_whom_and_how_to_end_it() {
    let mut lock = wait("lock", "ada", "src/auth.rs:login", &["bob"]);
    lock.place = Some(2);
    let mut need = wait("resource", "shell", "@db:test", &["eve"]);
    need.task = Some("t1".into());
    let mut approval = wait("approval", "orch", "7", &["human", "client:approver"]);
    approval.words = Some("release <b>it</b> \u{202e}\nnow".into());
    let mut task = wait("task", "bob", "t2", &["shell"]);
    (task.task, task.state, task.place) = (Some("t2".into()), Some("queued".into()), Some(1));
    let question = wait("answer", "eve", "12", &["a person"]);
    let found = wire::Waits {
        waits: vec![lock, need, approval, task, question],
        more: 3,
        refused: vec![wire::RefusedCircle {
            at: "2026-07-01T10:00:00.000Z".into(),
            times: 4,
            wanted: "src/a.rs:f".into(),
            members: vec!["ada".into(), "bob".into(), "eve".into()],
        }],
        refused_since: "2026-07-01T09:00:00.000Z".into(),
    };
    let shown = view::waits(&found, &Filter::default(), 100);
    let lists: Vec<&Rows> = shown
        .blocks
        .iter()
        .filter_map(|it| if let Block::List(rows) = it { Some(rows) } else { None })
        .collect();
    assert_eq!((lists[0].title.as_str(), lists[0].more), ("Waiting, longest first (8)", 3));
    let text = serde_json::to_string(&lists).unwrap();
    for there in
        ["ada", "src/auth.rs:login", "bob", "\"2\"", "@db:test", "a person, client:approver", "task, queued"]
    {
        assert!(text.contains(there), "{there}: {text}");
    }
    assert!(!text.contains('\u{202e}') && text.contains("\\\\u{202e}"), "what hides is made visible: {text}");
    let commands = |n: usize| lists[0].rows[n].commands.iter().map(|it| it.line.as_str()).collect::<Vec<_>>();
    assert_eq!(commands(0)[0], "provost unlock src/auth.rs:login --force");
    assert_eq!(commands(1)[..2], ["provost unlock @db:test --force", "provost task cancel t1"]);
    for (n, names) in [(0, 2), (1, 2)] {
        let last = lists[0].rows[n].commands.last().unwrap();
        let Some(view::Here::Verb { verb: "message-agents", arguments, .. }) = &last.here else {
            panic!("{last:?}")
        };
        assert_eq!(arguments["to"].as_array().unwrap().len(), names, "{arguments}");
    }
    assert_eq!(commands(2), ["provost deny 7 --reason WHY", "provost approve 7"]);
    assert_eq!(commands(4), ["provost answer 12 TEXT"]);
    let to: Vec<Option<&str>> = lists[0].rows.iter().map(|it| it.to.as_deref()).collect();
    assert_eq!(to, [None, Some("/t/t1"), Some("/a/7"), Some("/t/t2"), None]);
    let circle = &lists[1].rows[0].cells;
    assert_eq!(circle[2], Cell::code("ada waits for bob waits for eve waits for ada"));
    let graphs: Vec<&Drawing> = shown
        .blocks
        .iter()
        .filter_map(|it| if let Block::Graph { drawing, .. } = it { Some(drawing) } else { None })
        .collect();
    let [drawing] = graphs[..] else { panic!("{graphs:?}") };
    // Any one of those who may answer ends the wait, so that they are drawn as one.
    let mut names: Vec<&str> = drawing.nodes.iter().map(|it| it.text.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["a person", "a person or client:approver", "ada", "bob", "eve", "orch", "shell", "shell (t1)"]
    );
    let labels = drawing.edges.iter().filter(|it| it.label.text == "approval: 7").count();
    assert_eq!((labels, drawing.edges.len()), (1, 5));
    // A filter that nothing passes, and no waits at all, say so in other words.
    let none = |found: &wire::Waits, filter: &str| {
        let shown = view::waits(found, &Filter::parse(filter), 100);
        serde_json::to_value(&shown.blocks).unwrap().to_string()
    };
    assert!(none(&found, "nothing-has-this").contains("No wait passes the filter."));
    let calm = none(&wire::Waits::default(), "");
    assert!(calm.contains("No agent waits.") && !calm.contains("\"graph\""), "{calm}");
}
