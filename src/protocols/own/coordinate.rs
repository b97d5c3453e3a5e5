//! Locks, intents, contracts and the guard: one handler per path.

use std::collections::BTreeSet;
use std::path::Path;

use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::coordinate as words;
use super::map::{self, OwnError};
use super::ties::Taken;
use provost_api::{endpoints, wire};
use provost_auth::peer::process_of_ours;
use provost_base::{Fence, IntentId, SymbolPath, WITH_BACKSLASH, is_absolute, visible_name};
use provost_domain::IntentStatus;
use provost_domain::command::{Apart, AppointLead};
use provost_domain::view::{ClaimsOn, ContractsOn};
use provost_service::{Base, CallGraphImportError, Edit, IntentOrder, LockOrder, WriteOrder};

/// Rewrites an absolute path below the top of this work tree, or of the repository, as relative to it. A path
/// outside stays as it is, and is refused where it is read.
///
/// # Errors
/// A name with a backslash that would mean another file.
fn from_the_top<'a>(
    own: &Own,
    base: Option<&Base>,
    texts: impl IntoIterator<Item = &'a mut String>,
) -> Result<(), OwnError> {
    let mut checkouts = None;
    for text in texts.into_iter().filter(|it| is_absolute(it) || it.contains('\\')) {
        let checkouts = checkouts.get_or_insert_with(|| own.0.provost.checkouts(base));
        if checkouts.has_with_backslash(text) {
            let name = visible_name(text, 200);
            return Err(OwnError::invalid(format!("`{name}`: {WITH_BACKSLASH}")));
        }
        *text = checkouts.inside(text).into_owned();
    }
    Ok(())
}

/// Returns the caller's work tree; `None` for the daemon's own.
pub(super) async fn base(own: &Own, worktree: Option<String>) -> Result<Option<Base>, OwnError> {
    let Some(worktree) = worktree else { return Ok(None) };
    let (own, at) = (own.clone(), worktree.clone());
    let found = tokio::task::spawn_blocking(move || (own.0.bases)(Path::new(&at))).await;
    found.ok().flatten().map(Some).ok_or_else(|| {
        let message = format!("{worktree} is no work tree of this repository");
        OwnError::new(StatusCode::UNPROCESSABLE_ENTITY, "no_worktree", message)
            .hint("`git worktree list` shows them; `git worktree repair` mends one that was moved")
    })
}

/// Returns the symbol or resource to lock; a resource whose name differs between work trees gets that of its tree.
fn in_tree(own: &Own, at: SymbolPath, base: Option<&Base>) -> SymbolPath {
    let path = |base: &Base| base.root().place().path().to_owned();
    let main = path(own.0.provost.base());
    match (at.resource(), base.map(path).filter(|it| *it != main)) {
        (Some(resource), Some(tree)) => SymbolPath::of_resource(&resource.in_tree(&tree.to_string_lossy())),
        _ => at,
    }
}

impl Handles<endpoints::Lock> for Own {
    async fn handle(&self, call: &Call, mut body: wire::TakeLock) -> Answered<wire::Locked> {
        let base = base(self, body.worktree).await?;
        from_the_top(self, base.as_ref(), [&mut body.symbol])?;
        let at = in_tree(self, words::lockable(&body.symbol)?, base.as_ref());
        is_no_folder(base.as_ref().unwrap_or(self.0.provost.base()), &at).await?;
        let process = match body.pid {
            Some(pid) => Some(process_of_ours(pid).ok_or_else(|| {
                let message = format!("{pid} is no running process of this user");
                OwnError::new(StatusCode::UNPROCESSABLE_ENTITY, "no_process", message)
                    .hint("name one that runs, or none, and give a time with --ttl")
            })?),
            None => call.tied.process(),
        };
        let order = LockOrder {
            base,
            asked: at.to_string().into(),
            at,
            ttl: words::ttl(body.ttl_ms, "ttl_ms")?,
            at_least: body.at_least,
            wait: words::ttl(body.wait_ms.filter(|it| *it > 0), "wait_ms")?,
            reason: body.reason.map(|it| words::words(&it, "reason")).transpose()?,
            process,
            in_session: process.is_none() && call.tied.is_session(),
            apart: match (body.fresh, body.apart) {
                (true, _) => Apart::FromAll,
                (false, true) => Apart::FromOtherProcesses,
                (false, false) => Apart::FromNone,
            },
        };
        let granted = self.0.provost.lock(&call.who, order).await.map_err(map::fault)?;
        let taken = Taken::Lock(granted.lock.fence);
        match process {
            // The core watches the process from now on.
            Some(_) => self.untie(&taken),
            None => self.tie(&call.tied, &call.who, taken),
        }
        Ok(words::granted(&granted))
    }
}

