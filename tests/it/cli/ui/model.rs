//! Keys and news in, orders out, without a terminal.

use provost::api::wire;
use provost::ui::{Got, Input, News, Order, Screen, UiRequest};
use provost::view::Shown;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use serde_json::json;

use super::{Desk, approval, needs, question, task, tasks};

fn one() -> wire::Approval {
    approval(7, "high", "human", &json!({}))
}

/// A screen on which one approval waits, and is chosen.
fn asked(size: (u16, u16)) -> Desk {
    let mut desk = Desk::new(size, &["shop"]);
    desk.list(0, Screen::Needs, "", needs(vec![one()], vec![], vec![]));
    desk.ordered();
    desk
}

fn answers(orders: &[Order]) -> Vec<&Order> {
    orders.iter().filter(|it| matches!(it, Order::Answer { .. })).collect()
}

fn answer(grant: bool, note: Option<&str>) -> Order {
    let digest = one().digest;
    Order::Answer { repository: 0, approval: 7, grant, note: note.map(Into::into), digest }
}

#[test]
fn an_approval_is_answered_after_it_was_shown_whole_and_with_its_digest() {
    let mut desk = asked((80, 24));
    desk.keys("a");
    // Its whole request is asked for, and nothing is sent before it is there.
    assert_eq!(desk.ordered(), [Order::Ask { repository: 0, asked: UiRequest::Approval(7) }]);
    desk.keys("y");
    assert!(answers(&desk.ordered()).is_empty());
    assert!(desk.shows("nothing was sent") && desk.shows("still being read"), "{:?}", desk.drawn());
    desk.approval(0, &one());
    assert!(desk.shows("approve 7, high risk"), "{:?}", desk.drawn());
    desk.keys("y");
    assert_eq!(desk.ordered(), [answer(true, None)]);
    // Once: a second key is no second answer.
    desk.keys("y");
    assert!(answers(&desk.ordered()).is_empty());
}

#[test]
fn any_key_but_y_and_n_answers_nothing_and_esc_leaves() {
    let mut desk = asked((80, 24));
    desk.keys("a");
    desk.approval(0, &one());
    desk.ordered();
    desk.keys("\n aAYNdjk ");
    assert!(answers(&desk.ordered()).is_empty());
    desk.keys("\u{1b}y");
    assert!(answers(&desk.ordered()).is_empty());
}

#[test]
fn a_grant_with_a_note_and_a_denial_with_its_reason() {
    let mut desk = asked((120, 40));
    desk.keys("a");
    desk.approval(0, &one());
    desk.keys("nlooked at it\n");
    assert_eq!(answers(&desk.ordered()), [&answer(true, Some("looked at it"))]);
    let mut desk = asked((120, 40));
    desk.keys("d");
    desk.approval(0, &one());
    // A denial has a reason.
    desk.keys(" \n");
    assert!(desk.shows("a denial has a reason"));
    desk.keys("not on a Friday\n");
    assert_eq!(answers(&desk.ordered()), [&answer(false, Some("not on a Friday"))]);
}

#[test]
fn what_changes_while_it_is_looked_at_is_not_answered() {
    let mut desk = asked((80, 24));
    desk.keys("a");
    desk.approval(0, &one());
    let other = approval(7, "high", "human", &json!({ "digest": "sha256:other", "goal": "something else" }));
    desk.approval(0, &other);
    assert!(desk.shows("changed while you were looking"), "{:?}", desk.drawn());
    desk.keys("y");
    assert!(answers(&desk.ordered()).is_empty());
    // Looked at again, it is answered by its new digest.
    desk.keys("ay");
    let orders = desk.ordered();
    assert!(
        matches!(answers(&orders)[..], [Order::Answer { digest, .. }] if digest == "sha256:other"),
        "{orders:?}"
    );
}

#[test]
fn an_approval_that_others_have_answered_says_so_and_is_not_answered_again() {
    let mut desk = asked((80, 24));
    desk.keys("a");
    desk.approval(0, &one());
    let answered = Some((7, "user:eve".to_owned(), "granted (proof: weak-human)".to_owned()));
    desk.news(News::Changed { repository: 0, answered });
    assert!(desk.shows("approval 7: granted (proof: weak-human), by user:eve"), "{:?}", desk.drawn());
    desk.ordered();
    desk.keys("y");
    assert!(answers(&desk.ordered()).is_empty());
}

