//! The forms of commands other than noun and verb: the short forms that people type daily, and the old forms.
//!
//! One table says which words stand for which command. `read` replaces them by the command before the definition of
//! the command line reads the words: it is pure, and knows nouns and verbs from that definition alone. The verb of a
//! noun takes precedence, so `lock list` lists the locks; a file of that name is `./list`, or is named after `--`.

use std::ffi::OsString;

use clap::Command;

use provost_base::nearest;

/// The version from which the old forms are gone.
pub const OLD_FORMS_END: &str = "0.2";

/// The purpose of a form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// People type it daily; it stays.
    Short,
    /// It was the command in an earlier version; it works for one more version, and its user gets a hint.
    Old,
    /// Hooks that an earlier version has installed use it; agents' hosts would show a hint to a model.
    Installed,
}

/// Words that stand for a command.
#[derive(PartialEq, Eq, Debug)]
pub struct Form {
    /// The words: one, or two if the second stood in place of a verb.
    pub typed: &'static str,
    /// The command: a noun, or a noun and a verb.
    pub meant: &'static str,
    /// The purpose of the form.
    pub kind: Kind,
}

impl Form {
    const fn short(typed: &'static str, meant: &'static str) -> Self {
        Self { typed, meant, kind: Kind::Short }
    }

    const fn old(typed: &'static str, meant: &'static str) -> Self {
        Self { typed, meant, kind: Kind::Old }
    }

    /// Returns the one line for the user of an old form.
    pub fn hint(&self) -> Option<String> {
        (self.kind == Kind::Old).then(|| {
            let Self { typed, meant, .. } = self;
            format!("provost: `{typed}` is now `{meant}`; the old form ends with version {OLD_FORMS_END}")
        })
    }
}

/// Every form. A form of two words is looked for before a form of one.
pub const FORMS: &[Form] = &[
    Form::short("up", "daemon start"),
    Form::short("down", "daemon stop"),
    Form::short("status", "daemon status"),
    Form::short("metrics", "daemon metrics"),
    Form::short("env", "daemon env"),
    Form::short("log", "journal show"),
    Form::short("search", "journal search"),
    Form::short("delegate", "task delegate"),
    Form::short("say", "task say"),
    Form::short("apply", "task apply"),
    Form::short("discard", "task discard"),
    Form::short("undo", "apply undo"),
    Form::short("approve", "approval approve"),
    Form::short("deny", "approval deny"),
    Form::short("answer", "question answer"),
    Form::short("cost", "cost show"),
    Form::short("lock", "lock acquire"),
    Form::short("unlock", "lock release"),
    Form::short("with", "lock run"),
    Form::short("waits", "wait list"),
    Form::short("port", "lock port"),
    Form::short("guard", "file check"),
    Form::short("watch", "timeline watch"),
    Form::short("mcp", "mcp serve"),
    Form::short("acp", "acp serve"),
    Form::short("merge", "merge branches"),
    Form::short("web", "web open"),
    Form { typed: "hooks run", meant: "hook run", kind: Kind::Installed },
    Form::old("hooks", "hook"),
    Form::old("init", "config init"),
    Form::old("allow", "config allow"),
    Form::old("reload", "daemon reload"),
    Form::old("backup", "store backup"),
    Form::old("restore", "store restore"),
    Form::old("tasks", "task list"),
    Form::old("task", "task show"),
    Form::old("cancel", "task cancel"),
    Form::old("notify", "task report"),
    Form::old("approvals", "approval list"),
    Form::old("applies", "apply list"),
    Form::old("screenshot", "screenshot take"),
    Form::old("worker on", "worker resume"),
    Form::old("worker off", "worker pause"),
    Form::old("workflows list", "workflow list"),
    Form::old("workflows show", "workflow show"),
    Form::old("workflows", "workflow list"),
    Form::old("agents", "agent list"),
    Form::old("locks", "lock list"),
    Form::old("intend", "intent declare"),
    Form::old("intents", "intent list"),
    Form::old("intent", "intent update"),
    Form::old("claim", "claim acquire"),
    Form::old("claims", "claim list"),
    Form::old("release", "claim release"),
    Form::old("lead", "crew appoint"),
    Form::old("adapt", "adapter run"),
];

/// The flags that may stand before a noun, and between a noun and its verb. None of them has a value.
const FLAGS: [&str; 3] = ["--json", "--help", "-h"];

/// A command line without forms.
#[derive(PartialEq, Eq, Debug)]
pub struct Read {
    /// The words, with the command in place of its form.
    pub args: Vec<OsString>,
    /// The form that was typed, if one was.
    pub form: Option<&'static Form>,
}

/// Replaces a form by its command. The first of the words is the program's name.
pub fn read(mut args: Vec<OsString>, definition: &Command) -> Read {
    let Some((form, at, second)) = find(&args, definition) else { return Read { args, form: None } };
    if let Some(second) = second {
        args.remove(second);
    }
    args.splice(at..=at, form.meant.split(' ').map(OsString::from));
    Read { args, form: Some(form) }
}

/// Finds the form that was typed, with the position of its first word and that of its second.
fn find(args: &[OsString], definition: &Command) -> Option<(&'static Form, usize, Option<usize>)> {
    let next = |from: usize| (from..args.len()).find(|at| !FLAGS.iter().any(|flag| args[*at] == *flag));
    let at = next(1)?;
    let word = args[at].to_str()?;
    let behind = next(at + 1);
    let second = behind.and_then(|behind| args[behind].to_str());
    let both = second.map(|second| format!("{word} {second}"));
    if let Some(form) = FORMS.iter().find(|form| both.as_deref() == Some(form.typed)) {
        return Some((form, at, behind));
    }
    let form = FORMS.iter().find(|form| form.typed == word)?;
    let Some(noun) = definition.find_subcommand(word) else { return Some((form, at, None)) };
    let is_noun = match (behind, second) {
        (Some(_), second) => second.is_some_and(|it| is_verb(noun, it, form.kind)),
        // A noun alone shows its help, unless the form was a whole command.
        (None, _) => {
            needs_more(form, definition) || args[at..].iter().any(|it| *it == "--help" || *it == "-h")
        }
    };
    (!is_noun).then_some((form, at, None))
}

/// Checks whether a word is a verb of the noun. After an old form a misspelt verb counts too, so that the error points it out.
fn is_verb(noun: &Command, word: &str, kind: Kind) -> bool {
    let verbs = noun.get_subcommands().map(Command::get_name);
    noun.find_subcommand(word).is_some() || (kind == Kind::Old && nearest(word, verbs).is_some())
}

/// Checks whether the command of a form has required arguments.
fn needs_more(form: &Form, definition: &Command) -> bool {
    let command = form.meant.split(' ').try_fold(definition, |command, word| command.find_subcommand(word));
    command.is_some_and(|it| it.get_arguments().any(clap::Arg::is_required_set))
}
