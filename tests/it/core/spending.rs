//! Budgets, as scripts over the core: what counts for what, who is asked, and what is kept.

use provost::base::{AgentId, ApprovalId, TaskId, Ttl};
use provost::domain::command::{GoOn, NoteCalls, Status};
use provost::domain::view::View as _;
use provost::domain::{
    Answer, Budget, BudgetPer, Change, Counted, EventKind, Limit, MayCall, NextCall, Price, Refusal,
    SpendChange, SpendingSettings, SpentKey, Verdict,
};
use provost_test_equipment::callers::from_tree;

use crate::support::script::{Script, approver, client, host, person, rule};
use crate::support::storm::settings;

const DAY: Ttl = Ttl::minutes(24 * 60);

fn budget(per: BudgetPer, limit: Limit) -> Budget {
    Budget { per, agent: None, limit, warn_at: 50, ask_at: 80 }
}

fn script(budgets: Vec<Budget>) -> Script {
    let mut settings = settings();
    settings.spending = SpendingSettings { prices: Vec::new(), budgets };
    Script::with(settings)
}

fn used(s: &mut Script, task: &TaskId, model: &str, tokens: u64) {
    let counted = Counted { calls: 1, input: tokens, ..Counted::default() };
    s.say(&host(), NoteCalls { task: task.clone(), calls: vec![(model.into(), counted)] }).unwrap();
}

fn next(s: &Script, task: &TaskId) -> MayCall {
    NextCall { task: task.clone(), is_deferred: false }.look(s.now, s.core.state())
}

fn asks(s: &Script, task: &TaskId) -> GoOn {
    match next(s, task) {
        MayCall::Ask(it) => *it,
        other => panic!("{other:?}"),
    }
}

fn parked(s: &mut Script, asks: GoOn) -> ApprovalId {
    match s.say(&host(), asks).unwrap() {
        Answer::Parked(id) => id,
        other => panic!("{other:?}"),
    }
}

fn stops(s: &Script, task: &TaskId) -> bool {
    matches!(next(s, task), MayCall::No(_))
}

#[test]
fn one_question_is_for_all_who_share_a_budget_and_its_answer_lasts() {
    let mut s = script(vec![budget(BudgetPer::Day, Limit::Tokens(100))]);
    let (one, two) = (s.delegate(&client("ada"), "do", "cli"), s.delegate(&client("eve"), "do", "cli"));
    used(&mut s, &one, "m", 79);
    assert_eq!(next(&s, &two), MayCall::Yes);
    used(&mut s, &two, "m", 2);
    let (of_one, of_two) = (asks(&s, &one), asks(&s, &two));
    let approval = parked(&mut s, of_one);
    assert_eq!(parked(&mut s, of_two), approval, "one question");
    let waiting = s.core.state().approvals.get(approval).unwrap().clone();
    assert_eq!(waiting.rule, rule("budget"));
    // No agent and no word of a policy answers it.
    for who in [client("ada"), client("boss")] {
        assert!(matches!(s.answer(&who, approval, Verdict::Granted), Err(Refusal::OutOfScope { .. })));
    }
    let by_key = s.answer(&approver("boss"), approval, Verdict::Granted);
    assert!(matches!(by_key, Err(Refusal::ApprovalNotYours { .. })), "{by_key:?}");
    s.core.set_judge(Box::new(crate::support::script::ByWord { strict: true }));
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
    let kept = s.out.changes.clone();
    assert!(kept.iter().any(|it| matches!(it, Change::Spend(SpendChange::Put(_))) && it.is_stored()));
    assert_eq!((next(&s, &one), next(&s, &two)), (MayCall::Yes, MayCall::Yes));
    used(&mut s, &one, "m", 18);
    assert_eq!(next(&s, &one), MayCall::Yes, "it goes on until it is used up");
    used(&mut s, &one, "m", 1);
    assert!(stops(&s, &one) && stops(&s, &two));
    s.pass(DAY);
    assert_eq!(next(&s, &one), MayCall::No("the task is over".into()), "its worker stayed away for a day");
    s.core.set_judge(Box::new(crate::support::script::ByWord::default()));
    let fresh = s.delegate(&client("ada"), "do", "cli");
    assert_eq!(next(&s, &fresh), MayCall::Yes, "another day");
}

#[test]
fn a_no_holds_until_the_budget_is_another_and_silence_is_no_answer() {
    let mut s = script(vec![budget(BudgetPer::Repository, Limit::Tokens(100))]);
    let task = s.delegate(&client("ada"), "do", "cli");
    used(&mut s, &task, "m", 90);
    let question = asks(&s, &task);
    let approval = parked(&mut s, question);
    s.pass(DAY);
    assert!(s.core.state().approvals.get(approval).is_none(), "it has expired");
    let again = s.delegate(&client("ada"), "do", "cli");
    let question = asks(&s, &again);
    let second = parked(&mut s, question);
    assert_ne!(second, approval, "it is asked again");
    s.answer(&person("owner"), second, Verdict::Denied).unwrap();
    assert!(stops(&s, &again));
    let mut settings = s.core.state().settings.clone();
    settings.spending.budgets = vec![budget(BudgetPer::Repository, Limit::Tokens(200))];
    s.core.set_settings(settings);
    assert_eq!(next(&s, &again), MayCall::Yes, "what was said was about another budget");
}

