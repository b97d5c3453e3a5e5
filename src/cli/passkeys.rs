//! `provost passkey`: the passkeys whose signatures answer approvals.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, out, up};
use provost_api::wire;
use provost_client::passkeys::{self, PASSKEYS_FILE, install};
use provost_config::places::SYSTEM_CONFIG;

/// `provost passkey`.
#[derive(Subcommand, Debug)]
pub(super) enum Passkeys {
    /// Print a code at a terminal, with which one passkey can be enrolled
    #[command(after_help = "Examples:\n  provost passkey add\n  provost passkey add --even-so")]
    Add(Add),
    /// List the passkeys, and how each was enrolled
    #[command(after_help = "Examples:\n  provost passkey list\n  provost passkey list --json")]
    List,
    /// Revoke a passkey at a terminal; its signatures no longer answer anything. The last one: the same as reset
    #[command(after_help = "Examples:\n  provost passkey revoke phone\n  provost passkey revoke phone --yes")]
    Revoke(Revoke),
    /// Remove all passkeys at a terminal; until the daemon has run for 24 hours no passkey counts, and no new one either
    #[command(after_help = "Example:\n  provost passkey reset --yes")]
    Reset(Reset),
    /// As root: copy passkeys from a user's list to root's list, which no process of the user can change
    #[command(
        after_help = "Example:\n  sudo provost passkey install --from ~ann/.config/provost/passkeys.toml phone"
    )]
    Install(Install),
}

/// `provost passkey add`.
#[derive(Args, Debug)]
pub(super) struct Add {
    /// Print the code for the first passkey also while a worker or an agent works, which could take the code
    #[arg(long)]
    even_so: bool,
}

/// `provost passkey revoke`.
#[derive(Args, Debug)]
pub(super) struct Revoke {
    /// The passkey's name, or its id
    passkey: String,
    /// Revoke it also if it is the last one, after which none counts until the daemon has run for 24 hours
    #[arg(long)]
    yes: bool,
}

/// `provost passkey reset`.
#[derive(Args, Debug)]
pub(super) struct Reset {
    /// Do not ask for confirmation
    #[arg(long, required = true)]
    yes: bool,
}

/// `provost passkey install`.
#[derive(Args, Debug)]
pub(super) struct Install {
    /// The user's list of passkeys
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from: PathBuf,
    /// The passkeys to take, by their names
    #[arg(required = true)]
    names: Vec<String>,
}

pub(super) fn passkey(here: &RepoContext, asked: Passkeys) -> Result<u8, CliError> {
    if let Passkeys::Install(it) = asked {
        return install_for_root(here, &it);
    }
    up::start_if_absent(here, true)?;
    match asked {
        Passkeys::Add(it) => add(here, &it),
        Passkeys::List => list(here),
        Passkeys::Revoke(it) => revoke(here, it),
        Passkeys::Reset(Reset { yes: _ }) => reset(here),
        Passkeys::Install(_) => Ok(DONE),
    }
}

/// Checks whether the list in force has a passkey, or cannot be read.
pub(super) fn any_listed(here: &RepoContext) -> bool {
    passkeys::any_listed(&here.places.config, &PathBuf::from(SYSTEM_CONFIG).join(PASSKEYS_FILE))
}

