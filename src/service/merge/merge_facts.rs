//! Collects the core's facts about the files that a merge changes: the contracts that it breaks, and the
//! reservations and intents of agents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::contracts::Binding;
use super::super::{Blocked, ContractMismatch, Edit, Obstacle, Provost, Staged, Violation};
use super::MergeError;
use super::compare::{ConflictKind, MergeConflict};
use provost_base::limits::{MERGE_TOLD_MAX, SOURCE_BYTES_MAX, STAGED_FILES_MAX};
use provost_base::{ContractId, RepoPath};
use provost_domain::command::FollowContracts;
use provost_domain::view::{ClaimsOn, ContractsOn, IntentsOn, LiveLocks};
use provost_domain::{Refusal, unknown};
use provost_workspace::git_objects::TreeChange;

/// The collected facts.
#[derive(Clone, Default, Debug)]
pub(super) struct MergeFacts {
    /// The contracts that the merge breaks and the trunk alone does not.
    pub(super) contracts: Vec<MergeConflict>,
    /// The reservations of agents, as sentences that begin with the agent's name.
    pub(super) held: Vec<String>,
    /// The intents of agents, in the same form.
    pub(super) announced: Vec<String>,
    /// The contracts that move with renamed files.
    pub(super) moves: Vec<(ContractId, RepoPath)>,
}

/// A changed file with both contents.
struct Changed {
    path: RepoPath,
    before: Option<Arc<[u8]>>,
    after: Option<Arc<[u8]>>,
}

impl Provost {
    /// Compares the differences between the trunk and a merged tree with the state of the core. Every lock and
    /// claim counts, since only the commits tell whose the branch is.
    pub(super) async fn merge_facts(&self, changes: Arc<Vec<TreeChange>>) -> Result<MergeFacts, MergeError> {
        let mut all = MergeFacts::default();
        for from in (0..changes.len()).step_by(STAGED_FILES_MAX) {
            let some: Vec<TreeChange> = changes.iter().skip(from).take(STAGED_FILES_MAX).cloned().collect();
            self.collect_some(some, &changes, &mut all).await?;
        }
        for list in [&mut all.held, &mut all.announced] {
            list.truncate(MERGE_TOLD_MAX);
        }
        all.contracts.truncate(MERGE_TOLD_MAX);
        Ok(all)
    }

    async fn collect_some(
        &self,
        some: Vec<TreeChange>,
        changes: &[TreeChange],
        all: &mut MergeFacts,
    ) -> Result<(), MergeError> {
        let paths: Vec<RepoPath> = some.iter().filter_map(|it| RepoPath::as_is(&it.path)).collect();
        let bound = self.view(ContractsOn(paths.clone())).await?;
        let bound: BTreeSet<RepoPath> =
            paths.iter().zip(bound).filter(|(_, it)| !it.is_empty()).map(|(path, _)| path.clone()).collect();
        let concerned = self.concerned_of(&paths).await?;
        if bound.is_empty() && concerned.is_empty() {
            return Ok(());
        }
        let of = |it: &TreeChange| {
            RepoPath::as_is(&it.path).is_some_and(|it| bound.contains(&it) || concerned.contains(&it))
        };
        let mut wanted: Vec<TreeChange> = some.into_iter().filter(of).collect();
        // The file of a contract may have been renamed.
        let renames = renames(&wanted, changes);
        wanted
            .extend(renames.values().flat_map(|to| changes.iter().filter(move |it| it.path == *to)).cloned());
        let files = self.contents_of(wanted).await?;
        self.broken_contracts(&files, &bound, &renames, all).await?;
        self.held_of(files.into_iter().filter(|it| concerned.contains(&it.path)).collect(), all).await
    }

