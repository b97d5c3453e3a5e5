//! Hosts of a repository as the database has them: for lists, and for one more host that joins.

use std::path::Path;
use std::sync::Arc;

use super::address;
use super::bounds::in_row;
use super::remembered::{Newest, Remembered};
use super::roots;
use super::schema;
use super::session::{Place, Purpose, Session, Step};
use super::signing::HostKeys;
use super::{enrolling, taken_out, unreadable};
use crate::codec::{nat, parse};
use crate::database::IN_DATABASE;
use crate::host_keys::KnownHosts;
use crate::journal::Key;
use crate::key_file::open_key;
use crate::{Database, HostRow, HostState, Hosts, Joined, StoreError, TakenOut, files};
use provost_base::limits::HOSTS_MAX;
use provost_base::{HostId, Secret, visible_name};
use provost_domain::{Event, HOST_REMOVED, Users};

const HOSTS: &str = "select left(h.id, 64), h.inc, left(h.name, 200), left(h.version, 200), left(h.state, 64), h.clean,
        case when isfinite(h.beat) then (extract(epoch from clock_timestamp() - h.beat) * 1000)::bigint else 0 end,
        case when h.head >= 0 then greatest(r.n - h.head, 0) else 0 end, lower(h.formats), case when upper(h.formats) > 0 then upper(h.formats) - 1 end,
        (select body from provost.host_key k where k.repo = h.repo and k.host = h.id and k.what <> 'gone' and length(k.body) <= 8192),
        (select m.body from provost.meta m where m.repo = h.repo and m.id = 'out:' || h.id and length(m.body) <= 1024), r.id
    from provost.host h join provost.repo r on r.id = h.repo where r.name = $1 order by h.name, h.id";

/// The most characters of a machine's name or release that are shown.
pub(super) const MACHINE_SIGNS_MAX: usize = 80;

/// A row of the table of hosts, which each login can write.
struct Told {
    row: HostRow,
    /// What stands there for a request that the host is taken out.
    request: Option<String>,
    repo: i32,
}

/// All hosts of the repository, removed ones last.
///
/// # Errors
/// When the database does not answer.
pub(crate) fn hosts(dir: &Path, database: &Database) -> Result<Hosts, StoreError> {
    let mut session = Session::new(address::servers(database, "provost/hosts")?, Purpose::Read)?;
    session.follow(&Newest::of(dir))?;
    schema::check(&mut session)?;
    let mut rows = rows(&mut session, &database.name)?;
    if rows.is_empty() {
        // A repository that was moved here has no host before the first start.
        number_of(&mut session, &database.name)?;
    }
    let note = match judge(&mut session, dir, &database.name, &mut rows) {
        Ok(()) => None,
        // People need the list then: with what this folder knows.
        Err(err @ (StoreError::BrokenLog { .. } | StoreError::Damaged(_))) => Some(err.to_string().into()),
        Err(err) => return Err(err),
    };
    Ok(Hosts { rows: in_order(rows), note })
}

/// Returns the number of the repository with this name.
///
/// # Errors
/// [`StoreError::Database`] if there is none.
fn number_of(session: &mut Session, name: &str) -> Result<i32, StoreError> {
    let found =
        session.rows(Step::new("select id from provost.repo where name = $1").with(name.to_owned()))?;
    let row = found.first().ok_or_else(|| no_repository(name))?;
    row.try_get(0).map_err(unreadable)
}

fn no_repository(name: &str) -> StoreError {
    StoreError::Database(
        format!("the database has no repository {name:?} yet: its first host makes it with `provost up`; look at `[store] name` and `url`")
            .into(),
    )
}

/// The same over a session that is there, for a decision by them.
///
/// # Errors
/// As for [`hosts`], and [`StoreError::BrokenLog`] where the journal does not say who was removed.
pub(super) fn all_rows(
    session: &mut Session,
    dir: &Path,
    database: &Database,
) -> Result<Vec<HostRow>, StoreError> {
    let mut rows = rows(session, &database.name)?;
    judge(session, dir, &database.name, &mut rows)?;
    Ok(in_order(rows))
}

