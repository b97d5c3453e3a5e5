//! `provost ui`: what follows of keys and news, what is drawn, and the real program in a real terminal.

mod colours;
mod frames;
#[cfg(target_os = "linux")]
mod machines;
mod model;
#[cfg(unix)]
mod real;
mod telling;
#[cfg(unix)]
mod wider;

use provost::api::wire;
use provost::ui::{Got, Input, Model, News, Order, Repository, Screen, Theme, UiRequest};
use provost::view::{self, Filter, NeedSources, Shown};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

/// A moment at which it is the same day nearly everywhere.
const NOW: &str = "2026-07-01T12:00:00Z";

fn at(moment: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(moment).unwrap().timestamp_millis()
}

fn now() -> i64 {
    at(NOW)
}

/// An approval as the own API tells of it.
fn approval(id: u64, risk: &str, by: &str, more: &Value) -> wire::Approval {
    let mut text = json!({
        "id": id, "asked_by": "orch", "door": "devit", "verb": "Delegate", "task": "t1", "worker": "shell",
        "tool": "devit_delegate", "rule": "test.ask", "reason": "a test", "risk": risk, "working_dir": ".",
        "network": "none", "goal": "make the release", "by": by,
        "asked_at": "2026-07-01T11:58:00.000Z", "expires_at": "2026-07-01T12:04:12.000Z",
        "digest": format!("sha256:{id}f9ac2aa"),
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        text[name] = value.clone();
    }
    serde_json::from_value(text).unwrap()
}

fn task(id: &str, state: &str, more: &Value) -> wire::Task {
    let mut text = json!({
        "id": id, "goal": "cargo test", "worker": "shell", "worker_kind": "cli", "asked_by": "orch", "state": state,
        "approval": null, "rule": "test.all", "working_dir": null,
        "created_at": "2026-07-01T11:30:00.000Z", "updated_at": "2026-07-01T11:31:00.000Z",
        "timeout_s": 60, "model": null, "model_used": null, "failure": null, "exit_code": null, "notes": [],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        text[name] = value.clone();
    }
    serde_json::from_value(text).unwrap()
}

fn needs(approvals: Vec<wire::Approval>, questions: Vec<wire::Question>, finished: Vec<wire::Task>) -> Shown {
    view::needs(NeedSources { approvals, questions, finished, ..NeedSources::default() }, now())
}

fn question(seq: u64) -> wire::Question {
    wire::Question {
        seq,
        agent: "feat-auth".into(),
        text: "RS256 or ES256?".into(),
        at: "2026-07-01T11:50:00Z".into(),
    }
}

/// A screen with these repositories, all of them live.
struct Desk {
    model: Model,
    now_ms: i64,
    /// The orders since the last look.
    orders: Vec<Order>,
}

impl Desk {
    fn new(size: (u16, u16), repositories: &[&str]) -> Self {
        let look = Theme { colour: false, light: false };
        let mut desk = Self { model: Model::new(look, size, now()), now_ms: now(), orders: Vec::new() };
        for (n, name) in repositories.iter().enumerate() {
            let program = match n {
                0 => "provost".to_owned(),
                _ => format!("provost -C /home/ada/{name}"),
            };
            let root = format!("/home/ada/{name}");
            desk.news(News::Found(Repository { name: (*name).into(), root, program }));
        }
        desk.news(News::Searched);
        for repository in 0..repositories.len() {
            desk.news(News::Live { repository, page: None });
        }
        desk.orders.clear();
        desk
    }

    fn take(&mut self, input: Input) {
        let orders = self.model.take(input, self.now_ms);
        self.orders.extend(orders);
    }

    fn news(&mut self, news: News) {
        self.take(Input::News(news));
    }

    /// Types these keys one by one; `\n` is Enter, `\t` Tab, `\u{1b}` Esc.
    fn keys(&mut self, keys: &str) {
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{1b}' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            self.take(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        }
    }

    /// The orders since the last look.
    fn ordered(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    fn list(&mut self, repository: usize, screen: Screen, filter: &str, shown: Shown) {
        let asked = UiRequest::List { screen, filter: filter.into() };
        self.news(News::Got { repository, asked, got: Ok(Got::Shown(Box::new(shown))) });
    }

    /// The answer about an approval that waits.
    fn approval(&mut self, repository: usize, it: &wire::Approval) {
        use provost::client::approvals::{facts, words};
        let shown = view::approval(it, facts(it, str::to_owned), words(it));
        let got = Got::Approval { shown: Box::new(shown), digest: it.digest.clone(), by: it.by.clone() };
        self.news(News::Got { repository, asked: UiRequest::Approval(it.id), got: Ok(got) });
    }

    fn task(&mut self, repository: usize, it: &wire::Task) {
        let got = Ok(Got::Shown(Box::new(view::task(it))));
        self.news(News::Got { repository, asked: UiRequest::Task(it.id.clone()), got });
    }

    /// Returns the lines of the screen.
    fn drawn(&self) -> Vec<String> {
        frames::drawn(&self.model)
    }

    fn shows(&self, text: &str) -> bool {
        self.drawn().iter().any(|it| it.contains(text))
    }
}

fn tasks(found: &[wire::Task]) -> Shown {
    let (finished, active) = found
        .iter()
        .cloned()
        .partition(|it| matches!(it.state.as_str(), "completed" | "failed" | "cancelled"));
    let found = wire::Tasks { active, finished, truncated: false, unread: None, completed: 0, failed: 0 };
    view::tasks(&found, &Filter::default(), 1_000, false)
}
