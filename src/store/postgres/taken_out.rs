//! Requests of people that a host is taken out. They stand in the database, where each login can write, so they count if a host has signed them
//! that takes part and may say so.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::session::Step;
use super::signing::HostKeys;
use crate::codec::{parse, text};
use crate::host_keys::{KnownHosts, Signature, own_key};
use crate::journal::Key;
use crate::{HostRow, HostState, StoreError, TakenOut, files};
use provost_base::{Digest, HostId};
use provost_domain::{UserRole, Users};

/// The beginning of these facts' keys; the host that is taken out follows.
const REQUEST: &str = "out:";
const TAKES_OUT: &[u8] = b"provost-host-takes-out-v1";

/// The host that has asked, and its signature.
#[derive(Serialize, Deserialize)]
struct Request {
    by: HostId,
    signed: Signature,
}

/// Returns the host that a request names as its author.
pub(super) fn asker(request: &str) -> Option<HostId> {
    parse::<Request>(request).ok().map(|it| it.by)
}

fn signed_text(print: &Digest, host: HostId, state: HostState) -> Vec<u8> {
    [TAKES_OUT, print.as_bytes(), host.to_string().as_bytes(), state.as_str().as_bytes()].concat()
}

/// Returns the statement that has this host ask for another one to get a state.
///
/// # Errors
/// [`StoreError::Key`] without the keys of a host that may.
pub(super) fn request_step(
    repo: i32,
    (dir, name): (&Path, &str),
    (host, state): (HostId, HostState),
) -> Result<Step, StoreError> {
    let none = || {
        StoreError::Key(
            "this state folder has no key of a host, with which it would say so: do it on a machine that takes part"
                .into(),
        )
    };
    let (by, own) = own_key(dir, None)?.ok_or_else(none)?;
    let print = Key::new(&files::journal_key(dir)?.ok_or_else(none)?).fingerprint();
    let known = KnownHosts::of(dir, name, by)?.ok_or_else(none)?;
    if by != host && !known.role_of(by).is_full() {
        let why =
            "this machine only works, and takes no other one out: do it on a full host (`provost host list`)";
        return Err(StoreError::Key(why.into()));
    }
    let request = Request { by, signed: own.sign(&signed_text(&print, host, state)) };
    let sql = "insert into provost.meta (repo, id, body) values ($1, $2, $3)
               on conflict (repo, id) do update set body = excluded.body";
    Ok(Step::new(sql).with(repo).with(format!("{REQUEST}{host}")).with(text(&request)?))
}

/// Returns why a host is not taken out; `None` if it may be. The daemons look at most of this once more.
pub(super) fn why_not(hosts: &[HostRow], users: &Users, (it, how): (&HostRow, TakenOut)) -> Option<String> {
    let (host, id) = (it.daemon.host, it.daemon.host.short());
    let own = hosts.iter().find(|it| it.is_here);
    if own.is_some_and(|it| matches!(it.state, HostState::Removed | HostState::Removing)) {
        return Some("this machine was removed itself, and no daemon goes by what it asks for".into());
    }
    if own.is_some_and(|own| !users.may_take_out(own.daemon.host, host)) {
        return Some(
            "the user of this machine is no admin, who takes others out: see provost user list".into(),
        );
    }
    // A row without a key is of no host that could start.
    let stays = |it: &&HostRow| {
        it.daemon.host != host
            && it.key.is_some()
            && !matches!(it.state, HostState::Removed | HostState::Removing | HostState::Draining)
    };
    let is_admin = |it: &HostRow| it.role.is_full() && users.role_at(it.daemon.host) == UserRole::Admin;
    let frees = |it: &HostRow| {
        it.daemon.host != host
            && it.role.is_full()
            && matches!(it.state, HostState::Live | HostState::Draining)
    };
    if how == TakenOut::AtOnce && !hosts.iter().any(frees) {
        return Some(format!(
            "{id} is the only host whose daemon runs: no other one would free what it holds"
        ));
    }
    if !hosts.iter().filter(stays).any(|it| it.role.is_full()) && it.role.is_full() {
        return Some(format!(
            "{id} is the only host that does not only work: no one could use the repository afterwards. To leave the database, \
             use `provost store move --to folder` there"
        ));
    }
    if is_admin(it) && !hosts.iter().filter(stays).any(is_admin) {
        return Some(format!(
            "{id} is the host of the only admin: no one could change users afterwards. Make another user an admin first, with \
             `provost user role`"
        ));
    }
    (how == TakenOut::Drained && it.state != HostState::Live)
        .then(|| format!("the host {id} is {}: its daemon has to run to be drained", it.state.as_str()))
}

/// Returns why a user with this role should not invite machines; `None` if they may.
pub(super) fn why_not_invite(role: UserRole) -> Option<String> {
    (role < UserRole::Admin).then(|| {
        format!(
            "the user of this machine is no admin, who invites others: it has the role {} (provost user list)",
            role.as_str()
        )
    })
}

impl HostKeys {
    /// Returns the state of a host that counts: one that the table says and no host has asked for is the one from before. A host that the journal
    /// removes is removed, and is not removed once more because of what the table says.
    pub(super) fn counted(&self, host: HostId, state: HostState, request: Option<&str>) -> HostState {
        let known = self.known.get(host);
        match state {
            _ if known.is_some_and(|it| it.gone.is_some()) => HostState::Removed,
            HostState::Removing | HostState::Draining if !self.is_asked_for(host, state, request) => {
                HostState::Live
            }
            HostState::Removed if known.is_some() => HostState::Down,
            it => it,
        }
    }

    /// Returns the state of a host that counts for daemons, which know the users: a request of a host whose user may not take that host out counts
    /// for nothing.
    pub(super) fn counted_among(
        &self,
        users: &Users,
        (host, state): (HostId, HostState),
        request: Option<&str>,
    ) -> HostState {
        let may = || request.and_then(asker).is_some_and(|by| users.may_take_out(by, host));
        match self.counted(host, state, request) {
            HostState::Removing | HostState::Draining if !may() => HostState::Live,
            it => it,
        }
    }

    fn is_asked_for(&self, host: HostId, state: HostState, request: Option<&str>) -> bool {
        let Some(Ok(Request { by, signed })) = request.map(parse) else { return false };
        let asker = self.known.get(by).filter(|it| it.gone.is_none() && self.may_remove(by, host));
        asker.is_some_and(|it| signed.is_of(&it.key, &signed_text(&self.print, host, state)))
    }
}
