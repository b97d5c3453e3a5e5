//! Signatures of hosts in the database: the enrolled hosts, the signing of entries, and the check of others' signatures.
//!
//! Rows of `host_key` and `signature` are only ever added. The checks rest on the state folder first ([`KnownHosts`]), then on
//! those of these rows for which a known host vouches, and never on the table of hosts, which each daemon's login can change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use tokio_postgres::Row;

use super::bounds::{self, Page, in_row};
use super::enrolling::first_of;
use super::entry;
use super::gaps::{gaps, must_be_of_the_chain};
use super::load;
use super::session::{Session, Step};
use super::{PostgresStore, unreadable};
use crate::codec::{int, nat, parse};
use crate::host_keys::{self, At, KnownHost, KnownHosts, Signature, Signer, entry_text};
use crate::journal::{JournalHead, Key};
use crate::signed_together::SignedTogether;
use crate::{SealedEntry, StoreError};
use provost_base::limits::POSTGRES_PAGE_ROWS;
use provost_base::{Digest, EntryNo, EventSeq, HostId};
use provost_domain::{Change, Event, Gone, HOST_DOWN, HOST_REMOVED, NEVER_WORK, USER_CHANGED};

/// Signatures behind an event, with the links of the events at which they are.
pub(super) const SIGNED: &str = "select s.event, s.n, left(s.host, 64), substr(s.mac, 1, 33), substr(s.sig, 1, 65), substr(e.mac, 1, 33) from provost.signature s
    join provost.event e on e.repo = s.repo and e.seq = s.event where s.repo = $1 and s.event > $2 order by s.event limit $3";

/// The first event behind another one that names another host than the one that has signed it.
pub(super) const MISNAMED: &str = "select e.seq, left(s.host, 64) from provost.event e
    join lateral (select host from provost.signature where repo = e.repo and event >= e.seq order by event limit 1) s on true
    where e.repo = $1 and e.seq > $2 and e.body is not null and e.body::json ->> 'host' <> s.host order by e.seq limit 1";

/// The first event behind another one that one of these hosts has signed, of one of these kinds; users change by a recorded one.
const SIGNED_BY: &str = "select e.seq, left(s.host, 64) from provost.event e
    join lateral (select host from provost.signature where repo = e.repo and event >= e.seq order by event limit 1) s on true
    where e.repo = $1 and e.seq > $2 and s.host = any($3::text[]) and (e.kind = any($4::text[])
        or (e.kind = 'recorded' and e.body is not null and e.body::json -> 'kind' -> 'recorded' ->> 'what' = $5))
    order by e.seq limit 1";

