//! Vocabulary shared by every layer: identifiers, names, time, secrets, canonical JSON and bounds.
//!
//! Each type is parsed once, at the edge where a peer's text comes in; inside, a value of the type is proof that it
//! is valid. Nothing here does input or output.
#![forbid(unsafe_code)]

pub mod acp;
mod authority;
mod digest;
mod doors;
mod hosts;
mod ids;
mod ignored;
pub mod json;
pub mod jsonc;
pub mod later;
pub mod limits;
mod lookalikes;
mod names;
mod patterns;
mod percent;
mod resources;
mod scopes;
mod secret;
mod shortened;
mod spellings;
mod suggest;
mod symbols;
mod tier;
mod time;
mod trace_parent;
mod typed;
mod visible;
mod web_address;

pub use authority::{Authority, BadAuthority, Destination, Hostname, is_public};
pub use digest::Digest;
pub use doors::{AGENT, At, DASHBOARD, Door, DoorRow, LoopbackAt, PAGE, Requests, ShownToCrew};
pub use hosts::{BadHostId, DaemonId, HostId, HostRole};
pub use ids::{
    AgentId, ApplyId, ApprovalId, AssignmentId, BadId, ContractId, EffectId, EntryNo, EventSeq, Fence,
    HandoffId, IntentId, JobId, MailSeq, PostSeq, RuleId, SessionId, Slug, TaskId, Ticket,
};
pub use ignored::IgnoreRules;
pub use json::Json;
pub use lookalikes::{Unclear, check as check_look, look_of, small};
pub use names::{BadName, RepoPath, Tops, WITH_BACKSLASH, is_absolute, normalised_path, plain_path};
pub use patterns::{BadPattern, WatchPatterns};
pub use percent::{percent_decoded, percent_encoded, percent_encoded_path};
pub use resources::{BadResource, Resource, held_of};
pub use scopes::{Scope, Scopes};
pub use secret::Secret;
pub use shortened::{is_all_shortened, is_shortened, shortened};
pub use spellings::{names_no_file, symbol_as_path};
pub use suggest::nearest;
pub use symbols::{BadSymbol, Span, SymbolPath, encloses};
pub use tier::Tier;
pub use time::{Timestamp, Ttl};
pub use trace_parent::{BadTraceContext, TraceContext};
pub use typed::{EXACTLY, merge_command, shell_word, task_command};
pub use visible::{clipped, visible, visible_name};
pub use web_address::{BadWebAddress, WebAddress};
