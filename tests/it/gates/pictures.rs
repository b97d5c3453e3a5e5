//! The pictures of the documents: each that is named is there, each that is there is named, and all together are small.

use std::collections::BTreeSet;
use std::fs;

use crate::support::source::{files, project_root};

/// All pictures of the documents together, in bytes: a clone has each of their versions.
const BYTES_MAX: u64 = 1_500_000;

/// The pictures that a document shows, from the project's root, as Markdown or as HTML names them.
fn named(path: &str, text: &str) -> BTreeSet<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let places = ["](", "src=\"", "srcset=\""].into_iter().flat_map(|before| {
        text.match_indices(before)
            .filter_map(|(at, _)| text[at + before.len()..].split([')', '"', ' ']).next())
    });
    let pictures = places
        .filter(|it| !it.contains("://") && [".svg", ".webp", ".png"].iter().any(|end| it.ends_with(end)));
    pictures
        .map(|it| {
            let mut parts: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
            for part in it.split('/') {
                match part {
                    ".." => drop(parts.pop()),
                    part => parts.push(part),
                }
            }
            parts.join("/")
        })
        .collect()
}

#[test]
fn every_picture_of_a_document_exists_and_every_picture_is_shown() {
    let root = project_root();
    let documents = files(&root, &root).into_iter().filter(|path| path.ends_with(".md"));
    let shown: BTreeSet<String> =
        documents.flat_map(|path| named(&path, &fs::read_to_string(root.join(&path)).unwrap())).collect();
    let is_picture = |it: &String| [".svg", ".webp", ".png"].iter().any(|end| it.ends_with(end));
    let there: BTreeSet<String> = files(&root, &root.join("docs")).into_iter().filter(is_picture).collect();
    assert_eq!(shown, there, "a document names what is not there, or no document shows what is");
    assert!(there.iter().filter(|it| it.starts_with("docs/pictures/")).count() > 8, "{there:?}");
    let size: u64 = there.iter().map(|it| fs::metadata(root.join(it)).unwrap().len()).sum();
    assert!(size <= BYTES_MAX, "all pictures have {size} bytes: quality and sizes are in scripts/sample");
}

#[test]
fn a_picture_in_each_form_would_be_found() {
    let text = "![a](pictures/a.webp) [b](b.md) <source srcset=\"../b.svg\"> <img src=\"c/../c.png\" alt=\"\"> \
                ![d](https://example.com/d.png)";
    let found: Vec<String> = named("docs/x/y.md", text).into_iter().collect();
    assert_eq!(found, ["docs/b.svg", "docs/x/c.png", "docs/x/pictures/a.webp"]);
}
