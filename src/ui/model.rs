//! The state behind the screen, and the orders that follow from each input: keys and news in, orders out. Nothing here
//! draws, asks or waits.
//!
//! ```text
//!   keys, sizes, news of daemons --> [take] --> orders: ask, answer, copy, quit
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::ask::{Got, UiRequest};
use super::detail::{About, Answerable, Detail, Part};
use super::inputs::{Input, News, Order};
use super::loads::Loads;
use super::merged::{Item, Merged};
use super::text::{clock_of, one_line};
use super::typed::Typed;
use super::{Screen, Theme};
use provost_client::daemons::Repository;
use provost_view::{Cell, Shown, Tone};

/// The least columns and rows in which the screen is drawn.
pub const SMALLEST: (u16, u16) = (60, 15);

/// The number of columns from which on a detail stands beside its list.
pub const WIDE: u16 = 100;

/// Rows of the screen outside the body: tabs, the reader's place, the last message, and keys.
pub(crate) const FRAME_ROWS: u16 = 4;

/// The time for which a message stays, in milliseconds.
const SAID_MS: i64 = 12_000;

/// The state of the connection to a daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    Asking,
    Live,
    Stale { since_ms: i64, why: String, next: String },
}

/// A repository, the state of its daemon, and the address of its page.
pub(crate) struct WatchedRepository {
    pub repository: Repository,
    pub link: Link,
    pub page: Option<String>,
}

/// The content of a list at the moment.
#[derive(Default)]
pub(crate) struct ListState {
    pub filter: String,
    /// The last answer for each repository.
    pub loaded: BTreeMap<usize, Shown>,
    /// The reason why a repository's list is not up to date, though its daemon answers.
    pub errors: BTreeMap<usize, String>,
    pub merged: Merged,
    pub at: usize,
}

/// The meaning of keys.
pub(crate) enum Mode {
    Normal,
    /// The letter after `g` names a screen.
    Go,
    Typing(What, Typed),
    /// `y` confirms the action.
    Confirm(Confirm),
    Help(Typed, usize),
    /// Commands about a row, to copy.
    Menu(Vec<(String, String)>, usize),
    /// An approval waits for a passkey.
    Passkey {
        repository: usize,
        approval: u64,
    },
}

/// The purpose of the text that is typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Command,
    Filter,
    /// The reason for which an approval is denied.
    Reason {
        repository: usize,
        approval: u64,
    },
    /// A remark with a grant.
    Note {
        repository: usize,
        approval: u64,
    },
    Answer {
        repository: usize,
        question: u64,
    },
    /// A message to agents.
    Tell {
        repository: usize,
        to: Vec<String>,
    },
}

/// An action that cannot be undone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Confirm {
    Approve { repository: usize, approval: u64 },
    Cancel { repository: usize, task: String },
}

/// The whole state.
pub struct Model {
    pub(crate) look: Theme,
    pub(crate) size: (u16, u16),
    pub(crate) now_ms: i64,
    pub(crate) known: Vec<WatchedRepository>,
    /// Whether the first search for daemons goes on.
    pub(crate) searching: bool,
    pub(crate) screen: Screen,
    pub(crate) lists: BTreeMap<Screen, ListState>,
    pub(crate) detail: Option<Detail>,
    pub(crate) mode: Mode,
    /// The last message: the text, its tone and its time.
    pub(crate) said: Option<(String, Tone, i64)>,
    pub(crate) loads: Loads,
    /// Approvals that were answered here: their end needs no message.
    pub(crate) own: BTreeSet<(usize, u64)>,
    pub(crate) orders: Vec<Order>,
    /// Whether the screen may differ from the last frame.
    changed: bool,
}

impl Model {
    /// Makes a model without repositories, for a terminal of this size, at this moment in milliseconds since 1970.
    pub fn new(look: Theme, size: (u16, u16), now_ms: i64) -> Self {
        Self {
            look,
            size,
            now_ms,
            known: Vec::new(),
            searching: true,
            screen: Screen::Needs,
            lists: Screen::ALL.into_iter().map(|it| (it, ListState::default())).collect(),
            detail: None,
            mode: Mode::Normal,
            said: None,
            loads: Loads::default(),
            own: BTreeSet::new(),
            orders: Vec::new(),
            changed: true,
        }
    }

