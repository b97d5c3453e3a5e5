//! The dependencies among the parts of the project. The compiler enforces them, since each part of `src` is a crate;
//! these tests compare the table in docs/architecture.md with the crates, and check properties that a crate cannot
//! express: purity, proof, and the types of the wire.

use std::collections::BTreeSet;
use std::fs;

use crate::support::source::{Source, project_root, sources};

/// Returns the project's own crates that a manifest uses, without the beginning `provost-`; each table of dependencies counts.
fn used_by(manifest: &str) -> BTreeSet<String> {
    let mut dependencies = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            dependencies = line.trim_end_matches(']').ends_with("dependencies");
        } else if dependencies && let Some(rest) = line.strip_prefix("provost-") {
            found.insert(rest.split(['.', ' ']).next().unwrap_or_default().to_owned());
        }
    }
    found
}

/// The rows of the table of modules: each folder with what it may use.
fn table(text: &str) -> Vec<(String, BTreeSet<String>)> {
    let rows = text.lines().skip_while(|line| !line.starts_with("| folder of `src/` |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let read = |cells: Vec<&str>| {
        (cells[1].trim_matches('`').to_owned(), cells[2].split_whitespace().map(String::from).collect())
    };
    cells.map(read).filter(|(name, _)| !name.contains("daemon")).collect()
}

/// The folders of `src` that are crates.
fn crates() -> BTreeSet<String> {
    let folders = fs::read_dir(project_root().join("src")).unwrap().map(Result::unwrap);
    let folders = folders.filter(|it| it.path().join("Cargo.toml").is_file());
    folders.map(|it| it.file_name().into_string().unwrap()).collect()
}

fn manifest_of(folder: &str) -> String {
    fs::read_to_string(project_root().join(folder).join("Cargo.toml")).unwrap()
}

#[test]
fn every_crate_uses_what_the_table_of_the_architecture_says_and_nothing_else() {
    let architecture = fs::read_to_string(project_root().join("docs/architecture.md")).unwrap();
    let table = table(&architecture);
    let named: BTreeSet<String> = table.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(named, crates(), "the rows of docs/architecture.md, and the folders of src with a Cargo.toml");
    for (name, uses) in table {
        assert_eq!(used_by(&manifest_of(&format!("src/{name}"))), uses, "src/{name}/Cargo.toml and its row");
    }
}

#[test]
fn the_table_stands_in_reading_order() {
    let architecture = fs::read_to_string(project_root().join("docs/architecture.md")).unwrap();
    let table = table(&architecture);
    for (row, (name, uses)) in table.iter().enumerate() {
        for used in uses {
            let at = table.iter().position(|(other, _)| other == used);
            assert!(at.is_some_and(|at| at < row), "{name} uses {used}, which must stand above it");
        }
    }
}

#[test]
fn only_the_wiring_and_its_folder_are_no_crate() {
    let folders = fs::read_dir(project_root().join("src")).unwrap().map(Result::unwrap);
    let folders = folders.filter(|it| it.file_type().unwrap().is_dir());
    let names: BTreeSet<String> = folders.map(|it| it.file_name().into_string().unwrap()).collect();
    let crates = crates();
    let others: Vec<&String> = names.difference(&crates).collect();
    assert_eq!(others, ["daemon"]);
}

#[test]
fn the_product_has_no_equipment_of_tests_in_it() {
    for folder in crates() {
        assert!(!used_by(&manifest_of(&format!("src/{folder}"))).contains("test-equipment"), "{folder}");
    }
    let manifest = manifest_of("");
    let (product, tests) = manifest.split_once("[dev-dependencies]").unwrap();
    let product = product.split_once("[package]").unwrap().1;
    assert!(!used_by(product).contains("test-equipment"));
    assert!(tests.contains("provost-test-equipment"));
}

#[test]
fn a_dependency_is_seen_however_it_is_written() {
    let of = |text: &str| used_by(text).into_iter().collect::<Vec<_>>();
    assert_eq!(of("[dependencies]\nprovost-base.workspace = true\n"), ["base"]);
    assert_eq!(of("[dependencies]\nprovost-jail = { workspace = true }\n"), ["jail"]);
    assert_eq!(of("[target.'cfg(windows)'.dependencies]\nprovost-system.workspace = true\n"), ["system"]);
    assert_eq!(of("[package]\nprovost-base = 1\n[features]\nprovost-x = []\n"), [""; 0]);
}

/// Parts that compute and do nothing else, so that they can be replayed.
const PURE: [&str; 3] = ["base", "domain", "graph"];

/// Names that would make a crate depend on more than its arguments: a clock, the system, chance, or hash order.
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

/// Where the one constructor of a `Principal` may be named: proof, rest, and its own file.
fn may_establish(path: &str) -> bool {
    path.starts_with("src/auth/") || path.starts_with("src/store/") || path == "src/domain/principal.rs"
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
    let layer = module[0].as_str();
    if layer == "protocols" && module.len() == 3 && module[2] == "wire" {
        for (line, path) in paths(&tokens, &module) {
            let fine = path.starts_with(&module) || path.first().is_some_and(|used| used == "base");
            if !fine {
                found.push(format!("{}:{line}: a wire.rs must not use {}", source.path, path.join("::")));
            }
        }
        found.dedup();
    }
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

/// Every path into ours: from `crate` and `super`, resolved from `src`, and from another crate of ours by its
/// folder; groups are taken apart.
fn paths(tokens: &[(usize, &str)], module: &[String]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let goes_on = tokens.get(at + 1).is_some_and(|next| next.1 == "::");
        let begins =
            matches!(tokens[at].1, "crate" | "super") && goes_on || tokens[at].1.starts_with("provost_");
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
            "crate" => path.truncate(1),
            word if word.starts_with("provost_") => path = vec![word["provost_".len()..].into()],
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
fn no_source_breaks_a_rule_of_its_layer() {
    let found: Vec<String> = sources("src").iter().flat_map(offences).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// How many offences a made-up file has.
fn count(path: &str, text: &str) -> usize {
    offences(&Source::new(path, text)).len()
}

#[test]
fn wire_types_use_base_alone() {
    assert_eq!(count("src/protocols/devit/wire.rs", "use provost_base::{Json, Ttl};"), 0);
    assert_eq!(count("src/protocols/devit/wire.rs", "use crate::devit::wire::Hello;"), 0);
    assert_eq!(count("src/protocols/devit/map.rs", "use provost_domain::Command;"), 0);
    for text in [
        "use provost_domain::Command;",
        "fn f(it: provost_domain::Command) {}",
        "use provost_domain::{self as domain, Command};",
        "use provost_domain as d;",
        "extern crate provost_domain;",
        "use super::map::fault;",
        "use crate::devit::map::fault;",
        "use crate::{loopback::Door};",
    ] {
        assert!(count("src/protocols/devit/wire.rs", text) > 0, "{text}");
    }
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
    for path in [
        "src/engine/mod.rs",
        "src/engine/testing.rs",
        "src/protocols/devit/mod.rs",
        "src/daemon.rs",
        "src/domain/session.rs",
    ] {
        assert_eq!(count(path, text), 1, "{path}");
    }
    for path in ["src/auth/frame.rs", "src/store/codec.rs", "src/domain/principal.rs"] {
        assert_eq!(count(path, text), 0, "{path}");
    }
}
