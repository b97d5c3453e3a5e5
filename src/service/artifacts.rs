//! Artifacts and the user's files: shows a worker's changes as differences, writes them, and undoes them.
//!
//! Nothing else in the daemon changes the user's files for a worker. Promises: the old content is saved before it is
//! replaced; each file has its old or its new content, whenever the daemon dies; a newer edit is merged or left
//! alone, never lost; no file outside the workspace is read or written. Policy decides whether files may be written,
//! and the journal records an apply file by file. An apply goes on when the asking client has disconnected. A6s 6.8.

mod agreed;
mod apply;
mod apply_error;
mod artifact_store;
mod changes;
mod held;
mod one_step;
mod places;
mod preview;
mod recovery;
mod undo;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard, RwLock as Together, Semaphore};

use super::Provost;
pub use agreed::{Agreed, WouldWrite};
pub use apply_error::ApplyError;
use artifact_store::ArtifactStore;
pub use changes::Discarded;
pub use held::Held;
use provost_base::limits::{APPLIERS_MAX, ARTIFACT_BYTES_MAX, DIFF_BYTES_MAX, DIFF_MS_MAX, DIFFS_BYTES_MAX};
use provost_base::{AgentId, ApplyId, ApprovalId, Digest, RepoPath, WITH_BACKSLASH, WatchPatterns};
use provost_domain::command::ApplyFiles;
use provost_domain::view::{InTheWay, WaitingOne};
use provost_domain::{
    Answer, ApplyFile, Artifact, Event, EventKind, Principal, Refusal, Reservation, ReservationKind, Taking,
};
use provost_workspace::apply_record::Records;
use provost_workspace::approval_diff::ApprovalDiff;
use provost_workspace::artifact_path;
use provost_workspace::change_plan::{self, Check, FileWrite, Plan, Want};
use provost_workspace::diff::{self, Budget};
pub use provost_workspace::diff::{Difference, Extent};
use provost_workspace::file::{self, Found};
pub use undo::PastApply;

/// The effect of an apply on one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The file does not exist yet and will be created.
    Create,
    /// The file will have other content, or be removed.
    Modify,
    /// The file stays as it is.
    Skip,
}

/// An artifact, compared with the present file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Previewed {
    /// The path of the file in its one spelling; the path as the caller wrote it where it names no file.
    pub path: String,
    /// The effect that an apply would have.
    pub action: Action,
    /// The difference in git's form, with its size.
    pub diff: Option<Difference>,
    /// The reason why an apply would not write the file.
    pub reason: Option<String>,
    /// Whether the file, in its place, would be run later or instruct agents.
    pub runs_later: bool,
}

impl Previewed {
    /// Turns this into a file that an apply would skip, for this reason.
    fn skip(&mut self, why: String) {
        (self.action, self.diff, self.runs_later) = (Action::Skip, None, false);
        self.reason = Some(why);
    }
}

/// The outcome of an apply, file by file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    /// The number of files that were written.
    pub applied: u32,
    /// The number of files that needed no change.
    pub skipped: u32,
    /// The errors of the other files, one text each.
    pub errors: Vec<String>,
    /// The id by which the apply can be undone; `None` when there was nothing to write.
    pub apply: Option<ApplyId>,
}

/// The configuration of applies.
pub struct ApplyRules<'a> {
    /// The patterns of files that are never written.
    pub deny: &'a [String],
    /// Whether contents may be written that no run of this daemon has left exactly so.
    pub unknown: bool,
    /// Whether settings that run later may be written.
    pub settings: bool,
    /// The most artifacts in one call that brings their contents.
    pub files: usize,
    /// Finds the files that are never written because they run outside of every jail.
    pub held: Held,
}

/// The rules in the form in which they are applied.
struct Bounds {
    /// The parsed patterns, or the reason why they cannot be used; then nothing is written.
    deny: Result<WatchPatterns, String>,
    unknown: bool,
    settings: bool,
    files: usize,
    held: Held,
}

impl Bounds {
    fn of(rules: ApplyRules<'_>) -> Arc<Self> {
        let deny = WatchPatterns::parse(rules.deny);
        let deny = deny.map_err(|err| format!("the configuration's a6s.deny is wrong: {err}"));
        let ApplyRules { unknown, settings, files, held, .. } = rules;
        Arc::new(Self { deny, unknown, settings, files, held })
    }

    fn set_apart(&self, path: &RepoPath) -> Result<(), String> {
        if self.settings { Ok(()) } else { artifact_path::set_apart(path) }
    }
}

