//! Who may use whom. The table is the architecture; anything it does not allow fails here.

use crate::support::source::{Source, sources};

/// Each part of `src` with the parts that it may use, from the bottom up. `main`, `lib` and `daemon` wire
/// everything together and have no row.
const LAYERS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("system", &["base"]),
    ("domain", &["base"]),
    ("policy", &["base", "domain", "system"]),
    ("auth", &["base", "domain", "system"]),
    ("store", &["base", "domain", "system"]),
    ("engine", &["base", "domain", "store", "system"]),
    ("api", &["base"]),
    ("syntax", &["base"]),
    ("graph", &["base", "syntax"]),
    ("index", &["base", "graph", "syntax", "system"]),
    ("jail", &["base", "system"]),
    ("vault", &["base", "domain", "auth"]),
    ("egress", &["base", "vault"]),
    ("transport", &["base", "system"]),
    ("config", &["base", "system"]),
    ("workspace", &["base", "domain", "jail", "system"]),
    (
        "service",
        &["base", "domain", "engine", "graph", "index", "jail", "store", "syntax", "system", "workspace"],
    ),
    ("agents", &["base", "domain", "jail", "service", "store"]),
    ("effects", &["base", "domain", "engine", "jail", "vault", "egress", "transport", "system", "workspace"]),
    ("protocols", &["agents", "api", "base", "domain", "auth", "engine", "service", "transport", "config"]),
    ("client", &["api", "base", "auth", "transport", "system"]),
    ("mcp", &["api", "base", "auth", "domain", "client", "jail", "protocols", "transport"]),
    ("cli", &["api", "base", "client", "mcp", "config", "policy", "jail", "store", "system", "vault"]),
];

const WIRING: [&str; 3] = ["src/main.rs", "src/lib.rs", "src/daemon.rs"];

/// Parts that compute and do nothing else, so that they can be replayed.
const PURE: [&str; 3] = ["base", "domain", "graph"];

/// What would make them depend on more than their arguments: a clock, the system, chance, or hash order.
const IMPURE: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "net"],
    &["std", "env"],
    &["std", "process"],
    &["std", "thread"],
    &["SystemTime"],
    &["Instant", "now"],
    &["Utc", "now"],
    &["Local", "now"],
    &["tokio"],
    &["rusqlite"],
    &["rand"],
    &["getrandom"],
    &["HashMap"],
    &["HashSet"],
    &["println"],
    &["eprintln"],
];

/// Where the one constructor of a `Principal` may be named: proof, rest, its own file, and support for tests.
fn may_establish(path: &str) -> bool {
    path.starts_with("src/auth/")
        || path.starts_with("src/store/")
        || path == "src/domain/principal.rs"
        || path.split('/').any(|part| part == "testing" || part == "testing.rs")
}

fn offences(source: &Source) -> Vec<String> {
    let Some(module) = source.module() else { return Vec::new() };
    let tokens = source.tokens();
    let mut found = Vec::new();
    for (line, token) in &tokens {
        if *token == "establish" && !may_establish(&source.path) {
            found.push(format!("{}:{line}: only auth and the store may establish a principal", source.path));
        }
    }
    if WIRING.contains(&source.path.as_str()) || source.path.starts_with("src/daemon/") {
        return found;
    }
    let layer = module[0].as_str();
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
        found.push(format!("{}: `{layer}` has no row in the table of layers", source.path));
        return found;
    };
    let is_wire = layer == "protocols" && module.len() == 3 && module[2] == "wire";
    for (line, path) in paths(&tokens, &module) {
        let Some(used) =
            path.first().filter(|used| LAYERS.iter().any(|(name, _)| name == used) || **used == "daemon")
        else {
            continue;
        };
        let fine = if is_wire {
            used == "base" || path.starts_with(&module)
        } else {
            used == layer || allowed.contains(&used.as_str())
        };
        if !fine {
            let user = if is_wire { "a wire.rs" } else { layer };
            found.push(format!("{}:{line}: {user} must not use {used}", source.path));
        }
    }
    found.dedup();
    if PURE.contains(&layer) {
        found.extend(impurities(source, &tokens));
    }
    found
}

