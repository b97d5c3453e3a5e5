//! Contracts: reads the signature on disk, and checks whether a commit keeps it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::Provost;
use super::code::{Base, Content, Source};
use super::commits::Commits;
use provost_base::limits::{CODE_READERS_MAX, STAGED_FILES_MAX};
use provost_base::{ContractId, RepoPath, SymbolPath};
use provost_domain::command::{AnswerContract, FollowContracts, ProposeContract, WithdrawContract};
use provost_domain::view::{ContractsOn, SomeContracts};
use provost_domain::{Contract, Principal, Refusal};
use provost_syntax::{NoSignature, Reading};

/// How long a check may take. Present hooks wait two seconds for it.
const CHECK_TIME_MAX: Duration = Duration::from_secs(10);

/// The reason why a contract was not offered.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError {
    /// The core has refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The file declares no signature under this name.
    #[error("{why}")]
    NoSymbol {
        /// Why no signature was found, as a sentence.
        why: Box<str>,
        /// The full names of the symbols that might be meant.
        candidates: Vec<Box<str>>,
    },
}

/// A file as a commit would contain it.
#[derive(Clone, Debug)]
pub struct Staged {
    /// The path of the file, from the top of the repository.
    pub path: RepoPath,
    /// The content of the file; `None` stands for the content on disk.
    pub content: Option<Arc<[u8]>>,
    /// The path before a rename, if the file was renamed.
    pub renamed_from: Option<RepoPath>,
}

/// The way in which a commit breaks a contract's signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContractMismatch {
    /// The symbol has another signature: this one.
    Changed(Box<str>),
    /// The symbol no longer exists.
    Missing,
    /// The file of the symbol no longer exists.
    Deleted,
    /// The signature cannot be determined: the content does not parse there, names several such symbols, or could not be read.
    Untold(Box<str>),
}

/// A contract that a commit would break.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The contract that is in force.
    pub contract: Arc<Contract>,
    /// The file that breaks it.
    pub file: RepoPath,
    /// The change that the commit would make to the signature.
    pub fault: ContractMismatch,
}

/// The contracts that a comparison covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Binding {
    /// The contracts that bind on the branch of the work tree.
    OnItsBranch,
    /// All contracts, since a merge brings branches together.
    All,
}

/// The outcome of a check.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The broken contracts, in the order of the files, then of the contracts.
    pub violations: Vec<Violation>,
    /// The number of contracts that were compared.
    pub compared: usize,
}

impl Provost {
    /// Offers a contract on the signature that a symbol has on disk.
    ///
    /// # Errors
    /// [`ProposeError`]; then nothing has changed.
    pub async fn propose(
        &self,
        who: &Principal,
        base: Option<&Base>,
        id: ContractId,
        at: &SymbolPath,
        asked: &str,
    ) -> Result<Arc<Contract>, ProposeError> {
        let base = base.unwrap_or(self.base());
        let source = self.code().read(base, at.file()).await;
        let reading = match &source.content {
            Content::Code(reading) => reading,
            Content::None => return Err(no_symbol("there is no such file in a language that is read")),
            Content::Unreadable(why) => return Err(no_symbol(why)),
        };
        let signature = reading.contract(at.symbol()).map_err(|fault| no_signature(&fault))?;
        let path = reading.find(at.symbol()).first().map_or(at.symbol(), |symbol| &symbol.path);
        let at = SymbolPath::of(source.path.clone(), path).map_err(|err| no_symbol(&err.to_string()))?;
        let verb = ProposeContract {
            id,
            at,
            asked: asked.into(),
            signature: signature.text,
            canon: signature.canon,
            branch: Commits::branch(base).await,
        };
        Ok(self.submit(who, verb).await?.contract)
    }

