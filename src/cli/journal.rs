//! Shows, checks and exports the journal. Reads the files, with or without a daemon.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde_json::{Value, json};

use super::cli_error::{DONE, FAILED};
use super::tasks::short_time;
use super::{CliError, RepoContext, database, log, out, search, signatures};
use provost_store::{self as store, Anchor, Leap, StoreError, Verdict};

/// `provost journal`.
#[derive(Subcommand, Debug)]
pub(super) enum Journal {
    /// Show the events of the journal, or the output of a job's workers
    #[command(
        after_help = "Examples:\n  provost journal show\n  provost journal show --follow\n  provost journal show --after 120 --json\n  provost journal show job_a2b3c4d5e6f7g8h9 --follow"
    )]
    Show(log::Log),
    /// Search tasks, messages and events by the words in them
    #[command(
        after_help = "Examples:\n  provost journal search login\n  provost journal search \"token refresh\" --only messages\n  provost journal search src/auth.rs 'valid*' --json\n  provost journal search --all login\n\nAll words have to be there, with the signs in them. What was pruned is not found."
    )]
    Search(search::Search),
    /// Verify the whole chain, and that it still contains an anchor
    #[command(
        after_help = "Examples:\n  provost journal verify\n  provost journal verify --anchor \"$(cat anchor.txt)\"\n\nAnchors are in the system log too: journalctl -t provost | grep provost-anchor"
    )]
    Verify(Verify),
    /// Print the end of the chain, an anchor to keep elsewhere
    #[command(after_help = "Example:\n  provost journal head > anchor.txt")]
    Head,
    /// Export every event as a line of JSON
    #[command(
        after_help = "Examples:\n  provost journal export | jq .kind\n  provost journal export --output journal.jsonl"
    )]
    Export(Export),
}

/// `provost journal verify`.
#[derive(Args, Debug)]
pub(super) struct Verify {
    /// An anchor: a position that `provost journal head` has printed
    #[arg(long, value_name = "provost-anchor:1:…")]
    anchor: Option<Anchor>,
}

