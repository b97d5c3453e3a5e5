//! The journal: checked, and taken elsewhere. Reads the files, with or without a daemon.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde_json::json;

use super::complaint::{DONE, FAILED};
use super::{Complaint, Here, out};
use crate::store::{self, Anchor, StoreError, Verdict};

/// `provost journal`.
#[derive(Subcommand, Debug)]
pub(super) enum Journal {
    /// Check the whole chain, and that it still contains a point known from elsewhere
    #[command(
        after_help = "Examples:\n  provost journal verify\n  provost journal verify --anchor \"$(cat anchor.txt)\"\n\nAnchors are in the system log too: journalctl -t provost | grep provost-anchor"
    )]
    Verify(Verify),
    /// Print the end of the chain, to be kept elsewhere
    #[command(after_help = "Example:\n  provost journal head > anchor.txt")]
    Head,
    /// Write every event as a line of JSON
    #[command(
        after_help = "Examples:\n  provost journal export | jq .kind\n  provost journal export --output journal.jsonl"
    )]
    Export(Export),
}

/// `provost journal verify`.
#[derive(Args, Debug)]
pub(super) struct Verify {
    /// A point that the journal has reached, as `provost journal head` printed it
    #[arg(long, value_name = "provost-anchor:1:…")]
    anchor: Option<Anchor>,
}

/// `provost journal export`.
#[derive(Args, Debug)]
pub(super) struct Export {
    /// A file, which must not exist, instead of standard output
    #[arg(long, value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

pub(super) fn journal(here: &Here, asked: Journal) -> Result<u8, Complaint> {
    match asked {
        Journal::Verify(it) => verify(here, it.anchor),
        Journal::Head => head(here),
        Journal::Export(it) => export(here, it.output.as_ref()),
    }
}

/// The store, which every daemon that has run here has left.
pub(super) fn reader(here: &Here) -> Result<Box<dyn store::Reader>, Complaint> {
    if !here.places.state.join(store::DATABASE).exists() {
        // A key or a mark without a database shows that there was one.
        if here.places.state.exists() {
            store::look(&here.places.state, Some(&here.places.anchor()), false)?;
        }
        return Err(Complaint::of("this repository has no journal yet")
            .because(format!("no daemon has run here; looked in {}", here.places.state.display()))
            .next("provost up"));
    }
    Ok(store::open_reader(&here.places.state)?)
}

fn checked(here: &Here, anchor: Option<Anchor>) -> Result<(u64, Anchor), Complaint> {
    unchanged(reader(here)?.verify(anchor)?)
}

const WAYS_BACK: &str =
    "provost restore FILE with a backup, or provost restore --empty; what is there is kept beside it";

/// How many events there are and where they end, or what is wrong with them.
pub(super) fn unchanged(verdict: Verdict) -> Result<(u64, Anchor), Complaint> {
    match verdict {
        Verdict::Ok { events, head } => Ok((events, head)),
        Verdict::Tampered { first_bad_seq, what } => Err(Complaint::of("the journal has been changed")
            .because(format!("event {first_bad_seq}: {what}"))
            .next(WAYS_BACK)),
        Verdict::Truncated { anchor, head } => Err(Complaint::of("the end of the journal is missing")
            .because(format!("it was at event {} once and ends at {}", anchor.seq, head.seq))
            .next("provost restore FILE with a backup, or provost restore --as-it-is to go on with what is left")),
        Verdict::CannotCheck(why) => {
            Err(Complaint::of("the journal cannot be checked").because(why).next("provost doctor"))
        }
    }
}

fn verify(here: &Here, anchor: Option<Anchor>) -> Result<u8, Complaint> {
    match checked(here, anchor) {
        Ok((events, head)) if here.json => {
            out::json(&json!({ "ok": true, "events": events, "head": head.to_string() }))?;
        }
        Ok((events, head)) => out::line(format!("nothing wrong in {events} events\n{head}"))?,
        Err(complaint) if here.json => {
            out::json(&json!({ "ok": false, "error": complaint.text() }))?;
            return Err(Complaint::silent(FAILED));
        }
        Err(complaint) => return Err(complaint),
    }
    Ok(DONE)
}

fn head(here: &Here) -> Result<u8, Complaint> {
    let (_, head) = checked(here, None)?;
    if here.json {
        out::json(&json!({ "seq": head.seq, "anchor": head.to_string() }))?;
    } else {
        out::line(head)?;
    }
    Ok(DONE)
}

fn export(here: &Here, output: Option<&PathBuf>) -> Result<u8, Complaint> {
    let mut reader = reader(here)?;
    let Some(path) = output else {
        let mut out = io::BufWriter::new(io::stdout().lock());
        let done = written(store::export(reader.as_mut(), &mut out));
        let done = done.and_then(|_| out.flush().map_err(Complaint::writing));
        // What could not be written is not tried once more.
        let (_out, _rest) = out.into_parts();
        return done.map(|()| DONE);
    };
    let cannot = |e: io::Error| {
        Complaint::of(format!("{} cannot be written", path.display()))
            .because(e)
            .next("name a file that does not exist")
    };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    let opened = crate::system::private_file(&mut options).open(path);
    let mut file = io::BufWriter::new(opened.map_err(cannot)?);
    let events = written(store::export(reader.as_mut(), &mut file))?;
    file.flush().and_then(|()| file.get_ref().sync_all()).map_err(cannot)?;
    out::note(format!("{events} events in {}", path.display()));
    Ok(DONE)
}

fn written(done: Result<u64, StoreError>) -> Result<u64, Complaint> {
    done.map_err(|err| match err {
        StoreError::Io { source, .. } => Complaint::writing(source),
        other => other.into(),
    })
}
