//! Runs the screen: feeds inputs to the model, carries out its orders, and draws a frame after each.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};
use tokio::sync::{Notify, mpsc};

use super::ask::{ask, say, tell};
use super::inputs::{Input, News, Order};
use super::live::Follow;
use super::model::Model;
use super::terminal::{TakenTerminal, copy};
use super::{Start, Theme};
use provost_api::wire;
use provost_base::{AgentId, Timestamp, task_command};
use provost_client::daemons::{Found, Looking, Whose};
use provost_client::{Client, ClientError};
use provost_system::Signals;

/// Most inputs that wait; their senders wait beyond that.
const INPUTS_MAX: usize = 1_024;

/// Most results of searches that wait.
const FOUND_MAX: usize = 16;

/// Most inputs that are taken before the next frame.
const INPUTS_A_FRAME: usize = 256;

/// A daemon that can be asked.
struct Asking {
    client: Client,
    /// The agent on whose behalf approvals are answered; `None` is the person at this terminal.
    speaker: Result<Option<AgentId>, String>,
    again: Arc<Notify>,
}

struct Screen {
    whose: Whose,
    speaker: super::Speaker,
    inputs: mpsc::Sender<Input>,
    asking: Vec<Asking>,
    /// The known repositories: the name of the state folder, and the number.
    numbers: BTreeMap<String, usize>,
    looking: Looking,
    found: mpsc::Sender<Vec<Found>>,
}

fn now() -> Timestamp {
    Timestamp(chrono::Utc::now().timestamp_millis().max(0))
}

/// Runs the screen until the person ends it, or a signal does.
///
/// # Errors
/// The error of the terminal.
pub(super) fn run(start: Start) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(until_the_end(start));
    // The end waits neither for a disk that does not answer nor for the thread that reads keys.
    runtime.shutdown_background();
    ended
}

async fn until_the_end(start: Start) -> io::Result<()> {
    let (sender, mut inputs) = mpsc::channel(INPUTS_MAX);
    let (found_sender, mut found) = mpsc::channel(FOUND_MAX);
    let changed = Arc::new(Notify::new());
    let watch = start.whose.watch(changed.clone());
    // Signals are caught before the terminal is taken over, so that none is lost.
    let mut signals = Signals::catch()?;
    let mut terminal = TakenTerminal::take(start.mouse)?;
    let size = terminal.size()?;
    let mut model = Model::new(start.look, size, now().0);
    let mut screen = Screen {
        whose: start.whose,
        speaker: start.speaker,
        inputs: sender,
        asking: Vec::new(),
        numbers: BTreeMap::new(),
        looking: Looking::default(),
        found: found_sender,
    };
    read_keys(screen.inputs.clone());
    screen.search();
    loop {
        if model.has_changed() {
            terminal.draw(&model)?;
        }
        let due = model.next_wake().map(|at| Duration::from_millis(until(at)));
        let input = tokio::select! {
            it = inputs.recv() => it,
            () = wait(due) => Some(Input::Tick),
            () = changed.notified() => {
                if let Some(watch) = &watch {
                    watch.take();
                }
                screen.search();
                continue;
            }
            Some(found) = found.recv() => {
                screen.take_found(found, &mut model);
                continue;
            }
            _ = signals.next() => None,
        };
        let Some(first) = input else { return Ok(()) };
        let mut waiting = vec![first];
        while waiting.len() < INPUTS_A_FRAME
            && let Ok(next) = inputs.try_recv()
        {
            waiting.push(next);
        }
        for input in waiting {
            for order in model.take(input, now().0) {
                match order {
                    Order::Quit => return Ok(()),
                    Order::Copy(text) => copy(&text)?,
                    Order::Search => {
                        terminal.forget()?;
                        screen.search();
                    }
                    order => screen.carry_out(order),
                }
            }
        }
    }
}

/// Returns the milliseconds until a moment.
fn until(at_ms: i64) -> u64 {
    u64::try_from(at_ms.saturating_sub(now().0)).unwrap_or(0)
}

async fn wait(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep_until(tokio::time::Instant::now() + time).await,
        None => std::future::pending().await,
    }
}

/// Starts a thread that reads keys, which blocks until a key comes.
fn read_keys(inputs: mpsc::Sender<Input>) {
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            let input = match event {
                Event::Key(key) => Input::Key(key),
                Event::Mouse(mouse) => Input::Mouse(mouse),
                Event::Paste(text) => Input::Paste(text),
                Event::Resize(columns, rows) => Input::Size(columns, rows),
                Event::FocusGained | Event::FocusLost => continue,
            };
            if inputs.blocking_send(input).is_err() {
                return;
            }
        }
        // The terminal has gone, and no key can end the screen any more.
        let quit = event::KeyEvent::new(event::KeyCode::Char('c'), event::KeyModifiers::CONTROL);
        let _ended = inputs.blocking_send(Input::Key(quit));
    });
}

impl Screen {
    /// Looks for daemons; the results come later as inputs.
    fn search(&self) {
        tokio::spawn(self.whose.clone().find(self.looking.clone(), self.found.clone()));
    }

    /// Follows new daemons, and has those asked again that did not answer.
    fn take_found(&mut self, found: Vec<Found>, model: &mut Model) {
        for it in found {
            if !self.numbers.contains_key(it.places.hash.as_str()) {
                self.add(it, model);
            }
        }
        self.asking.iter().for_each(|it| it.again.notify_one());
        let orders = model.take(Input::News(News::Searched), now().0);
        orders.into_iter().for_each(|it| self.carry_out(it));
    }