    /// Returns those of these files on which agents have a lock, a claim or an intent.
    async fn concerned_of(&self, paths: &[RepoPath]) -> Result<BTreeSet<RepoPath>, Refusal> {
        let locks = self.view(LiveLocks { holder: None, files: paths.to_vec() }).await?.0;
        let claims = self.view(ClaimsOn { files: paths.to_vec(), others_than: unknown() }).await?;
        let intents = self.view(IntentsOn(paths.to_vec())).await?;
        let mut found: BTreeSet<RepoPath> = locks.iter().map(|it| it.it.at.file().clone()).collect();
        found.extend(paths.iter().zip(claims).filter_map(|(path, it)| it.map(|_| path.clone())));
        let announced = intents.iter().flat_map(|it| it.files.iter().map(|it| it.path.clone()));
        let asked: BTreeSet<&RepoPath> = paths.iter().collect();
        found.extend(announced.filter(|it| asked.contains(it)));
        Ok(found)
    }

    async fn contents_of(&self, files: Vec<TreeChange>) -> Result<Vec<Changed>, MergeError> {
        self.with_objects(move |objects| {
            let mut found = Vec::new();
            let sides = files.iter().flat_map(|it| [&it.old, &it.new]).flatten();
            let ids: Vec<&str> = sides.filter(|it| it.is_regular()).map(|it| &*it.object).collect();
            let mut contents = objects.contents(&ids)?.into_iter();
            // A file that is too large to read is replaced by content beyond the bound, which counts as too large, too.
            let too_large = || vec![b' '; SOURCE_BYTES_MAX + 1];
            let mut next = |it: &Option<_>| {
                let file: &provost_workspace::git_objects::TreeFile = it.as_ref()?;
                let content = if file.is_regular() { contents.next().flatten() } else { Some(Vec::new()) };
                Some(Arc::from(content.unwrap_or_else(too_large)))
            };
            for it in &files {
                let (before, after) = (next(&it.old), next(&it.new));
                if let Some(path) = RepoPath::as_is(&it.path) {
                    found.push(Changed { path, before, after });
                }
            }
            Ok(found)
        })
        .await
    }

    async fn broken_contracts(
        &self,
        files: &[Changed],
        bound: &BTreeSet<RepoPath>,
        renames: &BTreeMap<RepoPath, String>,
        all: &mut MergeFacts,
    ) -> Result<(), MergeError> {
        let target = |path: &RepoPath| renames.iter().find(|(_, to)| to.as_str() == path.as_str());
        let counts = |it: &&Changed| bound.contains(&it.path) || target(&it.path).is_some();
        let (mut after, mut deleted, mut before) = (Vec::new(), Vec::new(), Vec::new());
        for it in files.iter().filter(counts) {
            let renamed_from = target(&it.path).map(|(from, _)| from.clone());
            match &it.after {
                Some(content) => {
                    after.push(Staged {
                        path: it.path.clone(),
                        content: Some(content.clone()),
                        renamed_from,
                    });
                }
                None if renames.contains_key(&it.path) => {}
                None => deleted.push(it.path.clone()),
            }
            if let Some(content) = &it.before {
                let (path, content) = (it.path.clone(), Some(content.clone()));
                before.push(Staged { path, content, renamed_from: None });
            }
        }
        let (checked, moves) = self.compare_contracts(None, Binding::All, after, deleted).await?;
        all.moves.extend(moves);
        if checked.violations.is_empty() {
            return Ok(());
        }
        // A contract that the trunk itself breaks does not count against this branch.
        let (trunk, _) = self.compare_contracts(None, Binding::All, before, Vec::new()).await?;
        let is_old = |it: &Violation| {
            trunk.violations.iter().any(|old| old.contract.id == it.contract.id && old.fault == it.fault)
        };
        all.contracts.extend(checked.violations.iter().filter(|it| !is_old(it)).map(of_contract));
        Ok(())
    }

