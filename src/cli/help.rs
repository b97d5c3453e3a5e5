//! The definition of the command line as people see it: nouns in groups, and the short forms.

use std::ffi::OsString;

use clap::{Command, CommandFactory as _};

use super::args::Line;
use super::forms::{FORMS, Form, Kind};

/// The nouns, in the order in which a newcomer needs them.
const GROUPS: [(&str, &[&str]); 7] = [
    ("The daemon", &["daemon", "ui", "web", "notify", "push", "config", "journal", "store", "host", "user"]),
    (
        "Tasks and their workers",
        &["task", "worktree", "cost", "approval", "apply", "screenshot", "worker", "workflow"],
    ),
    (
        "Agents on the same files",
        &[
            "agent",
            "lock",
            "wait",
            "intent",
            "contract",
            "claim",
            "file",
            "timeline",
            "graph",
            "crew",
            "agent-protocol",
        ],
    ),
    ("Messages between agents", &["broker", "question"]),
    ("Agents' hosts, and git", &["mcp", "acp", "hook", "git", "merge", "adapter"]),
    ("Rules, names and secrets", &["policy", "jail", "key", "token", "passkey", "secret"]),
    ("This program", &["doctor", "completions", "man"]),
];

/// A space at which no line is broken.
const UNBROKEN: &str = "\u{a0}";

/// Returns the definition, with the short forms beside the commands that they stand for.
pub fn definition() -> Command {
    let mut line = Line::command();
    for form in short_forms() {
        let command =
            form.meant.split(' ').try_fold(&mut line, |command, word| command.find_subcommand_mut(word));
        let mut usage = None;
        if let Some(command) = command {
            let short =
                command.clone().bin_name(format!("provost {}", form.typed)).render_usage().to_string();
            usage = short.strip_prefix("Usage: ").map(str::to_owned);
            let said = command.get_after_help().map(|it| format!("{it}\n\n")).unwrap_or_default();
            let said = format!("{said}Short form: provost {}", form.typed);
            *command = std::mem::take(command).after_help(said);
        }
        // The help of a noun tells which command the noun alone stands for.
        if let Some(noun) = line.find_subcommand_mut(form.typed) {
            let said = noun.get_after_help().map(|it| format!("{it}\n\n")).unwrap_or_default();
            let said = format!("{said}Without a verb: short for provost {}", form.meant);
            let verbs = format!("provost {} [OPTIONS] <COMMAND>", form.typed);
            let usage = usage.map(|short| format!("{verbs}\n       {short}")).unwrap_or(verbs);
            *noun = std::mem::take(noun).after_help(said).override_usage(usage);
        }
    }
    let after = line.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (groups, after) = (groups(&line), format!("{}\n\n{after}", short_list()));
    line.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
    .after_help(after)
}

/// Returns the definition for a terminal: lines that begin with spaces are examples and lists, and stay whole at any width.
pub(super) fn for_a_terminal() -> Command {
    unbroken(definition())
}

fn unbroken(command: Command) -> Command {
    let command = command.mut_subcommands(unbroken);
    let Some(text) = command.get_after_help().map(ToString::to_string) else { return command };
    let line = |line: &str| match line.starts_with("  ") {
        true => line.replace(' ', UNBROKEN),
        false => line.to_owned(),
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    command.after_help(lines.join("\n"))
}

/// Returns a text of the definition for a terminal, with plain spaces.
pub(super) fn plain(text: &str) -> String {
    text.replace(UNBROKEN, " ")
}

/// Turns `help WORDS` into `WORDS --help`.
pub(super) fn asked(args: &mut Vec<OsString>) {
    let first = (1..args.len()).find(|at| args[*at] != "--json");
    if let Some(at) = first.filter(|at| args[*at] == "help") {
        args.remove(at);
        args.push("--help".into());
    }
}

/// Returns the definition for shells: a short form is completed as the command that it stands for.
pub(super) fn with_short_forms() -> Command {
    let mut line = definition();
    for form in short_forms() {
        let meant = form.meant.split(' ').try_fold(&line, |command, word| command.find_subcommand(word));
        if let Some(meant) = meant.filter(|_| line.find_subcommand(form.typed).is_none()) {
            let short = meant.clone().name(form.typed);
            line = line.subcommand(short);
        }
    }
    line
}

fn short_forms() -> impl Iterator<Item = &'static Form> {
    FORMS.iter().filter(|form| form.kind == Kind::Short)
}

/// Lists the nouns with their purposes and their verbs.
fn groups(line: &Command) -> String {
    let mut text = String::new();
    for (heading, nouns) in GROUPS {
        text.push_str(&format!("{heading}:\n"));
        // A noun that this system does not have is no subcommand.
        for noun in nouns.iter().filter_map(|noun| line.find_subcommand(noun)) {
            let about = noun.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {:<16}{about}\n", noun.get_name()));
            let verbs = noun.get_subcommands().filter(|verb| !verb.is_hide_set());
            let verbs: Vec<&str> = verbs.map(Command::get_name).collect();
            if !verbs.is_empty() {
                text.push_str(&format!("{:18}{}\n", "", verbs.join(", ")));
            }
        }
        text.push('\n');
    }
    text
}

/// Lists the short forms in two columns.
fn short_list() -> String {
    let all: Vec<&Form> = short_forms().collect();
    let rows = all.len().div_ceil(2);
    let mut text = String::from("Short forms:");
    for row in 0..rows {
        let cells = [row, row + rows].into_iter().filter_map(|at| all.get(at));
        let cells: Vec<String> = cells.map(|form| format!("{:<10}{:<20}", form.typed, form.meant)).collect();
        text.push_str(&format!("\n  {}", cells.join("  ").trim_end()));
    }
    text
}
