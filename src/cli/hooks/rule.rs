//! Codex' setting for Provost's tools: a line in the person's own configuration, beside the server's entry.
//!
//! Codex asks before tools that are marked as destructive, and refuses them where its policy forbids questions.
//! Provost's own rules judge these tools when they are called. The rule has no other place: in the file of a work
//! tree it would keep Codex from starting for a user who has no such server. It is a line in the server's own table,
//! so that it is removed together with the table. Tried with Codex 0.169.

use toml::{Table, Value};

use super::file::HostFile;
use super::install::Standing;
use super::trust;
use crate::{CliError, RepoContext};

/// The setting, and what it says about asking: not at all.
const KEY: &str = "default_tools_approval_mode";
const MODE: &str = "approve";

/// The whole line, by which Provost finds it again.
const LINE: &str = "default_tools_approval_mode = \"approve\" # provost: its own rules judge these calls";

/// The configuration's treatment of Provost's tools.
enum Stands {
    /// It has no server of Provost.
    NoServer,
    /// Codex asks about the tools.
    Asks,
    /// It has another setting about asking, which belongs to its person.
    Theirs(String),
    /// Codex does not ask about the tools.
    Allows,
}

fn file(here: &RepoContext) -> Result<Option<HostFile>, CliError> {
    match trust::home(here) {
        Some(folder) if folder.is_dir() => HostFile::in_folder(here, &folder, "config.toml").map(Some),
        _ => Ok(None),
    }
}

/// Returns the table of Provost's server, if the entry of that name is Provost's.
fn server(config: &Table) -> Option<&Table> {
    let server = config.get("mcp_servers")?.get("provost")?.as_table()?;
    let text = |name: &str| server.get(name).and_then(Value::as_str);
    let is_program = text("command").is_some_and(|it| {
        std::path::Path::new(it).file_stem().is_some_and(|name| name.eq_ignore_ascii_case("provost"))
    });
    let is_door = text("url").is_some_and(|it| {
        ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"].iter().any(|begin| it.starts_with(begin))
    });
    (is_program || is_door).then_some(server)
}

fn stands(file: &HostFile, text: &str) -> Result<Stands, CliError> {
    let config: Table = text.parse().map_err(|err: toml::de::Error| file.wrong(err.message()))?;
    Ok(match server(&config).map(|it| it.get(KEY)) {
        None => Stands::NoServer,
        Some(None) => Stands::Asks,
        Some(Some(Value::String(mode))) if mode == MODE => Stands::Allows,
        Some(Some(mode)) => Stands::Theirs(mode.to_string()),
    })
}

/// Writes the rule, if the configuration has Provost's server and no setting about asking.
pub(super) fn put(here: &RepoContext) -> Result<(), CliError> {
    let Some(file) = file(here)? else { return Ok(()) };
    let Some(seen) = file.read()? else { return Ok(()) };
    if !matches!(stands(&file, &seen.text)?, Stands::Asks) {
        return Ok(());
    }
    let plain = |line: &str| line.split('#').next().unwrap_or_default().replace([' ', '\t', '"', '\''], "");
    let mut text = String::new();
    for line in seen.text.split_inclusive('\n') {
        text.push_str(line);
        if plain(line.trim_end()) == "[mcp_servers.provost]" {
            let end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
            text.push_str(if line.ends_with('\n') { "" } else { end });
            text.push_str(LINE);
            text.push_str(end);
        }
    }
    match stands(&file, &text)? {
        Stands::Allows => file.let_go(&seen, &text),
        _ => Err(file.wrong("its server `provost` has no table `[mcp_servers.provost]` of its own")),
    }
}

/// Removes the rule, if it is unchanged.
pub(super) fn take_out(here: &RepoContext) -> Result<(), CliError> {
    let Some(file) = file(here)? else { return Ok(()) };
    // Provost has not written a file that cannot be read.
    let Ok(Some(seen)) = file.read() else { return Ok(()) };
    let lines = seen.text.split_inclusive('\n');
    let left: String = lines.filter(|line| line.trim_end_matches(['\r', '\n']) != LINE).collect();
    if left == seen.text { Ok(()) } else { file.let_go(&seen, &left) }
}

/// The next step where Codex has no server of Provost.
const NO_SERVER: &str =
    "no server `provost` is in there: codex mcp add provost -- provost mcp, then provost hook install codex";

/// Returns the state of the rule, for people; `None` where the place of Codex' configuration is not known.
pub(super) fn standing(here: &RepoContext) -> Result<Option<Standing>, CliError> {
    let Some(file) = file(here)? else {
        let config = trust::home(here).map(|it| it.join("config.toml"));
        return Ok(config.map(|it| Standing::of_codex(&it, "missing", Some(NO_SERVER.to_owned()))));
    };
    let stands = file.read().and_then(|seen| {
        let text = seen.map(|it| it.text).unwrap_or_default();
        stands(&file, &text)
    });
    let (state, why) = match stands {
        Ok(Stands::Allows) => ("installed", None),
        Ok(Stands::Asks) => {
            ("missing", Some("Codex asks about Provost's tools; provost hook install codex".to_owned()))
        }
        Ok(Stands::Theirs(mode)) => ("missing", Some(format!("it says {KEY} = {mode}, which stays"))),
        Ok(Stands::NoServer) => ("missing", Some(NO_SERVER.to_owned())),
        Err(error) => ("unreadable", Some(error.in_short())),
    };
    Ok(Some(Standing::of_codex(&file.shown, state, why)))
}