#[test]
fn an_approval_that_has_ended_without_an_answer_ends_what_was_begun() {
    for (by, keys) in [("human", "a"), ("human", "dbecause"), ("human", "an"), ("passkey", "a")] {
        let it = approval(7, "high", by, &json!({}));
        let mut desk = Desk::new((80, 24), &["shop"]);
        desk.list(0, Screen::Needs, "", needs(vec![it.clone()], vec![], vec![]));
        desk.keys(&keys[..1]);
        desk.approval(0, &it);
        desk.keys(&keys[1..]);
        let gone = Got::Gone(Box::new(provost::view::gone(7, &[])));
        desk.news(News::Got { repository: 0, asked: UiRequest::Approval(7), got: Ok(gone) });
        assert!(desk.shows("approval 7 does not wait any more"), "{by} {keys}: {:?}", desk.drawn());
        desk.keys("y\n");
        assert!(answers(&desk.ordered()).is_empty());
    }
}

#[test]
fn one_that_only_others_may_answer_is_not_begun_and_a_passkey_is_waited_for() {
    for (by, says) in [("client:approver", "not yours to answer"), ("passkey", "provost web")] {
        let it = approval(7, "high", by, &json!({}));
        for key in ["a", "d"] {
            let mut desk = Desk::new((80, 24), &["shop"]);
            desk.list(0, Screen::Needs, "", needs(vec![it.clone()], vec![], vec![]));
            desk.keys(key);
            desk.approval(0, &it);
            assert!(desk.shows(says), "{by}: {:?}", desk.drawn());
            desk.keys("y\n");
            assert!(answers(&desk.ordered()).is_empty());
        }
    }
    // With an open page its address is there, as a text, too; the answer is heard of, and ends the wait.
    let it = approval(7, "high", "passkey", &json!({}));
    let mut desk = Desk::new((120, 40), &["shop"]);
    desk.news(News::Live { repository: 0, page: Some("http://provost.localhost:4720/".into()) });
    desk.list(0, Screen::Needs, "", needs(vec![it.clone()], vec![], vec![]));
    desk.keys("a");
    desk.approval(0, &it);
    assert!(desk.shows("http://provost.localhost:4720/a/7"));
    // A phone that reads it off a picture would look for the page on itself.
    assert!(desk.shows("of this machine alone") && !desk.shows("█"));
    desk.ordered();
    desk.keys("y");
    assert_eq!(desk.ordered(), [Order::Copy("http://provost.localhost:4720/a/7".into())]);
    let answered = Some((7, "user:ada".to_owned(), "granted (proof: passkey)".to_owned()));
    desk.news(News::Changed { repository: 0, answered });
    assert!(!desk.shows("Waiting for the answer") && desk.shows("proof: passkey"));
}

#[test]
fn a_passkey_that_was_enrolled_meanwhile_is_asked_for() {
    let it = approval(7, "high", "passkey-if-enrolled", &json!({}));
    let mut desk = asked((80, 24));
    desk.keys("a");
    desk.approval(0, &it);
    desk.keys("y");
    assert_eq!(answers(&desk.ordered()).len(), 1);
    let says = "the rule test.ask does not let you answer".to_owned();
    desk.news(News::Done { repository: 0, says, well: false, refused: Some((7, true)) });
    assert!(desk.shows("signed with a passkey"), "{:?}", desk.drawn());
    // Where no passkey counts, a refusal is said, and nothing else.
    let mut desk = asked((80, 24));
    desk.keys("a");
    desk.approval(0, &one());
    desk.keys("y");
    desk.news(News::Done { repository: 0, says: "no".into(), well: false, refused: Some((7, true)) });
    assert!(!desk.shows("passkey"));
}

#[test]
fn nothing_is_sent_to_a_daemon_that_has_gone() {
    let mut desk = asked((120, 40));
    desk.keys("a");
    desk.approval(0, &one());
    let (why, next) = ("its daemon has gone".to_owned(), "provost up".to_owned());
    desk.news(News::Stale { repository: 0, why, next });
    assert!(desk.shows("stale since") && desk.shows("try: provost up"), "{:?}", desk.drawn());
    desk.ordered();
    desk.keys("y");
    assert_eq!(desk.ordered(), []);
    // What was shown stays, and with the daemon everything is asked for again.
    assert!(desk.shows("make the release"));
    desk.news(News::Live { repository: 0, page: None });
    let orders = desk.ordered();
    let list = UiRequest::List { screen: Screen::Needs, filter: String::new() };
    assert!(orders.contains(&Order::Ask { repository: 0, asked: list }), "{orders:?}");
    assert!(orders.contains(&Order::Ask { repository: 0, asked: UiRequest::Approval(7) }), "{orders:?}");
    assert!(!desk.shows("stale since"));
}