/// The state that all applies share: their records, their bounds, and their turns.
pub struct Applying {
    records: Records,
    bounds: RwLock<Arc<Bounds>>,
    turns: Arc<Semaphore>,
    /// The files that are being written, each with a lock for the applies that wait for it.
    files: Mutex<BTreeMap<RepoPath, Arc<Turn<()>>>>,
    /// Held for writing by a change that is judged together with other files, so that the judgement holds until the change is written.
    together: Arc<Together<()>>,
    /// The number of settings, and of other files that run later, that applies have written.
    settings_written: AtomicU64,
}

impl Applying {
    /// Opens the records in the daemon's state folder.
    ///
    /// # Errors
    /// The system's error for the folder.
    pub fn open(state: &Path, rules: ApplyRules<'_>) -> io::Result<Self> {
        Ok(Self {
            records: Records::open(state)?,
            bounds: RwLock::new(Bounds::of(rules)),
            turns: Arc::new(Semaphore::new(APPLIERS_MAX)),
            files: Mutex::default(),
            together: Arc::default(),
            settings_written: AtomicU64::new(0),
        })
    }

    fn bounds(&self) -> Arc<Bounds> {
        self.bounds.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until no other apply writes this file.
    async fn file(&self, path: &RepoPath) -> OwnedMutexGuard<()> {
        let turn = {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            files.retain(|_, it| Arc::strong_count(it) > 1);
            files.entry(path.clone()).or_default().clone()
        };
        turn.lock_owned().await
    }
}

/// An artifact on its way through an apply: the planned change of its file, or the reason why there is none.
struct ApplyItem {
    /// The path as people see it.
    shown: String,
    way: Result<FileWrite, Instead>,
}

impl ApplyItem {
    /// Returns the path of the file, and whether the apply removes it.
    fn place(&self) -> Option<(RepoPath, bool)> {
        match &self.way {
            Ok(order) => Some((order.path.clone(), order.is_removal())),
            Err(Instead::Log) => None,
            Err(Instead::Refused(_)) => Some((RepoPath::parse(&self.shown).ok()?, false)),
        }
    }
}

/// The reason why an artifact leads to no change.
enum Instead {
    /// The artifact is a worker's log, which is not a file of the workspace.
    Log,
    /// The file is never written, for this reason.
    Refused(String),
}

impl Provost {
    /// Replaces the rules; applies that begin later follow them.
    pub fn set_apply_rules(&self, rules: ApplyRules<'_>) {
        let applying = &self.0.applying;
        *applying.bounds.write().unwrap_or_else(PoisonError::into_inner) = Bounds::of(rules);
    }

    /// Compares artifacts with the present files. Changes nothing.
    ///
    /// # Errors
    /// [`ApplyError`] when there are too many, or when the daemon cannot tell which agents have reserved the files.
    pub async fn preview(
        &self,
        who: &Principal,
        artifacts: Vec<Artifact>,
    ) -> Result<Vec<Previewed>, ApplyError> {
        self.few_enough(&artifacts)?;
        self.compare_all(who, artifacts).await
    }

    async fn compare_all(
        &self,
        who: &Principal,
        artifacts: Vec<Artifact>,
    ) -> Result<Vec<Previewed>, ApplyError> {
        let mut asked = self.read_artifacts(artifacts);
        let keepers = self.keepers(who.agent(), &asked).await?;
        let provost = self.clone();
        let compared = move || {
            provost.withhold(&mut asked);
            let leaving = leaving(&asked, &keepers);
            let until = Instant::now() + Duration::from_millis(DIFF_MS_MAX);
            let (mut store, mut left) = (provost.artifact_store(), DIFFS_BYTES_MAX);
            let places: Vec<Option<(RepoPath, bool)>> = asked.iter().map(ApplyItem::place).collect();
            let one = |(asked, keeper)| {
                let budget = Budget { until, bytes: left.min(DIFF_BYTES_MAX) };
                let previewed = provost.compare(asked, keeper, (&mut store, &leaving), budget);
                left = left.saturating_sub(previewed.diff.as_ref().map_or(0, |it| it.text.len()));
                previewed
            };
            let mut found: Vec<Previewed> = asked.into_iter().zip(keepers).map(one).collect();
            places::withhold_together(&mut found, &places);
            found
        };
        Ok(self.in_applying_turn(compared).await?)
    }

    /// Writes artifacts into the workspace, one after the other. Each is counted once: written, skipped or an error.
    ///
    /// # Errors
    /// [`ApplyError`]; then nothing has changed.
    pub async fn apply(
        &self,
        who: &Principal,
        artifacts: Vec<Artifact>,
    ) -> Result<Answer<Applied>, ApplyError> {
        self.few_enough(&artifacts)?;
        self.apply_all(who, artifacts, None).await
    }