    /// Accepts or rejects an offer of another agent.
    ///
    /// # Errors
    /// [`Refusal::ContractNotFound`], [`Refusal::ContractSettled`], [`Refusal::ContractOwn`].
    pub async fn answer_contract(
        &self,
        who: &Principal,
        id: ContractId,
        accept: bool,
    ) -> Result<Arc<Contract>, Refusal> {
        Ok(self.submit(who, AnswerContract { id, accept }).await?.contract)
    }

    /// Withdraws an offer.
    ///
    /// # Errors
    /// [`Refusal::ContractNotFound`], [`Refusal::ContractSettled`], [`Refusal::ContractNotYours`].
    pub async fn withdraw_contract(&self, who: &Principal, id: ContractId) -> Result<Arc<Contract>, Refusal> {
        Ok(self.submit(who, WithdrawContract { id }).await?.contract)
    }

    /// Returns contracts, oldest first.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn contracts(&self, which: SomeContracts) -> Result<Vec<Arc<Contract>>, Refusal> {
        self.view(which).await
    }

    /// Compares the content of a commit with the contracts in force. A renamed file whose symbols keep their
    /// signatures takes its contracts along.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn check_contracts(
        &self,
        base: Option<&Base>,
        staged: Vec<Staged>,
        deleted: Vec<RepoPath>,
    ) -> Result<Checked, Refusal> {
        let (checked, moves) = self.compare_contracts(base, Binding::OnItsBranch, staged, deleted).await?;
        if checked.violations.is_empty() && !moves.is_empty() {
            let who = self.system();
            self.submit(who, FollowContracts { moves }).await?;
        }
        Ok(checked)
    }

    /// Compares without any change to the state; also returns the contracts that would move with renamed files.
    pub(super) async fn compare_contracts(
        &self,
        base: Option<&Base>,
        binding: Binding,
        staged: Vec<Staged>,
        deleted: Vec<RepoPath>,
    ) -> Result<(Checked, Vec<(ContractId, RepoPath)>), Refusal> {
        if staged.len() + deleted.len() > STAGED_FILES_MAX {
            return Err(Refusal::too_long("a check", STAGED_FILES_MAX, "files"));
        }
        let base = base.unwrap_or(self.base());
        let branch = match binding {
            Binding::All => None,
            Binding::OnItsBranch => Commits::branch(base).await,
        };
        let check = Check::begin(self, (base, branch.as_deref()), &staged, &deleted).await?;
        let sources = check.read(self, base, &staged).await;
        let mut moves = Vec::new();
        let mut checked = Checked::default();
        for (file, source) in staged.iter().zip(&sources) {
            for contract in check.on(&file.path) {
                checked.compare(contract, &file.path, source);
            }
            for contract in file.renamed_from.iter().flat_map(|from| check.on(from)) {
                if checked.compare(contract, &file.path, source) {
                    moves.push((contract.id.clone(), file.path.clone()));
                }
            }
        }
        for file in &deleted {
            for contract in check.on(file) {
                checked.compared += 1;
                let (contract, file) = (contract.clone(), file.clone());
                checked.violations.push(Violation { contract, file, fault: ContractMismatch::Deleted });
            }
        }
        Ok((checked, moves))
    }
}

/// The contracts that a commit might break, by the file where their symbols are now.
struct Check(BTreeMap<RepoPath, Vec<Arc<Contract>>>);

impl Check {
    async fn begin(
        provost: &Provost,
        (base, branch): (&Base, Option<&str>),
        staged: &[Staged],
        deleted: &[RepoPath],
    ) -> Result<Self, Refusal> {
        let touched = staged.iter().flat_map(|it| std::iter::once(&it.path).chain(&it.renamed_from));
        let mut paths: Vec<RepoPath> = touched.chain(deleted).cloned().collect();
        paths.sort();
        paths.dedup();
        let contracts = provost.view(ContractsOn(paths.clone())).await?;
        let mut at: BTreeMap<RepoPath, Vec<Arc<Contract>>> = BTreeMap::new();
        for (path, contracts) in paths.into_iter().zip(contracts) {
            for contract in contracts.into_iter().filter(|it| it.binds_on(branch)) {
                if home_of(&contract, base, staged) == path {
                    at.entry(path.clone()).or_default().push(contract);
                }
            }
        }
        Ok(Self(at))
    }

