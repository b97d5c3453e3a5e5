//! `claim`, `release`: claims on whole files, as in Agent Protocol.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::complaint::DONE;
use super::here::wait_for;
use super::speaker::Speaker;
use super::tasks::short_time;
use super::{Complaint, Here, out};
use provost_api::wire;
use provost_client::ClientError;

/// `provost claim`.
#[derive(Args, Debug)]
pub(super) struct Claim {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The task of Agent Protocol that the claim is for
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    #[command(flatten)]
    speaker: Speaker,
}

/// `provost release`.
#[derive(Args, Debug)]
pub(super) struct Release {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    speaker: Speaker,
}

pub(super) fn claim(here: &Here, asked: Claim) -> Result<u8, Complaint> {
    let request = wire::ClaimFile { path: here.path(&asked.file)?, task: asked.task };
    let done = wait_for(async {
        let client = asked.speaker.daemon(here).await?;
        match client.claim(&request).await {
            // A session is of the crew as soon as it wants something of it.
            Err(ClientError::Refused { fault, .. }) if fault.error == "not_in_crew" => {
                let join = wire::JoinCrew { tool: "provost".into(), role: None, capabilities: Vec::new() };
                client.join_crew(&join).await?;
                Ok(client.claim(&request).await?)
            }
            done => Ok(done?),
        }
    })?;
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    out::line(out::one_line(&format!("claimed: {}", done.file), 4_200))?;
    for warning in &done.warnings {
        out::note(out::one_line(&format!("warning: {warning}"), 800));
    }
    Ok(DONE)
}

pub(super) fn list(here: &Here) -> Result<u8, Complaint> {
    let held = wait_for(async { Ok(here.daemon(None).await?.claims(&wire::ClaimsQuery::default()).await?) })?;
    if here.json {
        return out::json(&held).map(|()| DONE);
    }
    if held.is_empty() {
        out::note("no file is claimed");
        return Ok(DONE);
    }
    let mut rows = vec![["FILE", "STATE", "AGENT", "SINCE"].map(String::from)];
    rows.extend(held.iter().map(|it| {
        let since = it.since.as_deref().map_or_else(|| "-".to_owned(), short_time);
        [out::one_line(&it.file, 400), out::one_line(&it.how, 20), out::one_line(&it.holder, 60), since]
    }));
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}

pub(super) fn release(here: &Here, asked: Release) -> Result<u8, Complaint> {
    let request = wire::ReleaseClaim { path: here.path(&asked.file)? };
    let done = wait_for(async { Ok(asked.speaker.daemon(here).await?.release_claim(&request).await?) })?;
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    let said = if done.released { "released" } else { "was not yours, nothing released" };
    out::line(out::one_line(&format!("{said}: {}", request.path), 4_200)).map(|()| DONE)
}
