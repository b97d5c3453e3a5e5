//! Graphs of files that a test writes down.

use std::collections::BTreeSet;
use std::sync::Arc;

use provost::base::{RepoPath, SymbolPath};
use provost::graph::{Graph, Outline, is_settings};
use provost::syntax::{ParseDeadline, language_of, read};

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).unwrap()
}

pub(crate) fn symbol(text: &str) -> SymbolPath {
    SymbolPath::parse(text).unwrap()
}

pub(crate) fn outline(name: &str, text: &str) -> Arc<Outline> {
    let language = language_of(name).unwrap();
    Arc::new(Outline::of(&read(language, text.as_bytes(), &ParseDeadline::endless())))
}

pub(crate) fn put(graph: &mut Graph, name: &str, text: &str) {
    if is_settings(name) {
        graph.set_settings(&path(name), Some(text));
    } else {
        graph.put(&path(name), outline(name, text)).unwrap();
    }
}

pub(crate) fn settled(graph: &mut Graph) {
    while !graph.settle(7) {}
}

pub(crate) fn graph_of(files: &[(&str, &str)]) -> Graph {
    let mut graph = Graph::default();
    files.iter().for_each(|(name, text)| put(&mut graph, name, text));
    settled(&mut graph);
    graph
}

pub(crate) fn texts(paths: &[SymbolPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

pub(crate) fn callers(graph: &Graph, of: &str) -> Vec<String> {
    texts(&graph.callers(&symbol(of)))
}

pub(crate) fn callees(graph: &Graph, of: &str) -> Vec<String> {
    texts(&graph.callees(&symbol(of)))
}

/// All edges, as `caller -> callee`.
pub(crate) fn assert_edges(graph: &Graph, expected: &[&str]) {
    let edges: BTreeSet<String> = graph.edges().into_iter().map(|(a, b)| format!("{a} -> {b}")).collect();
    let expected: BTreeSet<String> = expected.iter().map(ToString::to_string).collect();
    let missing: Vec<_> = expected.difference(&edges).collect();
    let more: Vec<_> = edges.difference(&expected).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing {missing:#?}\ntoo many {more:#?}");
}
