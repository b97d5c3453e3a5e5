//! Policy: rules in a file, compiled, and checked before a delegation, a capture, an apply or an approval.
//!
//! Promises: the strictest matching rule wins, in any order of rules; a request that no rule matches is
//! denied; a permission carries its limits; a file with a mistake is refused as a whole, with lines; the same
//! request gets the same answer. `policy/README.md` shows the language by example.
//!
//! Left to others: resolving directories and counting (the request carries the facts), rate and concurrency
//! counters (`domain`), and enforcement of the terms (`jail`, `effects`).
#![forbid(unsafe_code)]

mod builtin;
mod check;
mod command_form;
mod condition;
mod explain;
mod file;
mod form;
mod glob;
mod judge;
mod parse;
mod reader;
mod recorded;
mod request;
mod rule;
mod source;
mod subject;
mod units;

pub use builtin::{Builtin, builtin};
pub use check::{
    Difference, Failed, PASSKEY_MISSING, Report, by_passkey_alone, check, diff, is_passkey_alone, run_cases,
};
pub use condition::{CONDITIONS, Stated, When, print_conditions};
pub use explain::{Explanation, Outcome, RuleTrace, Unmet, explain, explain_request};
pub use file::{APPROVAL_WAIT, Ask, File, Limit, Net, Rule, Ruling, cannot_wait};
pub use form::Missing;
pub use judge::{GIT_UNNAMED, JOB_UNNAMED, Layer, RuleSet};
pub use provost_domain::Action;
pub use reader::{Problem, Problems};
pub use recorded::{NotAskable, Replayed, replay};
pub use request::{Case, Request};
pub use source::{LoadError, SYSTEM_POLICY, Source};
pub use units::Hours;
