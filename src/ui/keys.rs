//! The actions of keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::ask::{Both, UiRequest};
use super::detail::{About, Answerable, Detail, Part, for_repository};
use super::inputs::Order;
use super::model::{Confirm, Link, Mode, Model, What};
use super::screen::Screen;
use super::telling::both_of;
use super::typed::Typed;
use provost_view::{Block, Cell, Fact, Row, Shown, Tone};

/// The subject of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    Approval(u64),
    Question(u64),
    Task(String),
    Event(u64),
    Both(Both),
    Other,
}

/// Returns the subject of a row, by its key and by the path of its view.
pub(crate) fn subject_of(row: &Row) -> Subject {
    let number = |start: &str| row.key.strip_prefix(start)?.parse().ok();
    if let Some(question) = number("question:") {
        return Subject::Question(question);
    }
    let Some(to) = &row.to else { return Subject::Other };
    let numbered = |start: &str| to.strip_prefix(start)?.parse().ok();
    if let Some(both) = both_of(to) {
        return Subject::Both(both);
    }
    if let Some(id) = to.strip_prefix("/t/") {
        return decoded(id).map_or(Subject::Other, Subject::Task);
    }
    let approval = numbered("/a/").map(Subject::Approval);
    approval.or_else(|| numbered("/e/").map(Subject::Event)).unwrap_or(Subject::Other)
}

/// Decodes a part of a path that `view` has encoded.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let code = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

impl Model {
    // Asking.

    fn asked_of(&self, screen: Screen) -> UiRequest {
        let filter = self.lists.get(&screen).map(|it| it.filter.clone()).unwrap_or_default();
        UiRequest::List { screen, filter }
    }

    pub(crate) fn is_live(&self, repository: usize) -> bool {
        self.known.get(repository).is_some_and(|it| it.link == Link::Live)
    }

    pub(crate) fn load_list(&mut self) {
        let asked = self.asked_of(self.screen);
        for repository in (0..self.known.len()).filter(|it| self.is_live(*it)).collect::<Vec<_>>() {
            self.loads.ask(repository, asked.clone());
        }
    }

    /// Asks for everything that is shown of a repository.
    pub(crate) fn load_all_of(&mut self, repository: usize) {
        self.loads.ask(repository, self.asked_of(self.screen));
        // The tabs show its number of needs.
        self.loads.ask(repository, self.asked_of(Screen::Needs));
        self.load_detail(repository, false);
    }

    /// Does the same after a change.
    pub(crate) fn load_soon(&mut self, repository: usize) {
        if !self.is_live(repository) {
            return;
        }
        for screen in [self.screen, Screen::Needs] {
            self.loads.ask_soon(repository, self.asked_of(screen), self.now_ms);
        }
        self.load_detail(repository, true);
    }

    fn load_detail(&mut self, repository: usize, soon: bool) {
        let Some(detail) = self.detail.as_ref().filter(|it| it.repository == repository) else { return };
        let asked = match &detail.about {
            About::Approval(id) => UiRequest::Approval(*id),
            About::Task(id) => UiRequest::Task(id.clone()),
            About::Event(seq) => UiRequest::Event(*seq),
            // These are asked for once: no event tells of changes in a work tree, and each event would start a check or a replay again.
            About::Both(_) | About::Check | About::Replay(_) if soon => return,
            About::Both(it) => UiRequest::Both(it.clone()),
            About::Check => UiRequest::Check(None),
            About::Replay(rules) => UiRequest::Replay(rules.clone()),
            About::Row => return,
        };
        match soon {
            true => self.loads.ask_soon(repository, asked, self.now_ms),
            false => self.loads.ask(repository, asked),
        }
    }

    pub(crate) fn load_log(&mut self) {
        let Some(detail) = &self.detail else { return };
        let About::Task(task) = &detail.about else { return };
        if detail.part == Part::Log && !detail.log.done {
            let asked = UiRequest::Log { task: task.clone(), from: detail.log.next };
            self.loads.ask(detail.repository, asked);
        }
    }

    // Keys.