    async fn apply_all(
        &self,
        who: &Principal,
        artifacts: Vec<Artifact>,
        agreed: Option<Agreed>,
    ) -> Result<Answer<Applied>, ApplyError> {
        // A caller whose artifacts cannot be applied is told so, and no approver is asked about them.
        let sorted = self.sorted(who.agent(), artifacts).await?;
        self.write(who, sorted, None, agreed).await
    }

    /// Returns the changes that an apply of these artifacts would make for this agent.
    async fn sorted(&self, who: &AgentId, artifacts: Vec<Artifact>) -> Result<Sorted, ApplyError> {
        let asked = self.read_artifacts(artifacts);
        let keepers = self.keepers(who, &asked).await?;
        let provost = self.clone();
        Ok(self.in_applying_turn(move || provost.sort(asked, keepers)).await?)
    }

    /// Waits until an approval is granted, is denied or has run out; `false` when `patience` was over first.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn answered(&self, approval: ApprovalId, patience: Duration) -> Result<bool, Refusal> {
        let until = tokio::time::Instant::now() + patience;
        let concerns = |event: &Event| match &event.kind {
            EventKind::ApprovalAnswered { approval: it, .. }
            | EventKind::ApprovalExpired { approval: it } => *it == approval,
            _ => false,
        };
        let over = || async { Ok(self.view(WaitingOne(approval)).await?.is_none().then_some(())) };
        Ok(self.engine().wait_for(until, concerns, over).await?.is_some())
    }

    /// Asks policy, and writes the planned changes if it allows them.
    async fn write(
        &self,
        who: &Principal,
        sorted: Sorted,
        undoes: Option<ApplyId>,
        agreed: Option<Agreed>,
    ) -> Result<Answer<Applied>, ApplyError> {
        let Sorted { orders, applied, shown, takes, settings } = sorted;
        let diff = shown.done();
        if agreed.is_some_and(|it| it != Agreed::to(&orders, undoes, &diff)) {
            return Err(ApplyError::Changed);
        }
        if orders.is_empty() {
            return Ok(Answer::Done(applied));
        }
        let files = orders.iter().map(|it| ApplyFile { path: it.path.clone(), gone: it.is_removal() });
        let later = orders.iter().filter(|it| it.runs_later);
        let of = takes.as_ref().map(|it| it.task.clone());
        let worker = match &of {
            Some(task) => self.task(task).await.ok().map(|it| it.order.worker.clone()),
            None => None,
        };
        let verb = ApplyFiles {
            digest: digest_of(&orders, undoes),
            files: files.collect(),
            later: later.map(|it| it.path.clone()).collect(),
            diff,
            undoes,
            of,
            worker,
        };
        // An apply that has begun is owed, so it goes on after its commit even if the caller disconnects.
        let (provost, who) = (self.clone(), who.clone());
        let carried_out = tokio::spawn(async move {
            let begun = match provost.submit_judged(&who, verb).await? {
                Answer::Done(begun) => begun,
                Answer::Parked(approval) => return Ok(Answer::Parked(approval)),
                Answer::Denied(denial) => return Ok(Answer::Denied(denial)),
            };
            let by = who.agent().clone();
            Ok(Answer::Done(
                apply::out(provost, by, begun, (orders, settings), (undoes, takes), applied).await,
            ))
        });
        carried_out.await.map_err(|_| Refusal::Stopping)?
    }

    fn few_enough(&self, artifacts: &[Artifact]) -> Result<(), ApplyError> {
        let (all, most) = (artifacts.len(), self.0.applying.bounds().files);
        if all > most { Err(ApplyError::TooMany(all, most)) } else { Ok(()) }
    }

    /// Reads artifacts as clients send them.
    fn read_artifacts(&self, artifacts: Vec<Artifact>) -> Vec<ApplyItem> {
        let root = self.root().place().path().to_string_lossy().into_owned();
        let (bounds, mut seen) = (self.0.applying.bounds(), BTreeSet::new());
        let checkouts = self.checkouts(None);
        let one = |mut artifact: Artifact| {
            let shown = shown(&artifact.path);
            if checkouts.has_with_backslash(&artifact.path) {
                return ApplyItem { shown, way: Err(Instead::Refused(WITH_BACKSLASH.into())) };
            }
            // A path that ends like a folder names one, and is refused as a folder.
            if !artifact.path.ends_with(['/', '\\', '.']) {
                artifact.path = checkouts.inside(&artifact.path).into();
            }
            let way =
                read_one(&root, &bounds, artifact).and_then(|order| match seen.insert(order.path.clone()) {
                    true => Ok(order),
                    false => Err(Instead::Refused("the same call names this file twice".into())),
                });
            ApplyItem { shown, way }
        };
        artifacts.into_iter().map(one).collect()
    }

