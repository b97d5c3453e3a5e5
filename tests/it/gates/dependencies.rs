//! The dependencies of a crate: each one has its reason in the workspace's manifest, a crate takes it from there, and
//! none is left that no crate uses.

use std::fs;

use crate::support::source::{files, project_root};

fn unexplained(manifest: &str) -> Vec<String> {
    let (mut dependencies, mut explained, mut found) = (false, false, Vec::new());
    for line in manifest.lines().map(str::trim) {
        if line.is_empty() {
            explained = false;
        } else if line.starts_with('[') {
            dependencies = line.trim_end_matches(']').ends_with("dependencies");
            explained = false;
        } else if line.starts_with('#') {
            explained = line.len() > 9;
        } else if dependencies
            && !explained
            && !line.starts_with("provost-")
            && !line.ends_with(".workspace = true")
            && line.split_once(" #").is_none_or(|(_, reason)| reason.len() < 9)
        {
            found.push(format!("Cargo.toml: `{line}` says not why it is needed"));
        }
    }
    found
}

#[test]
fn every_dependency_says_why_it_is_needed() {
    let manifest = fs::read_to_string(project_root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("[workspace.dependencies]"));
    assert_eq!(unexplained(&manifest), [""; 0]);
}

/// The form of a dependency that a feature of the crate brings.
const FOR_A_FEATURE: &str = " = { workspace = true, optional = true }";

/// The manifests of the workspace's crates, by their paths.
fn manifests() -> Vec<(String, String)> {
    let root = project_root();
    let found = ["src", "tests"].into_iter().flat_map(|folder| files(&root, &root.join(folder)));
    let found = found.filter(|path| path.ends_with("Cargo.toml"));
    let read = |path: String| {
        let text = fs::read_to_string(root.join(&path)).unwrap();
        (path, text)
    };
    found.map(read).collect()
}

/// Lines below a table of dependencies.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut inside = false;
    let lines = manifest.lines().map(str::trim);
    let lines = lines.filter(|line| {
        if line.starts_with('[') {
            inside = line.trim_end_matches(']').ends_with("dependencies");
        }
        inside && !line.starts_with(['[', '#']) && !line.is_empty()
    });
    lines.collect()
}

#[test]
fn a_crate_takes_its_dependencies_from_the_workspace() {
    let manifests = manifests();
    assert!(manifests.len() > 20, "{}", manifests.len());
    for (path, text) in &manifests {
        // The compiler's lints of the workspace hold in a crate that says so.
        assert!(text.contains("[lints]\nworkspace = true\n"), "{path} lacks the lints of the workspace");
        // `[dependencies.x]` and another name for a crate would hide it from the table of the architecture.
        assert!(!text.contains("dependencies."), "{path}: write `x.workspace = true` below [dependencies]");
        for line in dependencies(text) {
            assert!(
                line.ends_with(".workspace = true") || line.ends_with(FOR_A_FEATURE),
                "{path}: `{line}` has no version and no reason in Cargo.toml"
            );
        }
    }
}

#[test]
fn the_workspace_has_no_dependency_that_no_crate_uses() {
    let top = fs::read_to_string(project_root().join("Cargo.toml")).unwrap();
    let (shared, package) = top.split_once("[package]").unwrap();
    let shared = &shared[shared.find("[workspace.dependencies]").unwrap()..];
    assert!(!shared.contains("package ="), "Cargo.toml: a crate has its own name");
    let mut users = dependencies(package).join("\n");
    for (_, text) in manifests() {
        users.extend(["\n", &dependencies(&text).join("\n")]);
    }
    for line in dependencies(shared) {
        let name = line.split([' ', '=']).next().unwrap();
        let forms = [format!("{name}.workspace = true"), format!("{name}{FOR_A_FEATURE}")];
        let used = users.lines().any(|it| forms.iter().any(|form| it == form));
        assert!(used, "no crate uses {name}");
    }
}

#[test]
fn a_dependency_without_a_reason_is_caught() {
    assert_eq!(unexplained("[dependencies]\nleftpad = \"1\"\n").len(), 1);
    assert_eq!(unexplained("[target.'cfg(unix)'.dependencies]\nleftpad = \"1\"\n").len(), 1);
    assert_eq!(unexplained("[workspace.dependencies]\nleftpad = \"1\"\n").len(), 1);
    assert_eq!(unexplained("[dependencies]\nleftpad.workspace = true\n").len(), 0);
    assert_eq!(
        unexplained(
            "[dependencies]\n# Padding of tables.\nleftpad = \"1\"\nrightpad = \"1\"\n\nmidpad = \"1\""
        )
        .len(),
        1
    );
    assert_eq!(
        unexplained("[dependencies]\nleftpad = \"1\" # padding of tables\n[features]\na = []").len(),
        0
    );
}