/// Gives each host the state that counts: of a removal only the journal's signed event does, and of a request only that of a host that may say so,
/// by the users of the table.
/// The rows alone are all that a folder has which takes no part yet.
fn judge(session: &mut Session, dir: &Path, name: &str, rows: &mut [Told]) -> Result<(), StoreError> {
    let Some(repo) = rows.first().map(|it| it.repo) else { return Ok(()) };
    let (judgement, learned) = Judgement::of(session, (dir, name), repo)?;
    let users = users_of(session, repo)?;
    judgement.judge(&users, rows);
    learned
}

/// What a folder knows, by which it judges the rows of hosts.
struct Judgement {
    own: Option<HostId>,
    keys: Option<HostKeys>,
}

impl Judgement {
    /// Reads what the journal says of hosts, and returns that, with the error of a journal which does not prove all of it.
    ///
    /// # Errors
    /// If a file of the folder cannot be read.
    fn of(
        session: &mut Session,
        (dir, name): (&Path, &str),
        repo: i32,
    ) -> Result<(Self, Result<(), StoreError>), StoreError> {
        if !dir.join(IN_DATABASE).exists() {
            return Ok((Self { own: None, keys: None }, Ok(())));
        }
        let own = Remembered::of(dir, name)?.host;
        let Some(secret) = files::journal_key(dir)? else {
            return Ok((Self { own: Some(own), keys: None }, Ok(())));
        };
        let key = Key::new(&secret);
        let mut keys = HostKeys::of(dir, name, own, &key)?;
        let learned = keys.learn(session, repo, &key).map(drop);
        Ok((Self { own: Some(own), keys: Some(keys) }, learned))
    }

    fn judge(&self, users: &Users, rows: &mut [Told]) {
        for Told { row, request, .. } in rows {
            row.is_here = self.own == Some(row.daemon.host);
            if let Some(keys) = &self.keys {
                let told = row.state;
                row.state = keys.counted_among(users, (row.daemon.host, told), request.as_deref());
                row.claimed = (row.state != told).then_some(told);
                row.is_stopped &= row.claimed.is_none();
            }
        }
    }
}

fn in_order(rows: Vec<Told>) -> Vec<HostRow> {
    let mut rows: Vec<HostRow> = rows.into_iter().map(|it| it.row).collect();
    // Those of one kind stay in the order of their names.
    rows.sort_by_key(|it| it.state == HostState::Removed);
    rows
}

fn rows(session: &mut Session, name: &str) -> Result<Vec<Told>, StoreError> {
    let rows = session.rows(Step::new(HOSTS).with(name.to_owned()))?;
    let row = |row: &tokio_postgres::Row| {
        let text = |at: usize| row.try_get::<_, String>(at).map_err(unreadable);
        // Each login can write there, and people read it at a terminal.
        let shown = |at: usize| text(at).map(|it| visible_name(&it, MACHINE_SIGNS_MAX));
        let number = |at: usize| row.try_get::<_, i64>(at).map_err(unreadable);
        let format = |at: usize| -> Result<u32, StoreError> {
            u32::try_from(row.try_get::<_, i32>(at).map_err(unreadable)?).map_err(StoreError::damaged)
        };
        let clean: bool = row.try_get(5).map_err(unreadable)?;
        let state = HostState::parse(&text(4)?)?;
        let (key, role) = enrolling::shown(row.try_get(10).map_err(unreadable)?).unzip();
        let listed = HostRow {
            daemon: provost_base::DaemonId {
                host: text(0)?.parse().map_err(StoreError::damaged)?,
                incarnation: nat(number(1)?)?,
            },
            name: shown(2)?,
            version: shown(3)?,
            state,
            claimed: None,
            is_stopped: state == HostState::Down && clean,
            silent_ms: nat(number(6)?.max(0))?,
            behind: nat(number(7)?)?,
            formats: (format(8)?, format(9)?),
            key,
            role: role.unwrap_or_default(),
            is_here: false,
        };
        let request = row.try_get(11).map_err(unreadable)?;
        Ok(Told { row: listed, request, repo: row.try_get(12).map_err(unreadable)? })
    };
    let named = |it: &tokio_postgres::Row| {
        let id: &str = it.try_get(0).map_err(unreadable)?;
        in_row("host", id, || row(it))
    };
    rows.iter().map(named).collect()
}