    /// Finds the reservations of other agents that keep the asker from writing; one answer for each artifact.
    async fn keepers(&self, who: &AgentId, asked: &[ApplyItem]) -> Result<Vec<Option<Reservation>>, Refusal> {
        let files: Vec<RepoPath> =
            asked.iter().filter_map(|it| it.way.as_ref().ok()).map(|it| it.path.clone()).collect();
        let mut keepers = self.view(InTheWay { who: who.clone(), files }).await?.into_iter();
        Ok(asked.iter().map(|it| it.way.as_ref().ok().and_then(|_| keepers.next().flatten())).collect())
    }

    /// Does blocking work with files once this call gets its turn.
    async fn in_applying_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = self.0.applying.turns.clone().acquire_owned().await.map_err(|_| Refusal::Stopping)?;
        let work = move || {
            let done = work();
            drop(turn);
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| Refusal::Stopping)
    }

    fn compare(
        &self,
        asked: ApplyItem,
        keeper: Option<Reservation>,
        (store, leaving): (&mut ArtifactStore, &BTreeSet<RepoPath>),
        budget: Budget,
    ) -> Previewed {
        let skip = |path: String, reason: Option<String>| Previewed {
            path,
            action: Action::Skip,
            diff: None,
            reason,
            runs_later: false,
        };
        let mut order = match asked.way {
            Ok(order) => order,
            Err(Instead::Log) => return skip(asked.shown, Some(LOG.into())),
            Err(Instead::Refused(why)) => return skip(asked.shown, Some(why)),
        };
        let path = order.path.to_string();
        let kept = keeper.map(|stake| kept_by(&stake));
        if let Err(why) = store.complete(&mut order) {
            return skip(path, Some(why));
        }
        let found = match places::look_past(self.root().handle(), &order.path, leaving) {
            Ok(found) => found,
            Err(why) => return skip(path, Some(why)),
        };
        let old = found.as_ref().map(|it| it.bytes.as_slice());
        let mode = found.as_ref().and_then(|it| it.mode);
        let action = if found.is_none() { Action::Create } else { Action::Modify };
        let diff = match change_plan::plan(found.as_ref(), &order.want, &order.check, budget.until) {
            Ok(Plan::Same) => return skip(path, None),
            Ok(Plan::Says { bytes, mode: new }) => {
                let it = diff::difference(&path, mode.or(new), old, Some(&*bytes), budget);
                let text = diff::with_mode(it.text, (mode, new), old == Some(&*bytes));
                Difference { text, ..it }
            }
            Ok(Plan::Gone) => diff::difference(&path, mode, old, None, budget),
            Err(why) => return skip(path, Some(why)),
        };
        // A file that another agent's reservation protects from writing can be read all the same.
        let action = if kept.is_some() { Action::Skip } else { action };
        Previewed { path, action, diff: Some(diff), reason: kept, runs_later: order.runs_later }
    }

    /// Leaves the artifacts that an apply would really write, and counts the rest.
    fn sort(&self, mut asked: Vec<ApplyItem>, keepers: Vec<Option<Reservation>>) -> Sorted {
        let settings = self.0.applying.settings_written();
        self.withhold(&mut asked);
        let (mut sorted, mut store) = (Sorted { settings, ..Sorted::default() }, self.artifact_store());
        let (leaving, mut failed) = (leaving(&asked, &keepers), Vec::new());
        let until = Instant::now() + Duration::from_millis(DIFF_MS_MAX);
        for (asked, keeper) in asked.into_iter().zip(keepers) {
            let mut order = match asked.way {
                Ok(order) => order,
                Err(Instead::Log) => {
                    sorted.applied.skipped += 1;
                    continue;
                }
                Err(Instead::Refused(why)) => {
                    sorted.applied.errors.push(format!("{}: {why}", asked.shown));
                    failed.extend(RepoPath::parse(&asked.shown).map(|path| (path, false)));
                    continue;
                }
            };
            let completed = store.complete(&mut order);
            let looked = || {
                completed?;
                if let Some(stake) = keeper {
                    return Err(kept_by(&stake));
                }
                let found = places::look_past(self.root().handle(), &order.path, &leaving)?;
                let plan = change_plan::plan(found.as_ref(), &order.want, &order.check, until)?;
                Ok((found, plan))
            };
            match looked() {
                Ok((_, plan)) if plan.is_nothing() => sorted.applied.skipped += 1,
                Ok((found, plan)) => sorted.put(order, found.as_ref(), &plan, None),
                Err(why) => {
                    sorted.applied.errors.push(format!("{}: {why}", order.path));
                    failed.push((order.path.clone(), order.is_removal()));
                }
            }
        }
        sorted.keep_together(failed);
        let task = store.task_of(&sorted.orders);
        sorted.takes = task.map(|task| Taking { task, back: false });
        sorted
    }
}

