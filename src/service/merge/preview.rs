//! The preview of a merge: its results, before anything is moved.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Provost;
use super::compare::{ConflictKind, MergeConflict, compared, is_called_by};
use super::merge_order::{Standing, ordered};
use super::owner::{Makers, Owner};
use super::study::{SideFacts, Study};
use super::{MergeError, MergeOrder, Named};
use provost_base::limits::{MERGE_BRANCHES_MAX, MERGE_TOLD_MAX};
use provost_domain::Refusal;
use provost_domain::command::MergeAsked;
use provost_syntax::Cache;
use provost_workspace::git_objects::{Objects, TextConflict, TreeChange};

/// The preview of one branch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchPreview {
    /// Its name.
    pub branch: String,
    /// The commit that it names.
    pub commit: String,
    /// The agent that made it, if that is known.
    pub owner: Option<Owner>,
    /// The number of files that it changes.
    pub files: usize,
    /// Whether the trunk contains it already.
    pub is_merged: bool,
    /// Whether the trunk can be fast-forwarded to it.
    pub is_ahead: bool,
    /// Its conflicts with the trunk.
    pub conflicts: Vec<MergeConflict>,
    /// The reservations of agents that it touches, each as a sentence.
    pub held: Vec<String>,
    /// The intents of agents that it touches, each as a sentence.
    pub announced: Vec<String>,
    /// Files that run later, or instruct agents.
    pub settings: Vec<String>,
    /// The reason for its place in the order.
    pub reason: String,
}

/// Two branches that collide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PairPreview {
    /// The branch that is merged first.
    pub one: String,
    /// The branch that is merged second.
    pub other: String,
    /// Their conflicts.
    pub conflicts: Vec<MergeConflict>,
}

/// The result that a merge would have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergePreview {
    /// The branch into which the others are merged.
    pub into: String,
    /// The commit that it names.
    pub commit: String,
    /// The branches, in the order in which they are merged.
    pub branches: Vec<BranchPreview>,
    /// The pairs that collide.
    pub pairs: Vec<PairPreview>,
    /// The checks of the merged tree.
    pub checks: Vec<String>,
    /// Whether calls were searched in the whole tree, and not only in changed files.
    pub is_whole: bool,
}

/// A branch as git's objects show it.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    pub(super) branch: String,
    pub(super) commit: String,
    pub(super) is_merged: bool,
    pub(super) is_ahead: bool,
    /// The merged tree; `None` if the text is in conflict.
    pub(super) tree: Option<String>,
    pub(super) conflicts: Vec<MergeConflict>,
    /// The differences between the trunk and the merged tree; without a merged tree, the changes of the branch.
    pub(super) changes: Vec<TreeChange>,
    pub(super) makers: Makers,
    pub(super) facts: SideFacts,
}

/// Finds the commits of the branches in a request.
pub(super) fn named(objects: &Objects, order: &MergeOrder) -> Result<Named, MergeError> {
    let repository = objects.repository();
    if order.branches.is_empty() {
        return Err(MergeError::Nothing);
    }
    if order.branches.len() > MERGE_BRANCHES_MAX {
        return Err(Refusal::too_long("a merge", MERGE_BRANCHES_MAX, "branches").into());
    }
    let into = match &order.into {
        Some(into) => repository.branch_name(into)?,
        None => repository.checked_out()?.ok_or(MergeError::NoTrunk)?,
    };
    let trunk = repository.commit_of(&into)?;
    let mut branches: Vec<(String, String)> = Vec::new();
    for (at, asked) in order.branches.iter().enumerate() {
        let name = repository.branch_name(asked)?;
        if name == into {
            return Err(MergeError::Itself(name));
        }
        if branches.iter().any(|(it, _)| *it == name) {
            return Err(MergeError::Twice(name));
        }
        let commit = repository.commit_of(&name)?;
        if let Some(seen) = order.commits.get(at).filter(|it| **it != commit) {
            return Err(MergeError::HasMoved { branch: name, seen: seen.clone(), now: commit });
        }
        branches.push((name, commit));
    }
    Ok(Named { into: (into, trunk), branches })
}

