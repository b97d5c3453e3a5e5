//! The identity of hosts: how a host is enrolled with its key, and which of the database's rows about hosts count.
//!
//! A row counts if it is sealed with the journal's key and vouched for: the first host needs no voucher, hosts from before
//! there were keys have the migration, and each further one has the invitation of a host that took part then. No row says
//! that a host was removed: the journal alone says it, in events that stay and that a host has signed at their places.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use super::hosts::{MACHINE_SIGNS_MAX, users_of};
use super::session::{Session, Step};
use super::signing::{HostKeys, Removal, removals};
use super::start::REMOVED;
use super::{PostgresStore, gaps, unreadable};
use crate::codec::{int, nat, parse, text};
use crate::host_keys::{self, At, Enrolled, HostKey, Invitation, KnownHost, Signer};
use crate::journal::Key;
use crate::{HostState, StoreError};
use provost_base::{Digest, EntryNo, EventSeq, HostId, HostRole, visible_name};

/// The kinds of rows of `host_key`, in their column `what`.
const FIRST: &str = "first";
const BEFORE: &str = "before";
const INVITED: &str = "invited";

/// The hosts that were removed, with the ends of the entries that say so.
type Removed = BTreeMap<HostId, At>;

/// Rows of `gone`, which earlier daemons have added, count for nothing: a host with a login could say there what never happened.
const ROWS: &str = "select left(k.host, 64), k.what, k.body, k.n, k.event, coalesce(left(h.name, 200), ''),
        exists (select from provost.host_before b where b.repo = k.repo and b.host = k.host),
        (select min(s.event) from provost.signature s join provost.event e on e.repo = s.repo and e.seq = s.event
            where s.repo = k.repo and s.host = k.host and e.seq > $2 and e.body is not null and e.body::json ->> 'host' = s.host)
    from provost.host_key k left join provost.host h on h.repo = k.repo and h.id = k.host where k.repo = $1 and k.what <> 'gone'
        and length(k.body) <= 8192 and k.n >= 0 and k.event >= 0";

/// A row that says who a host is.
pub(super) struct Told {
    host: HostId,
    what: String,
    body: String,
    at: At,
    machine: String,
    was_before: bool,
    /// The first event in the journal, behind what this daemon has checked, that names the host, and is signed in its name. A row of a signature
    /// alone is no evidence: each login can add one where no event is, or at an event of another host.
    signed_first: Option<EventSeq>,
}

impl Told {
    /// Reads a row; `None` where it names no host, as any login can write one.
    fn read(row: &Row) -> Result<Option<Self>, StoreError> {
        let word = |at: usize| row.try_get::<_, String>(at).map_err(unreadable);
        let number = |at: usize| -> Result<u64, StoreError> { nat(row.try_get(at).map_err(unreadable)?) };
        let first: Option<i64> = row.try_get(7).map_err(unreadable)?;
        let Ok(host) = word(0)?.parse() else { return Ok(None) };
        Ok(Some(Self {
            host,
            what: word(1)?,
            body: word(2)?,
            at: At { n: EntryNo(number(3)?), event: EventSeq(number(4)?) },
            machine: visible_name(&word(5)?, MACHINE_SIGNS_MAX),
            was_before: row.try_get(6).map_err(unreadable)?,
            signed_first: first.map(nat).transpose()?.map(EventSeq),
        }))
    }
}

/// The body of such a row: what it says, sealed with the journal's key, so that who can write the database alone enrols no host.
#[derive(serde::Serialize, serde::Deserialize)]
struct Sealed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enrolled: Option<Enrolled>,
    seal: Digest,
}

