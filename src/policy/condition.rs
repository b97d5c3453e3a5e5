//! The table of conditions that a rule can state as `when.KEY`: one row each.
//!
//! A row names the key, the form of its value, the property of the request that it examines, and the sentence of
//! `policy/README.md`. From the rows come the normal form of rules, the known keys, the compiled test, what an explanation
//! prints, and the sentence. `tests/equipment/naive.rs` has the twin of each row, by an exhaustive match.
//!
//! Cheap conditions come first, so that a rule for other requests costs almost nothing.

use std::fmt::Debug;
use std::sync::Arc;

use serde::Serialize;

use super::command_form::Commands;
use super::file::{Net, Ruling};
use super::form::{
    BytesMax, BytesOver, CountOver, Folders, Form, Missing, Names, OneOf, Paths, PathsOutside, Phrases,
    TimeOver, Within,
};
use super::reader::{Notes, Section};
use super::subject::Subject;
use provost_domain::{Action, Door, Git, Proof, Tier, WorkerKind};

/// A stated condition, ready to be asked.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    /// The key in the file, without `when.`.
    pub(super) key: &'static str,
    /// Its value in the file, for people and for comparison.
    pub(super) wants: Box<str>,
    test: Arc<dyn Test>,
}

impl Clause {
    pub(super) fn holds(&self, subject: &Subject<'_>) -> bool {
        self.test.holds(subject)
    }

    /// The property that the request has instead, for people.
    pub(super) fn found(&self, subject: &Subject<'_>) -> String {
        self.test.found(subject)
    }
}

trait Test: Debug + Send + Sync {
    fn holds(&self, subject: &Subject<'_>) -> bool;
    fn found(&self, subject: &Subject<'_>) -> String;
}

/// The property of a request that a row examines; `None` where the request does not have it.
type Property<F> = for<'a> fn(&'a Subject<'a>) -> Option<<F as Form>::Found<'a>>;

#[derive(Debug)]
struct Compiled<F: Form> {
    test: F::Test,
    of: Property<F>,
}

impl<F: Form + Debug> Test for Compiled<F> {
    fn holds(&self, subject: &Subject<'_>) -> bool {
        (self.of)(subject).is_some_and(|found| F::holds(&self.test, found))
    }

    fn found(&self, subject: &Subject<'_>) -> String {
        (self.of)(subject).map_or_else(|| "nothing".to_owned(), F::shown)
    }
}

fn clause<F: Form + Debug + 'static>(
    key: &'static str,
    stated: Option<&F>,
    of: Property<F>,
    ruling: Ruling,
) -> Result<Option<Clause>, String> {
    let Some(form) = stated else { return Ok(None) };
    let test = Arc::new(Compiled { test: form.compile(ruling)?, of });
    Ok(Some(Clause { key, wants: form.text().into(), test }))
}

macro_rules! conditions {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $key:ident: $form:ty, $of:expr;
    )+) => {
        /// The conditions of a rule. All that are stated must hold; within one, any of the listed values will do. A
        /// condition on something that the request does not have does not hold.
        #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
        pub struct When {
            /// Said instead of conditions by a rule that matches everything.
            pub any: bool,
            $(
                $(#[doc = $doc])+
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<$form>,
            )+
        }

        /// A condition that a rule states, for the judge that walks through them.
        #[derive(Clone, Copy, Debug)]
        pub enum Stated<'r> {
            $(
                $(#[doc = $doc])+
                $variant(&'r $form),
            )+
        }

        impl When {
            /// Every key of a rule's `when`.
            pub(super) const KEYS: &'static [&'static str] = &["any", $(stringify!($key)),+];

            pub(super) fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>) -> Self {
                Self {
                    any: from.switch(notes, "any"),
                    $($key: Form::read(notes, from, stringify!($key)),)+
                }
            }

            /// # Errors
            /// A sentence, when the patterns together are too large to compile.
            pub(super) fn compile(&self, ruling: Ruling) -> Result<Vec<Clause>, String> {
                let clauses = [$(clause::<$form>(stringify!($key), self.$key.as_ref(), $of, ruling)?),+];
                Ok(clauses.into_iter().flatten().collect())
            }

            /// Whether a stated condition examines what such a request does not have.
            pub(super) fn needs_more_than(&self, subject: &Subject<'_>) -> bool {
                [$(self.$key.is_some() && (($of) as Property<$form>)(subject).is_none()),+].contains(&true)
            }

            /// The conditions that the rule states, in the order of the table.
            pub fn stated(&self) -> Vec<Stated<'_>> {
                [$(self.$key.as_ref().map(Stated::$variant)),+].into_iter().flatten().collect()
            }
        }

        /// Each key of a rule's `when` with the sentence that says when its condition holds.
        pub const CONDITIONS: &[(&str, &str)] = &[$((stringify!($key), concat!($($doc),+).trim_ascii())),+];
    };
}

