//! The sources of the page for people: all data from the daemon are inserted as text, and nothing is loaded from elsewhere.

use std::fs;

use crate::support::source::{files, project_root};

/// Names in scripts that make markup or code of text.
const MAKES_MARKUP: [&str; 14] = [
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "createContextualFragment",
    "parseFromString",
    "setHTML",
    "srcdoc",
    "eval(",
    "new Function",
    "Function(",
    "trustedTypes",
    "javascript:",
    "setAttribute('on",
];

/// The files of the page, by path, with their text.
fn sources() -> Vec<(String, String)> {
    let root = project_root();
    let found = files(&root, &root.join("src/web"));
    found
        .into_iter()
        .filter(|path| !path.ends_with(".png"))
        .map(|path| (fs::read_to_string(root.join(&path)).unwrap(), path))
        .map(|(text, path)| (path, text))
        .collect()
}

/// The one script that has the browser take a text as the address of a script: that of the worker, which it compares first.
fn makes_the_worker(path: &str, text: &str, what: &str) -> bool {
    let policy = "createPolicy('provost-worker', {\n    createScriptURL: (/** @type {string} */ it) => {\n      if (it !== WORKER) throw";
    path == "src/web/page/install.js"
        && what == "trustedTypes"
        && text.matches("createPolicy").count() == 1
        && text.contains(policy)
}

fn faults(path: &str, text: &str) -> Vec<String> {
    let mut found: Vec<String> = MAKES_MARKUP
        .iter()
        .filter(|it| path.ends_with(".js") && text.contains(**it) && !makes_the_worker(path, text, it))
        .map(|it| format!("{path}: {it}"))
        .collect();
    if path.ends_with(".js") && !text.starts_with("// @ts-check\n") {
        found.push(format!("{path}: its types are not checked"));
    }
    let is_picture = path.ends_with(".svg");
    for elsewhere in ["http://", "https://", "//cdn", "@import", "url("] {
        if !is_picture && !path.ends_with(".rs") && text.contains(elsewhere) {
            found.push(format!("{path}: {elsewhere}"));
        }
    }
    if path.ends_with(".rs") && text.contains("PreEscaped") {
        found.push(format!("{path}: markup that maud has not escaped"));
    }
    found
}

#[test]
fn the_page_makes_no_markup_of_text_and_loads_nothing_from_elsewhere() {
    let sources = sources();
    assert!(sources.iter().filter(|(path, _)| path.ends_with(".js")).count() > 5, "{}", sources.len());
    let found: Vec<String> = sources.iter().flat_map(|(path, text)| faults(path, text)).collect();
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_page_that_makes_markup_of_text_is_caught() {
    let script = |body: &str| faults("src/web/page/x.js", &format!("// @ts-check\n{body}\n")).len();
    assert_eq!(script("node.textContent = said;"), 0);
    assert_eq!(script("node.innerHTML = said;"), 1);
    assert_eq!(script("trustedTypes.createPolicy('x', {});"), 1);
    assert_eq!(script("fetch('https://evil.example');"), 1);
    assert_eq!(faults("src/web/page/x.js", "node.append(said);\n").len(), 1);
    assert_eq!(faults("src/web/page/x.css", "a { background: url(x.png) }").len(), 1);
    assert_eq!(faults("src/web/document.rs", "html! { (PreEscaped(said)) }").len(), 1);
}

#[test]
fn each_file_of_the_page_is_served_and_each_that_a_module_names_is_there() {
    let root = project_root();
    let table = fs::read_to_string(root.join("src/web/assets.rs")).unwrap();
    let place = |name: &str| table.find(&format!("(\"{name}\","));
    for (path, text) in sources() {
        let Some(name) = path.strip_prefix("src/web/page/") else { continue };
        let here = place(name).unwrap_or_else(|| panic!("{name} is not in the table of src/web/assets.rs"));
        for line in text.lines().filter(|it| it.starts_with("import ")) {
            let used = line.split('\'').nth(1).unwrap().strip_prefix("./").unwrap();
            let before = place(used).unwrap_or_else(|| panic!("{name} names {used}, which is not served"));
            assert!(before < here, "{name} uses {used}, which has to stand before it");
        }
    }
}