#[test]
fn changes_are_asked_for_once_and_then_at_most_four_times_a_second() {
    let mut desk = asked((80, 24));
    let list = UiRequest::List { screen: Screen::Needs, filter: String::new() };
    let order = Order::Ask { repository: 0, asked: list.clone() };
    let changed = || News::Changed { repository: 0, answered: None };
    desk.now_ms += 1_000;
    for _ in 0..200 {
        desk.news(changed());
    }
    assert_eq!(
        desk.ordered(),
        std::slice::from_ref(&order),
        "one question for all that happen before its answer"
    );
    desk.list(0, Screen::Needs, "", needs(vec![one()], vec![], vec![]));
    assert_eq!(desk.ordered(), [], "and then a rest");
    assert_eq!(desk.model.next_wake(), Some(desk.now_ms + 250));
    desk.now_ms += 250;
    desk.take(Input::Tick);
    assert_eq!(desk.ordered(), [order]);
}

#[test]
fn a_screen_without_countdowns_wakes_for_nothing() {
    let mut desk = Desk::new((80, 24), &["shop"]);
    desk.list(0, Screen::Needs, "", needs(vec![], vec![], vec![]));
    assert_eq!(desk.model.next_wake(), None);
    desk.list(0, Screen::Needs, "", needs(vec![one()], vec![], vec![]));
    assert_eq!(desk.model.next_wake(), Some((desk.now_ms / 1_000 + 1) * 1_000));
    // On another screen no countdown is to be seen.
    desk.keys("2");
    desk.list(0, Screen::Tasks, "", tasks(&[]));
    assert_eq!(desk.model.next_wake(), None);
}

#[test]
fn the_chosen_row_stays_chosen_when_others_come_before_it() {
    let mut desk = Desk::new((80, 24), &["shop", "site"]);
    desk.list(0, Screen::Needs, "", needs(vec![one()], vec![], vec![]));
    let sooner = approval(1, "low", "human", &json!({ "expires_at": "2026-07-01T12:01:00.000Z" }));
    desk.list(1, Screen::Needs, "", needs(vec![sooner], vec![], vec![]));
    desk.ordered();
    desk.keys("\n");
    let orders = desk.ordered();
    assert_eq!(
        orders,
        [Order::Ask { repository: 0, asked: UiRequest::Approval(7) }],
        "not what is above it now"
    );
}

#[test]
fn a_filter_is_asked_for_as_it_is_typed_and_an_earlier_answer_is_left_out() {
    let mut desk = Desk::new((80, 24), &["shop"]);
    desk.keys("2/st");
    let of = |filter: &str| Order::Ask {
        repository: 0,
        asked: UiRequest::List { screen: Screen::Tasks, filter: filter.into() },
    };
    assert_eq!(desk.ordered(), [of(""), of("s"), of("st")]);
    desk.list(0, Screen::Tasks, "", tasks(&[]));
    desk.list(0, Screen::Tasks, "st", tasks(&[task("new", "running", &json!({}))]));
    desk.list(0, Screen::Tasks, "s", tasks(&[task("old", "running", &json!({}))]));
    assert!(desk.shows("new") && !desk.shows("old"));
    desk.keys("\n");
    assert!(desk.shows("filter: st"), "it stays in sight");
    desk.keys("\u{1b}");
    assert_eq!(desk.ordered(), [of("")], "Esc takes it away");
}

#[test]
fn commands_are_completed_and_carried_out_and_others_are_named() {
    let mut desk = asked((80, 24));
    desk.keys(":ta");
    assert!(desk.shows("tasks  task ID"), "{:?}", desk.drawn());
    desk.keys("\ts\n");
    assert!(desk.shows("Not finished") || desk.drawn()[1].contains("Tasks"));
    desk.keys(":needs\n:approve 7\n");
    desk.approval(0, &one());
    desk.keys("y");
    assert_eq!(answers(&desk.ordered()).len(), 1);
    for (typed, says) in [
        ("frobnicate", "is no command"),
        ("approve seven", "write the number"),
        ("deny", "write the number"),
        ("\u{202e}x", "is no command"),
    ] {
        desk.keys(&format!(":{typed}\n"));
        assert!(desk.shows(says), "{typed}: {:?}", desk.drawn());
    }
    desk.ordered();
    desk.keys(":quit\n");
    assert_eq!(desk.ordered(), [Order::Quit]);
}

