//! Contracts: agreements of two agents on a symbol's signature.
//!
//! ```text
//!              accept (by another)                    accept of a newer one
//!  [proposed] --------------------> [accepted] --------------------------> [superseded]
//!      |   |                             +-------- by a person ----------> [withdrawn]
//!      |   +-- reject (by another) --> [rejected]                              ^
//!      +----- by its proposer -------------------------------------------------+
//! ```
//! Only an accepted contract binds. It binds both agents: neither can withdraw it alone. Signatures are compared in a
//! form that does not depend on layout. wit, 5.9 to 5.12.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{
    AnswerContract, ContractAnswered, ContractProposed, ContractWithdrawn, ContractsFollowed,
    FollowContracts, ProposeContract, WithdrawContract,
};
use super::{Change, EventKind, Outbox, Principal, Refusal, Share, State};
use provost_base::limits::{CONTRACTS_MAX, CONTRACTS_OF_ONE_MAX, PATH_LEN_MAX, SIGNATURE_LEN_MAX};
use provost_base::{AgentId, ContractId, Digest, Fence, RepoPath, SymbolPath, Timestamp};

/// The state of a contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContractStatus {
    /// An agent has offered it, and no other agent has answered.
    Proposed,
    /// Another agent has accepted it: it is in force, and binds both.
    Accepted,
    /// Another agent has rejected it.
    Rejected,
    /// A newer contract on the same symbol was accepted.
    Superseded,
    /// Its proposer has taken it back, or a person has ended it.
    Withdrawn,
}

impl ContractStatus {
    /// Returns the word for it; wit has the first three.
    pub fn as_str(self) -> &'static str {
        match self {
            ContractStatus::Proposed => "proposed",
            ContractStatus::Accepted => "accepted",
            ContractStatus::Rejected => "rejected",
            ContractStatus::Superseded => "superseded",
            ContractStatus::Withdrawn => "withdrawn",
        }
    }

    fn is_open(self) -> bool {
        matches!(self, ContractStatus::Proposed | ContractStatus::Accepted)
    }
}

/// An agreement on the signature of one symbol.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Contract {
    /// The id that the door has chosen.
    pub id: ContractId,
    /// The symbol, in the file's one spelling and under its full name.
    pub at: SymbolPath,
    /// The symbol, as the proposer wrote it.
    pub asked: Box<str>,
    /// Files to which that symbol was moved with its signature unchanged; it binds there, too.
    pub also: Vec<RepoPath>,
    /// The signature, for people.
    pub signature: Box<str>,
    /// The signature in the form by which it is compared.
    pub canon: Box<str>,
    /// The branch on which the contract binds; `None` for all branches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Box<str>>,
    /// The agent that has offered it.
    pub proposer: AgentId,
    /// The agent that has answered; `None` while it is open to an answer.
    pub responder: Option<AgentId>,
    /// The state of the agreement.
    pub status: ContractStatus,
    /// When it was offered.
    pub proposed_at: Timestamp,
    /// When it was answered.
    pub responded_at: Option<Timestamp>,
    /// A number that only orders lists: older ones first.
    pub place: Fence,
    /// The share of its proposer, to which it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

impl Contract {
    /// Checks whether the contract binds commits on a branch. All contracts bind if the branch is unknown, or the work tree is on none.
    pub fn binds_on(&self, branch: Option<&str>) -> bool {
        match (self.branch.as_deref(), branch) {
            (Some(its), Some(branch)) => its == branch,
            _ => true,
        }
    }

    fn files(&self) -> impl Iterator<Item = &RepoPath> {
        std::iter::once(self.at.file()).chain(&self.also)
    }
}

/// All contracts that are remembered, open and closed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contracts {
    all: BTreeMap<ContractId, Arc<Contract>>,
    places: BTreeMap<Fence, ContractId>,
    in_force: BTreeMap<RepoPath, BTreeSet<Fence>>,
    closed: BTreeSet<Fence>,
}

