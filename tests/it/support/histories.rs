//! Clients of daemons whose database has faults: what they were told, and whether that holds.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::World;
use super::own_api::{asked, own};
use super::waits::{Ends, within};

/// The time that a write may take if the database does not answer: the commit before it (three seconds), a handshake, and some more for a
/// loaded machine.
const REFUSED_WITHIN: Duration = Duration::from_secs(10);

/// The time within which writes go on once the fault has ended.
const WRITES_WITHIN: Duration = Duration::from_secs(20);

/// How many locks one agent takes before the next one does, since each agent may have so many and no more.
const LOCKS_OF_AN_AGENT: usize = 100;

/// How many locks clients take as fast as they can. None is released, and the processes of one agent may have 5,000: of all clients of
/// a test, which lasts two minutes at most.
const AT_FULL_SPEED: usize = 500;

pub(crate) fn says(world: &World, args: &[&str]) -> (i32, String) {
    let out = world.command(args).env("DEVIT_NO_AUTO_START", "1").output().expect("the command runs");
    let text = [out.stdout, out.stderr].concat();
    (out.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

/// A grant that was acknowledged: when it was asked for and answered, and its number.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    symbol: String,
    pub(crate) fence: u64,
    asked: Instant,
    answered: Instant,
}

/// One message is written after so many locks.
const LOCKS_A_LETTER: usize = 4;

/// Clients that take one lock after the other, write a message now and then, and the answers that they got.
pub(crate) struct Clients<'a> {
    world: &'a World,
    /// The beginning of their names and their locks.
    name: String,
    next: AtomicUsize,
    ends: AtomicBool,
    pub(crate) grants: Mutex<Vec<Grant>>,
    /// The texts of messages that were acknowledged.
    letters: Mutex<Vec<String>>,
    /// Refusals: how long each took, and its sentence.
    refused: Mutex<Vec<(Duration, String)>>,
}

impl<'a> Clients<'a> {
    pub(crate) fn of(world: &'a World) -> Self {
        Self::named(world, "")
    }

