//! Texts that a person types into the line above the keys: commands, filters, reasons and answers.

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::detail::About;
use super::inputs::Order;
use super::model::{Confirm, Mode, Model, What};
use super::screen::{COMMANDS, Screen};
use super::typed::Typed;
use provost_view::Tone;

impl Model {
    pub(crate) fn typing(&mut self, what: What, mut typed: Typed, key: KeyEvent) {
        match key.code {
            KeyCode::Esc => {
                match what {
                    What::Filter => self.set_filter(String::new()),
                    What::Command => {}
                    _ => self.say("left as it is", Tone::Quiet),
                }
                return;
            }
            KeyCode::Enter => return self.typed(what, typed),
            KeyCode::Tab if what == What::Command => typed = self.completed(typed),
            KeyCode::Backspace if what == What::Command && typed.text().is_empty() => return,
            _ => {
                if typed.take(key) && what == What::Filter {
                    self.set_filter(typed.text());
                }
            }
        }
        self.mode = Mode::Typing(what, typed);
    }

    pub(crate) fn take_paste(&mut self, text: &str) {
        // In other modes, each character of a pasted text would act as a key that the person did not mean.
        if let Mode::Typing(what, typed) = &mut self.mode {
            typed.paste(text);
            if *what == What::Filter {
                let filter = typed.text();
                self.set_filter(filter);
            }
        }
    }

    /// Takes a text that was typed to its end.
    fn typed(&mut self, what: What, typed: Typed) {
        let text = typed.text().trim().to_owned();
        match what {
            What::Command => self.command(&text),
            What::Filter => self.set_filter(typed.text()),
            What::Reason { .. } if text.is_empty() => {
                self.say("a denial has a reason, which its asker gets", Tone::Bad);
                self.mode = Mode::Typing(what, typed);
            }
            What::Reason { repository, approval } => self.answer(repository, approval, false, Some(text)),
            What::Note { repository, approval } => {
                let note = (!text.is_empty()).then_some(text);
                self.answer(repository, approval, true, note);
            }
            What::Answer { .. } if text.is_empty() => {
                self.say("an answer has a text", Tone::Bad);
                self.mode = Mode::Typing(what, typed);
            }
            What::Tell { .. } if text.is_empty() => {
                self.say("write what they are to read", Tone::Bad);
                self.mode = Mode::Typing(what, typed);
            }
            What::Tell { repository, to } => self.orders.push(Order::Tell { repository, to, text }),
            What::Answer { repository, question } => {
                self.orders.push(Order::Say { repository, question, text });
            }
        }
    }

    fn command(&mut self, text: &str) {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        if let Some(screen) = Screen::ALL.into_iter().find(|it| it.word().0 == word) {
            return self.go(screen);
        }
        match word {
            "" => {}
            "quit" | "q" => self.orders.push(Order::Quit),
            "help" => self.mode = Mode::Help(Typed::default(), 0),
            "refresh" => self.refresh(),
            "filter" => self.set_filter(rest.to_owned()),
            "copy" => self.copy(0),
            "check" => self.begin_check(),
            "replay" => self.begin_replay(rest),
            "tell" => self.begin_tell_all(),
            "dark" => self.look.light = false,
            "light" => self.look.light = true,
            "task" if !rest.is_empty() => {
                if let Some(repository) = self.repository_meant() {
                    self.open_at(repository, About::Task(rest.to_owned()), None);
                }
            }
            "approve" | "deny" | "approval" => self.command_about(word, rest),
            _ => {
                let word = provost_base::visible(word);
                self.say(format!("{word:?} is no command here; : and Tab lists them"), Tone::Bad);
            }
        }
    }

    fn command_about(&mut self, word: &str, rest: &str) {
        let Ok(approval) = rest.parse::<u64>() else {
            return self.say(format!("write the number of an approval: :{word} 7"), Tone::Bad);
        };
        let Some(repository) = self.repository_of(approval) else { return };
        match word {
            "approve" => {
                self.begin(repository, approval, Mode::Confirm(Confirm::Approve { repository, approval }));
            }
            "deny" => {
                let what = What::Reason { repository, approval };
                self.begin(repository, approval, Mode::Typing(what, Typed::default()));
            }
            _ => self.open_at(repository, About::Approval(approval), None),
        }
    }

    /// Returns the repository in which this approval waits: the only one, or else the chosen one.
    fn repository_of(&mut self, approval: u64) -> Option<usize> {
        let to = format!("/a/{approval}");
        let needs = self.lists.get(&Screen::Needs).into_iter().flat_map(|it| it.merged.items());
        let mut of: Vec<usize> =
            needs.filter(|it| it.row.to.as_ref() == Some(&to)).map(|it| it.repository).collect();
        of.dedup();
        match *of {
            [one] => Some(one),
            [] => self.repository_meant(),
            _ => {
                let chosen = self.subject().map(|it| it.0).filter(|it| of.contains(it));
                if chosen.is_none() {
                    let says = format!("approval {approval} waits in several repositories: choose its row");
                    self.say(says, Tone::Bad);
                }
                chosen
            }
        }
    }

    pub(crate) fn repository_meant(&mut self) -> Option<usize> {
        let only = (self.known.len() == 1).then_some(0);
        let meant = self.subject().map(|it| it.0).or(only);
        if meant.is_none() {
            self.say("there are several repositories: choose a row of the one that is meant", Tone::Bad);
        }
        meant
    }

    /// Returns the commands that begin with the typed text.
    pub(crate) fn candidates(typed: &Typed) -> Vec<&'static (&'static str, &'static str, &'static str)> {
        let before = typed.before();
        COMMANDS.iter().filter(|it| it.0.starts_with(before.as_str())).collect()
    }

    /// Completes the line as far as all candidates agree.
    fn completed(&mut self, typed: Typed) -> Typed {
        let candidates = Self::candidates(&typed);
        let Some(first) = candidates.first() else { return typed };
        let common = candidates.iter().skip(1).fold(first.0.len(), |most, it| {
            first.0.bytes().zip(it.0.bytes()).take(most).take_while(|(a, b)| a == b).count()
        });
        let takes = candidates.len() == 1 && !first.1.is_empty();
        Typed::of(&format!("{}{}", &first.0[..common], if takes { " " } else { "" }))
    }
}
