//! Settings: their definition, their sources, and the places of Provost's files on this machine.
//!
//! [`table`] is the one list of settings; structs, defaults, checks, `config/provost.toml` and
//! `docs/configuration.md` all come from it. [`load()`] reads the layers of files, names every key it does not
//! know, and never lets a mistake switch an enforcement off. Files of the repository count only after a person has
//! allowed exactly that content ([`pin`]). [`places`] finds the repository and its private
//! folders, [`sockets`] where a running daemon listens, [`awaiting`] a daemon that waits for its database, [`daemons`] all daemons of the user, [`mod@env`] lists the environment variables that mean something.
//!
//! The readers of a setting define its effect; this module opens no socket and judges no request.
#![forbid(unsafe_code)]

mod agent;
mod agent_protocol;
pub mod awaiting;
mod budget;
mod checks;
pub mod daemons;
mod devit;
mod doors;
pub mod env;
mod git_paw;
mod hub;
mod load;
mod locked_record;
mod mcp_tools;
mod notify;
pub mod pin;
pub mod places;
mod pool;
pub mod ports;
mod print;
mod push;
mod rate;
mod repository_name;
mod resources;
mod root_commits;
pub mod sockets;
pub mod table;
mod value;
mod web_origin;
mod worker;
mod workflow;
mod writing;

pub use agent::{AgentConfig, METHODS, Output, PromptBy, Reader, Role, Template};
pub use budget::{BudgetEntry, BudgetOf, PriceEntry, Usd};
pub use checks::{Checks, Commands, Mode};
pub use doors::{DoorSettings, Doors, print_doors};
pub use hub::{HubAt, HubRecord};
pub use load::{Broken, Dialect, Loaded, Note, RefusedWorker, Severity, Sources, load, named};
pub use mcp_tools::McpTools;
pub use notify::{NotifyDetail, NotifyKind, NotifyTarget, NotifyTargets, NotifyType};
pub use places::{Places, WorkTree};
pub use pool::{HostLabel, Pool, PoolEntry};
pub use ports::Ports;
pub use print::{print_markdown, print_toml};
pub use push::{PushHost, PushSubject};
pub use rate::Rate;
pub use repository_name::RepositoryName;
pub use resources::{Counted, Needs};
pub use root_commits::root_commits;
pub use table::{
    A6sPhasePrompts, A6sPipeline, A6sPrompts, A6sSettings, AgentProtocolSettings, Approvals, BrokerSettings,
    Config, Coordination, Daemon, Desktop, Devit, GitSettings, HostHooks, Limits, LogSettings, McpSettings,
    MetricsSettings, Notify, PolicySettings, PushSettings, Screenshot, StoreSettings, WebSettings,
    WitSettings, Workspace,
};
pub use value::{
    AcrossDoors, ByteSize, Context, DesktopTasks, Durability, Enforce, Git, ImageFormat, ImportFound,
    KeepLog, LogFormat, LogLevel, LoopbackAuth, Mark, Network, ParseMode, Row, Rules, ScreenBackend, Tier,
    Unchecked, Value, Versions, WitOpen,
};
pub use web_origin::{PageName, ProxySocket, PublicOrigin, WebOrigin, WebRead};
pub use worker::{Copies, EditorGone, Worker, WorkerKind};
pub use workflow::{BUILT_IN_FILE, Pattern, Step, StepPhase, Workflow, WorkflowHead};
pub use writing::{Auto, AutoAcross, ContractsBind, WhenDown};