/// Finds the branches of a request for the queue.
pub(super) fn asked(
    objects: &Objects,
    order: &MergeOrder,
) -> Result<(Box<str>, Vec<MergeAsked>), MergeError> {
    let named = named(objects, order)?;
    let mut found = Vec::new();
    for (branch, commit) in named.branches {
        let summary = match objects.base_of(&named.into.1, &commit)? {
            Some(base) => match objects.changes(&base, &commit)?.len() {
                1 => "1 file".into(),
                files => format!("{files} files"),
            },
            None => "a history of its own".into(),
        };
        found.push(MergeAsked { branch: branch.into(), commit: commit.into(), summary: summary.into() });
    }
    Ok((named.into.0.into(), found))
}

/// Turns git's message about a file into a conflict.
fn of_text(it: TextConflict) -> MergeConflict {
    MergeConflict { kind: ConflictKind::Text, file: it.path, symbol: None, text: it.why }
}

/// Returns the error for two branches whose common commit is missing in a shallow clone.
pub(super) fn cut_off(branch: &str, into: &str) -> String {
    format!(
        "{branch} and {into} have no commit in common in this clone, which has only a part of the history; get the rest with \
         `git fetch --unshallow`, and merge again"
    )
}

/// Compares one branch with the trunk.
pub(super) fn look(
    study: &mut Study<'_>,
    objects: &Objects,
    trunk: (&str, &str),
    (branch, commit): (&str, &str),
    sides: &mut BTreeMap<String, SideFacts>,
) -> Result<Looked, MergeError> {
    let mut looked = Looked {
        branch: branch.to_owned(),
        commit: commit.to_owned(),
        is_merged: objects.is_ancestor(commit, trunk.1)?,
        is_ahead: objects.is_ancestor(trunk.1, commit)?,
        tree: None,
        conflicts: Vec::new(),
        changes: Vec::new(),
        makers: Makers::of(&objects.commits(Some(trunk.1), commit)?),
        facts: SideFacts::default(),
    };
    if looked.is_merged {
        return Ok(looked);
    }
    let Some(base) = objects.base_of(trunk.1, commit)? else {
        let text = match objects.repository().is_shallow() {
            true => cut_off(branch, trunk.0),
            false => {
                format!("{branch} and {} have no commit in common: their histories are unrelated", trunk.0)
            }
        };
        let conflict = MergeConflict { kind: ConflictKind::Text, file: String::new(), symbol: None, text };
        looked.conflicts.push(conflict);
        return Ok(looked);
    };
    looked.facts = study.side(&base, commit)?;
    if looked.is_ahead {
        looked.tree = Some(objects.tree_of(commit)?);
    } else {
        let merged = objects.merge(trunk.1, commit)?;
        if merged.conflicts.is_empty() {
            looked.tree = Some(merged.tree);
        }
        looked.conflicts.extend(merged.conflicts.into_iter().take(MERGE_TOLD_MAX).map(of_text));
        if !sides.contains_key(&base) {
            let facts = study.side(&base, trunk.1)?;
            sides.insert(base.clone(), facts);
        }
        let theirs = &sides[&base];
        looked.conflicts.extend(compared((trunk.0, theirs), (branch, &looked.facts)));
    }
    looked.changes = match &looked.tree {
        Some(tree) => objects.changes(&objects.tree_of(trunk.1)?, tree)?,
        // If git cannot merge the text, the branch's own changes count.
        None => looked.facts.changes.clone(),
    };
    objects.see_that_there_are(&looked.changes)?;
    Ok(looked)
}

/// Returns the conflicts of two branches with each other, of text and of symbols.
fn pair(objects: &Objects, one: &Looked, other: &Looked) -> Result<Vec<MergeConflict>, MergeError> {
    let mut found = Vec::new();
    let shares_a_file = {
        let mine: std::collections::BTreeSet<&str> = one.facts.changes.iter().map(|it| &*it.path).collect();
        let beside = |a: &str, b: &str| a.starts_with(&format!("{b}/")) || b.starts_with(&format!("{a}/"));
        other
            .facts
            .changes
            .iter()
            .any(|it| mine.contains(it.path.as_str()) || mine.iter().any(|mine| beside(mine, &it.path)))
    };
    let is_related = objects.base_of(&one.commit, &other.commit)?.is_some();
    // If they change no common file, git has nothing to merge.
    if shares_a_file && is_related {
        let merged = objects.merge(&one.commit, &other.commit)?;
        found.extend(merged.conflicts.into_iter().map(of_text));
    }
    found.extend(compared((&one.branch, &one.facts), (&other.branch, &other.facts)));
    found.truncate(MERGE_TOLD_MAX);
    Ok(found)
}