    fn on(&self, path: &RepoPath) -> impl Iterator<Item = &Arc<Contract>> {
        self.0.get(path).into_iter().flatten()
    }

    /// Reads the staged files that have contracts, several at a time.
    async fn read(&self, provost: &Provost, base: &Base, staged: &[Staged]) -> Vec<Source> {
        let until = Instant::now() + CHECK_TIME_MAX;
        let concerned = |file: &Staged| {
            self.0.contains_key(&file.path)
                || file.renamed_from.as_ref().is_some_and(|from| self.0.contains_key(from))
        };
        let read = async |file: &Staged| match concerned(file) {
            true => match &file.content {
                Some(content) => provost.code().read_content(file.path.clone(), content.clone(), until).await,
                None => provost.code().read_until(base, &file.path, until).await,
            },
            false => Source { path: file.path.clone(), content: Content::None },
        };
        // The futures are boxed, since the compiler cannot prove that the closures are `Send`.
        let reads: Vec<_> = staged.iter().map(|file| read(file).boxed()).collect();
        stream::iter(reads).buffered(CODE_READERS_MAX).collect().await
    }
}

/// Returns the file where a contract's symbol is now: the one to which it was last moved, if that file exists.
fn home_of(contract: &Contract, base: &Base, staged: &[Staged]) -> RepoPath {
    let there = |path: &RepoPath| {
        staged.iter().any(|it| it.path == *path)
            || base.root().handle().try_exists(path.as_str()).unwrap_or(false)
    };
    contract.also.iter().find(|path| there(path)).unwrap_or(contract.at.file()).clone()
}

impl Checked {
    /// Compares a contract with the source, and returns whether it is kept.
    fn compare(&mut self, contract: &Arc<Contract>, file: &RepoPath, source: &Source) -> bool {
        self.compared += 1;
        let fault = match &source.content {
            Content::Code(reading) => fault_in(reading, contract),
            Content::None => Some(ContractMismatch::Missing),
            Content::Unreadable(why) => Some(ContractMismatch::Untold(why.clone())),
        };
        let kept = fault.is_none();
        let (contract, file) = (contract.clone(), file.clone());
        self.violations.extend(fault.map(|fault| Violation { contract, file, fault }));
        kept
    }
}

fn fault_in(reading: &Reading, contract: &Contract) -> Option<ContractMismatch> {
    match reading.contract(contract.at.symbol()) {
        Ok(signature) if signature.canon == contract.canon => None,
        Ok(signature) => Some(ContractMismatch::Changed(signature.text)),
        Err(NoSignature::Missing | NoSignature::Undeclared) => Some(ContractMismatch::Missing),
        Err(NoSignature::Ambiguous(paths)) => Some(ContractMismatch::Untold(
            format!("several symbols have this name: {}", paths.join(", ")).into(),
        )),
        Err(NoSignature::Unparsable) => Some(ContractMismatch::Untold("it does not parse there".into())),
    }
}

fn no_symbol(why: &str) -> ProposeError {
    ProposeError::NoSymbol { why: why.into(), candidates: Vec::new() }
}

fn no_signature(fault: &NoSignature) -> ProposeError {
    match fault {
        NoSignature::Missing => no_symbol("the file defines no such symbol"),
        NoSignature::Undeclared => no_symbol("it declares nothing that callers could rely on"),
        NoSignature::Unparsable => no_symbol("the file does not parse there"),
        NoSignature::Ambiguous(candidates) => ProposeError::NoSymbol {
            why: "several symbols have this name; use the full name of one".into(),
            candidates: candidates.clone(),
        },
    }
}