/// Refuses a folder: a lock on it would have no effect, since no write is compared with it.
async fn is_no_folder(base: &Base, at: &SymbolPath) -> Result<(), OwnError> {
    if at.is_resource() {
        return Ok(());
    }
    let file = at.file().as_str();
    let found = tokio::fs::metadata(base.root().place().path().join(file)).await;
    match found.is_ok_and(|it| it.is_dir()) {
        false => Ok(()),
        true => Err(OwnError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "is_folder",
            format!("{file} is a folder, and a lock holds a file or a symbol in one"),
        )
        .hint(
            "lock its files, or announce a change of all of it: provost intent declare \"...\" --file FOLDER",
        )),
    }
}

impl Handles<endpoints::EndSession> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::SessionEnded> {
        Ok(wire::SessionEnded { given_back: self.end_session(&call.tied).await })
    }
}

impl Handles<endpoints::Unlock> for Own {
    async fn handle(&self, call: &Call, mut body: wire::Unlock) -> Answered<wire::Lock> {
        let base = base(self, body.worktree).await?;
        from_the_top(self, base.as_ref(), [&mut body.symbol])?;
        let at = in_tree(self, words::lockable(&body.symbol)?, base.as_ref());
        let fence = words::fence(body.fence);
        let done = self
            .0
            .provost
            .unlock(&call.who, base.as_ref(), &at, fence, body.force)
            .await
            .map_err(map::fault)?;
        Ok(words::lock(&done.lock, None))
    }
}

impl Handles<endpoints::Locks> for Own {
    async fn handle(&self, call: &Call, mut query: wire::Whose) -> Answered<wire::Locks> {
        from_the_top(self, None, query.file.as_mut())?;
        let holder = words::whose(&query, call.who.agent())?;
        let files = query.file.as_deref().map(|it| words::path(it, "file")).transpose()?;
        let files: Vec<_> = files.into_iter().collect();
        // Sent together, both are answered in one step of the engine.
        let (waiting, locks) =
            tokio::join!(self.0.provost.lock_waiters(), self.0.provost.locks(holder.clone(), files.clone()));
        let (waiting, (locks, _)) = (waiting.map_err(map::fault)?, locks.map_err(map::fault)?);
        let wanted = |it: &&std::sync::Arc<provost_domain::Waiter>| {
            holder.as_ref().is_none_or(|agent| it.agent == *agent)
                && (files.is_empty() || files.contains(it.at.file()))
        };
        let waiting = waiting.iter().filter(wanted).map(|it| words::waiter(it)).collect();
        Ok(wire::Locks { locks: locks.iter().map(words::named_lock).collect(), waiting })
    }
}

impl Handles<endpoints::Leave> for Own {
    async fn handle(&self, call: &Call, body: wire::Leave) -> Answered<wire::Left> {
        let process = body.pid.map(|pid| {
            process_of_ours(pid).ok_or_else(|| {
                let message = format!("{pid} is no running process of this user");
                OwnError::new(StatusCode::UNPROCESSABLE_ENTITY, "no_process", message)
            })
        });
        let process = process.transpose()?;
        let left = self.0.provost.leave(&call.who, body.intents, process).await.map_err(map::fault)?;
        Ok(wire::Left { locks: left.locks, intents: left.intents })
    }
}

/// Makes the order for an intent that the caller announces, or checks.
async fn order(own: &Own, mut body: wire::Declare) -> Result<IntentOrder, OwnError> {
    if body.files.is_empty() {
        return Err(OwnError::invalid("files is empty: an intent names at least one"));
    }
    let base = base(own, body.worktree).await?;
    from_the_top(own, base.as_ref(), body.files.iter_mut().chain(&mut body.symbols))?;
    let files = words::paths(&body.files, "files")?;
    let named = |path: provost_base::RepoPath| {
        let asked = path.as_str().into();
        (path, asked)
    };
    Ok(IntentOrder {
        base,
        id: IntentId::parse(&uuid::Uuid::new_v4().to_string()).expect("a UUID is an id"),
        description: words::words(&body.description, "description")?,
        files: files.into_iter().map(named).collect(),
        symbols: body.symbols.iter().map(|it| words::words(it, "symbols")).collect::<Result<_, _>>()?,
        ttl: words::ttl(body.ttl_ms, "ttl_ms")?,
        grants: body.grants.into_iter().map(Fence).collect(),
    })
}

