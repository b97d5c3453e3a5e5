//! A run of the queue: merges each branch, compares it with everything that could forbid it, checks it, and moves
//! the trunk. A branch that is not merged is set aside with the reason, and the run goes on with the next.
//!
//! A branch whose check waits for a person's approval does not delay the others; it continues when the answer comes.
//!
//! Until the trunk is moved, the user's files and refs stay unchanged. After a crash, the run begins again: an
//! entry that was being merged is merged again; if its trunk was being moved, the trunk shows whether that was
//! done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::Provost;
use super::MergeError;
use super::check::{AskedCheck, waits};
use super::compare::{ConflictKind, MergeConflict};
use super::owner::Owner;
use super::preview::{Looked, cut_off, look};
use super::study::Study;
use super::trunk::{Followed, Moved, TrunkMove, run_works_on};
use futures_util::future::select_all;
use provost_base::limits::MERGE_TRIES_MAX;
use provost_base::{Fence, shell_word};
use provost_domain::command::MoveMerge;
use provost_domain::{MergeEntry, MergeState, Principal, Refusal};
use provost_workspace::git_objects::Objects;
use provost_workspace::git_refs::Person;

/// Longer than any check may run or wait for a place; the end of the check's task counts.
pub(super) const FOR_LONG: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The reason why a branch is not merged.
#[derive(Debug)]
pub(super) struct Aside {
    /// The cause, as a word.
    cause: &'static str,
    /// The reason, in sentences.
    why: String,
    /// Whether the owner of the branch must act.
    is_owners: bool,
}

impl Aside {
    pub(super) fn of_person(cause: &'static str, why: impl Into<String>) -> Self {
        Self { cause, why: why.into(), is_owners: false }
    }

    pub(super) fn of_owner(cause: &'static str, why: impl Into<String>) -> Self {
        Self { cause, why: why.into(), is_owners: true }
    }
}

/// The end of one try.
enum Try {
    Moved {
        /// The commit of the trunk before; `None` if it contained the branch already.
        from: Option<String>,
        /// The commit of the trunk now.
        to: String,
        /// The state of the work trees that follow the trunk.
        followed: Followed,
    },
    /// Another process has moved the trunk meanwhile.
    Again,
}

/// The outcome of an entry's turn.
enum Outcome {
    /// The entry is merged, or set aside.
    Over,
    /// Its check waits for an approval.
    Waits(AskedCheck),
    /// The entry comes later: an entry before it has the same check, which waits for an approval.
    Behind,
}

/// The reason why one try has failed.
pub(super) enum Stop {
    Aside(Aside),
    /// A check waits for an approval.
    Asked(Box<AskedCheck>),
    /// The same check of an earlier entry waits for an approval.
    Behind,
    /// The core or git has failed; the entry stays as it is.
    Broken(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Broken(refusal)
    }
}

impl From<MergeError> for Stop {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Refused(refusal) => Self::Broken(refusal),
            MergeError::Unknown(why) => {
                Self::Aside(Aside::of_person("settings", MergeError::Unknown(why).to_string()))
            }
            error => Self::Aside(Aside::of_person("git", error.to_string())),
        }
    }
}

/// A merge that is ready to be checked.
struct Ready {
    looked: Looked,
    /// The commit of the trunk before the merge.
    trunk: String,
    /// The commit to which the trunk would move.
    commit: String,
    user: Person,
}

impl Provost {
    /// Carries out an owed run of the queue.
    ///
    /// # Errors
    /// A [`Refusal`]; then the run is still owed.
    pub async fn carry_out_merges(&self, numbers: Vec<Fence>, asker: Principal) -> Result<(), Refusal> {
        let (mut next, mut waiting): (_, Vec<AskedCheck>) = (numbers, Vec::new());
        loop {
            let mut behind = Vec::new();
            for number in next {
                match self.merge_in_turn(number, &asker, None, &waiting).await? {
                    Outcome::Over => {}
                    Outcome::Waits(check) => waiting.push(check),
                    Outcome::Behind => behind.push(number),
                }
            }
            if waiting.is_empty() {
                return Ok(());
            }
            // The permit to merge is free meanwhile, so other runs go on.
            let answered = waiting.remove(self.first_answered(&waiting).await?);
            let number = answered.number;
            match self.merge_in_turn(number, &asker, Some(answered), &waiting).await? {
                Outcome::Over => {}
                Outcome::Waits(check) => waiting.push(check),
                Outcome::Behind => behind.insert(0, number),
            }
            next = behind;
        }
    }