/// Takes a host out: at once, or after its last run. The daemons that take part carry it out in their next turns.
///
/// # Errors
/// [`StoreError::Database`] where there is no such host, or no other one that would carry it out, and [`StoreError::Key`] where this host may not
/// say so.
pub(crate) fn take_out(
    dir: &Path,
    database: &Database,
    host: HostId,
    how: TakenOut,
) -> Result<(), StoreError> {
    let mut session = Session::new(address::servers(database, "provost/hosts")?, Purpose::Write)?;
    session.follow(&Newest::of(dir))?;
    schema::check(&mut session)?;
    let refused = |why: String| StoreError::Database(why.into());
    let repo = number_of(&mut session, &database.name)?;
    // Before the transaction, which an error of the server would end, and for whose end all hosts wait.
    let (judgement, learned) = Judgement::of(&mut session, (dir, &database.name), repo)?;
    match learned {
        // A host that breaks the log has to go all the same.
        Ok(()) | Err(StoreError::BrokenLog { .. } | StoreError::Damaged(_)) => {}
        Err(err) => return Err(err),
    }
    let take = Step::new("select 1 from provost.repo where id = $1 for update").with(repo);
    session.ask(&[Step::new("begin"), take])?;
    let users = users_of(&mut session, repo)?;
    let mut hosts = rows(&mut session, &database.name)?;
    judgement.judge(&users, &mut hosts);
    let hosts = in_order(hosts);
    let it = hosts.iter().find(|it| it.daemon.host == host);
    let it = it.ok_or_else(|| refused(format!("{:?} has no host {host}", database.name)))?;
    if it.state == HostState::Removed && is_out(&mut session, repo, it)? {
        return Err(refused(format!("the host {} is removed already", host.short())));
    }
    if let Some(why) = taken_out::why_not(&hosts, &users, (it, how)) {
        return Err(refused(why));
    }
    let state = match how {
        TakenOut::AtOnce => HostState::Removing,
        TakenOut::Drained => HostState::Draining,
    };
    let sql = "update provost.host set state = $3 where repo = $1 and id = $2";
    let step = Step::new(sql).with(repo).with(host.to_string()).with(state.as_str());
    let request = taken_out::request_step(repo, (dir, &database.name), (host, state))?;
    session.ask(&[step, request, Step::new("commit")]).map(drop)
}

/// Returns why the user of this folder's host should not invite machines; `None` if nothing is known against it.
///
/// # Errors
/// When the database does not answer.
pub(crate) fn why_no_invitation(dir: &Path, database: &Database) -> Result<Option<String>, StoreError> {
    if !dir.join(IN_DATABASE).exists() {
        return Ok(None);
    }
    let own = Remembered::of(dir, &database.name)?.host;
    let mut session = Session::new(address::servers(database, "provost/hosts")?, Purpose::Read)?;
    session.follow(&Newest::of(dir))?;
    schema::check(&mut session)?;
    let asked = Step::new("select id from provost.repo where name = $1").with(database.name.clone());
    let Some(repo) = session.rows(asked)?.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?
    else {
        return Ok(None);
    };
    Ok(taken_out::why_not_invite(users_of(&mut session, repo)?.role_at(own)))
}

/// Returns the users of a repository's hosts. A row that cannot be read, which each login can write, says nothing: the daemons go by the log.
pub(super) fn users_of(session: &mut Session, repo: i32) -> Result<Users, StoreError> {
    let mut users = Users::default();
    let sql = "select body from provost.host_user where repo = $1 and length(body) <= 8192";
    for row in &session.rows(Step::new(sql).with(repo))? {
        if let Ok(user) = parse(row.try_get(0).map_err(unreadable)?) {
            users.put(Arc::new(user));
        }
    }
    Ok(users)
}

