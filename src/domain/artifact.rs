//! A run's changes in its private copy, as Provost offers them for the user's own files. A6s: `Artifact`.
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
    /// The whole new text; empty for a deleted file, and for bytes that are not text, which the store keeps by id.
    pub content: Box<str>,
    /// The language by the file's name; empty if the name does not say it.
    pub language: Box<str>,
    /// Hash of the content when the run began; `None` for a new file, or if it is not known.
    pub base_hash: Option<Digest>,
    /// Permissions of the new file, if they are known.
    #[serde(default)]
    pub mode: Option<u32>,
    /// Permissions that the file had when the run began, if it existed.
    #[serde(default)]
    pub base_mode: Option<u32>,
}

impl Artifact {
    /// Returns whether the run has made the file a program, which is the only permission that a worker can change;
    /// `None` if the run has not changed it.
    pub fn made_program(&self) -> Option<bool> {
        let is_program = |mode: u32| mode & 0o100 != 0;
        let (new, old) = (self.mode.map(is_program)?, self.base_mode.map(is_program)?);
        (new != old).then_some(new)
    }
}

/// An artifact on its way to the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectedArtifact {
    /// The artifact as clients see it.
    pub artifact: Artifact,
    /// The content as bytes, if it is not text; `None` if `content` has it.
    pub bytes: Option<Vec<u8>>,
    /// The content when the run began; `None` if it was too large to be kept, or the file is new.
    pub base: Option<Vec<u8>>,
    /// The numbers of lines added to and removed from the file; zero if they are not known, or the file is not text.
    pub lines: (u64, u64),
}

/// All changes that one run has left.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changeset {
    /// The artifacts of the run, in the order of their paths.
    pub collected: Vec<CollectedArtifact>,
    /// Changes that are not artifacts, each with the reason. Each text is safe to show.
    pub left_out: Vec<Box<str>>,
    /// Whether changed files are missing here: more files than the limit, larger ones, or unreadable ones.
    pub incomplete: bool,
    /// The numbers of changed files and of files that fit, with the settings behind that, if this is the reason why it is incomplete.
    pub beyond: Option<Box<str>>,
}

/// The result of a run, as the store keeps it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StoredChangeset {
    /// The artifacts of the run, in the order of their paths.
    pub artifacts: Vec<Artifact>,
    /// Changes that are not artifacts, each with the reason. Each text is safe to show.
    pub left_out: Vec<Box<str>>,
    /// Whether changed files are missing here: more files than the limit, larger ones, or unreadable ones.
    #[serde(default)]
    pub incomplete: bool,
    /// The agent's whole answer; all of its text, for an agent that writes text.
    #[serde(default)]
    pub answer: Box<str>,
}

impl StoredChangeset {
    /// Returns the changes that were left out, in one text for people; `None` if all are here.
    pub fn left_out(&self) -> Option<String> {
        (!self.left_out.is_empty()).then(|| format!("left out: {}", self.left_out.join("; ")))
    }
}

/// Returns the folder name under which the store keeps a task's artifacts; their ids begin with it. It is a plain file
/// name, even if the task's id has other characters.
pub fn shelf(task: &TaskId) -> String {
    Digest::of_fields([b"artifacts of".as_slice(), task.as_str().as_bytes()])
        .to_string()
        .chars()
        .take(24)
        .collect()
}

/// Returns the id of a task's artifact; `number` counts from 1.
pub fn artifact_id(task: &TaskId, number: usize) -> Box<str> {
    format!("{PREFIX}{}_{number}", shelf(task)).into()
}

const PREFIX: &str = "art_";

/// Returns the shelf and the number in an id that [`artifact_id`] has made.
pub fn place_of(id: &str) -> Option<(&str, usize)> {
    let (shelf, number) = id.strip_prefix(PREFIX)?.rsplit_once('_')?;
    let plain = shelf.len() == 24 && shelf.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number: usize = number.parse().ok()?;
    // Only this one spelling is valid.
    (plain && number > 0 && *id == *format!("{PREFIX}{shelf}_{number}")).then_some((shelf, number))
}

/// Checks whether a file is a test, by the conventions of its language.
pub fn is_test(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = |it: &str| matches!(it, "test" | "tests" | "__tests__" | "spec" | "specs");
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let named = ["_test", "_spec", ".test", ".spec"].iter().any(|end| stem.ends_with(end))
        || stem.starts_with("test_")
        || (name.ends_with(".java") || name.ends_with(".kt")) && stem.ends_with("Test");
    named || folders.split('/').any(folder)
}

/// Endings of file names, and the language of such files.
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

/// Returns the language of a file by its name; empty if the name does not say it.
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