    /// Takes an input at a moment, and returns the orders that follow.
    pub fn take(&mut self, input: Input, now_ms: i64) -> Vec<Order> {
        self.now_ms = now_ms;
        // A mere event changes nothing visible; the answers that it causes do.
        self.changed |= !matches!(&input, Input::News(News::Changed { answered: None, .. }));
        match input {
            Input::Key(key) => self.take_key(key),
            Input::Mouse(mouse) => self.take_mouse(mouse),
            Input::Paste(text) => self.take_paste(&text),
            Input::Size(columns, rows) => self.size = (columns, rows),
            Input::Tick => {}
            Input::News(news) => self.take_news(news),
        }
        if self.said.as_ref().is_some_and(|(_, _, at)| now_ms.saturating_sub(*at) > SAID_MS) {
            self.said = None;
        }
        let due = self.loads.due(now_ms);
        self.orders.extend(due.into_iter().map(|(repository, asked)| Order::Ask { repository, asked }));
        if self.changed {
            self.lay_out();
        }
        std::mem::take(&mut self.orders)
    }

    /// Returns the size of the terminal in columns and rows.
    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    /// Checks whether the screen may differ from that at the last call.
    pub fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns the moment of the next change without an input, in milliseconds since 1970: a visible countdown, the end of
    /// a message, or a due request.
    pub fn next_wake(&self) -> Option<i64> {
        let counts = self.detail.as_ref().is_some_and(Detail::counts_down)
            || (self.shows_list() && self.list().merged.items().any(counts_down));
        let second = counts.then(|| (self.now_ms.div_euclid(1000) + 1).saturating_mul(1000));
        let said = self.said.as_ref().map(|it| it.2.saturating_add(SAID_MS + 1));
        [second, said, self.loads.next()].into_iter().flatten().min()
    }

    /// Returns the number of things that wait for a person, over all repositories.
    pub fn needs(&self) -> usize {
        let loaded = self.lists.get(&Screen::Needs).into_iter().flat_map(|it| it.loaded.values());
        loaded.filter_map(|it| it.needs).sum()
    }

    pub(crate) fn list(&self) -> &ListState {
        self.lists.get(&self.screen).expect("each screen has its list from the beginning")
    }

    pub(crate) fn list_mut(&mut self) -> &mut ListState {
        self.lists.entry(self.screen).or_default()
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.size.0 >= WIDE
    }

    pub(crate) fn is_too_small(&self) -> bool {
        self.size.0 < SMALLEST.0 || self.size.1 < SMALLEST.1
    }

    /// Checks whether the list is visible.
    pub(crate) fn shows_list(&self) -> bool {
        self.detail.is_none() || self.is_wide()
    }

    pub(crate) fn body_rows(&self) -> usize {
        usize::from(self.size.1.saturating_sub(FRAME_ROWS))
    }

    /// Returns the columns of the list and of the detail.
    pub(crate) fn columns(&self) -> (u16, u16) {
        match (self.detail.is_some(), self.is_wide()) {
            (false, _) => (self.size.0, 0),
            (true, false) => (0, self.size.0),
            (true, true) => {
                let list = self.size.0 * 2 / 5;
                (list, self.size.0 - list - 1)
            }
        }
    }

    pub(crate) fn chosen(&self) -> Option<&Item> {
        let list = self.list();
        list.merged.item(list.at)
    }

    /// Says something in the line above the keys.
    pub(crate) fn say(&mut self, text: impl Into<String>, tone: Tone) {
        self.said = Some((one_line(&text.into()), tone, self.now_ms));
    }

    fn lay_out(&mut self) {
        let (columns, rows) = (usize::from(self.columns().1), self.body_rows());
        let (look, now_ms) = (self.look, self.now_ms);
        if let Some(detail) = &mut self.detail {
            detail.lay_out(columns, look, now_ms);
            // The line above the detail is its title.
            let last = detail.lines.len().saturating_sub(rows.saturating_sub(1));
            let ends = detail.part == Part::Log && detail.follows;
            detail.scroll = if ends { last } else { detail.scroll.min(last) };
        }
    }

    // News.

