//! The call graph in the own API's words.

use hyper::StatusCode;

use super::OwnError;
use provost_api::wire;
use provost_base::SymbolPath;
use provost_base::limits::{GRAPH_CANDIDATES_MAX, GRAPH_NOT_WHOLE_MAX};
use provost_domain::Refusal;
use provost_service::{Calls, GraphError, GraphState, NotWhole};

/// Writes symbols as `file:Path`.
fn names(symbols: &[SymbolPath]) -> Vec<String> {
    symbols.iter().map(ToString::to_string).collect()
}

pub(in super::super) fn calls(it: &Calls) -> wire::Calls {
    wire::Calls {
        of: names(&it.of),
        symbols: names(&it.symbols),
        guessed: names(&it.guessed),
        indexed: names(&it.indexed),
        complete: it.state.complete,
        missing: it.state.missing.clone(),
        scip: it.state.scip.as_ref().map(|it| it.tool.clone()),
    }
}

pub(in super::super) fn state(it: GraphState, not_whole: &[NotWhole]) -> wire::Graph {
    let scip = it.scip.map(|it| wire::Scip {
        tool: it.tool,
        files: it.files,
        outdated: it.outdated,
        edges: it.edges,
    });
    wire::Graph {
        files: it.size.files,
        symbols: it.size.symbols,
        edges: it.size.edges,
        broken: it.size.broken,
        bytes: it.size.bytes,
        complete: it.complete,
        missing: it.missing,
        watching: it.watching,
        took_ms: it.took_ms,
        not_whole: not_whole.iter().take(GRAPH_NOT_WHOLE_MAX).map(unread).collect(),
        scip,
    }
}

fn unread(it: &NotWhole) -> wire::NotWhole {
    wire::NotWhole { file: it.file.to_string(), why: it.why.iter().map(ToString::to_string).collect() }
}

/// Names all symbols that a name may mean, up to the bound, and what to write for one of them.
fn several(all: &[SymbolPath]) -> OwnError {
    let first = names(&all[..all.len().min(GRAPH_CANDIDATES_MAX)]);
    let more =
        if all.len() > first.len() { format!("more than {}", first.len()) } else { first.len().to_string() };
    let example = first.first().map(String::as_str).unwrap_or_default();
    OwnError::new(
        StatusCode::CONFLICT,
        "ambiguous",
        format!("{more} symbols have this name: {}", first.join(", ")),
    )
    .hint(format!("write the file and the whole name of one of them, such as {example}"))
}

pub(in super::super) fn fault(error: GraphError) -> OwnError {
    let not_found = |word, message: String| OwnError::new(StatusCode::NOT_FOUND, word, message);
    match error {
        GraphError::Malformed(what) => {
            OwnError::invalid(what).hint("write it as file:Symbol, such as src/auth.ts:Session.renew")
        }
        GraphError::NoSuchFile(symbol) => {
            not_found("no_such_file", format!("{} is not known as a source file", symbol.file())).hint(
                "files that git ignores, hidden ones and other languages are not read; `provost graph status` says how far reading has come",
            )
        }
        GraphError::NoSuchSymbol(alike) if alike.is_empty() => {
            not_found("no_such_symbol", "nothing has this name".into())
                .hint("`provost graph status` says how far reading has come")
        }
        GraphError::NoSuchSymbol(alike) => not_found("no_such_symbol", "nothing in this file has this name".into())
            .hint(format!("maybe {}", names(&alike).join(", "))),
        GraphError::Unread(symbol) => not_found(
            "not_read",
            format!("{} was not read to its end, so it is not known what it defines", symbol.file()),
        )
        .hint(format!("provost lock {symbol} says why, and locks the whole file")),
        GraphError::Several(all) => several(&all),
        GraphError::Ending => super::fault(Refusal::Stopping),
    }
}