/// The events behind a given event that say that a host was removed, with the link of the event before and then the columns of [`SIGNED`] for their
/// signatures. Earlier daemons have given them the kind of all records.
const REMOVALS: &str = "select e.seq, e.at, left(e.kind, 1024), left(e.actor, 1024), left(e.task, 1024),
        case when octet_length(e.body) <= 1048576 then e.body when e.body is not null then '' end, substr(e.hash, 1, 33), substr(e.mac, 1, 33),
        (select substr(b.mac, 1, 33) from provost.event b where b.repo = e.repo and b.seq = e.seq - 1),
        s.event, s.n, left(s.host, 64), substr(s.mac, 1, 33), substr(s.sig, 1, 65), substr(m.mac, 1, 33)
    from provost.event e
    join lateral (select * from provost.signature where repo = e.repo and event >= e.seq order by event limit 1) s on true
    join provost.event m on m.repo = s.repo and m.seq = s.event
    where e.repo = $1 and e.seq > $2 and (e.kind = $3 or (e.kind = 'recorded' and e.body is not null
        and e.body::json #>> '{kind,recorded,what}' = $4 and e.body::json #>> '{kind,recorded,details,removed}' = 'true'))
    order by e.seq";

/// An event that says that a host was removed, with the signature of its entry.
pub(super) struct Removal {
    seq: EventSeq,
    /// `None` where it was taken away.
    body: Option<Box<str>>,
    signed: Signed,
}

/// A row of [`SIGNED`].
struct Signed {
    at: At,
    host: HostId,
    link: Digest,
    signature: Vec<u8>,
    journal: JournalHead,
}

/// A host that is said to have signed a text, its place in the log and the journal, the text, and the signature if there is one.
type Claim<'a> = (HostId, At, Vec<u8>, Option<&'a [u8]>);

impl Signed {
    /// Reads the columns of [`SIGNED`]. They begin at the column `from`.
    fn read(row: &Row, from: usize) -> Result<Self, StoreError> {
        let event: i64 = row.try_get(from).map_err(unreadable)?;
        in_row("signature", event, || Self::columns(row, from))
    }

    fn columns(row: &Row, from: usize) -> Result<Self, StoreError> {
        let number =
            |at: usize| -> Result<u64, StoreError> { nat(row.try_get(from + at).map_err(unreadable)?) };
        let (event, n) = (EventSeq(number(0)?), EntryNo(number(1)?));
        let host: &str = row.try_get(from + 2).map_err(unreadable)?;
        let journal = JournalHead { seq: event, mac: load::digest(row, from + 5)? };
        let signature = row.try_get(from + 4).map_err(unreadable)?;
        let host = host.parse().map_err(StoreError::damaged)?;
        Ok(Self { at: At { n, event }, host, link: load::digest(row, from + 3)?, signature, journal })
    }
}

/// The events behind an event that say that a host was removed, in their order.
///
/// # Errors
/// When the database does not answer.
pub(super) fn removals(
    session: &mut Session,
    (repo, key): (i32, &Key),
    after: EventSeq,
) -> Result<Vec<Removal>, StoreError> {
    let gaps = gaps(session, repo)?;
    let step = Step::new(REMOVALS).with(repo).with(int(after.0)?).with(HOST_REMOVED).with(HOST_DOWN);
    let removal = |row: &Row| -> Result<Removal, StoreError> {
        let it = load::event(row)?;
        must_be_of_the_chain(key, &it, row, &gaps)?;
        Ok(Removal { seq: it.seq, body: it.body, signed: Signed::read(row, 9)? })
    };
    session.rows(step)?.iter().map(removal).collect()
}

/// Checks signatures of the journal in their order. An entry comes after the entries before it: a host that was removed could sign for an older one.
#[derive(Default)]
struct InOrder {
    last: Option<At>,
}

impl InOrder {
    fn next(&mut self, at: At) -> Result<(), StoreError> {
        match self.last.replace(at) {
            Some(before) if at.n <= before.n => Err(StoreError::BrokenLog {
                n: at.n,
                what: format!("it is signed for event {}, behind entry {}", at.event, before.n).into(),
            }),
            _ => Ok(()),
        }
    }
}

/// The last signature up to a place that was checked. No row from before that place has a later entry than the place.
fn signed_last(session: &mut Session, repo: i32, upto: At) -> Result<Option<At>, StoreError> {
    let sql = "select s.n, s.event from provost.signature s join provost.event e on e.repo = s.repo and e.seq = s.event
        where s.repo = $1 and s.event <= $2 and s.n between 0 and $3 order by s.event desc limit 1";
    let rows = session.rows(Step::new(sql).with(repo).with(int(upto.event.0)?).with(int(upto.n.0)?))?;
    let at = |row: &Row| -> Result<At, StoreError> {
        let number = |at: usize| -> Result<u64, StoreError> { nat(row.try_get(at).map_err(unreadable)?) };
        Ok(At { n: EntryNo(number(0)?), event: EventSeq(number(1)?) })
    };
    rows.first().map(at).transpose()
}

/// What this daemon knows of the hosts, and its own key.
pub(super) struct HostKeys {
    pub(super) dir: PathBuf,
    pub(super) host: HostId,
    pub(super) print: Digest,
    pub(super) own: Option<Signer>,
    pub(super) known: KnownHosts,
    /// Names of machines, for sentences.
    pub(super) machines: BTreeMap<HostId, String>,
    /// The hosts that the journal has removed behind what was checked before, known ones or not.
    pub(super) removed: BTreeSet<HostId>,
}

impl HostKeys {
    /// What the state folder has.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub(super) fn of(dir: &std::path::Path, name: &str, host: HostId, key: &Key) -> Result<Self, StoreError> {
        let known = KnownHosts::of(dir, name, host)?;
        let own = host_keys::own_key(dir, Some(host))?.map(|it| it.1);
        let known = known.unwrap_or_else(|| KnownHosts { name: name.into(), ..KnownHosts::default() });
        let (dir, print) = (dir.to_owned(), key.fingerprint());
        let (machines, removed) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self { dir, host, print, own, known, machines, removed })
    }

    pub(super) fn named(&self, host: HostId) -> String {
        let machine = self.machines.get(&host).filter(|it| !it.is_empty());
        machine.map_or_else(|| host.short(), |it| format!("{} ({it})", host.short()))
    }

    /// Whether a host may say of another one that it was removed.
    pub(super) fn may_remove(&self, by: HostId, gone: HostId) -> bool {
        by == gone || self.known.role_of(by).is_full()
    }

    pub(super) fn has_gone(&mut self, host: HostId, at: At) {
        if let Some(it) = self.known.hosts.iter_mut().find(|it| it.host == host) {
            it.gone = Some(it.gone.map_or(at, |was| if was.n < at.n { was } else { at }));
        }
    }

    /// Whether this host has signed this text, as one that takes part there; otherwise why not.
    fn why_not(&self, host: HostId, at: At, text: &[u8], signature: Option<&[u8]>) -> Option<String> {
        let name = || self.named(host);
        let Some(known) = self.known.get(host) else {
            return Some(format!("it says that the host {} has written it, which is no member", name()));
        };
        match signature {
            _ if !takes_part(known, at) => {
                Some(format!("the host {} has signed it, which was removed before", name()))
            }
            None => Some(format!("the signature of the host {} is missing", name())),
            Some(it) if !known.key.has_signed(text, it) => {
                Some(format!("the host {} has not signed it, although the entry names it", name()))
            }
            Some(_) => None,
        }
    }

    /// Checks many signatures together. If it returns `false`, [`HostKeys::why_not`] says which of them does not hold, and why.
    fn all_hold<'a>(&self, signed: impl Iterator<Item = Claim<'a>>) -> bool {
        let mut together = SignedTogether::default();
        for (host, at, text, signature) in signed {
            let known = self.known.get(host).filter(|it| takes_part(it, at));
            let Some((known, signature)) = known.zip(signature) else { return false };
            if !together.add(&known.key, text, signature) {
                return false;
            }
        }
        together.all_hold()
    }

    /// Reads and checks a page of [`SIGNED`]. Returns the rows, and whether all signatures hold.
    fn page(&self, rows: &[Row]) -> Result<(Vec<Signed>, bool), StoreError> {
        let page = rows.iter().map(|it| Signed::read(it, 0)).collect::<Result<Vec<_>, _>>()?;
        let hold =
            self.all_hold(page.iter().map(|it| (it.host, it.at, self.text_of(it), Some(&*it.signature))));
        Ok((page, hold))
    }

    /// Checks that the host which an entry names has signed it, where the journal ends with it.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] with the entry and the host.
    pub(super) fn check(
        &mut self,
        (session, repo, key): (&mut Session, i32, &Key),
        (host, n, link): (HostId, EntryNo, Digest),
        journal: &JournalHead,
        signature: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        if self.known.get(host).is_none() {
            self.learn(session, repo, key)?;
            self.keep()?;
        }
        let (at, text) = (At { n, event: journal.seq }, entry_text(&self.print, n, &link, journal));
        match self.why_not(host, at, &text, signature) {
            Some(what) => Err(StoreError::BrokenLog { n, what: what.into() }),
            None => Ok(()),
        }
    }

    /// Adds the statement that signs what a person has put on record while no daemon runs.
    ///
    /// # Errors
    /// When a number is none for a column.
    pub(super) fn sign_alone(
        &self,
        repo: i32,
        (n, link): (EntryNo, &Digest),
        journal: &JournalHead,
        steps: &mut Vec<Step>,
    ) -> Result<(), StoreError> {
        // No other host asks for the signature of one that is not enrolled yet.
        if self.own.is_some() {
            let signature = self.sign(n, link, journal)?;
            steps.push(signature_step(repo, (self.host, n, link), journal, signature)?);
        }
        Ok(())
    }

    /// Why the signatures of a journal that ends here do not hold, with the event; `None` where they do, or where there are none to be.
    ///
    /// # Errors
    /// When the database does not answer.
    pub(super) fn verify(
        &mut self,
        (session, repo, key): (&mut Session, i32, &Key),
        head: &JournalHead,
    ) -> Result<Option<(EventSeq, String)>, StoreError> {
        // Nothing is taken for checked here.
        self.known.checked = self.known.from.unwrap_or_default();
        let rows = self.learn(session, repo, key)?;
        let Some(from) = self.known.from.or_else(|| first_of(&rows)) else { return Ok(None) };
        let (mut last, mut order) = (from.event, InOrder::default());
        loop {
            let step = Step::new(SIGNED).with(repo).with(int(last.0)?).with(POSTGRES_PAGE_ROWS);
            let rows = session.rows(step)?;
            let (page, hold) = self.page(&rows)?;
            for it in &page {
                match self.check_row(it, hold, &mut order) {
                    Ok(seq) => last = seq,
                    Err(StoreError::BrokenLog { what, .. }) => return Ok(Some((last.next(), what.into()))),
                    Err(err) => return Err(err),
                }
            }
            if (rows.len() as i64) < POSTGRES_PAGE_ROWS {
                break;
            }
        }
        if last < head.seq {
            return Ok(Some((last.next(), "no host has signed it".into())));
        }
        if let Some((seq, host)) = misnamed(session, repo, from.event)? {
            let says = format!("the host {} has signed it, and it names another one", self.named(host));
            return Ok(Some((seq, says)));
        }
        let found = self.beyond_work(session, repo, from.event)?;
        Ok(found
            .map(|(seq, host)| (seq, format!("the host {} has signed it, and only works", self.named(host)))))
    }

    /// The first event that a machine has signed which only works, and may not decide such a thing. What a rule says by the state before an
    /// entry is looked at where the entry is folded.
    fn beyond_work(
        &self,
        session: &mut Session,
        repo: i32,
        after: EventSeq,
    ) -> Result<Option<(EventSeq, HostId)>, StoreError> {
        let works = self.known.hosts.iter().filter(|it| !it.role.is_full());
        let works: Vec<String> = works.map(|it| it.host.to_string()).collect();
        if works.is_empty() {
            return Ok(None);
        }
        let kinds: Vec<String> = NEVER_WORK.map(str::to_owned).to_vec();
        let step = Step::new(SIGNED_BY).with(repo).with(int(after.0)?).with(works).with(kinds);
        first_signed(session, step.with(USER_CHANGED))
    }

    /// The host that such an event removes, with the end of the entry, where a host has signed it there that may say so.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] where the event's text was taken away: nothing else says which host it was.
    pub(super) fn proved(&self, it: &Removal) -> Result<Option<(HostId, At)>, StoreError> {
        let (signed, seq) = (&it.signed, it.seq);
        let Some(body) = &it.body else {
            let what = format!(
                "event {seq} says that a host was removed, and its text, which is always kept, was taken away, so this host cannot know which host: \
                 put the text back from a copy of the database, or move this state folder away and join again with a file that a host exports now \
                 which has read it (`provost host export-key`, `provost host join`)"
            );
            return Err(StoreError::BrokenLog { n: signed.at.n, what: what.into() });
        };
        let event: Event = in_row("event", seq, || parse(body))?;
        let Some(gone) = event.removed_host().and_then(|it| it.parse().ok()) else { return Ok(None) };
        // The check of all signatures reports a signature that does not hold, and an event that names another host than its signer.
        let is_proved = event.host == signed.host
            && self.may_remove(signed.host, gone)
            && self.why_no_row(signed).is_none();
        Ok(is_proved.then_some((gone, signed.at)))
    }

    /// Takes over which hosts were removed with an entry that was checked, or that is this daemon's.
    pub(super) fn follow(&mut self, at: At, changes: &[Change]) {
        self.known.checked = at;
        for host in removed(changes) {
            self.has_gone(host, at);
        }
    }

    pub(super) fn distrust(&mut self, n: EntryNo, what: &str) {
        self.known.refused.get_or_insert_with(|| (n, what.into()));
    }

    /// Has the state folder know it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn keep(&self) -> Result<(), StoreError> {
        self.known.keep(&self.dir)
    }

    /// This host's signature of an entry, where the journal ends with it.
    ///
    /// # Errors
    /// [`StoreError::Key`] without a key.
    pub(super) fn sign(
        &self,
        n: EntryNo,
        link: &Digest,
        journal: &JournalHead,
    ) -> Result<Signature, StoreError> {
        let own = self.own.as_ref().ok_or_else(|| StoreError::Key("this host has no key yet".into()))?;
        Ok(own.sign(&entry_text(&self.print, n, link, journal)))
    }

    /// Checks everything that was written behind what was checked, up to the ends of log and journal.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] with the first entry that no member has signed.
    fn check_rest(
        &mut self,
        session: &mut Session,
        repo: i32,
        (end, journal): (EntryNo, &JournalHead),
    ) -> Result<(), StoreError> {
        let (from, mut last) = (self.known.checked, self.known.checked.event);
        let mut order = InOrder { last: signed_last(session, repo, from)? };
        loop {
            let step = Step::new(SIGNED).with(repo).with(int(last.0)?).with(POSTGRES_PAGE_ROWS);
            let rows = session.rows(step)?;
            let (page, hold) = self.page(&rows)?;
            for it in &page {
                last = self.check_row(it, hold, &mut order)?;
            }
            if (rows.len() as i64) < POSTGRES_PAGE_ROWS {
                break;
            }
        }
        if last < journal.seq {
            let what = format!("no host has signed the events from {} on", last.next());
            return Err(StoreError::BrokenLog { n: end, what: what.into() });
        }
        if let Some(at) = order.last.filter(|it| it.n > end) {
            let what = format!("event {} is signed for it, and the log ends before", at.event);
            return Err(StoreError::BrokenLog { n: at.n, what: what.into() });
        }
        if let Some((seq, host)) = misnamed(session, repo, from.event)? {
            let what =
                format!("the host {} has signed event {seq}, which names another one", self.named(host));
            return Err(StoreError::BrokenLog { n: end, what: what.into() });
        }
        if let Some((seq, host)) = self.beyond_work(session, repo, from.event)? {
            let what = format!("the host {} has signed event {seq}, and only works", self.named(host));
            return Err(StoreError::BrokenLog { n: end, what: what.into() });
        }
        self.check_log(session, repo, from)?;
        self.known.checked = At { n: end, event: journal.seq };
        Ok(())
    }

    /// Checks a row of [`SIGNED`], with its signature unless that is known to hold. Returns the event at which it is.
    fn check_row(&self, it: &Signed, holds: bool, order: &mut InOrder) -> Result<EventSeq, StoreError> {
        if !holds && let Some(what) = self.why_no_row(it) {
            let what = format!("{what} (event {})", it.at.event).into();
            return Err(StoreError::BrokenLog { n: it.at.n, what });
        }
        order.next(it.at).map(|()| it.at.event)
    }

    fn why_no_row(&self, it: &Signed) -> Option<String> {
        self.why_not(it.host, it.at, &self.text_of(it), Some(&it.signature))
    }

    fn text_of(&self, it: &Signed) -> Vec<u8> {
        entry_text(&self.print, it.at.n, &it.link, &it.journal)
    }

    /// Returns the claim of an entry without events, after the event at which the journal was then.
    fn claim<'a>(
        &self,
        (sealed, event, signature): &(SealedEntry, EventSeq, Option<&'a [u8]>),
        macs: &BTreeMap<EventSeq, Digest>,
    ) -> Claim<'a> {
        let journal = JournalHead { seq: *event, mac: macs.get(event).copied().unwrap_or_default() };
        let text = entry_text(&self.print, sealed.n, &sealed.mac, &journal);
        (sealed.by.host, At { n: sealed.n, event: *event }, text, *signature)
    }

    /// Checks the entries that the log still has and that have no events: the others are signed in the journal.
    fn check_log(&self, session: &mut Session, repo: i32, from: At) -> Result<(), StoreError> {
        let (mut n, mut seq) = (from.n, Some(from.event));
        loop {
            let rows = session.rows(bounds::entries(repo, int(n.0)?, Page::of(POSTGRES_PAGE_ROWS)))?;
            let mut bare = Vec::new();
            for row in &rows {
                let sealed = entry::read(row)?;
                if sealed.n != n.next() {
                    // Those between are cut; where the journal was then, the next one with events says.
                    seq = None;
                }
                n = sealed.n;
                match (entry::events_of(&sealed)?.last().copied(), seq) {
                    (Some(last), _) => seq = Some(last),
                    (None, Some(at)) => bare.push((sealed, at, entry::signature(row)?)),
                    (None, None) => {}
                }
            }
            let macs = macs_of(session, repo, bare.iter().map(|it| it.1))?;
            let claims = || bare.iter().map(|it| self.claim(it, &macs));
            if !self.all_hold(claims()) {
                for (host, at, text, signature) in claims() {
                    if let Some(what) = self.why_not(host, at, &text, signature) {
                        return Err(StoreError::BrokenLog { n: at.n, what: what.into() });
                    }
                }
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
    }
}

/// Checks whether a host takes part there. An entry that is signed for a number before its removal, and whose events come after, is not from before.
fn takes_part(known: &KnownHost, at: At) -> bool {
    !known.gone.is_some_and(|gone| gone.n < at.n || gone.event < at.event)
}

/// The links of these events.
fn macs_of(
    session: &mut Session,
    repo: i32,
    of: impl Iterator<Item = EventSeq>,
) -> Result<BTreeMap<EventSeq, Digest>, StoreError> {
    let all = of.map(|it| int(it.0)).collect::<Result<Vec<i64>, _>>()?;
    if all.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = "select seq, substr(mac, 1, 33) from provost.event where repo = $1 and seq = any($2::bigint[])";
    let rows = session.rows(Step::new(sql).with(repo).with(all))?;
    let row = |it: &Row| -> Result<(EventSeq, Digest), StoreError> {
        let seq = EventSeq(nat(it.try_get(0).map_err(unreadable)?)?);
        in_row("event", seq, || Ok((seq, load::digest(it, 1)?)))
    };
    rows.iter().map(row).collect()
}

/// Hosts that these changes remove.
pub(super) fn removed(changes: &[Change]) -> impl Iterator<Item = HostId> + '_ {
    changes.iter().filter_map(|it| match it {
        Change::HostDown(daemon, Gone::Removed) => Some(daemon.host),
        _ => None,
    })
}