fn add(here: &RepoContext, asked: &Add) -> Result<u8, CliError> {
    let request = wire::PasskeyCode { even_so: asked.even_so };
    let made = wait_for(async { Ok(here.daemon(None).await?.passkey_code(&request).await?) })?;
    if here.json {
        out::json(&made)?;
        return Ok(DONE);
    }
    let letters: Vec<char> = made.code.chars().collect();
    if let Some(until) = wait_for(async { Ok(here.daemon(None).await?.passkeys().await?) })?.waits_until {
        out::note(format!(
            "all passkeys were given up: no new one counts until {}, if the daemon runs until then; make a code then",
            short_time(&until)
        ));
    }
    let groups: Vec<String> = letters.chunks(4).map(|it| it.iter().collect()).collect();
    out::line(groups.join("-"))?;
    out::note(format!("the code is good once, for {} minutes", made.good_s / 60));
    match made.origins.is_empty() {
        true => out::note("no page is open that could use it; open one, and make another code: provost web"),
        false => {
            let pages: Vec<String> = made.origins.iter().map(|it| format!("{it}/passkeys")).collect();
            out::note(format!("type it into the page of passkeys: {}", pages.join(" or ")));
        }
    }
    out::note(
        "once a passkey is enrolled, rules that say passkey-if-enrolled take no other answer: no terminal, and no key of an approver \
         (client:approver)",
    );
    if !made.vouch {
        out::note(
            "this daemon has looked for agents of this repository alone; `provost` lists those of your other ones, which could take the code as \
             well",
        );
    }
    if made.vouch {
        out::note("a passkey that you have already has to sign for the new one");
    }
    Ok(DONE)
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let all = wait_for(async { Ok(here.daemon(None).await?.passkeys().await?) })?;
    if here.json {
        out::json(&all)?;
        return Ok(DONE);
    }
    if let Some(problem) = &all.problem {
        out::line(format!("no passkey counts: {}", out::plain(problem)))?;
    }
    if let Some(until) = &all.waits_until {
        out::line(format!("all passkeys were given up, and none counts until {}", short_time(until)))?;
    }
    if let Some(leapt) = all.leapt_s {
        out::note(format!(
            "that counts the time that the daemon runs; the clock went on {} min further than that, because the daemon did not run or the clock \
             was set",
            leapt / 60
        ));
    }
    if all.passkeys.is_empty() {
        out::note("there are no passkeys; see provost passkey add --help");
        return Ok(DONE);
    }
    let mut rows = vec![["NAME", "FOR", "KIND", "KEY", "ADDED", "USED", "BY"].map(String::from)];
    rows.extend(all.passkeys.iter().map(|it| {
        let kind = if it.synced { "synced by its manager" } else { "stays on its device" };
        let by = it
            .revoked_at
            .as_deref()
            .map_or_else(|| it.source.clone(), |at| format!("revoked {}", short_time(at)));
        let time = |at: &Option<String>| at.as_deref().map(short_time).unwrap_or_else(|| "never".into());
        let (name, rp) = (out::one_line(&it.name, 60), out::one_line(&it.rp_id, 60));
        let key = format!("{} {}", it.algorithm, it.fingerprint.get(..12).unwrap_or_default());
        [name, rp, kind.into(), key, time(&it.added_at), time(&it.used_at), by]
    }));
    out::text_as_is(&out::table(&rows))?;
    if all.of_root {
        out::note("the list is root's; only root changes it");
    }
    Ok(DONE)
}

fn revoke(here: &RepoContext, asked: Revoke) -> Result<u8, CliError> {
    let request = wire::RevokePasskey { passkey: asked.passkey };
    let revoked = wait_for(async {
        let client = here.daemon(None).await?;
        let known = client.passkeys().await?;
        let unrevoked: Vec<_> = known.passkeys.iter().filter(|it| it.revoked_at.is_none()).collect();
        if let [last] = unrevoked[..]
            && !asked.yes
            && [&last.name, &last.id].contains(&&request.passkey)
        {
            return Err(CliError::of(format!("{} is your last passkey", out::one_line(&last.name, 60)))
                .because("once it is revoked, no passkey counts until the daemon has run for 24 hours, and no new one either")
                .next("enrol another one first: provost passkey add; or do it all the same, with --yes"));
        }
        Ok(client.revoke_passkey(&request).await?)
    })?;
    if here.json {
        out::json(&revoked)?;
    } else {
        out::line(format!("{} counts no more", out::one_line(&revoked.name, 60)))?;
    }
    Ok(DONE)
}

fn reset(here: &RepoContext) -> Result<u8, CliError> {
    let done = wait_for(async { Ok(here.daemon(None).await?.reset_passkeys().await?) })?;
    if here.json {
        out::json(&done)?;
    } else {
        out::line(format!(
            "all passkeys are given up, and none counts until {}",
            short_time(&done.waits_until)
        ))?;
    }
    Ok(DONE)
}

fn install_for_root(here: &RepoContext, asked: &Install) -> Result<u8, CliError> {
    let target = PathBuf::from(SYSTEM_CONFIG).join(PASSKEYS_FILE);
    let names = install(&asked.from, &asked.names, &target).map_err(|why| {
        CliError::of("the passkeys are not installed")
            .because(why)
            .next("sudo provost passkey install --help")
    })?;
    if here.json {
        let listed: Vec<_> = names
            .iter()
            .map(|(name, fingerprint)| serde_json::json!({ "name": name, "fingerprint": fingerprint }))
            .collect();
        out::json(&serde_json::json!({ "file": target, "passkeys": listed }))?;
    } else {
        for (name, fingerprint) in &names {
            out::line(format!("{} lists {}, fingerprint {fingerprint}", target.display(), out::plain(name)))?;
        }
        out::note(
            "compare each fingerprint with the one that `provost passkey list --json` shows, and the time of its enrolment with what you \
             remember",
        );
        out::note("daemons that run read it when a passkey is used next; provost daemon reload, for rules");
    }
    Ok(DONE)
}