/// Returns the files that a call removes, without those that another agent's reservation protects.
fn leaving(asked: &[ApplyItem], keepers: &[Option<Reservation>]) -> BTreeSet<RepoPath> {
    let free = asked.iter().zip(keepers).filter(|(_, keeper)| keeper.is_none());
    let orders = free.filter_map(|(asked, _)| asked.way.as_ref().ok());
    orders.filter(|order| order.is_removal()).map(|order| order.path.clone()).collect()
}

/// The artifacts of a call: the planned changes, and the outcome of the artifacts that lead to none.
#[derive(Default)]
struct Sorted {
    orders: Vec<FileWrite>,
    applied: Applied,
    shown: ApprovalDiff,
    /// The effect on the changes of a task, if all artifacts belong to one task.
    takes: Option<Taking>,
    /// The number of settings that applies had written when these artifacts were judged.
    settings: u64,
}

impl Sorted {
    /// Adds a planned change, as an approver would see it. `kept` is the content to write where the plan does not
    /// hold it.
    fn put(&mut self, mut order: FileWrite, found: Option<&Found>, plan: &Plan, kept: Option<&[u8]>) {
        order.sides = plan.sides(found, &order.want);
        self.shown.add(&order.path, found, plan, kept);
        self.orders.push(order);
    }
}

const LOG: &str = "a worker's log is no file of the workspace; to keep it, give it another path";

/// Reads one artifact into a planned change of a file.
fn read_one(root: &str, bounds: &Bounds, artifact: Artifact) -> Result<FileWrite, Instead> {
    let refuse = |why: &str| Err(Instead::Refused(why.into()));
    let deny = bounds.deny.as_ref().map_err(|why| Instead::Refused(why.clone()))?;
    let in_our_folder = artifact.path.starts_with(".provost/");
    match &*artifact.kind {
        "log" if in_our_folder => return Err(Instead::Log),
        "snippet" => {
            return refuse("a snippet belongs to no file of the workspace; insert it where it should be");
        }
        _ if artifact.content.len() > ARTIFACT_BYTES_MAX => {
            return refuse("its content is larger than an artifact may be");
        }
        _ => {}
    }
    let path = artifact_path::read(root, &artifact.path).map_err(Instead::Refused)?;
    artifact_path::denied(deny, &path).map_err(Instead::Refused)?;
    bounds.set_apart(&path).map_err(Instead::Refused)?;
    let want = match &*artifact.kind {
        "delete" => Want::Gone { sweep: Vec::new() },
        "binary" => Want::Bytes,
        _ => Want::Says {
            bytes: artifact.content.into_string().into_bytes().into(),
            mode: artifact.mode.map(file::plain_mode),
            program: None,
        },
    };
    let check = match artifact.base_hash {
        Some(hash) => Check::Base { hash, content: None },
        None => Check::Nothing,
    };
    Ok(FileWrite {
        id: artifact.id,
        kind: artifact.kind,
        path,
        want,
        check,
        sides: (None, None),
        runs_later: false,
    })
}

/// The longest path that is shown whole, in characters.
const SHOWN_CHARS: usize = 200;

/// Returns the path as the caller wrote it, made safe to show to people.
fn shown(path: &str) -> String {
    let plain: String =
        path.chars().take(SHOWN_CHARS).map(|it| if it.is_control() { '?' } else { it }).collect();
    if plain.is_empty() { "(no path)".into() } else { plain }
}

/// Names the holder whose reservation keeps the caller from writing.
fn kept_by(stake: &Reservation) -> String {
    match stake.kind {
        ReservationKind::Claim => format!("claimed by {}", stake.agent),
        kind => format!("claimed by {} ({})", stake.agent, kind.one()),
    }
}

/// Returns the digest of the subject of an approval: exactly these contents in these files.
fn digest_of(orders: &[FileWrite], undoes: Option<ApplyId>) -> Digest {
    let head = format!("provost apply {}", undoes.map_or(String::new(), |it| format!("undoes {it}")));
    let parts = orders.iter().map(FileWrite::fields);
    let fields: Vec<Vec<u8>> = std::iter::once(head.into_bytes()).chain(parts.flatten()).collect();
    Digest::of_fields(fields.iter().map(Vec::as_slice))
}