    pub(crate) fn take_key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('c' | 'C')) {
            self.orders.push(Order::Quit);
            return;
        }
        let mode = std::mem::replace(&mut self.mode, Mode::Normal);
        if matches!(mode, Mode::Typing(..) | Mode::Confirm(_)) {
            self.said = None;
        }
        match mode {
            Mode::Normal => self.normal(key),
            Mode::Go => self.go_by_letter(key),
            Mode::Typing(what, typed) => self.typing(what, typed, key),
            Mode::Confirm(confirm) => self.confirm(confirm, key),
            Mode::Help(typed, scroll) => self.help(typed, scroll, key),
            Mode::Menu(commands, at) => self.menu(commands, at, key),
            Mode::Passkey { repository, approval } => self.passkey(repository, approval, key),
        }
    }

    fn normal(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = isize::try_from(self.body_rows()).unwrap_or(isize::MAX);
        match key.code {
            KeyCode::Char('d') if control => self.move_by(page / 2),
            KeyCode::Char('u') if control => self.move_by(-page / 2),
            KeyCode::Char('l') if control => self.refresh(),
            _ if control || key.modifiers.contains(KeyModifiers::ALT) => {}
            KeyCode::Char('j') | KeyCode::Down => self.move_by(1),
            KeyCode::Char('k') | KeyCode::Up => self.move_by(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.move_by(page),
            KeyCode::PageUp => self.move_by(-page),
            KeyCode::Home => self.move_by(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.move_by(isize::MAX),
            KeyCode::Enter | KeyCode::Char('o') if self.detail.is_none() || self.is_wide() => self.open(),
            KeyCode::Esc | KeyCode::Backspace => self.back(),
            KeyCode::Char('q') if self.detail.is_some() => self.back(),
            KeyCode::Char('q') => self.orders.push(Order::Quit),
            KeyCode::Tab => self.next_part(1),
            KeyCode::BackTab => self.next_part(-1),
            KeyCode::Char(c) => self.letter(c),
            _ => {}
        }
    }

    fn letter(&mut self, c: char) {
        match c {
            'g' => self.mode = Mode::Go,
            '1'..='8' => {
                let at = usize::from(u8::try_from(u32::from(c) - u32::from('1')).unwrap_or_default());
                self.go(Screen::ALL[at]);
            }
            'a' => self.begin_approve(),
            'd' => self.begin_deny(),
            'r' => self.begin_answer(),
            'x' => self.begin_cancel(),
            'm' => self.begin_tell(),
            'M' => self.begin_tell_all(),
            'V' => self.begin_check(),
            '/' => {
                let typed = Typed::of(&self.list().filter);
                self.detail = None;
                self.mode = Mode::Typing(What::Filter, typed);
            }
            ':' => self.mode = Mode::Typing(What::Command, Typed::default()),
            '?' => self.mode = Mode::Help(Typed::default(), 0),
            '.' => self.open_menu(),
            'y' => self.copy(0),
            'R' => self.refresh(),
            'F' => {
                if let Some(detail) = &mut self.detail {
                    detail.follows = !detail.follows;
                }
            }
            'l' => self.show_part(Part::Log),
            'c' => self.show_part(Part::Changes),
            't' => self.show_part(Part::Timeline),
            'i' => self.show_part(Part::Facts),
            _ => {}
        }
    }

    fn go_by_letter(&mut self, key: KeyEvent) {
        let KeyCode::Char(c) = key.code else { return };
        match Screen::ALL.into_iter().find(|it| it.word().1 == c) {
            Some(screen) => self.go(screen),
            None if c == 'g' => self.move_by(isize::MIN),
            None => {}
        }
    }

    pub(crate) fn go(&mut self, screen: Screen) {
        self.screen = screen;
        self.detail = None;
        self.load_list();
    }

    pub(crate) fn refresh(&mut self) {
        self.orders.push(Order::Search);
        for repository in (0..self.known.len()).filter(|it| self.is_live(*it)).collect::<Vec<_>>() {
            self.load_all_of(repository);
        }
    }

    pub(crate) fn move_by(&mut self, by: isize) {
        if let Some(detail) = &mut self.detail {
            let last = detail.lines.len();
            detail.scroll = moved(detail.scroll, by, last);
            // A reader who goes up stays there; at the end the log is followed again.
            if by < 0 {
                detail.follows = false;
            } else if by == isize::MAX {
                detail.follows = true;
            }
            return;
        }
        let list = self.list_mut();
        list.at = moved(list.at, by, list.merged.len().saturating_sub(1));
    }

    fn back(&mut self) {
        if self.detail.take().is_none() && !self.list().filter.is_empty() {
            self.set_filter(String::new());
        }
    }

    pub(crate) fn set_filter(&mut self, filter: String) {
        let list = self.list_mut();
        if list.filter != filter {
            list.filter = filter;
            list.at = 0;
            self.load_list();
        }
    }

    fn next_part(&mut self, by: isize) {
        match self.detail.as_ref().filter(|it| it.is_task()).map(|it| it.part) {
            Some(part) => {
                let at = Part::ALL.iter().position(|it| *it == part).unwrap_or_default();
                self.show_part(Part::ALL[next(at, by, Part::ALL.len())]);
            }
            None if self.detail.is_none() => {
                let at = Screen::ALL.iter().position(|it| *it == self.screen).unwrap_or_default();
                self.go(Screen::ALL[next(at, by, Screen::ALL.len())]);
            }
            None => {}
        }
    }

    fn show_part(&mut self, part: Part) {
        let Some(detail) = self.detail.as_mut().filter(|it| it.is_task()) else { return };
        (detail.part, detail.scroll) = (part, 0);
        if part == Part::Log {
            detail.follows = true;
        }
        let About::Task(task) = detail.about.clone() else { return };
        match part {
            Part::Log => self.load_log(),
            Part::Changes => {
                let repository = detail.repository;
                self.loads.ask(repository, UiRequest::Changes(task));
            }
            Part::Facts | Part::Timeline => {}
        }
    }

    // Opening.

    pub(crate) fn open(&mut self) {
        let Some(item) = self.chosen() else { return };
        let (repository, row) = (item.repository, item.row.clone());
        let about = match subject_of(&row) {
            Subject::Approval(id) => About::Approval(id),
            Subject::Task(id) => About::Task(id),
            Subject::Event(seq) => About::Event(seq),
            Subject::Both(it) => About::Both(it),
            Subject::Question(_) | Subject::Other => About::Row,
        };
        let of_row = (about == About::Row).then(|| self.shown_row(&row));
        self.open_at(repository, about, of_row);
    }

    pub(crate) fn open_at(&mut self, repository: usize, about: About, shown: Option<Shown>) {
        let is_open = self.detail.as_ref().is_some_and(|it| it.repository == repository && it.about == about);
        if is_open && about != About::Row {
            return;
        }
        let program = self.known.get(repository).map(|it| it.repository.program.clone()).unwrap_or_default();
        let mut detail = Detail::new(repository, about, program);
        detail.shown = shown;
        self.detail = Some(detail);
        self.load_detail(repository, false);
    }

    /// Shows a row without a view of its own by its columns.
    fn shown_row(&self, row: &Row) -> Shown {
        let section = self.list().merged.sections.iter().find(|it| it.items.iter().any(|it| it.row == *row));
        let columns = section.map(|it| it.columns.clone()).unwrap_or_default();
        let facts = columns.iter().zip(&row.cells).filter(|(_, cell)| **cell != Cell::None);
        let facts = facts.map(|(name, cell)| Fact::new(*name, cell.clone())).collect();
        let mut blocks = vec![Block::Facts { title: "The row".into(), facts }];
        if !row.commands.is_empty() {
            blocks.push(Block::Commands { title: "At a terminal".into(), commands: row.commands.clone() });
        }
        Shown::new(section.map(|it| it.title.clone()).unwrap_or_default(), blocks)
    }

    /// Returns the subject of the open detail, or else of the chosen row.
    pub(crate) fn subject(&self) -> Option<(usize, Subject)> {
        if let Some(detail) = &self.detail {
            let subject = match &detail.about {
                About::Approval(id) => Subject::Approval(*id),
                About::Task(id) => Subject::Task(id.clone()),
                About::Event(seq) => Subject::Event(*seq),
                About::Both(it) => Subject::Both(it.clone()),
                About::Check | About::Replay(_) => Subject::Other,
                About::Row => self.chosen().map_or(Subject::Other, |it| subject_of(&it.row)),
            };
            return Some((detail.repository, subject));
        }
        self.chosen().map(|it| (it.repository, subject_of(&it.row)))
    }

    // Actions that change something.

    /// Returns the rest of the command with this beginning, among those about the open detail or the chosen row.
    fn command_of(&self, start: &str) -> Option<String> {
        let commands = match &self.detail {
            Some(detail) => detail.commands(),
            None => self.chosen()?.row.commands.clone(),
        };
        commands.iter().find_map(|it| it.line.strip_prefix(start).map(str::to_owned))
    }

    /// Returns the approval that is open or chosen, or that the open or chosen task waits for.
    pub(crate) fn approval(&self) -> Option<(usize, u64)> {
        match self.subject()? {
            (repository, Subject::Approval(id)) => Some((repository, id)),
            (repository, Subject::Task(_)) => {
                let id = self.command_of("provost approve ")?.parse().ok()?;
                Some((repository, id))
            }
            _ => None,
        }
    }

    /// Returns the task that is open or chosen, if it has not ended.
    pub(crate) fn task_to_end(&self) -> Option<(usize, String)> {
        match self.subject()? {
            (repository, Subject::Task(task)) => {
                self.command_of("provost task cancel ").map(|_| (repository, task))
            }
            _ => None,
        }
    }

    fn begin_approve(&mut self) {
        if let Some((repository, approval)) = self.approval() {
            self.begin(repository, approval, Mode::Confirm(Confirm::Approve { repository, approval }));
        }
    }

    fn begin_deny(&mut self) {
        if let Some((repository, approval)) = self.approval() {
            let what = What::Reason { repository, approval };
            self.begin(repository, approval, Mode::Typing(what, Typed::default()));
        }
    }

    /// Begins an answer: this shows the whole request, where this terminal may answer.
    pub(crate) fn begin(&mut self, repository: usize, approval: u64, mode: Mode) {
        if !self.is_live(repository) {
            return self.say("its daemon does not answer; nothing was sent", Tone::Bad);
        }
        self.open_at(repository, About::Approval(approval), None);
        self.mode = mode;
        let shown = self.detail.as_ref().filter(|it| it.shown.is_some());
        if let Some(answerable) = shown.map(|it| it.answerable) {
            self.unless_answerable(answerable, repository, approval);
        }
    }

    fn begin_answer(&mut self) {
        if let Some((repository, Subject::Question(question))) = self.subject() {
            self.mode = Mode::Typing(What::Answer { repository, question }, Typed::default());
        }
    }

    fn begin_cancel(&mut self) {
        if let Some((repository, task)) = self.task_to_end() {
            self.mode = Mode::Confirm(Confirm::Cancel { repository, task });
        }
    }

    fn confirm(&mut self, confirm: Confirm, key: KeyEvent) {
        match (confirm, key.code) {
            (Confirm::Approve { repository, approval }, KeyCode::Char('y')) => {
                self.answer(repository, approval, true, None);
            }
            (Confirm::Approve { repository, approval }, KeyCode::Char('n')) => {
                self.mode = Mode::Typing(What::Note { repository, approval }, Typed::default());
            }
            (Confirm::Cancel { repository, task }, KeyCode::Char('y')) => {
                self.orders.push(Order::Cancel { repository, task });
            }
            // The person can scroll, to read the request to its end before the answer.
            (confirm, KeyCode::Down | KeyCode::Char('j')) => self.scroll_on(confirm, 1),
            (confirm, KeyCode::Up | KeyCode::Char('k')) => self.scroll_on(confirm, -1),
            (confirm, KeyCode::PageDown | KeyCode::Char(' ')) => {
                let page = isize::try_from(self.body_rows()).unwrap_or(isize::MAX);
                self.scroll_on(confirm, page);
            }
            (confirm, KeyCode::PageUp) => {
                let page = isize::try_from(self.body_rows()).unwrap_or(isize::MAX);
                self.scroll_on(confirm, -page);
            }
            (_, KeyCode::Esc | KeyCode::Char('q')) => self.say("left as it is", Tone::Quiet),
            (confirm, _) => self.mode = Mode::Confirm(confirm),
        }
    }

    fn scroll_on(&mut self, confirm: Confirm, by: isize) {
        self.move_by(by);
        self.mode = Mode::Confirm(confirm);
    }

    /// Answers with the digest of the shown approval; while the detail has no digest, nothing is shown yet, and nothing is answered.
    pub(crate) fn answer(&mut self, repository: usize, approval: u64, grant: bool, note: Option<String>) {
        let shown = self
            .detail
            .as_ref()
            .filter(|it| it.repository == repository && it.about == About::Approval(approval));
        let Some(digest) = shown.and_then(|it| it.digest.clone()) else {
            let what = Confirm::Approve { repository, approval };
            if grant && note.is_none() {
                self.mode = Mode::Confirm(what);
            }
            return self.say("it is not shown yet; nothing was sent", Tone::Bad);
        };
        if !self.is_live(repository) {
            return self.say("its daemon does not answer; nothing was sent", Tone::Bad);
        }
        if !self.unless_answerable(shown.map_or(Answerable::No, |it| it.answerable), repository, approval) {
            return;
        }
        self.own.insert((repository, approval));
        self.say(format!("answering approval {approval} …"), Tone::Moving);
        self.orders.push(Order::Answer { repository, approval, grant, note, digest });
    }

    fn passkey(&mut self, repository: usize, approval: u64, key: KeyEvent) {
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => {}
            KeyCode::Char('o') => {
                self.orders.push(Order::OpenPage { repository });
                self.mode = Mode::Passkey { repository, approval };
            }
            KeyCode::Char('y') => {
                let text = match self.passkey_address(repository, approval) {
                    Some(address) => address,
                    None => self.web_command(repository),
                };
                self.orders.push(Order::Copy(text));
                self.say("copied, where the terminal allows it", Tone::Quiet);
                self.mode = Mode::Passkey { repository, approval };
            }
            _ => self.mode = Mode::Passkey { repository, approval },
        }
    }

    /// Returns the address at which an approval is answered, if the page is open.
    pub(crate) fn passkey_address(&self, repository: usize, approval: u64) -> Option<String> {
        let page = self.known.get(repository)?.page.as_ref()?;
        Some(format!("{}/a/{approval}", page.trim_end_matches('/')))
    }

    /// Returns the command that opens the page of a repository.
    pub(crate) fn web_command(&self, repository: usize) -> String {
        let program = self.known.get(repository).map(|it| it.repository.program.as_str());
        format!("{} web", program.unwrap_or("provost"))
    }

    // Commands to copy.

    fn commands(&self) -> Vec<(String, String)> {
        let (repository, commands) = match (&self.detail, self.chosen()) {
            (Some(detail), _) => (detail.repository, detail.commands()),
            (None, Some(item)) => (item.repository, item.row.commands.clone()),
            (None, None) => return Vec::new(),
        };
        let Some(known) = self.known.get(repository) else { return Vec::new() };
        let line = |it: &str| for_repository(it, &known.repository.program);
        commands.iter().map(|it| (it.does.clone(), line(&it.line))).collect()
    }

    fn open_menu(&mut self) {
        match self.commands() {
            commands if commands.is_empty() => self.say("there is no command about this", Tone::Quiet),
            commands => self.mode = Mode::Menu(commands, 0),
        }
    }

    fn menu(&mut self, commands: Vec<(String, String)>, at: usize, key: KeyEvent) {
        let last = commands.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('j') | KeyCode::Down => self.mode = Mode::Menu(commands, (at + 1).min(last)),
            KeyCode::Char('k') | KeyCode::Up => self.mode = Mode::Menu(commands, at.saturating_sub(1)),
            KeyCode::Enter | KeyCode::Char('y') => self.copy(at),
            KeyCode::Esc | KeyCode::Char('q' | '.') => {}
            _ => self.mode = Mode::Menu(commands, at),
        }
    }

    pub(crate) fn copy(&mut self, at: usize) {
        match self.commands().into_iter().nth(at) {
            Some((_, line)) => {
                self.say(format!("copied, where the terminal allows it: {line}"), Tone::Quiet);
                self.orders.push(Order::Copy(line));
            }
            None => self.say("there is no command about this", Tone::Quiet),
        }
    }

    fn help(&mut self, mut typed: Typed, scroll: usize, key: KeyEvent) {
        match key.code {
            KeyCode::Esc => return,
            KeyCode::Char('?' | 'q') if typed.text().is_empty() => return,
            KeyCode::Down => return self.mode = Mode::Help(typed, scroll + 1),
            KeyCode::Up => return self.mode = Mode::Help(typed, scroll.saturating_sub(1)),
            _ => {}
        }
        let scroll = if typed.take(key) { 0 } else { scroll };
        self.mode = Mode::Help(typed, scroll);
    }
}

/// Returns the index `at` moved by `by`, within the bounds.
pub(crate) fn moved(at: usize, by: isize, last: usize) -> usize {
    at.saturating_add_signed(by).min(last)
}

/// Returns the next index of `count`, around the end.
fn next(at: usize, by: isize, count: usize) -> usize {
    match by < 0 {
        true => (at + count - 1) % count,
        false => (at + 1) % count,
    }
}