impl Handles<endpoints::Declare> for Own {
    async fn handle(&self, call: &Call, body: wire::Declare) -> Answered<wire::Declared> {
        let order = order(self, body).await?;
        let declared = self.0.provost.declare(&call.who, order).await.map_err(map::fault)?;
        self.tie(&call.tied, &call.who, Taken::Intent(declared.intent.id.clone()));
        Ok(words::declared(&declared))
    }
}

impl Handles<endpoints::CheckConflicts> for Own {
    async fn handle(&self, call: &Call, body: wire::CheckConflicts) -> Answered<wire::Conflicts> {
        let wire::CheckConflicts { files, symbols, worktree } = body;
        let asked = wire::Declare {
            description: "only asked".into(),
            files,
            symbols,
            worktree,
            ..wire::Declare::default()
        };
        let order = order(self, asked).await?;
        let (found, more) = self.0.provost.collisions(&call.who, order).await.map_err(map::fault)?;
        Ok(wire::Conflicts { conflicts: words::conflicts(&found), more })
    }
}

impl Handles<endpoints::Intents> for Own {
    async fn handle(&self, call: &Call, mut query: wire::Whose) -> Answered<Vec<wire::Intent>> {
        from_the_top(self, None, query.file.as_mut())?;
        let wanted = words::intents_wanted(&query, call.who.agent())?;
        let found = self.0.provost.intents(wanted).await.map_err(map::fault)?;
        Ok(found.iter().map(|it| words::intent(&it.it, it.name.as_deref())).collect())
    }
}

impl Handles<endpoints::UpdateIntent> for Own {
    async fn handle(&self, call: &Call, body: wire::UpdateIntent) -> Answered<wire::Intent> {
        let (id, to) = (words::intent_id(&body.id)?, words::intent_status(&body.to)?);
        if body.force {
            if to != IntentStatus::Abandoned {
                return Err(OwnError::invalid(
                    "to: another agent's intent can be abandoned, and nothing else",
                ));
            }
            let ended = self.0.provost.end_intent(&call.who, id).await.map_err(map::fault)?;
            return Ok(words::intent(&ended.intent, None));
        }
        let moved = self.0.provost.update_intent(&call.who, id, to).await.map_err(map::fault)?;
        Ok(words::intent(&moved.intent, None))
    }
}

impl Handles<endpoints::ProposeContract> for Own {
    async fn handle(&self, call: &Call, mut body: wire::Propose) -> Answered<wire::Contract> {
        let base = base(self, body.worktree).await?;
        from_the_top(self, base.as_ref(), [&mut body.symbol])?;
        let at = words::symbol(&body.symbol)?;
        let id = provost_base::ContractId::parse(&uuid::Uuid::new_v4().to_string()).expect("a UUID is an id");
        let done = self.0.provost.propose(&call.who, base.as_ref(), id, &at, &at.to_string()).await;
        Ok(words::contract(&*done.map_err(words::proposed)?))
    }
}

impl Handles<endpoints::AnswerContract> for Own {
    async fn handle(&self, call: &Call, body: wire::AnswerContract) -> Answered<wire::Contract> {
        let id = words::contract_id(&body.id)?;
        let done = self.0.provost.answer_contract(&call.who, id, body.accept).await.map_err(map::fault)?;
        Ok(words::contract(&done))
    }
}

impl Handles<endpoints::WithdrawContract> for Own {
    async fn handle(&self, call: &Call, body: wire::WithdrawContract) -> Answered<wire::Contract> {
        let id = words::contract_id(&body.id)?;
        let done = self.0.provost.withdraw_contract(&call.who, id).await.map_err(map::fault)?;
        Ok(words::contract(&done))
    }
}

impl Handles<endpoints::AppointLead> for Own {
    async fn handle(&self, call: &Call, body: wire::AppointLead) -> Answered<wire::Done> {
        let agent = map::agent(&body.agent, "agent")?;
        let message = format!("{agent} leads the crew");
        self.0.provost.submit(&call.who, AppointLead { agent }).await.map_err(map::fault)?;
        Ok(wire::Done { message })
    }
}

impl Handles<endpoints::ImportEvents> for Own {
    async fn handle(&self, call: &Call, body: wire::ImportEvents) -> Answered<wire::Imported> {
        let file = body.file;
        let done = self.0.provost.import(&call.who, Path::new(&file)).await.map_err(|fault| match fault {
            CallGraphImportError::Refused(refusal) => map::fault(refusal),
            CallGraphImportError::File(why) => OwnError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "no_database",
                format!("nothing can be imported: {why}"),
            )
            .hint("it has to be the `protocol.db` of the published server, which must not be running"),
        })?;
        Ok(wire::Imported { taken: done.taken, known: done.known, unfit: done.unfit })
    }
}

