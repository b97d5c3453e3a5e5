//! Prints the table of settings as the sample file and as the page of documentation.

use super::agent::{AgentConfig, Role};
use super::budget::{BudgetEntry, PriceEntry};
use super::env;
use super::notify::NotifyTarget;
use super::pool::PoolEntry;
use super::table::sections;
use super::value::{Mark, Row};
use super::worker::Worker;
use super::workflow::{Step, WorkflowHead};

/// Prints `config/provost.toml`: every setting with its default in a comment, so that a copy changes nothing, and
/// without headings of sections, so that the owner of a copy can add any.
pub fn print_toml() -> String {
    let mut out = String::from(
        "# Every setting of Provost with its default. Uncomment what you change. Settings stand here under their full\n\
         # names, so that a section of your own, such as [hooks.notify] or [workers.mine], can be added below.\n\
         #\n\
         # Read in this order, later ones win: /etc/provost/provost.toml, $XDG_CONFIG_HOME/provost/provost.toml,\n\
         # .provost/provost.toml of the repository once `provost config allow` has been told so, and `--config FILE`.\n\
         # Durations are written 800ms, 30s, 10m, 24h, 7d; sizes 512MiB, 2GiB; paths relative to the file or with ~/.\n\
         # This file is printed from src/config/table.rs: change it there.\n",
    );
    for (path, about, rows) in sections() {
        out += &format!("\n{}", wrapped(&format!("[{path}]: {about}")));
        rows.iter().for_each(|row| out += &sample(row, "", &format!("{path}.")));
    }
    out += &format!("\n{}#[workers.example]\n", wrapped(Worker::ABOUT.trim_ascii()));
    Worker::rows().iter().for_each(|row| out += &sample(row, "# ", ""));
    out += &format!("\n{}#[[agent]]\n", wrapped(AgentConfig::ABOUT.trim_ascii()));
    AgentConfig::rows().iter().for_each(|row| out += &sample(row, "# ", ""));
    out += &wrapped(AGENTS_AS_WORKERS);
    out += &format!("\n{}#[role.example]\n", wrapped(Role::ABOUT.trim_ascii()));
    Role::rows().iter().for_each(|row| out += &sample(row, "# ", ""));
    out += &format!("\n{}#[notify.example]\n", wrapped(NotifyTarget::ABOUT.trim_ascii()));
    NotifyTarget::rows().iter().for_each(|row| out += &sample(row, "# ", ""));
    out += &format!("\n{}#[pool.example]\n", wrapped(PoolEntry::ABOUT.trim_ascii()));
    PoolEntry::rows().iter().for_each(|row| out += &sample(row, "# ", ""));
    out += &format!("\n{}#[[price]]\n", wrapped(PriceEntry::ABOUT.trim_ascii()));
    PriceEntry::rows().iter().for_each(|row| out += &sample(row, "# ", ""));
    out += &format!("\n{}#[[budget]]\n", wrapped(BudgetEntry::ABOUT.trim_ascii()));
    BudgetEntry::rows().iter().for_each(|row| out += &sample(row, "# ", ""));
    out += &format!("\n{}#[[workflow]]\n", wrapped(WorkflowHead::ABOUT.trim_ascii()));
    WorkflowHead::rows().iter().for_each(|row| out += &sample(row, "# ", ""));
    out += &format!("{}#[[workflow.step]]\n", wrapped(Step::ABOUT.trim_ascii()));
    Step::rows().iter().for_each(|row| out += &sample(row, "# ", ""));
    out
}

/// Prints one setting of the sample. Absent values and those of the sample worker stay prose, so that uncommenting
/// the `#key` lines gives a file with exactly the defaults.
fn sample(row: &Row, prose: &str, section: &str) -> String {
    let key = format!("{section}{}", row.key);
    let value = match (&row.default, prose) {
        (Some(default), "") => format!("#{key} = {default}"),
        (Some(default), _) => format!("{prose}{key} = {default}"),
        (None, _) => format!("# {key} ="),
    };
    format!("{}{value}\n", wrapped(&format!("{} {}", row.says, brackets(row))))
}

/// Wraps a sentence into comment lines of at most 110 characters.
fn wrapped(sentence: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in sentence.split(' ') {
        if lines.last().is_some_and(|line| line.chars().count() + word.chars().count() > 108) {
            lines.push("#".into());
        }
        lines.last_mut().into_iter().for_each(|line| *line += &format!(" {word}"));
    }
    lines.join("\n") + "\n"
}

fn brackets(row: &Row) -> String {
    let mut parts = vec![kind(row)];
    parts.extend(marks(row).map(String::from));
    format!("({})", parts.join("; "))
}

fn kind(row: &Row) -> String {
    match row.words {
        [] if row.unit.is_empty() || row.unit == row.kind => row.kind.into(),
        [] => format!("{}: {}", row.kind, row.unit),
        words => words.join(" or "),
    }
}

fn marks(row: &Row) -> impl Iterator<Item = &'static str> {
    row.marks.iter().map(|mark| match mark {
        Mark::Strict => "a wrong value is an error",
        Mark::Required => "required",
        Mark::Owner => "not from a repository's file",
    })
}