/// Checks whether a host that the table calls removed is: the journal says so, or it was removed before hosts had keys. Each login can write that
/// word, that of a host which people want to remove as well.
fn is_out(session: &mut Session, repo: i32, it: &HostRow) -> Result<bool, StoreError> {
    if it.key.is_none() && !enrolling::was_before(session, repo, it.daemon.host)? {
        return Ok(true);
    }
    let sql = "select body from provost.event where repo = $1 and kind = $2 and body is not null";
    for row in &session.rows(Step::new(sql).with(repo).with(HOST_REMOVED))? {
        let event: Event = parse(row.try_get(0).map_err(unreadable)?)?;
        if event.removed_host().and_then(|gone| gone.parse::<HostId>().ok()) == Some(it.daemon.host) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Puts the journal's key into a state folder, so that its daemon can join the repository as one more host.
///
/// # Errors
/// [`StoreError::Unsafe`] where the folder has a store or another key, and what else does not fit; then nothing is written.
pub(crate) fn join(dir: &Path, database: &Database, text: &str, code: &str) -> Result<Joined, StoreError> {
    let refused = |why: String| StoreError::Database(why.into());
    if files::has_database(dir) || dir.join(IN_DATABASE).exists() {
        return Err(StoreError::Unsafe {
            path: dir.display().to_string().into(),
            why: "has a store already: a host joins with a state folder that has none".into(),
        });
    }
    let (secret, invited) = open_key(text, code, &database.name)?;
    let print = Key::new(&secret).fingerprint().to_string();
    let mut session = Session::new(address::servers(database, "provost/join")?, Purpose::Read)?;
    session.connect(&Place::default())?;
    schema::check(&mut session)?;
    let sql = "select key_print, roots, id from provost.repo where name = $1";
    let found = session.rows(Step::new(sql).with(database.name.clone()))?;
    let Some(row) = found.first() else {
        return Err(no_repository(&database.name));
    };
    if row.try_get::<_, String>(0).map_err(unreadable)? != print {
        return Err(StoreError::Key(
            format!(
                "the file has not the key of {:?} in this database: export it again on a host of it",
                database.name
            )
            .into(),
        ));
    }
    let theirs: Option<&str> = row.try_get(1).map_err(unreadable)?;
    roots::must_share_one(&database.name, &database.roots.find(), theirs)?;
    let hosts = in_order(rows(&mut session, &database.name)?);
    if hosts.iter().filter(|it| it.state != HostState::Removed).count() >= HOSTS_MAX {
        return Err(refused(format!("{:?} has {HOSTS_MAX} hosts already", database.name)));
    }
    must_let_in(&mut session, dir, (&secret, row.try_get(2).map_err(unreadable)?), &invited)?;
    let known = files::journal_key(dir)?;
    match known {
        None => files::put_journal_key(dir, &secret)?,
        Some(it) if Key::new(&it).fingerprint().to_string() == print => {}
        Some(_) => {
            return Err(StoreError::Unsafe {
                path: dir.join(crate::JOURNAL_KEY).display().to_string().into(),
                why: "is the key of another journal: move it away, or start in another clone".into(),
            });
        }
    }
    invited.keep(dir)?;
    Ok(Joined { hosts })
}

/// Checks whether an invitation lets one more machine in: its first start would find that out, with a state folder that is of no use then.
///
/// # Errors
/// [`StoreError::Key`] with the reason.
fn must_let_in(
    session: &mut Session,
    dir: &Path,
    (secret, repo): (&Secret, i32),
    invited: &KnownHosts,
) -> Result<(), StoreError> {
    let Some((invitation, _)) = &invited.invitation else { return Ok(()) };
    let key = Key::new(secret);
    let mut keys = HostKeys::of(dir, &invited.name, invitation.by, &key)?;
    keys.known = invited.clone();
    keys.learn(session, repo, &key)?;
    match keys.lets_no_one_in(invitation) {
        Some(why) => {
            Err(StoreError::Key(format!("{why}: invite again on a full host that takes part").into()))
        }
        None => Ok(()),
    }
}