/// The facts about all branches that come from git's objects.
struct AllLooked {
    named: Named,
    branches: Vec<Looked>,
    pairs: Vec<(usize, usize, Vec<MergeConflict>)>,
    is_whole: bool,
}

fn look_at_all(objects: &Objects, order: &MergeOrder, cache: &Cache) -> Result<AllLooked, MergeError> {
    let named = named(objects, order)?;
    let trunk = (named.into.0.as_str(), named.into.1.as_str());
    let (mut study, mut sides, mut branches) = (Study::new(objects, cache), BTreeMap::new(), Vec::new());
    for (branch, commit) in &named.branches {
        branches.push(look(&mut study, objects, trunk, (branch, commit), &mut sides)?);
    }
    let mut pairs = Vec::new();
    for (at, one) in branches.iter().enumerate() {
        for (beside, other) in branches.iter().enumerate().skip(at + 1) {
            if one.is_merged || other.is_merged {
                continue;
            }
            let conflicts = pair(objects, one, other)?;
            if !conflicts.is_empty() {
                pairs.push((at, beside, conflicts));
            }
        }
    }
    let is_whole = study.is_whole;
    Ok(AllLooked { named, branches, pairs, is_whole })
}

impl Provost {
    /// Returns the result that a merge of some branches would have. Changes no ref, no index and no file.
    ///
    /// # Errors
    /// [`MergeError`].
    pub async fn preview_merge(&self, order: MergeOrder) -> Result<MergePreview, MergeError> {
        let cache = self.index().cache().clone();
        let work = move |objects: &Objects| look_at_all(objects, &order, &cache);
        let all = self.with_objects(work).await?;
        let changes = all.branches.iter().map(|it| it.changes.clone()).collect();
        let mut settings = self.settings_among(changes).await?.into_iter();
        let mut standings = Vec::new();
        let mut previews = Vec::new();
        for (at, looked) in all.branches.iter().enumerate() {
            let preview = self.previewed(looked, settings.next().unwrap_or_default()).await?;
            let calls = |(it, other): (usize, &Looked)| {
                (it != at && is_called_by(&looked.facts, &other.facts)).then_some(it)
            };
            let holder =
                |all: &[String]| all.first().and_then(|it| it.split_whitespace().next()).map(str::to_owned);
            standings.push(Standing {
                conflicts: !preview.conflicts.is_empty(),
                breaks: preview.conflicts.iter().any(|it| it.kind == ConflictKind::Contract),
                held: holder(&preview.held),
                announced: holder(&preview.announced),
                callers: all.branches.iter().enumerate().filter_map(calls).collect(),
            });
            previews.push(Some(preview));
        }
        let names: Vec<&str> = all.branches.iter().map(|it| it.branch.as_str()).collect();
        let order = ordered(&standings, &names);
        let mut branches = Vec::new();
        for (at, reason) in &order {
            branches.extend(previews[*at].take().map(|it| BranchPreview { reason: reason.clone(), ..it }));
        }
        let place = |of: usize| order.iter().position(|(at, _)| *at == of);
        let pairs = all.pairs.into_iter().map(|(one, other, conflicts)| {
            let (one, other) = if place(one) <= place(other) { (one, other) } else { (other, one) };
            PairPreview { one: names[one].to_owned(), other: names[other].to_owned(), conflicts }
        });
        let (pairs, (into, commit)) = (pairs.collect(), all.named.into);
        let checks = self.merge_settings().checks.iter().map(ToString::to_string).collect();
        Ok(MergePreview { into, commit, branches, pairs, checks, is_whole: all.is_whole })
    }

    /// Adds the facts of the core: the owner, contracts, reservations and intents.
    async fn previewed(&self, looked: &Looked, settings: Vec<String>) -> Result<BranchPreview, MergeError> {
        let owner = self.owner_of(&looked.branch, &looked.makers).await?;
        let gathered = self.merge_facts(Arc::new(looked.changes.clone())).await?;
        let mut conflicts = looked.conflicts.clone();
        conflicts.extend(gathered.contracts);
        Ok(BranchPreview {
            branch: looked.branch.clone(),
            commit: looked.commit.clone(),
            owner,
            files: looked.facts.changes.len(),
            is_merged: looked.is_merged,
            is_ahead: looked.is_ahead,
            conflicts,
            held: gathered.held,
            announced: gathered.announced,
            settings,
            reason: String::new(),
        })
    }
}