fn seal(
    key: &Key,
    host: HostId,
    what: &str,
    at: At,
    enrolled: Option<&Enrolled>,
) -> Result<Digest, StoreError> {
    let (n, event, enrolled) = (at.n.0.to_le_bytes(), at.event.0.to_le_bytes(), text(&enrolled)?);
    let host = host.to_string();
    let fields: [&[u8]; 5] = [&n, &event, host.as_bytes(), what.as_bytes(), enrolled.as_bytes()];
    Ok(key.mac(b"provost-host-key-v1", &[Digest::of_fields(fields).as_bytes()]))
}

fn enrolling_step(
    repo: i32,
    key: &Key,
    (host, what): (HostId, &'static str),
    at: At,
    enrolled: Enrolled,
) -> Result<Step, StoreError> {
    let seal = seal(key, host, what, at, Some(&enrolled))?;
    row_step(repo, (host, what), at, &Sealed { enrolled: Some(enrolled), seal })
}

fn row_step(
    repo: i32,
    (host, what): (HostId, &'static str),
    at: At,
    body: &Sealed,
) -> Result<Step, StoreError> {
    let sql =
        "insert into provost.host_key (repo, host, what, n, event, body) values ($1, $2, $3, $4, $5, $6)
               on conflict (repo, host, what) do nothing";
    Ok(Step::new(sql)
        .with(repo)
        .with(host.to_string())
        .with(what)
        .with(int(at.n.0)?)
        .with(int(at.event.0)?)
        .with(text(body)?))
}

fn is_sealed(key: &Key, it: &Told, enrolled: Option<&Enrolled>) -> Result<bool, StoreError> {
    let Ok(sealed) = parse::<Sealed>(&it.body) else { return Ok(false) };
    Ok(sealed.seal == seal(key, it.host, &it.what, it.at, enrolled)?)
}

/// The server's error about a text that is no JSON names no row.
fn named(err: StoreError) -> StoreError {
    match err {
        StoreError::Database(says) if says.contains("(22P02)") || says.contains("(22P05)") => {
            StoreError::damaged(format!(
                "the text of an event in the table `provost.event` is no JSON ({says}): `provost journal verify` names the event; have the database's \
             administrator put it back from a copy of the database, or take it out if no host has written it"
            ))
        }
        err => err,
    }
}

/// Where the first host was enrolled.
pub(super) fn first_of(rows: &[Told]) -> Option<At> {
    rows.iter().filter(|it| matches!(&*it.what, FIRST | BEFORE)).map(|it| it.at).min_by_key(|it| it.event)
}

/// The fingerprint of the key in such a row, and what its host was invited for, to be shown.
pub(super) fn shown(body: Option<&str>) -> Option<(String, HostRole)> {
    parse::<Sealed>(body?).ok()?.enrolled.map(|it| (it.key.fingerprint(), it.role()))
}

impl PostgresStore {
    /// Enrols this host where it is not yet, in the transaction that has the repository's row; with what the table of hosts says of it. Returns whether
    /// it is being drained.
    ///
    /// # Errors
    /// [`StoreError::Key`] where its key is missing or another one, or it has no invitation.
    pub(super) fn enrol(
        &mut self,
        at: At,
        told: Option<(HostState, Option<String>)>,
    ) -> Result<bool, StoreError> {
        let (repo, host) = (self.repo, self.host());
        let Self { keys, session, key, .. } = self;
        let rows = keys.learn(session, repo, key)?;
        let no = |why: String| Err(StoreError::Key(why.into()));
        if keys.known.get(host).is_some_and(|it| it.gone.is_some()) {
            return Err(StoreError::Database(REMOVED.into()));
        }
        if let Some((n, what)) = &keys.known.refused {
            return Err(StoreError::BrokenLog { n: *n, what: what.as_str().into() });
        }
        keys.begin(at, &rows);
        let is_enrolled = rows.iter().any(|it| it.host == host);
        // A host from before there were keys has no key until its first start after that, and its removal is in the journal, too.
        let took_part_before = !is_enrolled && was_before(session, repo, host)?;
        let users = users_of(session, repo)?;
        let state =
            told.map(|(state, request)| keys.counted_among(&users, (host, state), request.as_deref()));
        let is_out = match state {
            Some(HostState::Removing) => true,
            Some(HostState::Removed) => !is_enrolled && !took_part_before,
            _ => false,
        };
        if is_out || keys.removed.contains(&host) {
            return Err(StoreError::Database(REMOVED.into()));
        }
        if is_enrolled {
            // Only now: the transaction that has enrolled it may not have been committed.
            keys.known.invitation = None;
            let file = keys.dir.join(host_keys::HOST_KEY);
            match (&keys.own, keys.known.get(host)) {
                (Some(own), Some(known)) if own.key() == known.key => {}
                (None, _) => {
                    return no(format!(
                        "{} is missing, with which this host signs what it writes: bring it back; where it is lost, have another host \
                         remove this one, move the state folder away and run `provost host join`",
                        file.display()
                    ));
                }
                _ => {
                    return no(format!(
                        "another key than that in {} is enrolled for this host: another machine may write in its name; compare the \
                         fingerprints of `provost host list` on the other hosts",
                        file.display()
                    ));
                }
            }
        } else {
            keys.enrol_new(session, (repo, key), at, &rows)?;
        }
        // The folder knows it once everything was checked: what is refused now must not be believed later.
        (keys.known.here, keys.known.repo) = (Some(host), Some(repo));
        Ok(state == Some(HostState::Draining))
    }
}

/// Checks whether a host took part before there were keys. No login writes that table.
///
/// # Errors
/// When the database does not answer.
pub(super) fn was_before(session: &mut Session, repo: i32, host: HostId) -> Result<bool, StoreError> {
    let sql = "select 1 from provost.host_before where repo = $1 and host = $2";
    Ok(!session.rows(Step::new(sql).with(repo).with(host.to_string()))?.is_empty())
}

impl HostKeys {
    /// Takes over what the database says of hosts that are not known, as far as it is vouched for, and from the journal which hosts were removed.
    ///
    /// # Errors
    /// When the database does not answer, and [`StoreError::BrokenLog`] where the text of a removal was taken away.
    pub(super) fn learn(
        &mut self,
        session: &mut Session,
        repo: i32,
        key: &Key,
    ) -> Result<Vec<Told>, StoreError> {
        if self.known.repo.is_some_and(|it| it != repo) {
            return Err(StoreError::Database(
                format!(
                    "the repository {:?} in it is not the one of this state folder, whose name was given to it: have an administrator look at \
                     the table `provost.repo`",
                    self.known.name
                )
                .into(),
            ));
        }
        gaps::must_be_empty(session, repo, key)?;
        let step = Step::new(ROWS).with(repo).with(int(self.known.checked.event.0)?);
        let rows = session.rows(step).map_err(named)?;
        let mut rows =
            rows.iter().filter_map(|it| Told::read(it).transpose()).collect::<Result<Vec<_>, _>>()?;
        for it in &rows {
            self.machines.insert(it.host, it.machine.clone());
        }
        // The place in a row is its writer's word, so of two hosts with one invitation the one that has signed first came first.
        let signed = |it: &Told| it.signed_first.map_or(u64::MAX, |it| it.0);
        rows.sort_by_key(|it| (it.what == INVITED, it.what != FIRST, signed(it), it.at.event, it.host));
        self.learn_roles(key, &rows)?;
        let begin = self.known.from.or_else(|| first_of(&rows)).unwrap_or_default();
        let removals =
            removals(session, (repo, key), self.known.checked.event.max(begin.event)).map_err(named)?;
        self.learn_members(key, &rows, &removals)?;
        Ok(rows)
    }

    /// Learns which hosts are members. Removals are gone through in the journal's order: who may remove depends on who was removed before, and
    /// so does who may invite.
    fn learn_members(&mut self, key: &Key, rows: &[Told], removals: &[Removal]) -> Result<(), StoreError> {
        let before = self.known.hosts.clone();
        let learned = self.members_after(key, rows, (&before, removals));
        if learned.is_err() {
            // Hosts that were let in on the way are not kept.
            self.known.hosts = before;
        }
        learned
    }

    fn members_after(
        &mut self,
        key: &Key,
        rows: &[Told],
        (before, removals): (&[KnownHost], &[Removal]),
    ) -> Result<(), StoreError> {
        let mut gone = Removed::new();
        for it in removals {
            self.admit_all(key, rows, (before, &gone))?;
            if let Some((host, at)) = self.proved(it)? {
                gone.entry(host).or_insert(at);
            }
        }
        self.admit_all(key, rows, (before, &gone))?;
        // A host of this folder that has no key yet is not among the known ones.
        self.removed.extend(gone.into_keys());
        Ok(())
    }

    /// Begins with the hosts that were known, and adds those for which such a host, or one that was added, vouches.
    fn admit_all(
        &mut self,
        key: &Key,
        rows: &[Told],
        (before, gone): (&[KnownHost], &Removed),
    ) -> Result<(), StoreError> {
        self.known.hosts = before.to_vec();
        gone.iter().for_each(|(host, at)| self.has_gone(*host, *at));
        // One may be invited by one that comes behind it.
        for _ in 0..rows.len() {
            let count = self.known.hosts.len();
            for it in rows {
                if self.known.get(it.host).is_none()
                    && let Some(host) = self.admitted(key, it)?
                {
                    self.known.hosts.push(KnownHost { gone: gone.get(&it.host).copied(), ..host });
                }
            }
            if self.known.hosts.len() == count {
                break;
            }
        }
        Ok(())
    }

    /// An earlier release has kept no roles of those that it knew. A host's is that of the invitation by which it is known, and of no other one:
    /// who has one for a machine that only works must not make a full host such a machine.
    fn learn_roles(&mut self, key: &Key, rows: &[Told]) -> Result<(), StoreError> {
        for it in rows.iter().filter(|it| it.what == INVITED) {
            let Ok(Sealed { enrolled: Some(enrolled), .. }) = parse::<Sealed>(&it.body) else { continue };
            let Some((invitation, _)) = &enrolled.invited else { continue };
            let by = self.known.get(invitation.by).map(|by| by.key);
            let is_signed = by.is_some_and(|by| invitation.is_of(&self.print, &by));
            if invitation.role.is_full() || !is_signed || !is_sealed(key, it, Some(&enrolled))? {
                continue;
            }
            let is_its = |known: &&mut KnownHost| {
                known.host == it.host
                    && known.key == enrolled.key
                    && known.invited_with == Some(invitation.key)
            };
            self.known.hosts.iter_mut().filter(is_its).for_each(|known| known.role = invitation.role);
        }
        Ok(())
    }

    fn admitted(&self, key: &Key, it: &Told) -> Result<Option<KnownHost>, StoreError> {
        let Ok(Sealed { enrolled: Some(enrolled), .. }) = parse::<Sealed>(&it.body) else { return Ok(None) };
        if !is_sealed(key, it, Some(&enrolled))? || !enrolled.holds(&self.print, it.host) {
            return Ok(None);
        }
        let let_in = |by: &HostKey| self.known.hosts.iter().filter(|it| it.invited_with == Some(*by)).count();
        let is_admitted = match (&*it.what, &enrolled.invited) {
            (FIRST, None) => self.known.hosts.is_empty(),
            (BEFORE, None) => it.was_before,
            (INVITED, Some((invitation, _))) => {
                // A host that was removed knows the invitation with which it came.
                let came_with = self.known.hosts.iter().filter(|it| it.invited_with == Some(invitation.key));
                let is_before = |gone: At| it.signed_first.is_some_and(|at| at < gone.event);
                came_with.filter_map(|it| it.gone).all(is_before)
                    && self.known.get(invitation.by).is_some_and(|by| {
                        by.gone.is_none_or(is_before)
                            && by.role.is_full()
                            && invitation.is_of(&self.print, &by.key)
                            && let_in(&invitation.key) < invitation.most as usize
                    })
            }
            _ => false,
        };
        let invited_with = enrolled.invited.as_ref().map(|it| it.0.key);
        let (key, role) = (enrolled.key, enrolled.role());
        Ok(is_admitted.then_some(KnownHost { host: it.host, key, invited_with, role, gone: None }))
    }

    /// Entries from before the first host had a key need no signature. A folder that does not know that place believes the rows about it,
    /// and checks everything from there on.
    fn begin(&mut self, at: At, rows: &[Told]) {
        if self.known.from.is_none() {
            let from = first_of(rows).unwrap_or(at);
            (self.known.from, self.known.checked) = (Some(from), from);
        }
    }

    fn enrol_new(
        &mut self,
        session: &mut Session,
        (repo, key): (i32, &Key),
        at: At,
        rows: &[Told],
    ) -> Result<(), StoreError> {
        let host = self.host;
        let sql = "select host from provost.host_before where repo = $1";
        let before = session.rows(Step::new(sql).with(repo))?;
        let is_it = |row: &Row| row.try_get::<_, String>(0).is_ok_and(|it| it == host.to_string());
        let invitation = self.known.invitation.clone();
        let what = if before.iter().any(is_it) {
            BEFORE
        } else if before.is_empty() && rows.is_empty() {
            FIRST
        } else {
            INVITED
        };
        let invited = match (what, &invitation) {
            (INVITED, None) => {
                return Err(StoreError::Key(
                    "this host has not joined the repository, and a copied journal key is no invitation: on a host of it, run `provost \
                     host export-key FILE`, and here `provost host join --key-file FILE`"
                        .into(),
                ));
            }
            (INVITED, Some((it, seed))) => Some((it, Signer::read(seed)?)),
            _ => None,
        };
        // The key first: a host that is enrolled without one never starts again.
        if self.own.is_none() {
            self.own = Some(host_keys::make_own_key(&self.dir, host)?);
        }
        let Some(own) = &self.own else { return Ok(()) };
        let invited = invited.as_ref().map(|(it, secret)| (*it, secret));
        let enrolled = Enrolled::of(&self.print, host, own, invited);
        session.rows(enrolling_step(repo, key, (host, what), at, enrolled)?)?;
        self.learn(session, repo, key)?;
        match self.known.get(host) {
            Some(_) => Ok(()),
            None => {
                let why = invitation.and_then(|(it, _)| self.lets_no_one_in(&it));
                let why = why.unwrap_or_else(|| "the invitation does not hold".into());
                Err(StoreError::Key(
                    format!("{why}: invite again on a full host that takes part, move this state folder away, and join with that").into(),
                ))
            }
        }
    }

    /// Returns why an invitation lets no further machine in, by what was learned; `None` if it does.
    pub(super) fn lets_no_one_in(&self, it: &Invitation) -> Option<String> {
        let came_with = || self.known.hosts.iter().filter(|known| known.invited_with == Some(it.key));
        let name = || self.named(it.by);
        match self.known.get(it.by) {
            None => Some(format!("the host {} that has invited is no member", name())),
            Some(by) if by.gone.is_some() => {
                Some(format!("the host {} that has invited was removed", name()))
            }
            Some(by) if !by.role.is_full() => {
                Some(format!("the host {} that has invited only works", name()))
            }
            // A host that was removed knows the invitation with which it came.
            Some(_) if came_with().any(|it| it.gone.is_some()) => {
                Some("a machine that came with this invitation was removed, so it lets no one in".into())
            }
            Some(_) if came_with().count() >= it.most as usize => {
                Some(format!("the invitation has let in as many machines as it may ({})", it.most))
            }
            Some(_) => None,
        }
    }
}
