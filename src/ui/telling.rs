//! Actions of the screen other than answers: messages to agents, checks of the journal, and other rules.

use super::ask::{Both, UiRequest};
use super::detail::About;
use super::model::{Mode, Model, What};
use super::screen::Screen;
use super::text::one_line;
use super::typed::Typed;
use provost_api::wire;
use provost_view::{Block, Command, Here, Tone};

/// Names the first agents of a list, and counts the others.
pub(crate) fn named(agents: &[String]) -> String {
    const SHOWN: usize = 3;
    let names: Vec<String> = agents.iter().take(SHOWN).map(|it| one_line(it)).collect();
    match agents.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Returns the agents to whom a command writes; empty where the command does something else.
fn recipients(it: &Command) -> Vec<String> {
    let Some(Here::Verb { verb: "message-agents", arguments, .. }) = &it.here else { return Vec::new() };
    let to = arguments.get("to").and_then(|it| it.as_array()).into_iter().flatten();
    to.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

/// Reads the file and the two agents out of the path of a meeting.
pub(crate) fn both_of(path: &str) -> Option<Both> {
    let mut both = Both { file: String::new(), one: String::new(), other: String::new() };
    for member in path.strip_prefix("/both?")?.split('&') {
        let (name, value) = member.split_once('=')?;
        let value = super::keys::decoded(value)?;
        match name {
            "file" => both.file = value,
            "one" => both.one = value,
            "other" => both.other = value,
            _ => return None,
        }
    }
    let is_whole = [&both.file, &both.one, &both.other].into_iter().all(|it| !it.is_empty());
    is_whole.then_some(both)
}

impl Model {
    /// Returns the repository and the agents to whom the person can write about the open detail or the chosen row.
    pub(crate) fn told(&self) -> (usize, Vec<String>) {
        let (repository, commands) = match (&self.detail, self.chosen()) {
            (Some(detail), _) => (detail.repository, detail.commands()),
            (None, Some(item)) => (item.repository, item.row.commands.clone()),
            (None, None) => return (0, Vec::new()),
        };
        let to = commands.iter().map(recipients).find(|it| !it.is_empty());
        (repository, to.unwrap_or_default())
    }

    pub(crate) fn begin_tell(&mut self) {
        let (repository, to) = self.told();
        match to.is_empty() {
            true => self.say("there is no agent here to write to", Tone::Quiet),
            false => self.mode = Mode::Typing(What::Tell { repository, to }, Typed::default()),
        }
    }

    /// Begins a message to all agents of a repository that the list of messages names.
    pub(crate) fn begin_tell_all(&mut self) {
        let Some(repository) = self.repository_meant() else { return };
        if self.screen != Screen::Messages {
            // Only the list of messages names the agents that give a sign of life.
            self.go(Screen::Messages);
            return self.say("this list says who there is: once it is here, press M", Tone::Quiet);
        }
        let to = self.all_agents(repository);
        match to.is_empty() {
            true => self.say("not even two agents give a sign of life", Tone::Quiet),
            false => self.mode = Mode::Typing(What::Tell { repository, to }, Typed::default()),
        }
    }

    fn all_agents(&self, repository: usize) -> Vec<String> {
        let shown = self.lists.get(&Screen::Messages).and_then(|it| it.loaded.get(&repository));
        let blocks = shown.into_iter().flat_map(|it| &it.blocks);
        let commands = blocks.filter_map(|it| match it {
            Block::Commands { commands, .. } => Some(commands),
            _ => None,
        });
        commands.flatten().flat_map(recipients).collect()
    }

    pub(crate) fn begin_check(&mut self) {
        if let Some(repository) = self.repository_meant() {
            self.open_at(repository, About::Check, None);
        }
    }

    pub(crate) fn begin_replay(&mut self, rules: &str) {
        if rules.is_empty() {
            return self.say("name ready-made rules: :replay strict", Tone::Bad);
        }
        if let Some(repository) = self.repository_meant() {
            self.open_at(repository, About::Replay(rules.to_owned()), None);
        }
    }

    /// Shows a check, and asks again while it goes on and is open.
    pub(crate) fn take_check(&mut self, repository: usize, check: &wire::JournalCheck) {
        let Some(detail) = &mut self.detail else { return };
        (detail.shown, detail.error) = (Some(provost_view::journal_checked(check)), None);
        if check.found.is_none() {
            self.loads.ask(repository, UiRequest::Check(Some(check.check)));
        }
    }
}