/// The first event of [`MISNAMED`], and who has signed it.
///
/// # Errors
/// When the database does not answer.
pub(super) fn misnamed(
    session: &mut Session,
    repo: i32,
    after: EventSeq,
) -> Result<Option<(EventSeq, HostId)>, StoreError> {
    first_signed(session, Step::new(MISNAMED).with(repo).with(int(after.0)?))
}

/// The event that a statement finds, and who has signed it.
fn first_signed(session: &mut Session, step: Step) -> Result<Option<(EventSeq, HostId)>, StoreError> {
    let rows = session.rows(step)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let host: &str = row.try_get(1).map_err(unreadable)?;
    let seq = EventSeq(nat(row.try_get(0).map_err(unreadable)?)?);
    Ok(Some((seq, host.parse().map_err(StoreError::damaged)?)))
}

/// The statement that keeps the signature of an entry with events.
///
/// # Errors
/// When a number is none for a column.
pub(super) fn signature_step(
    repo: i32,
    (host, n, link): (HostId, EntryNo, &Digest),
    journal: &JournalHead,
    signature: Signature,
) -> Result<Step, StoreError> {
    let sql =
        "insert into provost.signature (repo, event, n, host, mac, sig) values ($1, $2, $3, $4, $5, $6)";
    Ok(Step::new(sql)
        .with(repo)
        .with(int(journal.seq.0)?)
        .with(int(n.0)?)
        .with(host.to_string())
        .with(link.as_bytes().to_vec())
        .with(signature.into_bytes()))
}

impl PostgresStore {
    /// Checks who has signed what was written since this daemon has last looked; where that was.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] with the first entry that no member has signed.
    pub(super) fn check_signatures(&mut self, n: EntryNo, journal: &JournalHead) -> Result<At, StoreError> {
        let Self { keys, session, key, repo, .. } = self;
        keys.learn(session, *repo, key)?;
        let since = keys.known.checked;
        keys.check_rest(session, *repo, (n, journal))?;
        Ok(since)
    }
}