    /// Merges one entry when it is its turn.
    async fn merge_in_turn(
        &self,
        number: Fence,
        asker: &Principal,
        asked: Option<AskedCheck>,
        waiting: &[AskedCheck],
    ) -> Result<Outcome, Refusal> {
        let turn = self.0.merging.acquire().await;
        let _turn = turn.map_err(|_| Refusal::Stopping)?;
        let entry = self.merges().await?.into_iter().find(|it| it.number == number);
        // An entry that was removed or has ended is not merged again.
        match entry.filter(|it| !it.state.is_over()) {
            Some(entry) => self.merge_one(&entry, asker, asked, waiting).await,
            None => Ok(Outcome::Over),
        }
    }

    /// Waits until one of these checks waits for no approval any more, and returns its position.
    async fn first_answered(&self, waiting: &[AskedCheck]) -> Result<usize, Refusal> {
        let answered = waiting.iter().map(|it| {
            Box::pin(async move {
                while waits(&*self.task_after(&it.task, waits, FOR_LONG).await?) {}
                Ok(())
            })
        });
        let (answered, at, _) = select_all(answered).await;
        answered.map(|()| at)
    }

    async fn merge_one(
        &self,
        entry: &Arc<MergeEntry>,
        asker: &Principal,
        mut asked: Option<AskedCheck>,
        waiting: &[AskedCheck],
    ) -> Result<Outcome, Refusal> {
        // An earlier run has ended in the middle of the move: git says how far it came.
        if let MergeState::Moving { from, to, .. } = &entry.state {
            let way = TrunkMove { branch: &entry.into, from, to };
            match self.settle_trunk(&way).await {
                Ok(Some(followed)) => {
                    self.follow_moves_of(from, to).await?;
                    self.merged(entry, Some(from), (to, &followed)).await?;
                    return Ok(Outcome::Over);
                }
                Ok(None) => {}
                Err(error) => {
                    self.set_aside(entry, None, unsettled(&error)).await?;
                    return Ok(Outcome::Over);
                }
            }
        }
        for _ in 0..MERGE_TRIES_MAX {
            self.step(entry, "merging").await?;
            let mut owner = None;
            match self.try_once(entry, asker, (asked.take(), waiting), &mut owner).await {
                Ok(Try::Moved { from, to, followed }) => {
                    self.merged(entry, from.as_deref(), (&to, &followed)).await?;
                    return Ok(Outcome::Over);
                }
                Ok(Try::Again) => {}
                Err(Stop::Aside(aside)) => {
                    self.set_aside(entry, owner.as_ref(), aside).await?;
                    return Ok(Outcome::Over);
                }
                Err(Stop::Asked(check)) => return Ok(Outcome::Waits(*check)),
                Err(Stop::Behind) => return Ok(Outcome::Behind),
                Err(Stop::Broken(refusal)) => return Err(refusal),
            }
        }
        let why = format!(
            "{} was moved by others {MERGE_TRIES_MAX} times while the branch was being checked; add it to the queue again",
            entry.into
        );
        self.set_aside(entry, None, Aside::of_person("trunk_moves", why)).await?;
        Ok(Outcome::Over)
    }

    /// Records the state of an entry.
    async fn move_entry(&self, number: Fence, to: MergeState) -> Result<(), Refusal> {
        self.submit(self.system(), MoveMerge { number, to }).await.map(drop)
    }

    pub(super) async fn step(&self, entry: &MergeEntry, step: &str) -> Result<(), Refusal> {
        self.move_entry(entry.number, MergeState::Working { step: step.into() }).await
    }

    /// Records that a branch is in the trunk. The merged commits of runs are recorded first, so that a start that
    /// finds the entry unfinished records them again.
    async fn merged(
        &self,
        entry: &MergeEntry,
        from: Option<&str>,
        (to, followed): (&str, &Followed),
    ) -> Result<(), Refusal> {
        self.note_merged(entry, from).await?;
        let note = followed.note();
        let at = self.engine().now();
        self.move_entry(entry.number, MergeState::Merged { to: to.into(), at, note: note.into() }).await
    }

    async fn set_aside(
        &self,
        entry: &MergeEntry,
        owner: Option<&Owner>,
        aside: Aside,
    ) -> Result<(), Refusal> {
        let owner = owner.filter(|_| aside.is_owners);
        let head = format!("Branch {} is not merged into {}: ", entry.branch, entry.into);
        let end = owner.map(|it| format!("\n{}", it.why_told(&entry.branch))).unwrap_or_default();
        let why = format!("{head}{}{end}", aside.why).into();
        let at = self.engine().now();
        let told = owner.filter(|it| it.is_known && !it.is_away).map(|it| it.agent.clone());
        let state = MergeState::SetAside { cause: aside.cause.into(), why, told, at };
        self.move_entry(entry.number, state).await
    }

