//! Collects facts before a submit, makes views after it, and carries out the applies of artifacts.
//!
//! Doors hand their verbs to [`Provost`], which collects the facts that the core needs (the target of a working
//! directory, the hash of an executable), submits, and waits for events if the caller wants that. The core decides.
//! Other modules do the rest: `agents` does what editors ask of agents, `workspace` reads and writes single files.
#![forbid(unsafe_code)]

mod advised;
mod artifacts;
mod checking;
mod checkouts;
mod code;
mod commits;
mod conflicts;
mod continued;
mod contracts;
mod conversations;
mod crew;
mod decisions;
mod delegate;
mod disk;
mod far_output;
mod graph;
mod guard;
mod history;
mod import;
mod inbox;
mod intents;
mod locks;
mod mail;
mod meetings;
mod merge;
mod output;
mod permission;
mod picture;
mod posts;
mod programs;
mod screenshot;
mod sides;
mod taking;
mod task_pages;
mod touching;
mod work_trees;
mod writing;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

pub use artifacts::{
    Action, Agreed, Applied, ApplyError, ApplyRules, Applying, Difference, Discarded, Extent, Held,
    PastApply, Previewed, WouldWrite,
};
pub use checkouts::Checkouts;
pub use code::{Base, Code, Content, Source};
pub use commits::{commit_of, git_dir_of, nested_repository};
pub use conflicts::{Restore, SettleError};
pub use contracts::{Checked, ContractMismatch, ProposeError, Staged, Violation};
pub use disk::{Disk, disk};
pub use graph::{CallDirection, Calls, GraphError};
pub use guard::{BeforeAndAfter, Blocked, Edit, Guarded, Obstacle};
pub use history::{AskedBy, Finished, Snapshot, TaskFilter};
pub use import::{CallGraphImportError, Imported};
pub use inbox::{InboxItem, InboxPage, Seen};
pub use intents::IntentOrder;
pub use locks::{Granted, LockOrder};
pub use meetings::{FoundMeeting, Severity};
pub use merge::{
    BranchPreview, ConflictKind, MergeConflict, MergeError, MergeOrder, MergePreview, MergeSettings, Owner,
    PairPreview,
};
pub use picture::{Shown, Thumb};
pub use posts::{Letters, StoredPost};
pub use provost_graph::NotWhole;
pub use provost_index::State as GraphState;
pub use provost_jail::{Chunk, Reader, Stream, Transcript, Used};
pub use provost_workspace::work_trees::Listed as ListedWorkTree;
pub use screenshot::Screenshot;
pub use sides::ChangedSide;
pub use task_pages::{TASK_STATES, TaskChoice, TaskPage, TaskPlace, task_state};
pub use touching::Touching;
pub use writing::WriteOrder;

use programs::Programs;
use provost_base::AgentId;
use provost_base::limits::CLAIMED_READERS_MAX;
use provost_domain::view::View;
use provost_domain::{Answer, Facts, JudgedVerb, Principal, Refusal, Verb};
use provost_engine::Engine;
use provost_index::Index;
use provost_jail::{OutputBoard, Profile, Root};
pub use provost_store::Artifacts;
use provost_store::StoreError;
pub use provost_store::Verdict as JournalVerdict;
pub use provost_store::{CountedRow, TimelineOrder, TimelineQuery, UsageBy, UsageQuery, UsageRow};
pub use provost_store::{Found, Hit, HitKind, SearchError, SearchQuery, SearchWords};
pub use provost_store::{RecordedDecision, RecordedDecisions};
use provost_workspace::Versions;
use provost_workspace::collect::ChangesRoom;
use provost_workspace::work_trees::WorkTrees;

/// The workers of the configuration, replaced as a whole on reload.
pub type Profiles = Arc<BTreeMap<AgentId, Arc<Profile>>>;

/// The parts of the configuration that concern workers, replaced as a whole on reload.
#[derive(Clone)]
pub struct Configured {
    /// The workers of the configuration, by name.
    pub profiles: Profiles,
    /// The files that workers have changed in their private copies.
    pub artifacts: Artifacts,
    /// The bounds on how much of the changes of one run is kept.
    pub room: ChangesRoom,
    /// The settings for merging branches.
    pub merges: Arc<MergeSettings>,
}

/// Everything a door may use. Cheap to clone.
#[derive(Clone)]
pub struct Provost(Arc<ServiceInner>);

struct ServiceInner {
    engine: Engine,
    system: Principal,
    base: Base,
    code: Arc<Code>,
    outputs: OutputBoard,
    far: far_output::FarOutputs,
    configured: RwLock<Configured>,
    programs: Programs,
    index: Index,
    /// The permits to read claimed files, so that few reads run at a time.
    claiming: Arc<tokio::sync::Semaphore>,
    versions: Arc<Versions>,
    applying: Applying,
    trees: Arc<WorkTrees>,
    /// The permit to merge a branch.
    merging: tokio::sync::Semaphore,
    /// The agents that were advised to wait, each with the file.
    advised: advised::Advised,
    /// The permit to settle a conflict.
    settling: tokio::sync::Semaphore,
    /// Counts the runs whose changes were kept.
    kept: tokio::sync::watch::Sender<u64>,
}