    /// Clients whose locks are not those of clients of other names.
    pub(crate) fn named(world: &'a World, name: &str) -> Self {
        Self {
            world,
            name: name.to_owned(),
            next: AtomicUsize::new(0),
            ends: AtomicBool::new(false),
            grants: Mutex::default(),
            letters: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// Takes one lock; whether it was granted.
    pub(crate) fn take(&self) -> bool {
        // A daemon that was cut off for long begins again by itself.
        if !self.world.listens() {
            return false;
        }
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let (symbol, agent) =
            (format!("work/{}n{n}.rs:run", self.name), format!("ada-{}{}", self.name, n / LOCKS_OF_AN_AGENT));
        let body = json!({ "symbol": symbol, "ttl_ms": 3_600_000, "reason": "room ".repeat(50) });
        let since = Instant::now();
        // A daemon that was killed meanwhile may have given it, and has not said so.
        let Some((status, answer)) =
            asked(self.world, ("POST", "/lock"), &[("x-provost-agent", &agent)], &body)
        else {
            return false;
        };
        let (asked, answered) = (since, Instant::now());
        if status == 200 {
            // An answer that broke off has none.
            let Some(fence) = answer["lock"]["fence"].as_u64() else { return false };
            self.grants.lock().unwrap().push(Grant { symbol, fence, asked, answered });
        } else {
            self.refused.lock().unwrap().push((answered - asked, answer.to_string()));
        }
        status == 200
    }

    /// The agent to which they write.
    fn reader(&self) -> String {
        format!("bea{}", self.name)
    }

    /// Writes a message to the reader.
    fn write(&self) {
        if !self.world.listens() {
            return;
        }
        if self.letters.lock().unwrap().is_empty() {
            // Of the messages to an agent that was never there, only the newest wait.
            let reader = self.reader();
            asked(self.world, ("POST", "/read-inbox"), &[("x-provost-agent", &reader)], &json!({}));
        }
        let writer = format!("ada-{}0", self.name);
        let text = format!("letter {} of {writer}", self.next.fetch_add(1, Ordering::Relaxed));
        let body = json!({ "kind": "message", "to": self.reader(), "text": text });
        let since = Instant::now();
        match asked(self.world, ("POST", "/send-message"), &[("x-provost-agent", &writer)], &body) {
            Some((200, answer)) if answer["number"].is_u64() => self.letters.lock().unwrap().push(text),
            Some((200, _)) | None => {}
            Some((_, answer)) => {
                self.refused.lock().unwrap().push((since.elapsed(), answer.to_string()));
            }
        }
    }

    pub(crate) fn granted(&self) -> usize {
        self.grants.lock().unwrap().len()
    }

    /// Waits until more is granted than now, and tells what the daemon said where nothing is.
    #[track_caller]
    pub(crate) fn goes_on(&self) {
        let before = self.granted();
        let goes_on = within(WRITES_WITHIN, || self.granted() > before + 3);
        assert!(goes_on, "writes did not go on ({} of 4)\n{}", self.granted() - before, self.last_words());
    }

    /// The last refusals, what `status` says, and the end of the daemon's log.
    fn last_words(&self) -> String {
        let refused = self.refused.lock().unwrap();
        let last: Vec<String> =
            refused.iter().rev().take(5).map(|(took, says)| format!("{took:?}: {says}")).collect();
        let log = self.world.log();
        let lines: Vec<&str> = log.lines().collect();
        let end = &lines[lines.len().saturating_sub(60)..];
        let status = says(self.world, &["status"]).1;
        format!("{}\n--- status\n{status}\n--- log\n{}", last.join("\n"), end.join("\n"))
    }

    /// Has three of them at work while `work` is done.
    pub(crate) fn during(&self, work: impl FnOnce()) {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| self.work());
            }
            let _ends = Ends(&self.ends);
            self.goes_on();
            work();
        });
    }

    /// Takes locks until the test ends it.
    fn work(&self) {
        let pauses = |time| within(time, || self.ends.load(Ordering::Relaxed));
        while !self.ends.load(Ordering::Relaxed) {
            if self.next.load(Ordering::Relaxed).is_multiple_of(LOCKS_A_LETTER) {
                self.write();
            }
            if !self.take() {
                // A refusal comes at once while the database is away.
                pauses(Duration::from_millis(50));
            } else if self.granted() > AT_FULL_SPEED {
                pauses(Duration::from_millis(100));
            }
        }
    }

    /// Has one client of each at work while `work` is done.
    pub(crate) fn during_all(all: &[Self], work: impl FnOnce()) {
        std::thread::scope(|scope| {
            for it in all {
                scope.spawn(|| it.work());
            }
            let _ends: Vec<_> = all.iter().map(|it| Ends(&it.ends)).collect();
            all.iter().for_each(Self::goes_on);
            work();
        });
    }

    /// As [`Clients::check`], and over all of them no number was given twice and numbers rise in the order of the answers.
    pub(crate) fn check_all(all: &[Self]) {
        all.iter().for_each(|it| it.check().unwrap());
        let grants = all.iter().flat_map(|it| it.grants.lock().unwrap().clone());
        must_rise(grants.collect()).unwrap();
    }

    /// Whether one was refused with these words.
    pub(crate) fn was_told(&self, words: &str) -> bool {
        self.told(words) > 0
    }

    /// How many were refused with these words.
    pub(crate) fn told(&self, words: &str) -> usize {
        self.refused.lock().unwrap().iter().filter(|(_, says)| says.contains(words)).count()
    }

    /// Nothing acknowledged is lost, no number was given twice, numbers rise in the order of the answers, and each message is there once.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (status, answer) =
            own(self.world, ("GET", "/locks"), &[("x-provost-agent", "ada")], &Value::Null);
        assert_eq!(status, 200, "{answer}");
        let has: BTreeMap<String, u64> = answer["locks"]
            .as_array()
            .expect("locks")
            .iter()
            .map(|it| (it["symbol"].as_str().unwrap().to_owned(), it["fence"].as_u64().unwrap()))
            .collect();
        let grants = self.grants.lock().unwrap().clone();
        for it in &grants {
            if has.get(&it.symbol) != Some(&it.fence) {
                return Err(format!("acknowledged and lost: {it:?}, found {:?}", has.get(&it.symbol)));
            }
        }
        must_rise(grants)?;
        let found = self.found_by_reader();
        for it in &*self.letters.lock().unwrap() {
            let times = found.iter().filter(|text| text.contains(it)).count();
            if times != 1 {
                return Err(format!("an acknowledged message is there {times} times: {it}"));
            }
        }
        Ok(())
    }

    /// The texts in the reader's inbox, whose numbers rise.
    fn found_by_reader(&self) -> Vec<String> {
        let (reader, mut since, mut found) = (self.reader(), 0, Vec::new());
        loop {
            let body = json!({ "posts_after": since, "mail_after": 0 });
            let (status, answer) =
                own(self.world, ("POST", "/read-inbox"), &[("x-provost-agent", &reader)], &body);
            assert_eq!(status, 200, "{answer}");
            for entry in answer["entries"].as_array().expect("messages") {
                let n = entry["post"].as_u64().expect("of an agent");
                assert!(n > since, "message {n} comes after {since}");
                since = n;
                found.push(entry["text"].as_str().unwrap().to_owned());
            }
            if answer["more"] == false {
                return found;
            }
        }
    }

    /// Each that was refused has heard so within its time and with words.
    pub(crate) fn are_refused_in_words(&self) {
        let _count = self.refusals();
    }

    /// How many were refused, each within its time and with words.
    pub(crate) fn refusals(&self) -> usize {
        let refused = self.refused.lock().unwrap();
        for (took, says) in refused.iter() {
            // A daemon that was taken for dead begins again, and a request that comes in that moment hears the last sentence.
            let words = ["shared store", "taken this one for dead", "stopping or starting again"];
            assert!(words.iter().any(|it| says.contains(it)), "{says}");
            let is_unsure = says.contains("not known");
            assert!(is_unsure || *took < REFUSED_WITHIN, "{took:?}: {says}");
        }
        refused.len()
    }
}

/// A grant that was answered before another one was asked for has the smaller number.
fn must_rise(mut grants: Vec<Grant>) -> Result<(), String> {
    grants.sort_by_key(|it| it.fence);
    for pair in grants.windows(2) {
        if pair[0].fence == pair[1].fence || pair[1].answered < pair[0].asked {
            return Err(format!("numbers do not rise: {pair:?}"));
        }
    }
    Ok(())
}

pub(crate) fn reads_go_on(world: &World) {
    let began = Instant::now();
    let (status, answer) = own(world, ("GET", "/locks"), &[("x-provost-agent", "ada")], &Value::Null);
    assert_eq!(status, 200, "{answer}");
    assert!(began.elapsed() < Duration::from_secs(12), "a read took {:?}", began.elapsed());
}
