//! The daemon at work in numbers. An unknown number is called unknown, and is never zero.

use std::time::Duration;

use provost_api::wire::{CostRow, DatabaseAt, Health, HealthFinding, Spread};
use provost_base::visible;

use super::block::Empty;
use super::{Block, Cell, Command, Fact, Row, Rows, Tone, Word};

const UNKNOWN: &str = "unknown";

/// Shows how many things wait, how long things take, and what a person should look at.
pub fn numbers(it: &Health) -> Vec<Block> {
    let facts = numbers_in_words(it).into_iter().map(|(name, value)| Fact::text(name, &value)).collect();
    let rows: Vec<Row> = it.findings.iter().enumerate().map(finding).collect();
    vec![
        Block::List(Rows {
            title: format!("To look at ({})", rows.len()),
            columns: vec!["State", "What"],
            rows,
            more: 0,
            empty: Empty::new("The daemon has found nothing. More is looked at by", Some("provost doctor")),
        }),
        Block::Facts { title: "At work".into(), facts },
    ]
}

/// Returns each number with its name, for lists and pages.
pub fn numbers_in_words(it: &Health) -> Vec<(&'static str, String)> {
    let bytes = |bytes: Option<u64>| bytes.map_or(UNKNOWN.into(), of_bytes);
    let mut all = vec![
        ("requests that wait", format!("{} of {} at the most", it.queued, it.queued_max)),
        ("approvals that wait", it.approvals.to_string()),
        ("agents that wait for a lock", it.waiting_for_locks.to_string()),
        ("tasks that wait for their worker", it.tasks_queued.to_string()),
        ("hooks owed", it.hooks_owed.to_string()),
        ("writes", of_spread(it.commits.as_ref())),
        ("waits for locks", of_spread(it.lock_waits.as_ref())),
        ("store", of_store(it)),
        ("free on its disk", format!("{} of {}", bytes(it.disk_free_bytes), bytes(it.disk_bytes))),
        ("used in 24 hours, as agents report it", of_usage(it.used_today.as_ref())),
    ];
    all.extend(it.database.iter().flat_map(of_database));
    all
}

/// Describes the size of the store's files; a database says nothing of its own.
fn of_store(it: &Health) -> String {
    match (it.store_bytes, &it.database) {
        (Some(bytes), _) => of_bytes(bytes),
        (None, Some(_)) => "in the database".into(),
        (None, None) => UNKNOWN.into(),
    }
}

/// Describes the server that stores the state, and its condition.
fn of_database(it: &DatabaseAt) -> Vec<(&'static str, String)> {
    let known = |text: &Option<String>| text.as_deref().map_or(UNKNOWN.to_owned(), visible);
    let timeline = it.timeline.map_or(UNKNOWN.to_owned(), |it| it.to_string());
    let server = format!("PostgreSQL {} at {}, timeline {timeline}", known(&it.version), known(&it.server));
    let stands = match (&it.away_since, it.unsure, it.slow_ms) {
        (Some(since), _, _) => format!("takes nothing since {}: {}", visible(since), known(&it.why)),
        (None, true, _) => "has not said whether the last writes are stored".into(),
        (None, false, Some(ms)) => {
            format!("is slow: a write takes {} at present", of_time(Duration::from_millis(ms)))
        }
        (None, false, None) => "takes every write".into(),
    };
    let standbys = match (it.standbys, it.waits_for_standby) {
        (Some(number), Some(true)) => format!("{number}, and each write waits for one"),
        (Some(number), Some(false)) => format!("{number}, and no write waits for one"),
        _ => UNKNOWN.into(),
    };
    let mut all =
        vec![("database", server), ("database now", stands), ("standbys of the database", standbys)];
    all.extend(it.stale_ms.map(|ms| ("what is shown may be old", of_time(Duration::from_millis(ms)))));
    all
}

fn of_spread(it: Option<&Spread>) -> String {
    let Some(it) = it else { return format!("{UNKNOWN}: there was none since the start") };
    let [p50, p99] = [it.p50_us, it.p99_us].map(|us| of_time(Duration::from_micros(us)));
    format!("half within {p50}, 99 of 100 within {p99} ({} since the start)", it.count)
}

fn of_time(it: Duration) -> String {
    match it.as_micros() {
        0..1_000 => format!("{} µs", it.as_micros()),
        1_000..1_000_000 => format!("{:.1} ms", it.as_secs_f64() * 1e3),
        _ => format!("{:.1} s", it.as_secs_f64()),
    }
}

fn of_bytes(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

fn of_usage(it: Option<&CostRow>) -> String {
    let Some(it) = it else { return format!("{UNKNOWN}: no run has said what it used") };
    let count = |number: Option<u64>| number.map_or(UNKNOWN.to_owned(), |it| it.to_string());
    let cost = it.used.cost_usd.map_or(UNKNOWN.to_owned(), |it| format!("{it:.2} USD"));
    let (read, written) = (count(it.used.tokens_input), count(it.used.tokens_output));
    format!("cost {cost}; tokens read {read}, written {written}; {} runs", it.runs)
}

fn finding((n, it): (usize, &HealthFinding)) -> Row {
    Row {
        key: n.to_string(),
        to: None,
        cells: vec![Cell::State(Word::new("look", Tone::Waiting)), Cell::Text { text: visible(&it.says) }],
        commands: vec![Command::new("Look closer", it.command.clone())],
    }
}