    async fn try_once(
        &self,
        entry: &Arc<MergeEntry>,
        asker: &Principal,
        (asked, waiting): (Option<AskedCheck>, &[AskedCheck]),
        owner: &mut Option<Owner>,
    ) -> Result<Try, Stop> {
        let ready = self.made_ready(entry, owner).await?;
        let mut ready = match ready {
            Ok(ready) => ready,
            Err(trunk) => {
                self.withdraw(asked).await;
                return Ok(Try::Moved { from: None, to: trunk, followed: Followed::default() });
            }
        };
        let gathered = self.merge_facts(Arc::new(ready.looked.changes.clone())).await?;
        let mut conflicts = ready.looked.conflicts.clone();
        conflicts.extend(gathered.contracts);
        let passes = entry.passes;
        conflicts.retain(|it| it.kind == ConflictKind::Text || !passes.symbols);
        if !conflicts.is_empty() {
            let rebase = self.rebase_of(entry).await;
            return Err(Stop::Aside(conflicting(entry, &ready.trunk, &conflicts, &rebase)));
        }
        if !gathered.held.is_empty() && !passes.held {
            let why = format!(
                "agents hold what it touches: {}. Wait until they have given it back, or, as a person, merge with --with-held.",
                gathered.held.join("; ")
            );
            return Err(Stop::Aside(Aside::of_owner("held", why)));
        }
        let settings = self.settings_among(vec![ready.looked.changes.clone()]).await?.concat();
        if !settings.is_empty() && !passes.settings {
            let why = format!(
                "it changes files that run later, that the configuration protects, or that tell agents what to do: {}. Look at them, and merge with --with-settings.",
                settings.join(", ")
            );
            return Err(Stop::Aside(Aside::of_person("settings", why)));
        }
        if self.work_trees().is_held(&entry.into) {
            let why = run_works_on(&entry.into).to_string();
            return Err(Stop::Aside(Aside::of_person("in_the_way", why)));
        }
        if !passes.unchecked {
            let asked = match asked {
                Some(asked) if asked.trunk == ready.trunk => Some(asked),
                asked => {
                    // The approval was for another commit than the one that would be merged now.
                    self.withdraw(asked).await;
                    None
                }
            };
            if let Some(asked) = &asked {
                ready.commit.clone_from(&asked.commit);
            }
            self.check(entry, (&ready.trunk, &ready.commit), asker, (asked, waiting)).await?;
        }
        let way = TrunkMove { branch: &entry.into, from: &ready.trunk, to: &ready.commit };
        self.step(entry, "moving the trunk").await?;
        match self.move_trunk(entry, &way, &ready.user).await {
            Ok(Moved::Yes(followed)) => {
                self.follow_moves(gathered.moves).await?;
                Ok(Try::Moved { from: Some(ready.trunk), to: ready.commit, followed })
            }
            Ok(Moved::No) => Ok(Try::Again),
            Err(MergeError::Refused(refusal)) => Err(refusal.into()),
            Err(error) => Err(Stop::Aside(Aside::of_person("in_the_way", error.to_string()))),
        }
    }

    /// Merges an entry in git's objects. The inner `Err` is the commit of a trunk that contains the branch already.
    async fn made_ready(
        &self,
        entry: &Arc<MergeEntry>,
        owner: &mut Option<Owner>,
    ) -> Result<Result<Ready, String>, Stop> {
        let (cache, of) = (self.index().cache().clone(), entry.clone());
        let looked = self.with_objects(move |objects| looked_at(objects, &of, &cache)).await?;
        let (trunk, user, looked) = looked.map_err(Stop::Aside)?;
        if looked.is_merged {
            return Ok(Err(trunk));
        }
        *owner = self.owner_of(&looked.branch, &looked.makers).await?;
        let (of, at, by) = (entry.clone(), trunk.clone(), user.clone());
        let makers = looked.makers.clone();
        let (tree, is_ahead) = (looked.tree.clone(), looked.is_ahead);
        let commit = self
            .with_objects(move |objects| match tree {
                Some(tree) if !is_ahead => {
                    let message = message(&of, &makers, &by);
                    Ok(objects.commit(&tree, &[&at, &of.commit], (&by, &message))?)
                }
                _ => Ok(of.commit.to_string()),
            })
            .await?;
        Ok(Ok(Ready { looked, trunk, commit, user }))
    }