    fn add(&mut self, found: Found, model: &mut Model) {
        let number = self.asking.len();
        // A token is for one daemon, so only that daemon gets it.
        let token = self.whose.environment.token.as_ref().filter(|_| found.is_here);
        let client = Client::at(found.places.own_socket()).showing(token);
        let again = Arc::new(Notify::new());
        self.numbers.insert(found.places.hash.as_str().to_owned(), number);
        let orders = model.take(Input::News(News::Found(found.repository.clone())), now().0);
        orders.into_iter().for_each(|it| self.carry_out(it));
        let follow = Follow {
            number,
            repository: found.repository,
            client: client.clone(),
            again: again.clone(),
            news: self.inputs.clone(),
        };
        let speaker = (self.speaker)(&found.places);
        self.asking.push(Asking { client: client.keeping_connections(), speaker, again });
        tokio::spawn(follow.run());
    }

    /// Carries out an order for a daemon; the result comes as news.
    fn carry_out(&self, order: Order) {
        let number = match &order {
            Order::Ask { repository, .. }
            | Order::Answer { repository, .. }
            | Order::Cancel { repository, .. }
            | Order::Say { repository, .. }
            | Order::Tell { repository, .. }
            | Order::OpenPage { repository } => *repository,
            Order::Copy(_) | Order::Search | Order::Quit => return,
        };
        let Some(asking) = self.asking.get(number) else { return };
        let (client, speaker) = (asking.client.clone(), asking.speaker.clone());
        let inputs = self.inputs.clone();
        tokio::spawn(async move {
            let news = carried_out(client, speaker, order).await;
            // A screen that has ended does not receive it.
            let _unheard = inputs.send(Input::News(news)).await;
        });
    }
}

async fn carried_out(client: Client, speaker: Result<Option<AgentId>, String>, order: Order) -> News {
    let done = |repository, says: String, well| News::Done { repository, says, well, refused: None };
    match order {
        Order::Ask { repository, asked } => {
            let got = ask(&client, &asked, now()).await.map_err(|err| in_words(&err));
            News::Got { repository, asked, got }
        }
        Order::Answer { repository, approval, grant, note, digest } => {
            let speaker = match speaker {
                Ok(speaker) => speaker,
                Err(says) => {
                    return News::Done { repository, says, well: false, refused: Some((approval, false)) };
                }
            };
            let asked = wire::Answer { approval, grant, note, digest: Some(digest) };
            let answered = client.speaking_as(speaker).answer(&asked).await;
            answer_told(repository, approval, grant, answered)
        }
        Order::Cancel { repository, task } => {
            let speaker = match speaker {
                Ok(speaker) => speaker,
                Err(says) => return done(repository, says, false),
            };
            let asked = wire::Cancel { task, reason: None };
            match client.speaking_as(speaker).cancel(&asked).await {
                Ok(_) => done(repository, "the task ends".into(), true),
                Err(err) => done(repository, in_words(&err), false),
            }
        }
        Order::Say { repository, question, text } => match say(&client, question, &text).await {
            Ok(says) => done(repository, says, true),
            Err(err) => done(repository, in_words(&err), false),
        },
        Order::Tell { repository, to, text } => {
            let speaker = match speaker {
                Ok(speaker) => speaker,
                Err(says) => return done(repository, says, false),
            };
            match tell(&client.speaking_as(speaker), &to, &text).await {
                Ok(says) => done(repository, says, true),
                Err(err) => done(repository, in_words(&err), false),
            }
        }
        Order::OpenPage { repository } => match client.open_page().await {
            Ok(page) => {
                let address = page.public.into_iter().next().unwrap_or(page.address);
                News::Page { repository, address }
            }
            Err(err) => done(repository, in_words(&err), false),
        },
        // The caller carries these out itself.
        Order::Copy(_) | Order::Search | Order::Quit => done(0, String::new(), true),
    }
}

fn answer_told(
    repository: usize,
    approval: u64,
    grant: bool,
    answered: Result<wire::Answered, ClientError>,
) -> News {
    let done = |says: String, well, refused| News::Done { repository, says, well, refused };
    match answered {
        Ok(wire::Answered { failed: Some(why), .. }) => {
            done(format!("granted, but it could not be carried out: {why}"), false, None)
        }
        Ok(answered) => {
            let word = if grant { "approved" } else { "denied" };
            let task = answered.task.filter(|_| grant);
            let watch = task.map(|it| format!("; watch it: {}", task_command("task show", &it, "--wait")));
            done(format!("approval {approval} {word}{}", watch.unwrap_or_default()), true, None)
        }
        Err(err) => {
            // The rule accepts a passkey, and one has been enrolled in the meantime.
            let takes_passkey =
                matches!(&err, ClientError::Refused { fault, .. } if fault.error == "approval_not_yours");
            done(in_words(&err), false, Some((approval, takes_passkey)))
        }
    }
}

/// Writes an error as a sentence, with the next step where the daemon has named one.
fn in_words(err: &ClientError) -> String {
    match err {
        ClientError::Refused { fault, .. } => match &fault.hint {
            Some(hint) => format!("{}; {hint}", fault.message),
            None => fault.message.clone(),
        },
        err => err.to_string(),
    }
}

/// Returns the terminal's look, by the environment of this process.
pub(super) fn look(light: Option<bool>) -> Theme {
    Theme::of(|name| std::env::var(name).ok(), light)
}