/// `provost journal export`.
#[derive(Args, Debug)]
pub(super) struct Export {
    /// The file that gets the events, which must not exist; by default standard output
    #[arg(long, value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

pub(super) fn journal(here: &RepoContext, asked: Journal) -> Result<u8, CliError> {
    match asked {
        Journal::Show(it) => log::log(here, &it),
        Journal::Search(it) => search::search(here, &it),
        Journal::Verify(it) => verify(here, it.anchor),
        Journal::Head => head(here),
        Journal::Export(it) => export(here, it.output.as_ref()),
    }
}

/// Returns a reader of this repository's store; the store exists once a daemon has run.
pub(super) fn reader(here: &RepoContext) -> Result<Box<dyn store::Reader>, CliError> {
    if !store::is_begun(&here.places.state) {
        // A key or a mark without a database shows that a database has existed.
        if here.places.state.exists() {
            database::look(here, false)?;
        }
        return Err(CliError::of("this repository has no journal yet")
            .because(format!("no daemon has run here; looked in {}", here.places.state.display()))
            .next("provost up"));
    }
    Ok(store::open_reader_in(&here.places.state, database::of(here)?.as_ref())?)
}

fn checked(here: &RepoContext, anchor: Option<Anchor>) -> Result<Unchanged, CliError> {
    unchanged(here, reader(here)?.verify(anchor)?)
}

const WAYS_BACK: &str = "provost store restore FILE with a backup, or provost store restore --empty; the present files are kept beside it";
const WAYS_ON: &str =
    "provost store restore FILE with a backup, or provost store restore --as-it-is to continue with the rest";
/// The next step for a journal in PostgreSQL, which no command of Provost brings back.
const IN_DATABASE: &str = "an administrator puts the rows of the database back from a copy: docs/hosts.md, When something goes wrong";

/// An undamaged journal.
pub(super) struct Unchanged {
    /// The number of its events.
    pub(super) events: u64,
    /// The end of its chain.
    head: Anchor,
    /// The numbers that restores have skipped.
    leaps: Vec<Leap>,
}

/// Returns the undamaged journal, or the damage as an error.
pub(super) fn unchanged(here: &RepoContext, verdict: Verdict) -> Result<Unchanged, CliError> {
    let in_database = store::is_in_database(&here.places.state);
    let next = |in_folder| if in_database { IN_DATABASE } else { in_folder };
    match verdict {
        Verdict::Ok { events, head, leaps } => Ok(Unchanged { events, head, leaps }),
        Verdict::Tampered { first_bad_seq, what } => Err(CliError::of("the journal has been changed")
            .because(format!("event {first_bad_seq}: {what}"))
            .next(next(WAYS_BACK))),
        Verdict::Truncated { anchor, head } => Err(CliError::of("the end of the journal is missing")
            .because(format!("it had reached event {} and ends at {}", anchor.seq, head.seq))
            .next(next(WAYS_ON))),
        Verdict::GivenUp { anchor, leap } => Err(CliError::of(format!(
            "the journal's history up to event {} was given up",
            anchor.seq
        ))
        .because(format!("{}; event {} was the last one kept", restored(&leap), leap.kept))
        .next(match in_database {
            true => "provost journal head for an anchor of the present journal",
            false => "provost journal head for an anchor of the present journal, or provost store restore FILE for a backup",
        })),
        Verdict::CannotCheck(why) => {
            Err(CliError::of("the journal cannot be checked").because(why).next("provost doctor"))
        }
    }
}

fn verify(here: &RepoContext, anchor: Option<Anchor>) -> Result<u8, CliError> {
    let found = checked(here, anchor).and_then(|it| Ok((it, signatures::check(reader(here)?.as_mut())?)));
    match found {
        Ok((Unchanged { events, head, leaps }, signed)) if here.json => {
            let leaps: Vec<_> = leaps.iter().map(leap_in_json).collect();
            out::json(
                &json!({ "ok": true, "events": events, "head": head.to_string(), "passed_over": leaps,
                         "signed": { "checked": signed.signed, "without_key": signed.without_key,
                                     "unvouched": signed.unvouched } }),
            )?;
            Ok(signatures::exit_code(signed))
        }
        Ok((Unchanged { events, head, leaps }, signed)) => {
            out::line(format!("nothing wrong in {events} events"))?;
            if signed.signed + signed.without_key > 0 {
                out::line(format!("{} signatures of passkeys checked again", signed.signed))?;
            }
            if signed.without_key > 0 {
                let what =
                    "signatures cannot be checked, because the events with their passkeys' keys were pruned";
                out::line(format!("{} {what}", signed.without_key))?;
            }
            if signed.unvouched > 0 {
                let what = "passkeys were added beside known ones, and none of those has signed for them; look at provost passkey list";
                out::line(format!("{} {what}", signed.unvouched))?;
            }
            for leap in &leaps {
                let (first, last) = (leap.kept.next(), leap.to);
                out::line(format!("no event has a number from {first} to {last}: {}", restored(leap)))?;
            }
            out::line(head)?;
            Ok(signatures::exit_code(signed))
        }
        Err(error) if here.json => {
            out::json(&json!({ "ok": false, "error": error.text() }))?;
            Err(CliError::silent(FAILED))
        }
        Err(error) => Err(error),
    }
}

/// Names the restore that has skipped these numbers.
fn restored(leap: &Leap) -> String {
    let with = leap.with.as_deref().map(|it| format!(" ({it})")).unwrap_or_default();
    let at = leap.at.map(|it| format!(" at {}", short_time(&it.rfc3339()))).unwrap_or_default();
    let command = if leap.was_loss { "`provost store accept-loss`" } else { "`provost store restore`" };
    format!("{command}{with} has skipped them{at}, as event {} says", leap.mark())
}

fn leap_in_json(leap: &Leap) -> Value {
    json!({
        "kept_to": leap.kept, "from": leap.kept.next(), "to": leap.to, "restored_by_event": leap.mark(),
        "at": leap.at.map(|it| it.rfc3339()), "with": leap.with,
    })
}

fn head(here: &RepoContext) -> Result<u8, CliError> {
    let Unchanged { head, .. } = checked(here, None)?;
    if here.json {
        out::json(&json!({ "seq": head.seq, "anchor": head.to_string() }))?;
    } else {
        out::line(head)?;
    }
    Ok(DONE)
}

fn export(here: &RepoContext, output: Option<&PathBuf>) -> Result<u8, CliError> {
    let mut reader = reader(here)?;
    let Some(path) = output else {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let done = written(store::export(reader.as_mut(), &mut out));
        let done = done.and_then(|_| out.flush().map_err(CliError::writing));
        // Output that could not be written is not tried again.
        let (_out, _rest) = out.into_parts();
        return done.map(|()| DONE);
    };
    let cannot = |e: io::Error| {
        CliError::of(format!("{} cannot be written", path.display()))
            .because(e)
            .next("name a file that does not exist")
    };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    let opened = provost_system::private_file(&mut options).open(path);
    let mut file = io::BufWriter::new(opened.map_err(cannot)?);
    let events = written(store::export(reader.as_mut(), &mut file))?;
    file.flush().and_then(|()| file.get_ref().sync_all()).map_err(cannot)?;
    out::note(format!("{events} events in {}", path.display()));
    Ok(DONE)
}

fn written(done: Result<u64, StoreError>) -> Result<u64, CliError> {
    done.map_err(|err| match err {
        StoreError::Io { source, .. } => CliError::writing(source),
        other => other.into(),
    })
}