#[test]
fn an_approval_that_waits_in_several_repositories_is_not_guessed() {
    let mut desk = Desk::new((80, 24), &["shop", "site"]);
    desk.list(
        0,
        Screen::Needs,
        "",
        needs(vec![one(), approval(1, "low", "human", &json!({}))], vec![], vec![]),
    );
    desk.list(1, Screen::Needs, "", needs(vec![one()], vec![], vec![]));
    // The row of the second repository is chosen: that one is meant.
    desk.keys("G:approve 7\n");
    let orders = desk.ordered();
    assert!(
        orders.iter().any(|it| matches!(it, Order::Ask { asked: UiRequest::Approval(7), .. })),
        "{orders:?}"
    );
    let mut none = Desk::new((80, 24), &["shop", "site"]);
    none.keys(":task 3f0c2a\n");
    assert!(none.shows("choose a row"), "{:?}", none.drawn());
}

#[test]
fn a_question_is_answered_and_a_task_ended_after_a_second_key() {
    let mut desk = Desk::new((80, 24), &["shop"]);
    desk.list(0, Screen::Needs, "", needs(vec![], vec![question(4)], vec![]));
    desk.ordered();
    desk.keys("rES256\n");
    let said = Order::Say { repository: 0, question: 4, text: "ES256".into() };
    assert_eq!(desk.ordered(), [said]);
    let running = task("a/b c", "running", &json!({}));
    desk.keys("2");
    desk.list(0, Screen::Tasks, "", tasks(&[running, task("over", "completed", &json!({}))]));
    desk.ordered();
    desk.keys("xn\u{1b}");
    assert_eq!(desk.ordered(), []);
    desk.keys("xy");
    assert_eq!(desk.ordered(), [Order::Cancel { repository: 0, task: "a/b c".into() }]);
    // One that has ended is not ended.
    desk.keys("jxy");
    assert!(desk.ordered().iter().all(|it| !matches!(it, Order::Cancel { .. })));
}

#[test]
fn a_log_is_followed_until_it_ends_and_keeps_its_newest_lines() {
    let mut desk = Desk::new((80, 24), &["shop"]);
    desk.keys("2");
    let running = task("t1", "running", &json!({}));
    desk.list(0, Screen::Tasks, "", tasks(std::slice::from_ref(&running)));
    desk.keys("\n");
    desk.task(0, &running);
    desk.ordered();
    desk.keys("l");
    let from = |from| Order::Ask { repository: 0, asked: UiRequest::Log { task: "t1".into(), from } };
    assert_eq!(desk.ordered(), [from(0)]);
    let got = |from, text: String, next, done| News::Got {
        repository: 0,
        asked: UiRequest::Log { task: "t1".into(), from },
        got: Ok(Got::Log { text, next, done, note: None }),
    };
    let lines: String = (0..9_000).map(|n| format!("line {n}\n")).collect();
    desk.news(got(0, lines, 100, false));
    assert_eq!(desk.ordered(), [from(100)]);
    assert!(desk.shows("line 8999") && desk.shows("more may come"));
    desk.keys("kkk");
    desk.news(got(100, "the last".into(), 108, true));
    assert_eq!(desk.ordered(), [], "nothing more comes");
    assert!(!desk.shows("the last"), "a reader who went up is not taken away");
    desk.keys("G");
    assert!(desk.shows("the last") && desk.shows("has ended"));
    desk.take(Input::Key(KeyCode::Home.into()));
    assert!(desk.shows("lines before these are left out") && !desk.shows("line 0"));
}

#[test]
fn commands_about_a_row_are_copied_for_its_repository() {
    let mut desk = Desk::new((80, 24), &["shop", "site"]);
    desk.list(1, Screen::Needs, "", needs(vec![one()], vec![], vec![]));
    desk.ordered();
    desk.keys(".");
    assert!(desk.shows("Approve: provost -C /home/ada/site approve 7"), "{:?}", desk.drawn());
    desk.keys("j\n");
    assert_eq!(desk.ordered(), [Order::Copy("provost -C /home/ada/site approve 7".into())]);
}