impl Provost {
    /// Builds the service from its parts. `system` is the daemon itself, which follows symbols and renamed files.
    pub fn new(
        engine: Engine,
        system: Principal,
        root: Root,
        outputs: OutputBoard,
        configured: Configured,
        index: Index,
        (versions, applying, trees): (Versions, Applying, Arc<WorkTrees>),
    ) -> Self {
        let configured = RwLock::new(configured);
        let programs = Programs::default();
        let (base, code) = (Base::new(root), Arc::new(Code::sharing(index.cache().clone())));
        Self(Arc::new(ServiceInner {
            engine,
            system,
            base,
            code,
            outputs,
            far: far_output::FarOutputs::default(),
            configured,
            programs,
            index,
            claiming: Arc::new(tokio::sync::Semaphore::new(CLAIMED_READERS_MAX)),
            versions: Arc::new(versions),
            applying,
            trees,
            merging: tokio::sync::Semaphore::new(1),
            advised: advised::Advised::default(),
            settling: tokio::sync::Semaphore::new(1),
            kept: tokio::sync::watch::Sender::new(0),
        }))
    }

    /// Returns the engine, for requests that need no facts.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Returns the top directory of the workspace, which is the daemon's own checkout.
    pub fn root(&self) -> &Root {
        self.0.base.root()
    }

    /// Returns the directories in which absolute paths are understood: this checkout, if one is known, and the daemon's own.
    pub fn checkouts(&self, base: Option<&Base>) -> Checkouts {
        Checkouts::at(base.into_iter().chain([&self.0.base]).map(|it| it.root().place().path().to_owned()))
    }

    /// Returns the daemon's own checkout.
    pub fn base(&self) -> &Base {
        &self.0.base
    }

    /// Returns the cache that reads and parses source files.
    pub fn code(&self) -> &Arc<Code> {
        &self.0.code
    }

    /// Returns the principal of the daemon itself, for commands that no client sends.
    pub fn system(&self) -> &Principal {
        &self.0.system
    }

    /// Returns the index of calls in the workspace.
    pub fn index(&self) -> &Index {
        &self.0.index
    }

    fn advised(&self) -> &advised::Advised {
        &self.0.advised
    }

    /// Returns the output of running workers so far.
    pub fn outputs(&self) -> &OutputBoard {
        &self.0.outputs
    }

    fn configured(&self) -> Configured {
        self.0.configured.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the workers of the configuration.
    pub fn profiles(&self) -> Profiles {
        self.configured().profiles
    }

    /// Returns the changes and the answers that agents have left. Reading them blocks.
    pub fn artifacts(&self) -> Artifacts {
        self.configured().artifacts
    }

    /// Returns the bounds on how much of the changes of one run is kept.
    pub fn changes_room(&self) -> ChangesRoom {
        self.configured().room
    }

    /// Tells all receivers of [`Self::keeps`] that the changes of another run can be read from now on.
    pub fn has_kept(&self) {
        self.0.kept.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns a receiver that changes whenever the changes of a run have been kept.
    pub fn keeps(&self) -> tokio::sync::watch::Receiver<u64> {
        self.0.kept.subscribe()
    }

    /// Replaces the workers of the configuration, from the next task on.
    pub fn set_configured(&self, configured: Configured) {
        *self.0.configured.write().unwrap_or_else(PoisonError::into_inner) = configured;
    }

    /// Submits a verb that needs no facts.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn submit<V: Verb>(&self, who: &Principal, verb: V) -> Result<V::Reply, Refusal> {
        self.0.engine.submit(who, verb).await
    }

    /// Submits a verb that policy must judge, without facts.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn submit_judged<V: JudgedVerb>(
        &self,
        who: &Principal,
        verb: V,
    ) -> Result<Answer<V::Reply>, Refusal> {
        self.0.engine.submit_judged(who, verb, Facts::default()).await
    }

    /// Answers a question from memory.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn view<V: View>(&self, view: V) -> Result<V::Out, Refusal> {
        self.0.engine.view(view).await
    }
}

/// Logs why the store cannot be read, and returns the refusal for callers: "unavailable".
pub fn unreadable(err: &StoreError) -> Refusal {
    let why = match err {
        // The engine has said so in the log already.
        StoreError::Away(_) => {
            tracing::debug!(%err, "history cannot be read");
            "the database does not answer, and past events and finished tasks are only there"
        }
        _ => {
            tracing::error!(%err, "history cannot be read");
            "its history cannot be read; see the log"
        }
    };
    Refusal::Unavailable { why: why.into() }
}