    fn take_news(&mut self, news: News) {
        match news {
            News::Found(repository) => {
                self.known.push(WatchedRepository { repository, link: Link::Asking, page: None });
            }
            News::Searched => self.searching = false,
            News::Live { repository, page } => {
                let Some(known) = self.known.get_mut(repository) else { return };
                let was_stale = matches!(known.link, Link::Stale { .. });
                known.link = Link::Live;
                known.page = page;
                if was_stale {
                    let name = known.repository.name.clone();
                    self.say(format!("live again: {name}"), Tone::Good);
                }
                self.load_all_of(repository);
            }
            News::Stale { repository, why, next } => self.take_stale(repository, why, next),
            News::Changed { repository, answered } => {
                if let Some((approval, who, what)) = answered {
                    self.tell_of_answer(repository, approval, &who, &what);
                }
                self.load_soon(repository);
            }
            News::Got { repository, asked, got } => self.take_got(repository, asked, got),
            News::Done { repository, says, well, refused } => {
                self.say(says, if well { Tone::Good } else { Tone::Bad });
                if let Some((approval, takes_passkey)) = refused {
                    self.own.remove(&(repository, approval));
                    let open = self.detail.as_ref().filter(|it| it.about == About::Approval(approval));
                    let takes_passkey = takes_passkey && open.is_some_and(|it| it.takes_passkey);
                    if takes_passkey && matches!(self.mode, Mode::Normal) {
                        self.mode = Mode::Passkey { repository, approval };
                    }
                }
                self.load_soon(repository);
            }
            News::Page { repository, address } => {
                if let Some(known) = self.known.get_mut(repository) {
                    known.page = Some(address);
                }
            }
        }
    }

    fn take_stale(&mut self, repository: usize, why: String, next: String) {
        let now_ms = self.now_ms;
        let Some(known) = self.known.get_mut(repository) else { return };
        let since_ms = match &known.link {
            Link::Stale { since_ms, .. } => *since_ms,
            _ => now_ms,
        };
        known.link = Link::Stale { since_ms, why, next };
        self.loads.forget(repository);
        self.lists.values_mut().for_each(|it| drop(it.errors.remove(&repository)));
    }

    /// Leaves a question or a text about an approval that has ended; returns whether one was open.
    fn leave(&mut self, repository: usize, approval: u64) -> bool {
        let about = match &self.mode {
            Mode::Passkey { repository, approval }
            | Mode::Typing(What::Reason { repository, approval } | What::Note { repository, approval }, _)
            | Mode::Confirm(Confirm::Approve { repository, approval }) => Some((*repository, *approval)),
            _ => None,
        };
        let is_begun = about == Some((repository, approval));
        if is_begun {
            self.mode = Mode::Normal;
        }
        is_begun
    }

    /// Shows a message about an approval that was answered elsewhere.
    fn tell_of_answer(&mut self, repository: usize, approval: u64, who: &str, what: &str) {
        let is_waited_for = self.leave(repository, approval);
        if !self.own.remove(&(repository, approval)) {
            let tone = if is_waited_for { Tone::Bad } else { Tone::Quiet };
            self.say(format!("approval {approval}: {what}, by {who}"), tone);
        }
    }

    fn take_got(&mut self, repository: usize, asked: UiRequest, got: Result<Got, String>) {
        self.loads.done(repository, &asked, self.now_ms);
        match (&asked, got) {
            (UiRequest::List { screen, filter }, got) => {
                let got = got.map(|it| match it {
                    Got::Shown(shown) => *shown,
                    _ => Shown::new("", Vec::new()),
                });
                let (screen, filter) = (*screen, filter.clone());
                self.take_list(repository, screen, &filter, got);
            }
            (_, got) => self.take_of_detail(repository, &asked, got),
        }
    }

    fn take_list(&mut self, repository: usize, screen: Screen, filter: &str, got: Result<Shown, String>) {
        let is_live = self.is_live(repository);
        let list = self.lists.entry(screen).or_default();
        // An answer for an earlier filter is dropped: the one for the present filter follows.
        if list.filter != filter {
            return;
        }
        let shown = match got {
            Ok(shown) => shown,
            // The last list stays; for a daemon that has gone, another message is shown.
            Err(why) => {
                if is_live {
                    list.errors.insert(repository, why);
                }
                return;
            }
        };
        let chosen = list.merged.item(list.at).map(|it| (it.repository, it.row.key.clone()));
        list.errors.remove(&repository);
        list.loaded.insert(repository, shown);
        list.merged = Merged::of(list.loaded.iter().map(|(n, shown)| (*n, shown)));
        let found = chosen
            .and_then(|(n, key)| list.merged.items().position(|it| it.repository == n && it.row.key == key));
        list.at = found.unwrap_or(list.at).min(list.merged.len().saturating_sub(1));
    }