#[test]
fn a_question_about_what_is_over_waits_no_more() {
    let mut s = script(vec![budget(BudgetPer::Task, Limit::Tokens(100))]);
    let (task, other) = (s.delegate(&client("ada"), "do", "cli"), s.delegate(&client("ada"), "do", "cli"));
    used(&mut s, &task, "m", 90);
    used(&mut s, &other, "m", 90);
    let question = asks(&s, &task);
    let approval = parked(&mut s, question);
    let question = asks(&s, &other);
    let second = parked(&mut s, question);
    s.cancel(&client("ada"), &task).unwrap();
    assert!(s.core.state().approvals.get(approval).is_none());
    assert!(s.core.state().approvals.get(second).is_some(), "that is another task's");
}

#[test]
fn what_is_handed_on_counts_above_also_by_another_name_and_after_the_end_of_the_one_above() {
    let mut s = script(vec![budget(BudgetPer::Task, Limit::Tokens(100))]);
    let top = s.delegate(&client("ada"), "go", "wes");
    let from = from_tree(client("wes"), 7);
    s.report(&from, &top, Status::InProgress).unwrap();
    let disguised = from_tree(client("nobody"), 7);
    let (one, two) = (s.delegate(&from, "do", "cli"), s.delegate(&disguised, "do", "cli"));
    used(&mut s, &one, "m", 60);
    used(&mut s, &two, "m", 60);
    assert!(stops(&s, &one) && stops(&s, &two) && stops(&s, &top), "{:?}", next(&s, &two));
    s.report(&from, &top, Status::Completed).unwrap();
    assert!(stops(&s, &one), "the sum stays as long as one below needs it");
    let other = s.delegate(&client("ada"), "do", "cli");
    assert_eq!(next(&s, &other), MayCall::Yes);
    s.cancel(&from, &one).unwrap();
    s.cancel(&disguised, &two).unwrap();
    let left =
        |s: &Script| s.core.state().spending.iter().filter(|it| matches!(it.key, SpentKey::Task(_))).count();
    assert_eq!(left(&s), 0, "nothing is kept of what is over");
    used(&mut s, &one, "m", 5);
    assert_eq!(left(&s), 0, "nor does a late word bring it back");
}

#[test]
fn an_agent_pays_for_all_agents_below_it() {
    let agent = AgentId::parse("wes").unwrap();
    let of_wes = Budget { agent: Some(agent), ..budget(BudgetPer::Agent, Limit::Tokens(100)) };
    let mut s = script(vec![of_wes]);
    for nth in 0..2 {
        let top = s.delegate(&client("ada"), "go", "wes");
        let from = from_tree(client("wes"), 7 + nth);
        s.report(&from, &top, Status::InProgress).unwrap();
        let below = s.delegate(&from, "do", "cli");
        used(&mut s, &below, "m", 55);
        s.report(&from, &top, Status::Completed).unwrap();
    }
    let top = s.delegate(&client("ada"), "go", "wes");
    assert!(stops(&s, &top));
    let direct = s.delegate(&client("ada"), "do", "cli");
    assert_eq!(next(&s, &direct), MayCall::Yes, "its worker has no budget of its own");
}

#[test]
fn money_needs_a_price_and_is_looked_at_by_the_prices_of_now() {
    let mut s = script(vec![budget(BudgetPer::Repository, Limit::MicroUsd(1_000_000))]);
    let task = s.delegate(&client("ada"), "do", "cli");
    used(&mut s, &task, "big-1", 100_000);
    assert!(matches!(next(&s, &task), MayCall::No(why) if why.contains("big-1 has no price")));
    let price = |model: &str, usd: u64| Price {
        model: model.into(),
        input: usd * 1_000_000,
        output: 0,
        cache_read: 0,
        cache_write: 0,
    };
    let put = |s: &mut Script, prices| {
        let mut settings = s.core.state().settings.clone();
        settings.spending.prices = prices;
        s.core.set_settings(settings);
    };
    put(&mut s, vec![price("big-*", 2), price("*", 1_000)]);
    assert_eq!(next(&s, &task), MayCall::Yes, "0.20 of 1 USD: the first that fits");
    put(&mut s, vec![price("*-1", 9)]);
    assert_eq!(asks(&s, &task).used, 900_000);
    put(&mut s, vec![price("b*g-*1", 10)]);
    assert!(stops(&s, &task));
    for not_it in ["big", "ig-*", "big-1*x", "b*2", ""] {
        put(&mut s, vec![price(not_it, 1)]);
        assert!(matches!(next(&s, &task), MayCall::No(why) if why.contains("no price")), "{not_it}");
    }
}

#[test]
fn a_warning_is_given_once_and_names_without_end_share_a_row() {
    let mut s = script(vec![budget(BudgetPer::Task, Limit::Tokens(1_000))]);
    let task = s.delegate(&client("ada"), "do", "cli");
    let mut warned = 0;
    for nth in 0..100 {
        used(&mut s, &task, &format!("model-{nth}-{}", "x".repeat(900)), 6);
        let is_warning =
            |it: &EventKind| matches!(it, EventKind::Recorded { what, .. } if &**what == "budget.warned");
        warned += s.out.events.iter().filter(|it| is_warning(&it.kind)).count();
    }
    assert_eq!(warned, 1);
    let spent =
        s.core.state().spending.iter().find(|it| matches!(it.key, SpentKey::Task(_))).unwrap().clone();
    assert!(
        spent.models.len() <= 33 && spent.models.keys().all(|it| it.len() <= 200),
        "{}",
        spent.models.len()
    );
    let all: u64 = spent.models.values().map(Counted::tokens).sum();
    assert_eq!(all, 600, "none is lost");
    let deferred = NextCall { task: task.clone(), is_deferred: true }.look(s.now, s.core.state());
    assert!(matches!(deferred, MayCall::No(_)));
    // Numbers without end stay numbers.
    used(&mut s, &task, "m", u64::MAX);
    used(&mut s, &task, "m", u64::MAX);
    assert!(stops(&s, &task));
}