fn impurities(source: &Source, tokens: &[(usize, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    let std_paths = (0..tokens.len()).filter(|at| tokens[*at].1 == "std").flat_map(|at| {
        let mut paths = Vec::new();
        use_tree(tokens, at, Vec::new(), &mut paths);
        paths
    });
    let mut seen: Vec<(usize, Vec<String>)> = std_paths.collect();
    for (at, (line, _)) in tokens.iter().enumerate() {
        let words = tokens[at..].iter().map(|(_, token)| *token).filter(|token| *token != "::").take(2);
        seen.push((*line, words.map(String::from).collect()));
    }
    for (line, path) in seen {
        if IMPURE
            .iter()
            .any(|impure| path.len() >= impure.len() && path.iter().zip(*impure).all(|(a, b)| a == b))
        {
            found.push(format!("{}:{line}: {} has no place in a pure layer", source.path, path.join("::")));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Every path that begins at `crate` or `super`, resolved from the crate's root, groups taken apart.
fn paths(tokens: &[(usize, &str)], module: &[String]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let begins = matches!(tokens[at].1, "crate" | "super")
            && tokens.get(at + 1).is_some_and(|next| next.1 == "::");
        at = if begins { use_tree(tokens, at, module.to_vec(), &mut found) } else { at + 1 };
    }
    found
}

/// Follows one path or group of paths from a position; returns where it ends.
fn use_tree(
    tokens: &[(usize, &str)],
    mut at: usize,
    mut path: Vec<String>,
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    while let Some((line, token)) = tokens.get(at) {
        match *token {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.1 != "}") {
                    at = use_tree(tokens, at, path.clone(), found).max(at + 1);
                    if tokens.get(at).is_some_and(|token| token.1 == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "crate" => path.clear(),
            "super" => drop(path.pop()),
            "self" => {}
            word => path.push(word.into()),
        }
        if tokens.get(at + 1).is_none_or(|next| next.1 != "::") {
            found.push((*line, path));
            return at + 1;
        }
        at += 2;
    }
    at
}

#[test]
fn every_part_uses_only_what_the_table_allows() {
    let found: Vec<String> = sources("src").iter().flat_map(offences).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn the_table_of_layers_has_no_circle() {
    for (row, (name, uses)) in LAYERS.iter().enumerate() {
        for used in *uses {
            let at = LAYERS.iter().position(|(other, _)| other == used);
            assert!(
                at.is_some_and(|at| at < row),
                "{name} uses {used}, which must stand above it in the table"
            );
        }
    }
}

/// How many offences a made-up file has.
fn count(path: &str, text: &str) -> usize {
    offences(&Source::new(path, text)).len()
}

#[test]
fn a_forbidden_direction_is_caught_however_it_is_written() {
    for text in [
        "use crate::engine::Engine;",
        "use crate::{base::Ttl, engine::Engine};",
        "use crate::{\n    base::{Ttl, Timestamp},\n    engine::{Engine, feed::Feed},\n};",
        "use super::super::engine;",
        "use super::{super::engine::Engine, rule};",
        "fn f(e: &crate::engine::Engine) {}",
        "pub(in crate::engine) fn f() {}",
        "use crate :: engine;",
        "use crate::{self, daemon};",
    ] {
        assert_eq!(count("src/policy/judge.rs", text), 1, "{text}");
    }
    assert_eq!(count("src/policy/judge.rs", "use crate::engine::A; use crate::store::B;"), 2);
    assert_eq!(count("src/policy/mod.rs", "use super::engine::Engine;"), 1);
    assert_eq!(count("src/unheard_of.rs", ""), 1, "a part without a row");
}

#[test]
fn an_allowed_direction_passes() {
    assert_eq!(
        count("src/policy/judge.rs", "use crate::{base::Ttl, domain::Judge, policy::Rule}; use super::rule;"),
        0
    );
    assert_eq!(count("src/policy/judge.rs", "// use crate::engine;\nconst A: &str = \"crate::engine\";"), 0);
    assert_eq!(count("src/policy/deep/judge.rs", "use super::super::rule::Rule;"), 0);
    assert_eq!(count("src/daemon.rs", "use crate::{engine, protocols, cli};"), 0);
    assert_eq!(count("src/protocols/devit/mod.rs", "use crate::config::Config;"), 0);
}

#[test]
fn wire_types_use_base_alone_and_the_client_uses_no_door() {
    assert_eq!(count("src/protocols/devit/wire.rs", "use crate::base::Json;"), 0);
    assert_eq!(count("src/protocols/devit/wire.rs", "use crate::domain::Command;"), 1);
    assert_eq!(count("src/protocols/devit/wire.rs", "use super::map::fault;"), 1);
    assert_eq!(count("src/client.rs", "use crate::api::wire::Hello;"), 0);
    assert_eq!(count("src/client.rs", "use crate::protocols::own::map;"), 1);
    assert_eq!(count("src/cli/up.rs", "use crate::protocols::devit::wire::Hello;"), 1);
    assert_eq!(count("src/api/wire.rs", "use crate::domain::Command;"), 1);
}

#[test]
fn a_pure_layer_reaches_for_no_clock_file_socket_chance_or_hash_order() {
    for text in [
        "use std::fs;",
        "use std::{fmt, net::TcpStream};",
        "use std::env::var;",
        "let out = std::process::Command::new(x);",
        "let now = SystemTime::now();",
        "let now = Instant::now();",
        "let now = Utc::now();",
        "use tokio::sync::mpsc;",
        "use rusqlite::Connection;",
        "rand::random::<u8>();",
        "getrandom::fill(&mut nonce);",
        "use std::collections::HashMap;",
        "use std::collections::{BTreeMap, HashSet};",
        "println!(\"hello\");",
    ] {
        assert!(count("src/domain/task.rs", text) > 0, "{text}");
        assert!(count("src/base/time.rs", text) > 0, "{text}");
        assert_eq!(count("src/transport/listen.rs", text), 0, "{text}");
    }
    assert_eq!(count("src/domain/task.rs", "use std::{fmt, collections::BTreeMap}; fn environment() {}"), 0);
}

#[test]
fn a_principal_is_established_by_proof_or_from_rest_alone() {
    let text = "let who = Principal::establish(agent);";
    for path in ["src/engine/mod.rs", "src/protocols/devit/mod.rs", "src/daemon.rs", "src/domain/session.rs"]
    {
        assert_eq!(count(path, text), 1, "{path}");
    }
    for path in
        ["src/auth/frame.rs", "src/store/codec.rs", "src/domain/principal.rs", "src/engine/testing.rs"]
    {
        assert_eq!(count(path, text), 0, "{path}");
    }
}