    fn take_of_detail(&mut self, repository: usize, asked: &UiRequest, got: Result<Got, String>) {
        let Some(detail) = self.detail.as_mut().filter(|it| it.repository == repository) else { return };
        let is_meant = match (asked, &detail.about) {
            (UiRequest::Approval(id), About::Approval(open)) => id == open,
            (UiRequest::Event(seq), About::Event(open)) => seq == open,
            (UiRequest::Both(one), About::Both(open)) => one == open,
            (UiRequest::Check(_), About::Check) => true,
            (UiRequest::Replay(rules), About::Replay(open)) => rules == open,
            (
                UiRequest::Task(id) | UiRequest::Changes(id) | UiRequest::Log { task: id, .. },
                About::Task(open),
            ) => id == open,
            _ => false,
        };
        if !is_meant {
            return;
        }
        detail.changed();
        match (asked, got) {
            (UiRequest::Changes(_), got) => {
                detail.changes = Some(got.map(|it| match it {
                    Got::Changes(block) => *block,
                    _ => provost_view::changes(&[]),
                }));
            }
            (UiRequest::Log { .. }, got) => self.take_log(got),
            (_, Err(why)) => detail.error = Some(why),
            (_, Ok(Got::Approval { shown, digest, by })) => self.take_approval(*shown, digest, &by),
            (_, Ok(Got::Gone(shown))) => {
                (detail.shown, detail.error, detail.digest) = (Some(*shown), None, None);
                detail.answerable = Answerable::No;
                if let UiRequest::Approval(id) = asked
                    && self.leave(repository, *id)
                {
                    self.say(format!("approval {id} does not wait any more"), Tone::Bad);
                }
            }
            (_, Ok(Got::Checked(check))) => self.take_check(repository, &check),
            (_, Ok(Got::Shown(shown))) => (detail.shown, detail.error) = (Some(*shown), None),
            (_, Ok(_)) => {}
        }
    }

    fn take_log(&mut self, got: Result<Got, String>) {
        let Some(detail) = &mut self.detail else { return };
        detail.log.read = true;
        match got {
            Ok(Got::Log { text, next, done, note }) => {
                if !text.is_empty() {
                    detail.log.add(&text);
                }
                (detail.log.next, detail.log.done, detail.log.error) = (next, done, note);
                self.load_log();
            }
            Ok(_) => {}
            Err(why) => detail.log.error = Some(why),
        }
    }

    /// Takes the content of an approval. If it has changed while the person looked at it, an answer that was begun before is dropped.
    fn take_approval(&mut self, shown: Shown, digest: String, by: &str) {
        let Some(detail) = &mut self.detail else { return };
        let has_changed = detail.digest.as_ref().is_some_and(|before| *before != digest);
        detail.answerable = match provost_view::no_terminal(by) {
            None => Answerable::Here,
            Some(_) if provost_view::takes_a_person(by) => Answerable::Passkey,
            Some(_) => Answerable::No,
        };
        detail.takes_passkey = by.split(", ").any(|it| it.starts_with("passkey"));
        (detail.shown, detail.error, detail.digest) = (Some(shown), None, Some(digest));
        let answerable = detail.answerable;
        if has_changed {
            self.mode = Mode::Normal;
            self.say("it has changed while you were looking: read it again", Tone::Bad);
            return;
        }
        let asks = match &self.mode {
            Mode::Confirm(Confirm::Approve { repository, approval })
            | Mode::Typing(What::Reason { repository, approval } | What::Note { repository, approval }, _) => {
                Some((*repository, *approval))
            }
            _ => None,
        };
        if let Some((repository, approval)) = asks {
            self.unless_answerable(answerable, repository, approval);
        }
    }

    /// Leaves an answer that this terminal cannot give; returns whether it may go on.
    pub(crate) fn unless_answerable(&mut self, is: Answerable, repository: usize, approval: u64) -> bool {
        match is {
            Answerable::Here => return true,
            Answerable::Passkey => self.mode = Mode::Passkey { repository, approval },
            Answerable::No => {
                self.mode = Mode::Normal;
                self.say(format!("approval {approval} is not yours to answer"), Tone::Bad);
            }
        }
        false
    }

    /// Returns the texts about the daemons that do not answer.
    pub(crate) fn stale(&self) -> Vec<String> {
        let stale = self.known.iter().filter_map(|it| match &it.link {
            Link::Stale { since_ms, why, next } => {
                let since = clock_of(*since_ms);
                Some(format!("{} stale since {since}: {why}; try: {next}", it.repository.name))
            }
            _ => None,
        });
        stale.map(|it| one_line(&it)).collect()
    }
}

/// Checks whether a row has a countdown.
fn counts_down(item: &Item) -> bool {
    item.row.cells.iter().any(|cell| matches!(cell, Cell::Until { .. }))
}
