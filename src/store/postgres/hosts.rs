//! Hosts of a repository as the database has them: for lists, and for one more host that joins.

use std::path::Path;

use super::address;
use super::remembered::Remembered;
use super::roots;
use super::schema;
use super::session::{Place, Purpose, Session, Step};
use super::{enrolling, taken_out, unreadable};
use crate::codec::{nat, parse};
use crate::database::IN_DATABASE;
use crate::journal::Key;
use crate::key_file::open_key;
use crate::{Database, HostRow, HostState, Joined, StoreError, TakenOut, files};
use provost_base::limits::HOSTS_MAX;
use provost_base::{HostId, visible_name};
use provost_domain::{Event, HOST_REMOVED};

const HOSTS: &str = "select h.id, h.inc, h.name, h.version, h.state, h.clean,
        (extract(epoch from clock_timestamp() - h.beat) * 1000)::bigint, greatest(r.n - h.head, 0), lower(h.formats), upper(h.formats) - 1,
        (select body from provost.host_key k where k.repo = h.repo and k.host = h.id and k.what <> 'gone')
    from provost.host h join provost.repo r on r.id = h.repo where r.name = $1 order by h.state = 'removed', h.name, h.id";

/// The most characters of a machine's name or release that are shown.
pub(super) const MACHINE_SIGNS_MAX: usize = 80;

/// All hosts of the repository, removed ones last.
///
/// # Errors
/// When the database does not answer.
pub(crate) fn hosts(dir: &Path, database: &Database) -> Result<Vec<HostRow>, StoreError> {
    let mut session = Session::new(address::servers(database, "provost/hosts")?, Purpose::Read)?;
    session.connect(&Place::default())?;
    schema::check(&mut session)?;
    all_rows(&mut session, dir, database)
}

/// The same over a session that is there.
///
/// # Errors
/// As for [`hosts`].
pub(super) fn all_rows(
    session: &mut Session,
    dir: &Path,
    database: &Database,
) -> Result<Vec<HostRow>, StoreError> {
    let own = match dir.join(IN_DATABASE).exists() {
        true => Some(Remembered::of(dir, &database.name)?.host),
        false => None,
    };
    rows(session, &database.name).map(|mut rows| {
        rows.iter_mut().for_each(|it| it.is_here = Some(it.daemon.host) == own);
        rows
    })
}

fn rows(session: &mut Session, name: &str) -> Result<Vec<HostRow>, StoreError> {
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
        Ok(HostRow {
            daemon: provost_base::DaemonId {
                host: text(0)?.parse().map_err(StoreError::damaged)?,
                incarnation: nat(number(1)?)?,
            },
            name: shown(2)?,
            version: shown(3)?,
            state,
            is_stopped: state == HostState::Down && clean,
            silent_ms: nat(number(6)?.max(0))?,
            behind: nat(number(7)?)?,
            formats: (format(8)?, format(9)?),
            key,
            role: role.unwrap_or_default(),
            is_here: false,
        })
    };
    rows.iter().map(row).collect()
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
    session.connect(&Place::default())?;
    schema::check(&mut session)?;
    let refused = |why: String| StoreError::Database(why.into());
    let take =
        Step::new("select id from provost.repo where name = $1 for update").with(database.name.clone());
    let found = session.ask(&[Step::new("begin"), take])?.pop().unwrap_or_default();
    let row = found
        .first()
        .ok_or_else(|| refused(format!("the database has no repository {:?}", database.name)))?;
    let repo: i32 = row.try_get(0).map_err(unreadable)?;
    let hosts = rows(&mut session, &database.name)?;
    let it = hosts.iter().find(|it| it.daemon.host == host);
    let it = it.ok_or_else(|| refused(format!("{:?} has no host {host}", database.name)))?;
    let takes_part = |it: &&HostRow| matches!(it.state, HostState::Live | HostState::Draining);
    if it.state == HostState::Removed && is_out(&mut session, repo, it)? {
        return Err(refused(format!("the host {} is removed already", host.short())));
    }
    let (state, others) = match how {
        TakenOut::AtOnce => {
            // A machine that only works frees nothing of others.
            let frees = |it: &HostRow| it.daemon.host != host && it.role.is_full();
            (HostState::Removing, hosts.iter().filter(takes_part).any(frees))
        }
        TakenOut::Drained => (HostState::Draining, true),
    };
    if !others {
        return Err(refused(format!(
            "{} is the only host whose daemon runs: no other one would free what it holds",
            host.short()
        )));
    }
    if how == TakenOut::Drained && it.state != HostState::Live {
        return Err(refused(format!(
            "the host {} is {}: its daemon has to run to be drained",
            host.short(),
            it.state.as_str()
        )));
    }
    let sql = "update provost.host set state = $3 where repo = $1 and id = $2";
    let step = Step::new(sql).with(repo).with(host.to_string()).with(state.as_str());
    let request = taken_out::request_step(repo, (dir, &database.name), (host, state))?;
    session.ask(&[step, request, Step::new("commit")]).map(drop)
}

/// Checks whether a host that the table calls removed is: the journal says so, or it was removed before hosts had keys. Each login can write that
/// word, that of a host which people want to remove as well.
fn is_out(session: &mut Session, repo: i32, it: &HostRow) -> Result<bool, StoreError> {
    if it.key.is_none() {
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
    let sql = "select key_print, roots from provost.repo where name = $1";
    let found = session.rows(Step::new(sql).with(database.name.clone()))?;
    let Some(row) = found.first() else {
        return Err(refused(format!(
            "the database has no repository {:?} yet: its first host makes it with `provost up`; look at `[store] name`",
            database.name
        )));
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
    let hosts = rows(&mut session, &database.name)?;
    if hosts.iter().filter(|it| it.state != HostState::Removed).count() >= HOSTS_MAX {
        return Err(refused(format!("{:?} has {HOSTS_MAX} hosts already", database.name)));
    }
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