conditions! {
    /// `delegate`, `screenshot`, `apply`, `permission` (an agent's host would ask its person about a tool: [hooks](../docs/hooks.md)), `approve` (an agent answers an approval), or `token` (a caller requests a token; a person always may)
    Action action: OneOf<Action>, |it| Some(it.action);
    /// the worker is started by the daemon (`cli`) or collects its tasks (`polling`)
    WorkerKind worker_kind: OneOf<WorkerKind>, |it| it.work.as_ref()?.kind;
    /// the worker would run in tier `ns` (a root of its own), `ll` (weaker), or `job` (Windows: reading and the network stay open); polling workers have none. Only a rule that names `job` lets a worker run in it
    Tier tier: OneOf<Tier>, |it| it.work.as_ref()?.tier;
    /// the worker wants `none`, `ports` or `hosts`; `any` means ports or hosts
    Network network: OneOf<Net>, |it| Some(Net::of(&it.work.as_ref()?.network));
    /// the worker may `write` to the repository that it works in, or `read` it alone; only a rule that names `write` lets such a worker run
    Git git: OneOf<Git>, |it| Some(it.work.as_ref()?.git);
    /// the caller connected through this door ([doors](../docs/doors.md)), for example `devit`, `own` or `mcp`
    Door door: OneOf<Door>, |it| Some(it.door);
    /// the caller proved itself by `shared_key`, `own_key`, `peer_uid` or `token`, is a `person` at a terminal or at the `desktop`, or is a `jailed` worker
    Proof proof: OneOf<Proof>, |it| Some(it.proof);
    /// `true`: the tool of a delegation names no path
    PathMissing path_missing: Missing, |it| Some(it.work.as_ref()?.path.as_deref());
    /// more delegations than that lie above this one
    DepthOver depth_over: CountOver, |it| Some(it.work.as_ref()?.depth);
    /// the caller has more unfinished tasks than that
    RunningOver running_over: CountOver, |it| Some(it.work.as_ref()?.running);
    /// the goal has at most so many bytes
    GoalBytesMax goal_bytes_max: BytesMax, |it| Some(it.work.as_ref()?.goal_bytes);
    /// the goal has more bytes
    GoalBytesOver goal_bytes_over: BytesOver, |it| Some(it.work.as_ref()?.goal_bytes);
    /// the tool asks for more bytes
    MaxBytesOver max_bytes_over: BytesOver, |it| it.work.as_ref()?.max_bytes;
    /// the tool asks for more time
    TimeoutOver timeout_over: TimeOver, |it| it.work.as_ref()?.timeout_s;
    /// it is within `"08:00-20:00+01:00"`; the offset from UTC must be there; may wrap midnight
    Hours hours: Within, |it| Some(it.now);
    /// the tool's name matches: the one that a host calls it by (`Bash`, `mcp__files__*`), for a `permission`; DevIt's `task.action` for a delegation (its real clients always say `devit_delegate`)
    Tool tool: Names, |it| it.tool();
    /// the caller's name matches a pattern: `"client:*"`
    Client client: Names, |it| Some(it.client);
    /// the worker's name matches a pattern
    Worker worker: Names, |it| Some(it.work.as_ref()?.worker);
    /// the working directory, links resolved, matches a pattern
    Cwd cwd: Folders, |it| it.work.as_ref()?.place.as_ref();
    /// the tool names a path, and a pattern matches it; of a `permission`, all paths in a rule that allows, and any in other rules ([below](#commands-and-files-of-hosts-tools))
    Path path: Paths, |it| it.paths();
    /// the tool of a delegation names a path, and no pattern matches it
    PathOutside path_outside: PathsOutside, |it| it.work.as_ref()?.path.as_deref();
    /// the command of a delegation's tool has these words one after the other: `"rm -rf"`
    CommandHas command_has: Phrases, |it| it.work.as_ref()?.command;
    /// the command of a `permission` is one of these, word by word: `"git status"`, `"cargo test *"`; in a rule that allows it is a single plain command, in other rules any command of the line may be it ([below](#commands-and-files-of-hosts-tools))
    Command command: Commands, |it| it.call.as_ref()?.command();
}

/// The table of conditions, as `policy/README.md` has it.
pub fn print_conditions() -> String {
    let rows = CONDITIONS.iter().map(|(key, says)| format!("| `when.{key}` | {says} |\n"));
    std::iter::once("| key | holds when |\n|---|---|\n".to_owned()).chain(rows).collect()
}
