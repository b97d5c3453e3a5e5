//! Changes of files, after which the graph is the one that a reading of all files from the beginning gives; and what a change costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::graph::{JAVASCRIPT, PYTHON, TYPESCRIPT};
use super::questions::files_of;
use crate::support::graphs::{graph_of, outline, path, put, settled};
use provost::graph::{Graph, Outline, is_settings};
use provost::syntax::language_of;

/// A small generator of numbers, always the same.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % most as u64).unwrap()
    }
}

/// The outline of each file, by its name and text: each text is read once.
type Outlines = BTreeMap<(String, String), Arc<Outline>>;

fn put_read_once(graph: &mut Graph, read: &mut Outlines, name: &str, text: &str) {
    if is_settings(name) {
        return put(graph, name, text);
    }
    let key = (name.to_owned(), text.to_owned());
    let known = read.entry(key).or_insert_with(|| outline(name, text)).clone();
    graph.put(&path(name), known).unwrap();
}

/// Another file's text under this name, or its own with something cut off or renamed.
fn changed(all: &[(&str, &str)], name: &str, change: usize, chance: &mut Chance) -> String {
    let own = all.iter().find(|it| it.0 == name).unwrap().1;
    let same = |it: &&(&str, &str)| language_of(it.0) == language_of(name) && !is_settings(it.0);
    let alike: Vec<_> = all.iter().filter(same).collect();
    match change {
        1 if !is_settings(name) => alike[chance.below(alike.len())].1.to_owned(),
        2 if !is_settings(name) => own.lines().skip(1).collect::<Vec<_>>().join("\n"),
        3 => own.replace("total_of", "sum_of").replace("verify", "check_it"),
        4 if !is_settings(name) => own.lines().take(own.lines().count() / 2).collect::<Vec<_>>().join("\n"),
        _ => own.to_owned(),
    }
}

fn after_any_changes_it_is_the_same(all: &[(&str, &str)], seeds: u64, steps: usize) {
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let mut read = Outlines::new();
    for seed in 0..seeds {
        let mut chance = Chance(seed);
        let mut now: BTreeMap<String, String> = BTreeMap::new();
        let mut graph = Graph::default();
        for step in 0..steps {
            let name = names[chance.below(names.len())];
            match chance.below(6) {
                0 => {
                    now.remove(name);
                    if is_settings(name) {
                        graph.set_settings(&path(name), None);
                    } else {
                        graph.remove(&path(name));
                    }
                }
                change => {
                    let text = changed(all, name, change, &mut chance);
                    put_read_once(&mut graph, &mut read, name, &text);
                    now.insert(name.into(), text);
                }
            }
            if chance.below(3) == 0 {
                graph.settle(chance.below(4));
            }
            if step % 10 == 9 {
                settled(&mut graph);
                let mut from_the_beginning = Graph::default();
                for (name, text) in &now {
                    put_read_once(&mut from_the_beginning, &mut read, name, text);
                }
                settled(&mut from_the_beginning);
                assert_eq!(graph.edges(), from_the_beginning.edges(), "seed {seed}, step {step}");
                let sizes = [&graph, &from_the_beginning].map(|it| {
                    let it = it.size();
                    (it.files, it.symbols, it.edges, it.broken)
                });
                assert_eq!(sizes[0], sizes[1], "seed {seed}, step {step}");
                assert_eq!(sizes[0].2, graph.edges().len(), "every edge counted once");
            }
        }
        for name in names.iter().filter(|name| !is_settings(name)) {
            graph.remove(&path(name));
        }
        settled(&mut graph);
        assert_eq!((graph.size().edges, graph.size().bytes), (0, 0), "nothing is left of what is gone");
    }
}

#[test]
fn after_any_changes_the_graph_is_the_one_that_reading_everything_again_gives() {
    after_any_changes_it_is_the_same(&[TYPESCRIPT, JAVASCRIPT, PYTHON].concat(), 20, 120);
}

/// Files that are folders of real questions, with all that a language has to lead from one file to another.
fn in_a_language(folder: &str) {
    let files = files_of(folder);
    let all: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    after_any_changes_it_is_the_same(&all, 12, 120);
}

macro_rules! languages {
    ($($test:ident: $folder:literal),* $(,)?) => {
        $(
            #[test]
            fn $test() {
                in_a_language($folder);
            }
        )*
    };
}

languages! {
    changes_of_c_give_what_reading_everything_gives: "c",
    changes_of_cpp_give_what_reading_everything_gives: "cpp",
    changes_of_csharp_give_what_reading_everything_gives: "csharp",
    changes_of_go_give_what_reading_everything_gives: "go",
    changes_of_java_give_what_reading_everything_gives: "java",
    changes_of_kotlin_give_what_reading_everything_gives: "kotlin",
    changes_of_php_give_what_reading_everything_gives: "php",
    changes_of_python_give_what_reading_everything_gives: "py",
    changes_of_ruby_give_what_reading_everything_gives: "ruby",
    changes_of_rust_give_what_reading_everything_gives: "rust",
    changes_of_swift_give_what_reading_everything_gives: "swift",
    changes_of_typescript_give_what_reading_everything_gives: "ts",
}

/// Files that define functions of the same names for themselves, as each program of a folder has its `main` and its `usage`; twenty in a
/// folder, which is one module in Go.
fn with_names_of_their_own(ending: &str, text: &str) -> Vec<(String, String)> {
    (0..300).map(|n| (format!("d{}/f{n}.{ending}", n / 20), text.replace("{n}", &n.to_string()))).collect()
}

#[test]
fn a_change_costs_as_much_however_many_files_have_its_names_for_themselves() {
    for (ending, text) in [
        ("c", "int usage(void) { return help{n}(); }\nint main(void) { return usage(); }\n"),
        ("cpp", "namespace n{n} { bool usage() { return true; } bool main() { return usage(); } }\n"),
        ("go", "package p{n}\nfunc usage() bool { return true }\nfunc main() { usage() }\n"),
        ("rs", "fn usage() -> bool { true }\npub fn main() { usage(); }\n"),
        ("py", "def usage(): pass\ndef main(): usage()\n"),
        ("ts", "function usage() {}\nexport function main() { usage(); }\n"),
        (
            "java",
            "package p{n};\nclass Main { boolean usage() { return true; } boolean main() { return usage(); } }\n",
        ),
        ("kt", "package p{n}\nfun usage() = true\nfun main() { usage() }\n"),
        (
            "cs",
            "namespace P{n};\nclass Main { bool Usage() { return true; } bool Run() { return Usage(); } }\n",
        ),
        (
            "php",
            "<?php\nnamespace P{n};\nfunction usage() { return 1; }\nfunction main() { return usage(); }\n",
        ),
        ("rb", "module M{n}\n  def self.usage\n    1\n  end\n  def self.main\n    usage\n  end\nend\n"),
        ("swift", "private func usage() -> Bool { return true }\nprivate func run() { _ = usage() }\n"),
    ] {
        let files = with_names_of_their_own(ending, text);
        let listed: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        let mut graph = graph_of(&listed);
        assert!(!graph.edges().is_empty(), "{ending}");
        let (name, text) = &files[150];
        graph.remove(&path(name));
        assert!(graph.settle(60), "{ending}: one file went, and more than sixty looks follow");
        put(&mut graph, name, text);
        assert!(graph.settle(60), "{ending}: one file came, and more than sixty looks follow");
    }
}
