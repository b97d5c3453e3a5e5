//! The keys that work at the moment, in the line at the bottom; and the tabs at the top. A click on a hint or a tab works as its key.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::detail::{Answerable, Part};
use super::keys::Subject;
use super::model::{Confirm, Mode, Model, What};
use super::screen::Screen;
use super::text::width;

/// A key, its action, and the key that a click stands for.
pub(crate) type Hint = (&'static str, &'static str, KeyCode);

/// Returns the keys that work at the moment, the most useful first.
pub(crate) fn hints(model: &Model) -> Vec<Hint> {
    match &model.mode {
        Mode::Normal => normal(model),
        Mode::Go => vec![("n t a l w e m i", "go there", KeyCode::Null), ("Esc", "back", KeyCode::Esc)],
        Mode::Typing(What::Command, _) => {
            vec![
                ("Enter", "do it", KeyCode::Enter),
                ("Tab", "complete", KeyCode::Tab),
                ("Esc", "back", KeyCode::Esc),
            ]
        }
        Mode::Typing(What::Filter, _) => {
            vec![("Enter", "keep", KeyCode::Enter), ("Esc", "no filter", KeyCode::Esc)]
        }
        Mode::Typing(..) => {
            vec![("Enter", "send", KeyCode::Enter), ("Esc", "leave it", KeyCode::Esc)]
        }
        Mode::Confirm(Confirm::Approve { .. }) => vec![
            ("y", "approve", KeyCode::Char('y')),
            ("n", "approve with a note", KeyCode::Char('n')),
            ("j k", "read on", KeyCode::Char('j')),
            ("Esc", "leave it", KeyCode::Esc),
        ],
        Mode::Confirm(Confirm::Cancel { .. }) => {
            vec![("y", "end it", KeyCode::Char('y')), ("Esc", "leave it", KeyCode::Esc)]
        }
        Mode::Help(..) => vec![("type", "filter", KeyCode::Null), ("Esc", "back", KeyCode::Esc)],
        Mode::Menu(..) => vec![
            ("j k", "choose", KeyCode::Char('j')),
            ("Enter", "copy", KeyCode::Enter),
            ("Esc", "back", KeyCode::Esc),
        ],
        Mode::Passkey { .. } => vec![
            ("y", "copy the address", KeyCode::Char('y')),
            ("o", "open the page", KeyCode::Char('o')),
            ("Esc", "back", KeyCode::Esc),
        ],
    }
}

fn normal(model: &Model) -> Vec<Hint> {
    let mut hints: Vec<Hint> = Vec::new();
    let detail = model.detail.as_ref();
    let answerable = detail.is_none_or(|it| it.digest.is_none() || it.answerable != Answerable::No);
    if model.approval().is_some() && answerable {
        hints.extend([("a", "approve", KeyCode::Char('a')), ("d", "deny", KeyCode::Char('d'))]);
    }
    if matches!(model.subject(), Some((_, Subject::Question(_)))) {
        hints.push(("r", "answer", KeyCode::Char('r')));
    }
    if !model.told().1.is_empty() {
        hints.push(("m", "write", KeyCode::Char('m')));
    }
    if model.task_to_end().is_some() {
        hints.push(("x", "end", KeyCode::Char('x')));
    }
    if let Some(detail) = detail.filter(|it| it.is_task()) {
        hints.extend([
            ("i", "facts", KeyCode::Char('i')),
            ("l", "log", KeyCode::Char('l')),
            ("c", "changes", KeyCode::Char('c')),
            ("t", "timeline", KeyCode::Char('t')),
        ]);
        if detail.part == Part::Log {
            let does = if detail.follows { "stop following" } else { "follow" };
            hints.push(("F", does, KeyCode::Char('F')));
        }
    }
    if detail.is_none() {
        hints.extend([("Enter", "open", KeyCode::Enter), ("/", "filter", KeyCode::Char('/'))]);
    }
    hints.push((".", "commands", KeyCode::Char('.')));
    hints.extend([(":", "go", KeyCode::Char(':')), ("?", "keys", KeyCode::Char('?'))]);
    hints.push(match detail {
        Some(_) => ("Esc", "back", KeyCode::Esc),
        None => ("q", "quit", KeyCode::Char('q')),
    });
    hints
}

/// Returns the columns that a hint takes: the key, a space, its action, two spaces.
fn columns_of(hint: &Hint) -> usize {
    width(hint.0) + width(hint.1) + 3
}

/// Returns the key of the hint at a column.
pub(crate) fn hint_at(model: &Model, column: u16) -> Option<KeyEvent> {
    let mut left = 0;
    for hint in hints(model) {
        let right = left + columns_of(&hint);
        if (left..right).contains(&usize::from(column)) {
            return (hint.2 != KeyCode::Null).then(|| KeyEvent::new(hint.2, KeyModifiers::NONE));
        }
        left = right;
    }
    None
}

/// Returns the tabs at the top.
pub(crate) fn tabs(model: &Model) -> Vec<(Screen, String)> {
    let tab = |(n, screen): (usize, Screen)| {
        let needs = model.needs();
        let count = match screen {
            Screen::Needs if needs > 0 => format!(" ({needs})"),
            _ => String::new(),
        };
        // The tabs stand closer where not all of them would fit.
        let end = if model.is_wide() { " " } else { "" };
        (screen, format!(" {} {}{count}{end}", n + 1, screen.title()))
    };
    Screen::ALL.into_iter().enumerate().map(tab).collect()
}

/// Returns the screen whose tab is at a column.
pub(crate) fn tab_at(model: &Model, column: u16) -> Option<Screen> {
    let mut left = 0;
    for (screen, text) in tabs(model) {
        let right = left + width(&text);
        if (left..right).contains(&usize::from(column)) {
            return Some(screen);
        }
        left = right;
    }
    None
}