#[test]
fn what_is_pasted_is_text_where_text_is_typed_and_nothing_elsewhere() {
    let mut desk = asked((80, 24));
    desk.take(Input::Paste("ay:quit\n".into()));
    assert_eq!(desk.ordered(), []);
    desk.keys("d");
    desk.approval(0, &one());
    desk.ordered();
    desk.take(Input::Paste("two\nlines \u{1b}[2J".into()));
    desk.keys("\n");
    let orders = desk.ordered();
    assert!(
        matches!(answers(&orders)[..], [Order::Answer { note: Some(note), .. }] if note == "two lines [2J"),
        "{orders:?}"
    );
}

#[test]
fn the_mouse_chooses_rows_tabs_and_keys() {
    let mut desk = Desk::new((120, 40), &["shop"]);
    let two = vec![one(), approval(8, "low", "human", &json!({ "expires_at": "2026-07-01T12:09:00.000Z" }))];
    desk.list(0, Screen::Needs, "", needs(two, vec![], vec![]));
    desk.ordered();
    let line = |desk: &Desk, text: &str| {
        let lines = desk.drawn();
        let row = lines.iter().position(|it| it.contains(text)).unwrap();
        let column = lines[row].find(text).unwrap();
        (u16::try_from(column).unwrap(), u16::try_from(row).unwrap())
    };
    let click = |desk: &mut Desk, (column, row): (u16, u16)| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        desk.take(Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    };
    let at = line(&desk, "approval 8");
    click(&mut desk, at);
    assert!(desk.shows("> ? approval 8") || desk.shows("> · approval 8"), "{:?}", desk.drawn());
    click(&mut desk, at);
    assert_eq!(desk.ordered(), [Order::Ask { repository: 0, asked: UiRequest::Approval(8) }]);
    let at = line(&desk, "Esc back");
    click(&mut desk, at);
    let at = line(&desk, "2 Tasks");
    click(&mut desk, at);
    assert!(desk.drawn()[1].contains("Tasks"));
    let at = line(&desk, "q quit");
    desk.ordered();
    click(&mut desk, at);
    assert_eq!(desk.ordered(), [Order::Quit]);
}

#[test]
fn ctrl_c_ends_it_wherever_it_is() {
    for keys in ["", "/x", ":", "?", "a", "d"] {
        let mut desk = asked((80, 24));
        desk.keys(keys);
        desk.ordered();
        desk.take(Input::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert_eq!(desk.ordered(), [Order::Quit], "after {keys:?}");
    }
}

#[test]
fn an_error_is_said_and_what_was_shown_stays() {
    let mut desk = asked((80, 24));
    let asked = UiRequest::List { screen: Screen::Needs, filter: String::new() };
    desk.news(News::Got {
        repository: 0,
        asked: asked.clone(),
        got: Err("the daemon did not answer in time".into()),
    });
    assert!(desk.shows("shop: the daemon did not answer in time"), "{:?}", desk.drawn());
    assert!(desk.shows("approval 7"), "{:?}", desk.drawn());
    desk.news(News::Got { repository: 0, asked, got: Ok(Got::Shown(Box::new(Shown::new("", vec![])))) });
    assert!(!desk.shows("did not answer"));
}

#[test]
fn random_keys_and_news_break_nothing_and_answer_nothing_that_was_not_shown() {
    let mut seed = 7_u64;
    let mut next = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap()
    };
    let keys: Vec<char> = "jkadyn\n\u{1b}\t:/?.12345678gGlctiFrxqRmMV oé漢".chars().collect();
    let mut desk = asked((80, 24));
    let mut shown = false;
    for step in 0..20_000 {
        desk.now_ms += 37;
        match next() % 12 {
            0 => desk.news(News::Changed { repository: next() % 3, answered: None }),
            1 => desk.list(0, Screen::Needs, "", needs(vec![one()], vec![question(4)], vec![])),
            2 => {
                desk.approval(0, &one());
                shown = true;
            }
            3 => desk
                .take(Input::Size(u16::try_from(next() % 140).unwrap(), u16::try_from(next() % 50).unwrap())),
            4 => {
                let (why, next) = (String::new(), String::new());
                desk.news(News::Stale { repository: 0, why, next });
            }
            5 => desk.news(News::Live { repository: 0, page: None }),
            _ => desk.keys(&keys[next() % keys.len()].to_string()),
        }
        for order in desk.ordered() {
            if let Order::Answer { digest, .. } = order {
                assert!(shown && digest == one().digest, "step {step}");
            }
        }
        if step % 50 == 0 {
            let (columns, rows) = desk.model.size();
            if columns > 0 && rows > 0 {
                desk.drawn();
            }
        }
    }
}