    /// Returns the command that rebases a branch on the trunk: in the work tree that has the branch, if one does.
    pub(super) async fn rebase_of(&self, entry: &MergeEntry) -> String {
        let branch = entry.branch.to_string();
        let folder = self.with_objects(move |objects| {
            let trees = objects.repository().work_trees()?;
            Ok(trees.into_iter().find(|it| it.branch.as_deref() == Some(branch.as_str())).map(|it| it.top))
        });
        let (into, branch) = (shell_word(&entry.into), shell_word(&entry.branch));
        match folder.await.ok().flatten() {
            Some(top) => format!("git -C {} rebase {into}", shell_word(&top.to_string_lossy())),
            None => format!("git rebase {into} {branch}"),
        }
    }
}

fn unsettled(error: &MergeError) -> Aside {
    Aside::of_person("unsettled", format!("the trunk was being moved when the daemon ended, and {error}"))
}

/// Compares one entry with the present trunk.
fn looked_at(
    objects: &Objects,
    entry: &MergeEntry,
    cache: &provost_syntax::Cache,
) -> Result<Result<(String, Person, Looked), Aside>, MergeError> {
    let repository = objects.repository();
    let Some(user) = repository.user()? else {
        let why =
            "git does not know who you are; set user.name and user.email: git config --global user.name NAME";
        return Ok(Err(Aside::of_person("no_user", why)));
    };
    let word = shell_word(&entry.branch);
    let again = format!("look at it, and add it again: `provost merge queue add {word}`");
    match repository.commit_of(&entry.branch) {
        Ok(now) if *now == *entry.commit => {}
        Ok(now) => {
            let why = format!("it was at {} when it was added, and is at {now} now; {again}", entry.commit);
            return Ok(Err(Aside::of_person("branch_moved", why)));
        }
        Err(error) => return Ok(Err(Aside::of_person("branch_gone", error.to_string()))),
    }
    let trunk = match repository.branch_name(&entry.into) {
        Ok(name) if *name != *entry.into => {
            let why = format!("{} is another name of {name} by now (git symbolic-ref); {again}", entry.into);
            return Ok(Err(Aside::of_person("no_trunk", why)));
        }
        Ok(_) => repository.commit_of(&entry.into),
        Err(error) => Err(error),
    };
    let trunk = match trunk {
        Ok(trunk) => trunk,
        Err(error) => return Ok(Err(Aside::of_person("no_trunk", error.to_string()))),
    };
    if repository.is_shallow() && objects.base_of(&trunk, &entry.commit)?.is_none() {
        return Ok(Err(Aside::of_person("shallow", cut_off(&entry.branch, &entry.into))));
    }
    let (mut study, mut sides) = (Study::new(objects, cache), BTreeMap::new());
    let names = (&*entry.into, trunk.as_str());
    let looked = look(&mut study, objects, names, (&entry.branch, &entry.commit), &mut sides)?;
    Ok(Ok((trunk, user, looked)))
}

/// Writes the text about conflicts for the owner of a branch.
fn conflicting(entry: &MergeEntry, trunk: &str, conflicts: &[MergeConflict], rebase: &str) -> Aside {
    let mut text = String::new();
    for it in conflicts {
        let file = if it.file.is_empty() { String::new() } else { format!(" {}", it.file) };
        text.push_str(&format!("\n- {}{file}: {}", it.kind.as_str(), it.text));
    }
    let kind = conflicts.iter().map(|it| it.kind).max().unwrap_or(ConflictKind::Text);
    let cause = if conflicts.iter().any(|it| it.kind == ConflictKind::Text) { "text" } else { kind.as_str() };
    let next = match cause {
        "contract" => "keep the signature, or agree on another one with the other party",
        _ => "settle each of these",
    };
    let why = format!(
        "it conflicts with {} at {trunk}:{text}\nRebase it with `{rebase}`, {next}, and add it again: \
         `provost merge queue add {}`.",
        entry.into,
        shell_word(&entry.branch)
    );
    Aside::of_owner(cause, why)
}

/// Writes the message of a merge commit, with the makers of the merged commits.
fn message(entry: &MergeEntry, makers: &super::owner::Makers, user: &Person) -> String {
    let mut text = format!("Merge branch '{}' into {}\n\n", entry.branch, entry.into);
    let own = format!("{} <{}>", user.name, user.email);
    let authors = makers.authors.iter().filter(|it| **it != own).take(20);
    authors.for_each(|it| text.push_str(&format!("Co-authored-by: {it}\n")));
    makers.agents.iter().take(20).for_each(|it| text.push_str(&format!("Provost-Agent: {it}\n")));
    makers.tasks.iter().take(20).for_each(|it| text.push_str(&format!("Provost-Task: {it}\n")));
    text.push_str(&format!("Provost-Merge: {}\n", entry.number));
    text
}
