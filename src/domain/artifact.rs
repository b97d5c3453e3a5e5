//! A run's changes in its private copy, as they are offered for the user's own files. A6s: `Artifact`.
//!
//! An artifact holds a whole new file. It has the hash of the file at the start of the run, and that content is kept
//! beside the artifact, so that a later edit is merged and not overwritten.

use serde::{Deserialize, Serialize};

use provost_base::{Digest, TaskId};

/// One changed file. Paths are relative to the workspace, with `/`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Artifact {
    /// An id that no other artifact has.
    pub id: Box<str>,
    /// `file`, `test`, `delete`, `binary`, `log`, `snippet`, or a client's own word.
    pub kind: Box<str>,
    /// The file's path, relative to the workspace.
    pub path: Box<str>,
    /// The whole new text; empty for what is deleted, and for bytes that are no text, which are kept by id.
    pub content: Box<str>,
    /// By the file's name; empty where that says nothing.
    pub language: Box<str>,
    /// Hash of the content when the run began; `None` for a new file, and where it is not known.
    pub base_hash: Option<Digest>,
    /// Permissions of the new file, where they are known.
    #[serde(default)]
    pub mode: Option<u32>,
    /// Permissions that the file had when the run began, where there was one.
    #[serde(default)]
    pub base_mode: Option<u32>,
}

impl Artifact {
    /// What the run has made of the one permission that a worker has a say in: whether the file is a program. `None`
    /// where it has left that alone.
    pub fn made_program(&self) -> Option<bool> {
        let is_program = |mode: u32| mode & 0o100 != 0;
        let (new, old) = (self.mode.map(is_program)?, self.base_mode.map(is_program)?);
        (new != old).then_some(new)
    }
}

/// An artifact on its way to where it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectedArtifact {
    /// The artifact as clients see it.
    pub artifact: Artifact,
    /// The content as bytes, where it is no text; `None` where `content` has it.
    pub bytes: Option<Vec<u8>>,
    /// The content when the run began; `None` if it was too large to be kept, or the file is new.
    pub base: Option<Vec<u8>>,
    /// Lines that are new in the file, and lines that are gone; none where that is not known, or it is no text.
    pub lines: (u64, u64),
}

/// Everything that one run has left.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changeset {
    /// The artifacts of the run, in the order of their paths.
    pub gathered: Vec<CollectedArtifact>,
    /// Changes that are no artifacts: which, and why. Each safe to show.
    pub left_out: Vec<Box<str>>,
    /// Whether files are among them: more than there may be, or larger, or not to be read.
    pub incomplete: bool,
    /// How many files have changed and how many fit, with the settings that say so, where that is why it is incomplete.
    pub beyond: Option<Box<str>>,
}

/// The result of a run, as the store keeps it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StoredChangeset {
    /// The artifacts of the run, in the order of their paths.
    pub artifacts: Vec<Artifact>,
    /// Changes that are no artifacts: which, and why. Each safe to show.
    pub left_out: Vec<Box<str>>,
    /// Whether files are among them: more than there may be, or larger, or not to be read.
    #[serde(default)]
    pub incomplete: bool,
    /// The agent's whole answer; of an agent that writes text, all of its text.
    #[serde(default)]
    pub answer: Box<str>,
}

impl StoredChangeset {
    /// The changes that were left out, in one text for people; `None` when there are none.
    pub fn left_out(&self) -> Option<String> {
        (!self.left_out.is_empty()).then(|| format!("left out: {}", self.left_out.join("; ")))
    }
}

/// Under what the artifacts of a task are kept, and how their ids begin. Whatever a task's id is made of, this is a
/// plain file name.
pub fn shelf(task: &TaskId) -> String {
    Digest::of_fields([b"artifacts of".as_slice(), task.as_str().as_bytes()])
        .to_string()
        .chars()
        .take(24)
        .collect()
}

/// The id of a task's artifact, counted from one.
pub fn artifact_id(task: &TaskId, number: usize) -> Box<str> {
    format!("{PREFIX}{}_{number}", shelf(task)).into()
}

const PREFIX: &str = "art_";

/// The shelf and the number that an id of [`artifact_id`] names.
pub fn place_of(id: &str) -> Option<(&str, usize)> {
    let (shelf, number) = id.strip_prefix(PREFIX)?.rsplit_once('_')?;
    let plain = shelf.len() == 24 && shelf.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number: usize = number.parse().ok()?;
    // The one spelling only.
    (plain && number > 0 && *id == *format!("{PREFIX}{shelf}_{number}")).then_some((shelf, number))
}

/// Whether a file is a test, by the conventions of its language.
pub fn is_test(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = |it: &str| matches!(it, "test" | "tests" | "__tests__" | "spec" | "specs");
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let named = ["_test", "_spec", ".test", ".spec"].iter().any(|end| stem.ends_with(end))
        || stem.starts_with("test_")
        || (name.ends_with(".java") || name.ends_with(".kt")) && stem.ends_with("Test");
    named || folders.split('/').any(folder)
}

/// Endings of names, and what is written in such files.
const LANGUAGES: &[(&str, &str)] = &[
    ("bash", "shell"),
    ("c", "c"),
    ("cc", "cpp"),
    ("clj", "clojure"),
    ("cpp", "cpp"),
    ("cs", "csharp"),
    ("css", "css"),
    ("cts", "typescript"),
    ("dart", "dart"),
    ("el", "emacs-lisp"),
    ("erl", "erlang"),
    ("ex", "elixir"),
    ("exs", "elixir"),
    ("go", "go"),
    ("h", "c"),
    ("hpp", "cpp"),
    ("hs", "haskell"),
    ("html", "html"),
    ("java", "java"),
    ("js", "javascript"),
    ("json", "json"),
    ("jsx", "javascriptreact"),
    ("kt", "kotlin"),
    ("lua", "lua"),
    ("md", "markdown"),
    ("mjs", "javascript"),
    ("ml", "ocaml"),
    ("mts", "typescript"),
    ("php", "php"),
    ("pl", "perl"),
    ("py", "python"),
    ("r", "r"),
    ("rb", "ruby"),
    ("rs", "rust"),
    ("scala", "scala"),
    ("scss", "scss"),
    ("sh", "shell"),
    ("sql", "sql"),
    ("swift", "swift"),
    ("tf", "terraform"),
    ("toml", "toml"),
    ("ts", "typescript"),
    ("tsx", "typescriptreact"),
    ("txt", "text"),
    ("vim", "vim"),
    ("vue", "vue"),
    ("xml", "xml"),
    ("yaml", "yaml"),
    ("yml", "yaml"),
    ("zig", "zig"),
];

/// The language of a file, by its name; empty where the name says nothing.
pub fn language_by_name(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name {
        "Dockerfile" => return "dockerfile",
        "Makefile" => return "makefile",
        _ => {}
    }
    let Some((stem, ending)) = name.rsplit_once('.') else { return "" };
    let ending = ending.to_ascii_lowercase();
    let found = LANGUAGES.iter().find(|(known, _)| *known == ending && !stem.is_empty());
    found.map_or("", |(_, language)| language)
}