/// Prints `docs/configuration.md`: the layers, every setting and every environment variable.
pub fn print_markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    for (path, about, rows) in sections() {
        out += &format!("\n## `[{path}]`\n\n{about}\n\n{}", table(&rows));
    }
    out += &format!(
        "\n## `[workers.<ident>]`\n\n{}\n\n{WORKERS}\n{}",
        Worker::ABOUT.trim_ascii(),
        table(&Worker::rows())
    );
    let (agent, role) = (AgentConfig::ABOUT.trim_ascii(), Role::ABOUT.trim_ascii());
    out += &format!("\n## `[[agent]]`\n\n{agent}\n\n{AGENTS}\n{}", table(&AgentConfig::all_rows()));
    out += &format!("\n## `[role.<id>]`\n\n{role}\n\n{}", table(&Role::rows()));
    let notify = NotifyTarget::ABOUT.trim_ascii();
    out += &format!("\n## `[notify.<name>]`\n\n{notify}\n\n{NOTIFY}\n{}", table(&NotifyTarget::rows()));
    let pool = PoolEntry::ABOUT.trim_ascii();
    out += &format!("\n## `[pool.<name>]`\n\n{pool}\n\n{}", table(&PoolEntry::rows()));
    let (price, budget) = (PriceEntry::ABOUT.trim_ascii(), BudgetEntry::ABOUT.trim_ascii());
    out += &format!("\n## `[[price]]`\n\n{price}\n\n{}", table(&PriceEntry::rows()));
    out += &format!("\n## `[[budget]]`\n\n{budget}\n\n{}", table(&BudgetEntry::rows()));
    let (workflow, step) = (WorkflowHead::ABOUT.trim_ascii(), Step::ABOUT.trim_ascii());
    out += &format!("\n## `[[workflow]]`\n\n{workflow}\n\n{WORKFLOWS}\n{}", table(&WorkflowHead::rows()));
    out += &format!("\n## `[[workflow.step]]`\n\n{step}\n\n{}", table(&Step::rows()));
    out += "\n## Environment\n\n| variable | read by | meaning |\n|---|---|---|\n";
    for variable in env::variables() {
        out += &format!("| `{}` | {} | {} |\n", variable.name, variable.reader, variable.says);
    }
    out + DEVIT
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from("| key | value | default | what for |\n|---|---|---|---|\n");
    for row in rows {
        let default = match &row.default {
            _ if row.marks.contains(&Mark::Required) => "required".into(),
            Some(default) => format!("`{default}`"),
            None => "none".into(),
        };
        let marks: Vec<_> =
            marks(row).filter(|mark| *mark != "required").map(|mark| format!(" *{mark}.*")).collect();
        out += &format!(
            "| `{}` | {} | {default} | {}{} |\n",
            row.key,
            kind(row).replace('|', "or"),
            row.says,
            capital(&marks.concat())
        );
    }
    out
}

/// Makes the marks begin with a capital letter, since they stand behind a full stop.
fn capital(marks: &str) -> String {
    marks.replace("*a wrong", "*A wrong").replace("*not from", "*Not from")
}

const INTRODUCTION: &str = "\
# Configuration

This page and `config/provost.toml` are printed from `src/config/table.rs`; a test compares them.

Provost runs without any configuration. Files are read in this order, and a later one wins key by key (a
worker's entry is replaced as a whole):

1. the defaults below,
2. `/etc/provost/provost.toml`,
3. `$XDG_CONFIG_HOME/provost/provost.toml`,
4. `.provost/provost.toml` and `devit.core.toml` of the repository, but only content that `provost config allow` has
   shown to you and pinned; when the file changes it is ignored, loudly, until you allow it again,
5. the file named with `--config`, accepted as given.

Durations are written `800ms`, `30s`, `10m`, `24h` or `7d`, sizes `512MiB` or `2GiB`. Paths are relative to the
folder of the file that names them; `~/` is your home.

The daemon reports an unknown key, with the nearest known one. It reports an invalid value, and the value of the
next lower file stays in force, except where the table says that it is an error: those settings enforce something,
and the daemon does not start without them. It refuses a worker with an invalid entry, with the reason, to every
caller that asks for it; the other workers run.
";

const WORKERS: &str = "\
A worker named `shell` is built in: `/bin/sh -c <goal>`, plain text, in the jail, without network.
";

const NOTIFY: &str = "\
The daemon refuses an invalid entry by itself: that address gets no notices, and `provost notify list` and `provost doctor` say why. Store
keys and addresses that are passwords with `provost secret add NAME --daemon`. See [notices.md](notices.md).
";

const AGENTS: &str = "\
[agents.md](agents.md) shows entries for Claude, Codex and others. `sandbox` is another name for `tier`,
`network = false` for `network = \"none\"`, and `env = [\"NAME\"]`, a list, for `secrets`.
";

const WORKFLOWS: &str = "\
Workflows stand in a file of settings, or in files of their own: `workflows/*.toml` beside your `provost.toml`, and
`.provost/workflows/*.toml` in the repository, each once `provost config allow` has shown it to you. The daemon refuses an
invalid workflow by itself. See [workflows.md](workflows.md).
";

const AGENTS_AS_WORKERS: &str = "tier, network, ports, hosts, read_only, protect, env, secrets, memory, processes, open_files, \
file_size, tmp_size, cpu_secs, growth, growth_files, default_model and allowed_models are those of a worker.";

const DEVIT: &str = "
## An existing `devit.core.toml`

The daemon reads such a file unchanged, from the repository once allowed, from `DEVIT_CORE_CONFIG`, or from
`--config`. These keys count: `workspace.sandbox_root`, `workers.*`, `daemon.expected_worker_version`,
`daemon.approvals.default_target`, `orchestration.capabilities.screenshot.*` and `tools.screenshot.*` (pictures only
when both are enabled), and `orchestration.daemon_socket`, which tells clients where to connect and becomes
`devit.socket`. The daemon ignores keys for clients alone. It reports documented keys that never had an effect
(`timeout` of a worker, `[orchestration.notify_hook]`, `orchestration.expected_worker_version` and a few more), with
the replacement.
";
