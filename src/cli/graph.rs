//! `provost graph`: callers and callees of symbols, across files.

use clap::{Args, Subcommand};

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::wire;

/// The files that `provost graph status` names of those that were not read whole.
const NOT_WHOLE_SHOWN: usize = 20;

/// `provost graph`.
#[derive(Subcommand, Debug)]
pub(super) enum Graph {
    /// Show the direct callers of a symbol, in any file
    #[command(
        after_help = "Examples:\n  provost graph callers src/auth.ts:validateToken\n  provost graph callers Session.renew --json"
    )]
    Callers(Symbol),
    /// Show the direct callees of a symbol; `?:name` is not in this repository
    #[command(after_help = "Example:\n  provost graph callees src/routes.ts:handle")]
    Callees(Symbol),
    /// Show how much of the repository is indexed
    #[command(after_help = "Example:\n  provost graph status")]
    Status,
    /// Show what is known of each language: what is exact, what is guessed, what is not known
    #[command(after_help = "Examples:\n  provost graph languages\n  provost graph languages --json")]
    Languages,
}

/// A symbol.
#[derive(Args, Debug)]
pub(super) struct Symbol {
    /// `file:Symbol`, the file relative to the repository's root; or a name that only one symbol has, also as languages write it:
    /// `Store::total`, `Store#total`
    symbol: String,
}

pub(super) fn graph(here: &RepoContext, it: Graph) -> Result<u8, CliError> {
    match it {
        Graph::Callers(Symbol { symbol }) => {
            let query = wire::GraphQuery { symbol };
            let calls = wait_for(async { Ok(here.daemon(None).await?.callers(&query).await?) })?;
            tell(here, &calls, "no known callers")
        }
        Graph::Callees(Symbol { symbol }) => {
            let query = wire::GraphQuery { symbol };
            let calls = wait_for(async { Ok(here.daemon(None).await?.callees(&query).await?) })?;
            tell(here, &calls, "no known callees")
        }
        Graph::Status => status(here),
        Graph::Languages => languages(here),
    }
}

fn languages(here: &RepoContext) -> Result<u8, CliError> {
    let all = provost_view::languages();
    if here.json {
        out::json(&all)?;
        return Ok(DONE);
    }
    for it in &all.languages {
        out::line(format!("{} ({})", it.name, it.suffixes.join(" ")))?;
        for (word, says) in [("exact", it.exact), ("guessed", it.guessed), ("not known", it.unknown)] {
            out::line(format!("  {word:<10} {says}"))?;
        }
    }
    out::line(all.others)?;
    out::line(all.index)?;
    Ok(DONE)
}

fn tell(here: &RepoContext, calls: &wire::Calls, none: &str) -> Result<u8, CliError> {
    if here.json {
        out::json(calls)?;
        return Ok(DONE);
    }
    for symbol in &calls.symbols {
        let mark = match (calls.guessed.contains(symbol), calls.indexed.contains(symbol)) {
            (true, _) => "  (guess)",
            (_, true) => "  (index)",
            _ => "",
        };
        out::line(format!("{}{mark}", out::plain(symbol)))?;
    }
    if calls.of.len() > 1 {
        let all: Vec<_> = calls.of.iter().map(|it| out::plain(it)).collect();
        let all = all.join(", ");
        out::note(format!("note: the name stands for several symbols; for one of them, write {all}"));
    }
    if calls.symbols.is_empty() {
        out::note(none);
    }
    if let Some(tool) = &calls.scip {
        out::note(format!("note: a .scip index was used, too ({})", out::one_line(tool, 60)));
    }
    calls.missing.iter().for_each(|why| out::note(format!("note: incomplete: {}", out::one_line(why, 400))));
    Ok(DONE)
}

fn status(here: &RepoContext) -> Result<u8, CliError> {
    let graph = wait_for(async { Ok(here.daemon(None).await?.graph().await?) })?;
    if here.json {
        out::json(&graph)?;
        return Ok(DONE);
    }
    let row = |name: &str, value: String| [name.to_owned(), value];
    let mut rows = vec![
        row("files", graph.files.to_string()),
        row("symbols", graph.symbols.to_string()),
        row("calls", graph.edges.to_string()),
        row("memory", format!("{} KiB", graph.bytes >> 10)),
        row("read in", graph.took_ms.map_or("still reading".into(), |ms| format!("{ms} ms"))),
        row("changes", if graph.watching { "reported by the system" } else { "checked at intervals" }.into()),
    ];
    if graph.broken > 0 {
        rows.push(row("not read whole", format!("{} files", graph.broken)));
    }
    if let Some(scip) = &graph.scip {
        let made_by = out::one_line(&scip.tool, 60);
        let text = format!(
            "{} calls in {} files, by {made_by}; {} files are not as they were indexed",
            scip.edges, scip.files, scip.outdated
        );
        rows.push(row("index", text));
    }
    rows.push(row("complete", if graph.complete { "yes" } else { "no" }.into()));
    rows.extend(graph.missing.iter().map(|why| row("missing", out::one_line(why, 400))));
    out::text_as_is(&out::table(&rows))?;
    not_whole(&graph).into_iter().try_for_each(out::line)?;
    Ok(DONE)
}

/// Names the files that were not read whole, each with its reasons; of many, the first, and how many more there are.
fn not_whole(graph: &wire::Graph) -> Vec<String> {
    if graph.not_whole.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["not read whole:".to_owned()];
    let named = graph.not_whole.iter().take(NOT_WHOLE_SHOWN);
    lines.extend(
        named.map(|it| format!("  {}: {}", out::plain(&it.file), out::one_line(&it.why.join(", "), 200))),
    );
    let more = graph.broken.saturating_sub(NOT_WHOLE_SHOWN);
    if more > 0 {
        lines.push(format!("  and {more} more; --json names them"));
    }
    lines
}