impl Contracts {
    pub(super) fn put(&mut self, contract: Arc<Contract>) {
        self.remove(&contract.id);
        self.places.insert(contract.place, contract.id.clone());
        if contract.status == ContractStatus::Accepted {
            for file in contract.files() {
                self.in_force.entry(file.clone()).or_default().insert(contract.place);
            }
        }
        if !contract.status.is_open() {
            self.closed.insert(contract.place);
        }
        self.all.insert(contract.id.clone(), contract);
    }

    pub(super) fn remove(&mut self, id: &ContractId) {
        let Some(contract) = self.all.remove(id) else { return };
        self.places.remove(&contract.place);
        self.closed.remove(&contract.place);
        for file in contract.files() {
            if let Some(places) = self.in_force.get_mut(file) {
                places.remove(&contract.place);
                if places.is_empty() {
                    self.in_force.remove(file);
                }
            }
        }
    }

    /// Returns the contract with this id, if it is remembered.
    pub fn get(&self, id: &ContractId) -> Option<&Arc<Contract>> {
        self.all.get(id)
    }

    /// Returns all contracts, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Contract>> {
        self.places.values().filter_map(|id| self.all.get(id))
    }

    /// Returns the contracts in force on symbols of a file, oldest first.
    pub fn in_force_on(&self, file: &RepoPath) -> impl Iterator<Item = &Arc<Contract>> {
        let places = self.in_force.get(file).into_iter().flatten();
        places.filter_map(|place| self.all.get(self.places.get(place)?))
    }

    /// Returns how many of a share's contracts bind, or may still come to bind.
    fn open_of(&self, share: &Share) -> usize {
        let open = self.all.values().filter(|it| !self.closed.contains(&it.place));
        open.filter(|it| it.share.as_ref() == Some(share)).count()
    }

    /// Returns the number of contracts.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Checks whether there are no contracts.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl State {
    /// Offers a contract. wit `contract.propose`.
    pub(super) fn propose_contract(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &ProposeContract,
        out: &mut Outbox,
    ) -> Result<ContractProposed, Refusal> {
        if verb.signature.len() > SIGNATURE_LEN_MAX || verb.canon.len() > SIGNATURE_LEN_MAX {
            return Err(Refusal::too_long("the signature of a contract", SIGNATURE_LEN_MAX, "bytes"));
        }
        if verb.branch.as_deref().is_some_and(|it| it.len() > PATH_LEN_MAX) {
            return Err(Refusal::too_long("the name of a branch", PATH_LEN_MAX, "bytes"));
        }
        if self.contracts.get(&verb.id).is_some() {
            return Err(Refusal::Exists { what: "a contract" });
        }
        let share = who.share();
        if self.contracts.open_of(&share) >= CONTRACTS_OF_ONE_MAX {
            return Err(Refusal::quota(
                "as many open contracts as the processes of one agent can have under all their names",
                CONTRACTS_OF_ONE_MAX,
                "wait for answers, or withdraw some",
            ));
        }
        // The oldest closed contract gives way; an open one binds, and never does.
        if self.contracts.len() >= CONTRACTS_MAX {
            let oldest = self.contracts.closed.first().and_then(|it| self.contracts.places.get(it));
            let oldest = oldest.ok_or_else(|| Refusal::busy("as many open contracts as there can be"))?;
            out.put(Change::DropContract(oldest.clone()));
        }
        self.agents.beat(now, who.agent(), out);
        let contract = Arc::new(Contract {
            id: verb.id.clone(),
            at: verb.at.clone(),
            asked: verb.asked.clone(),
            also: Vec::new(),
            signature: verb.signature.clone(),
            canon: verb.canon.clone(),
            branch: verb.branch.clone().filter(|_| self.settings.contracts_by_branch),
            proposer: who.agent().clone(),
            responder: None,
            status: ContractStatus::Proposed,
            proposed_at: now,
            responded_at: None,
            place: out.next_fence(),
            share: Some(share),
        });
        out.append_event(EventKind::ContractProposed {
            contract: contract.id.clone(),
            symbol: contract.at.clone(),
            signature: Digest::of(contract.canon.as_bytes()),
        });
        out.put(Change::PutContract(contract.clone()));
        Ok(ContractProposed { contract })
    }

    /// Accepts or rejects a contract. An accepted one replaces the earlier one on the same symbol. wit `contract.respond`.
    pub(super) fn answer_contract(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &AnswerContract,
        out: &mut Outbox,
    ) -> Result<ContractAnswered, Refusal> {
        let contract = self.contracts.get(&verb.id).ok_or(Refusal::ContractNotFound)?;
        if contract.status != ContractStatus::Proposed {
            return Err(Refusal::ContractSettled { status: contract.status });
        }
        if contract.proposer == *who.agent() {
            return Err(Refusal::ContractOwn);
        }
        self.agents.beat(now, who.agent(), out);
        if verb.accept {
            let before = self.contracts.in_force_on(contract.at.file());
            let before = before.filter(|it| it.at == contract.at && it.branch == contract.branch);
            before.for_each(|it| self.settle_contract(it, ContractStatus::Superseded, None, out));
        }
        let status = if verb.accept { ContractStatus::Accepted } else { ContractStatus::Rejected };
        let answer = (who.agent().clone(), now);
        self.settle_contract(contract, status, Some(answer.clone()), out);
        let contract = Arc::new(settled(contract, status, Some(answer)));
        Ok(ContractAnswered { contract })
    }

    fn settle_contract(
        &self,
        contract: &Contract,
        to: ContractStatus,
        answer: Option<(AgentId, Timestamp)>,
        out: &mut Outbox,
    ) {
        out.append_event(EventKind::ContractMoved {
            contract: contract.id.clone(),
            symbol: contract.at.clone(),
            to,
        });
        out.put(Change::PutContract(Arc::new(settled(contract, to, answer))));
    }

    /// Withdraws a contract: the proposer can withdraw an offer; only a person can withdraw an accepted contract.
    pub(super) fn withdraw_contract(
        &self,
        who: &Principal,
        verb: &WithdrawContract,
        out: &mut Outbox,
    ) -> Result<ContractWithdrawn, Refusal> {
        let contract = self.contracts.get(&verb.id).ok_or(Refusal::ContractNotFound)?;
        match contract.status {
            ContractStatus::Proposed if contract.proposer == *who.agent() => {}
            ContractStatus::Proposed | ContractStatus::Accepted if who.is_person() => {}
            ContractStatus::Proposed => {
                return Err(Refusal::ContractNotYours { by: contract.proposer.clone() });
            }
            status => return Err(Refusal::ContractSettled { status }),
        }
        self.settle_contract(contract, ContractStatus::Withdrawn, None, out);
        Ok(ContractWithdrawn { contract: Arc::new(settled(contract, ContractStatus::Withdrawn, None)) })
    }

    /// Notes files that were renamed: the contracts on their symbols go along.
    pub(super) fn follow_contracts(&self, verb: &FollowContracts, out: &mut Outbox) -> ContractsFollowed {
        let mut count = 0;
        for (id, file) in &verb.moves {
            let Some(contract) = self.contracts.get(id) else { continue };
            if contract.status != ContractStatus::Accepted || contract.files().any(|it| it == file) {
                continue;
            }
            let mut contract = Contract::clone(contract);
            // A symbol that moves from file to file is most likely in the last one.
            contract.also.truncate(PLACES_MAX - 1);
            contract.also.insert(0, file.clone());
            out.put(Change::PutContract(Arc::new(contract)));
            count += 1;
        }
        ContractsFollowed { count }
    }
}

/// The highest number of files, after the first, in which a contract's symbol is looked for.
const PLACES_MAX: usize = 8;

fn settled(contract: &Contract, status: ContractStatus, answer: Option<(AgentId, Timestamp)>) -> Contract {
    let mut contract = contract.clone();
    contract.status = status;
    if let Some((responder, at)) = answer {
        (contract.responder, contract.responded_at) = (Some(responder), Some(at));
    }
    contract
}