    async fn held_of(&self, files: Vec<Changed>, all: &mut MergeFacts) -> Result<(), MergeError> {
        let edit = |it: Changed| {
            let content = |it: Option<Arc<[u8]>>| it.unwrap_or_else(|| Arc::from(Vec::new()));
            let change = Some((content(it.before), content(it.after)));
            Edit { path: it.path, change, symbol: None, fails: false }
        };
        let edits: Vec<Edit> = files.into_iter().map(edit).collect();
        let guarded = self.guard(&unknown(), None, &edits).await?;
        all.held.extend(guarded.blocked.iter().map(of_blocked));
        let written = guarded.written.iter();
        all.held
            .extend(written.map(|it| format!("{} writes {} in a work tree of its own", it.holder, it.at)));
        let near = guarded.near.iter();
        all.announced.extend(
            near.map(|(it, at)| format!("{} has announced a change of {at}: {}", it.agent, it.description)),
        );
        Ok(())
    }

    /// Moves contracts with the files that were renamed between two commits of the trunk, for a daemon that moved
    /// the trunk and ended before it did so. Contracts that have moved already stay.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] also if the commits cannot be compared; then the run is still owed.
    pub(super) async fn follow_moves_of(&self, from: &str, to: &str) -> Result<(), Refusal> {
        let (from, to) = (from.to_owned(), to.to_owned());
        let found = async {
            let changes = self.with_objects(move |objects| Ok(objects.changes(&from, &to)?)).await?;
            self.merge_facts(Arc::new(changes)).await
        };
        match found.await {
            Ok(gathered) => self.follow_moves(gathered.moves).await,
            Err(MergeError::Refused(refusal)) => Err(refusal),
            Err(error) => Err(Refusal::Unavailable { why: error.to_string().into() }),
        }
    }

    /// Moves contracts with renamed files, once the trunk has the renames.
    pub(super) async fn follow_moves(&self, moves: Vec<(ContractId, RepoPath)>) -> Result<(), Refusal> {
        match moves.is_empty() {
            true => Ok(()),
            false => self.submit(self.system(), FollowContracts { moves }).await.map(drop),
        }
    }
}

/// Returns the removed files whose content appears in a new file, with the new path.
fn renames(gone: &[TreeChange], changes: &[TreeChange]) -> BTreeMap<RepoPath, String> {
    let mut found = BTreeMap::new();
    for it in gone.iter().filter(|it| it.new.is_none()) {
        let same = |other: &&TreeChange| {
            other.old.is_none()
                && other.new.as_ref().map(|it| &it.object) == it.old.as_ref().map(|it| &it.object)
        };
        if let (Some(path), Some(to)) = (RepoPath::as_is(&it.path), changes.iter().find(same)) {
            found.insert(path, to.path.clone());
        }
    }
    found
}

fn of_contract(it: &Violation) -> MergeConflict {
    let contract = &it.contract;
    let parties = contract
        .responder
        .as_ref()
        .map_or_else(|| contract.proposer.to_string(), |other| format!("{} and {other}", contract.proposer));
    let did = match &it.fault {
        ContractMismatch::Changed(now) => format!("it would be `{now}`"),
        ContractMismatch::Missing => "it would be gone".into(),
        ContractMismatch::Deleted => "its file would be gone".into(),
        ContractMismatch::Untold(why) => format!("it cannot be told: {why}"),
    };
    let text = format!(
        "contract {} of {parties} says `{}` of {}; {did}",
        contract.id, contract.signature, contract.at
    );
    let symbol = Some(contract.at.symbol().to_owned());
    MergeConflict { kind: ConflictKind::Contract, file: it.file.to_string(), symbol, text }
}

fn of_blocked(it: &Blocked) -> String {
    let doing = it.doing.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    match &it.by {
        Obstacle::Lock(lock) => format!("{} has a lock on {}{doing}", lock.it.holder, lock.it.at),
        Obstacle::Claim(claim) => {
            let owner = claim.held.owner().map_or_else(|| "an agent".to_owned(), ToString::to_string);
            format!("{owner} has claimed {}{doing}", claim.file)
        }
    }
}