impl Handles<endpoints::Contracts> for Own {
    async fn handle(&self, _call: &Call, mut query: wire::ContractsQuery) -> Answered<Vec<wire::Contract>> {
        from_the_top(self, None, query.symbol.as_mut())?;
        let wanted = words::contracts_wanted(&query)?;
        let found = self.0.provost.contracts(wanted).await.map_err(map::fault)?;
        Ok(found.iter().map(|it| words::contract(it)).collect())
    }
}

impl Handles<endpoints::Concerned> for Own {
    async fn handle(&self, call: &Call, mut body: wire::Paths) -> Answered<wire::Concerned> {
        from_the_top(self, None, &mut body.paths)?;
        let paths = words::paths(&body.paths, "paths")?;
        let contracts = self.0.provost.view(ContractsOn(paths.clone())).await.map_err(map::fault)?;
        let (locks, _) = self.0.provost.locks(None, Vec::new()).await.map_err(map::fault)?;
        let foreign = locks.iter().filter(|it| it.it.holder != *call.who.agent());
        let mut locked: BTreeSet<_> = foreign.map(|it| it.it.at.file().clone()).collect();
        let claims = ClaimsOn { files: paths.clone(), others_than: call.who.agent().clone() };
        let claims = self.0.provost.view(claims).await.map_err(map::fault)?;
        locked.extend(claims.into_iter().flatten().map(|it| it.file.clone()));
        let text = |it: &provost_base::RepoPath| it.as_str().to_owned();
        Ok(wire::Concerned {
            locks: paths.iter().filter(|it| locked.contains(*it)).map(text).collect(),
            contracts: paths
                .iter()
                .zip(contracts)
                .filter(|(_, it)| !it.is_empty())
                .map(|(it, _)| text(it))
                .collect(),
        })
    }
}

impl Handles<endpoints::CheckContracts> for Own {
    async fn handle(&self, _call: &Call, mut body: wire::CheckContracts) -> Answered<wire::Checked> {
        let base = base(self, body.worktree).await?;
        let of_files = body.files.iter_mut().flat_map(|it| [Some(&mut it.path), it.from.as_mut()]).flatten();
        from_the_top(self, base.as_ref(), of_files.chain(&mut body.on_disk).chain(&mut body.deleted))?;
        let mut staged = body.files.into_iter().map(words::staged).collect::<Result<Vec<_>, _>>()?;
        staged.extend(words::paths(&body.on_disk, "on_disk")?.into_iter().map(words::on_disk));
        let deleted = words::paths(&body.deleted, "deleted")?;
        let checked =
            self.0.provost.check_contracts(base.as_ref(), staged, deleted).await.map_err(map::fault)?;
        let violations = checked.violations.iter().map(words::violation).collect();
        Ok(wire::Checked { violations, compared: checked.compared })
    }
}

/// Converts the edits of a caller, within a bound.
fn edits(own: &Own, base: Option<&Base>, mut edits: Vec<wire::Edit>) -> Result<Vec<Edit>, OwnError> {
    from_the_top(own, base, edits.iter_mut().map(|it| &mut it.path))?;
    if edits.len() > provost_base::limits::STAGED_FILES_MAX {
        return Err(OwnError::invalid("more files than are looked at at once"));
    }
    edits.iter().map(words::edit).collect()
}

impl Handles<endpoints::Guard> for Own {
    async fn handle(&self, call: &Call, body: wire::Guard) -> Answered<wire::Guarded> {
        let base = base(self, body.worktree).await?;
        let edits = edits(self, base.as_ref(), body.edits)?;
        let agent = call.who.agent();
        let found = self.0.provost.guard(agent, base.as_ref(), &edits).await.map_err(map::fault)?;
        Ok(words::guarded(agent, &found))
    }
}

impl Handles<endpoints::HoldEdits> for Own {
    async fn handle(&self, call: &Call, body: wire::HoldEdits) -> Answered<wire::Guarded> {
        let base = base(self, body.worktree).await?;
        let edits = edits(self, base.as_ref(), body.edits)?;
        let part = body.part.map(|it| words::words(&it, "part")).transpose()?;
        // A host that has gone by now holds nothing; leases that it still takes end after their time.
        let process = body.pid.and_then(process_of_ours);
        let order = WriteOrder { edits, base, process, part };
        let found = self.0.provost.hold(&call.who, order).await.map_err(map::fault)?;
        Ok(words::guarded(call.who.agent(), &found))
    }
}
