//! Writes of programs, by their names and arguments.

use std::path::Path;

use super::found::Found;
use super::words::Word;
use super::{Written, copies, git, patches, projects, scripts, searches};

/// Programs whose every argument is written or removed. An editor is opened in order to write.
const WRITE_ALL: &[&str] = &[
    "rm",
    "unlink",
    "tee",
    "truncate",
    "shred",
    "rmdir",
    "rustfmt",
    "sponge",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "nano",
    "emacs",
    "dos2unix",
    "unix2dos",
    "stylua",
    "pyupgrade",
    "rename",
    "srm",
    "trash",
    "chmod",
    "chown",
    "chgrp",
    "setfacl",
    "strip",
    "patchelf",
    "mkfifo",
    "rpl",
    "replace",
    "rimraf",
    "del",
    "del-cli",
];

/// Programs that write their arguments if one of these options is given.
const WRITE_IN_PLACE: &[(&str, &[&str])] = &[
    ("sed", &["-i", "--in-place"]),
    ("gsed", &["-i", "--in-place"]),
    ("awk", &["inplace"]),
    ("gawk", &["inplace"]),
    ("yq", &["-i", "--inplace"]),
    ("perl", &["-i"]),
    ("ruby", &["-i"]),
    ("prettier", &["--write", "-w"]),
    ("stylelint", &["--fix"]),
    ("standard", &["--fix"]),
    ("tslint", &["--fix"]),
    ("markdownlint", &["--fix", "-f"]),
    ("markdownlint-cli2", &["--fix"]),
    ("gofmt", &["-w"]),
    ("goimports", &["-w"]),
    ("gofumpt", &["-w"]),
    ("shfmt", &["-w"]),
    ("clang-format", &["-i"]),
    ("autopep8", &["-i", "--in-place"]),
    ("autoflake", &["-i", "--in-place"]),
    ("yapf", &["-i", "--in-place"]),
    ("codespell", &["-w", "--write-changes"]),
    ("xmlstarlet", &["-L", "--inplace"]),
    ("xml", &["-L", "--inplace"]),
    ("crudini", &["--set", "--del", "--merge"]),
    ("ktlint", &["-F", "--format"]),
    ("swift-format", &["-i", "--in-place"]),
    ("swiftlint", &["--fix", "--autocorrect"]),
    ("docformatter", &["-i", "--in-place"]),
    ("taplo", &["fmt", "format"]),
];

/// Programs that write the files they are given, and all files where they are given none.
struct Formatter {
    name: &'static str,
    /// Words; the command line must begin with one of them, unless this is empty.
    verbs: &'static [&'static str],
    /// Options; the command line must have one of them, unless this is empty.
    only_with: &'static [&'static str],
    /// Options with which they write nothing.
    not_with: &'static [&'static str],
}

const fn formatter(
    name: &'static str,
    verbs: &'static [&'static str],
    only_with: &'static [&'static str],
    not_with: &'static [&'static str],
) -> Formatter {
    Formatter { name, verbs, only_with, not_with }
}

const FIX: &[&str] = &["--fix", "--fix-only", "--unsafe-fixes", "--write", "--apply", "--apply-unsafe"];

/// Words that replace files by those of another version.
const OF_VERSIONS: &[&str] = &[
    "revert", "update", "up", "checkout", "co", "switch", "goto", "merge", "rebase", "graft", "import",
    "patch", "shelve", "unshelve", "restore", "undo", "edit", "new", "squash", "abandon",
];

const FORMATTERS: &[Formatter] = &[
    formatter("cargo", &["fmt"], &[], &["--check"]),
    formatter("cargo", &["fix"], &[], &[]),
    formatter("cargo", &["clippy"], &["--fix"], &[]),
    formatter("go", &["fmt", "fix", "generate"], &[], &[]),
    formatter("deno", &["fmt"], &[], &["--check"]),
    formatter("deno", &["lint"], &["--fix"], &[]),
    formatter("dprint", &["fmt"], &[], &[]),
    formatter("ruff", &["format"], &[], &["--check", "--diff"]),
    formatter("ruff", &["check"], FIX, &["--diff"]),
    formatter("ruff", &[], &["--fix"], &["--diff"]),
    formatter("black", &[], &[], &["--check", "--diff", "--version"]),
    formatter("isort", &[], &[], &["--check", "--check-only", "-c", "--diff", "--version"]),
    formatter("eslint", &[], FIX, &["--fix-dry-run"]),
    formatter("biome", &["check", "format", "lint"], FIX, &[]),
    formatter("oxlint", &[], &["--fix", "--fix-suggestions"], &[]),
    formatter("xo", &[], &["--fix"], &[]),
    formatter("rubocop", &[], &["-a", "-A", "--autocorrect", "--autocorrect-all", "--auto-correct"], &[]),
    formatter("standardrb", &[], &["--fix"], &[]),
    formatter("terraform", &["fmt"], &[], &["-check"]),
    formatter("tofu", &["fmt"], &[], &["-check"]),
    formatter("zig", &["fmt"], &[], &["--check"]),
    formatter("dart", &["format", "fix"], &[], &["--dry-run", "-n"]),
    formatter("mix", &["format"], &[], &["--check-formatted"]),
    formatter("swiftformat", &[], &[], &["--lint", "--dryrun"]),
    formatter("php-cs-fixer", &["fix"], &[], &["--dry-run"]),
    formatter("golangci-lint", &["run"], &["--fix"], &[]),
    formatter("golangci-lint", &["fmt"], &[], &[]),
    formatter("pre-commit", &["run"], &[], &[]),
    formatter("lint-staged", &[], &[], &[]),
    formatter("treefmt", &[], &[], &[]),
    formatter("lib2to3", &[], &["-w", "--write"], &[]),
    formatter("dotnet", &["format"], &[], &["--verify-no-changes"]),
    formatter("gradle", &["spotlessApply", "ktlintFormat", "formatKotlin"], &[], &[]),
    formatter("gradlew", &["spotlessApply", "ktlintFormat", "formatKotlin"], &[], &[]),
    formatter("mvn", &["spotless:apply", "fmt:format"], &[], &[]),
    // Other systems for versions.
    formatter("hg", OF_VERSIONS, &[], &["--dry-run"]),
    formatter("sl", OF_VERSIONS, &[], &["--dry-run"]),
    formatter("svn", OF_VERSIONS, &[], &["--dry-run"]),
    formatter("jj", OF_VERSIONS, &[], &[]),
    formatter("2to3", &[], &["-w", "--write"], &[]),
    formatter("jscodeshift", &[], &[], &["-d", "--dry"]),
    formatter("ast-grep", &[], &["-U", "--update-all"], &[]),
    formatter("sg", &[], &["-U", "--update-all"], &[]),
    formatter("comby", &[], &["-i", "-in-place"], &[]),
];

/// Programs that write the file that one of these options names, with their options of one letter without a value.
const WRITE_OUTPUT: &[(&str, &[&str], &str)] = &[
    ("sort", &["-o", "--output"], "bdfghinMRrVcCmsuz"),
    ("curl", &["-o", "--output"], "sSLfkgiIvNOJ#j0123456anpqRZ"),
    ("wget", &["-O", "--output-document"], "qNcSxvrkpmHLKbdnE46"),
    ("gcc", &["-o"], ""),
    ("g++", &["-o"], ""),
    ("clang", &["-o"], ""),
    ("cc", &["-o"], ""),
    ("pandoc", &["-o", "--output"], ""),
    ("openssl", &["-out"], ""),
    ("jq", &["--output"], ""),
    ("iconv", &["-o", "--output"], ""),
    ("tsc", &["--outFile", "--outDir"], ""),
    ("openapi-typescript", &["-o", "--output"], ""),
    ("swc", &["-o", "--out-file"], ""),
    ("esbuild", &["--outfile"], ""),
    ("xsltproc", &["-o", "--output"], ""),
    ("protoc", &["-o"], ""),
    ("dot", &["-o"], ""),
];

pub(super) fn text(word: &Word) -> Option<&str> {
    match word {
        Word::Plain(text) => Some(text),
        _ => None,
    }
}

pub(super) fn is_option(word: &Word) -> bool {
    text(word).is_some_and(|it| it.starts_with('-') && it.len() > 1)
}

/// Returns the program of a command, without its folder and, for fetched programs, its version.
pub(super) fn name(words: &[Word]) -> Option<&str> {
    let name = text(words.first()?).map(|it| it.rsplit('/').next().unwrap_or(it))?;
    Some(name.split_once('@').map_or(name, |(name, _)| if name.is_empty() { "@" } else { name }))
}

/// Checks whether a program is one that writes the files it is given.
pub(super) fn is_known(name: &str) -> bool {
    WRITE_IN_PLACE.iter().any(|it| it.0 == name) || FORMATTERS.iter().any(|it| it.name == name)
}

/// Finds the writes of one command that runs in a folder.
pub(super) fn of_one(words: &[Word], folder: &Path, found: &mut Found) {
    let Some(program) = name(words) else { return };
    let rest = &words[1..];
    let has = |options: &[&str]| has(rest, options);
    let arguments = || rest.iter().filter(|it| !is_option(it));
    scripts::of_one(program, rest, folder, found);
    if let Some((_, options)) = WRITE_IN_PLACE.iter().find(|it| it.0 == program) {
        let says = |it: &str| options.iter().any(|option| is_in_place(program, it, option));
        if rest.iter().filter_map(text).any(says) {
            found.extend(arguments().flat_map(|it| written(it, folder)));
        }
    } else if FORMATTERS.iter().any(|it| it.name == program) {
        FORMATTERS.iter().filter(|it| it.name == program).for_each(|it| it.writes(rest, folder, found));
        projects::manifests(program, rest, folder, found);
    } else if WRITE_ALL.contains(&program) {
        found.extend(arguments().flat_map(|it| written(it, folder)));
    } else if copies::is_one(program) {
        copies::of_one(program, rest, folder, found);
    } else if let Some((_, options, flags)) = WRITE_OUTPUT.iter().find(|it| it.0 == program) {
        let into = values_of(rest, options, flags);
        found.extend(into.into_iter().map(|it| Written::Path(folder.join(it))));
        by_address(program, rest, folder, found);
    } else {
        match program {
            "dd" => {
                let into = rest.iter().filter_map(text).filter_map(|it| it.strip_prefix("of="));
                found.extend(into.map(|it| Written::Path(folder.join(it))));
            }
            // For an existing file, only the time changes.
            "touch" => {
                let new = |it: &&Word| text(it).is_some_and(|it| folder.join(it).symlink_metadata().is_err());
                found.extend(arguments().filter(new).flat_map(|it| written(it, folder)));
            }
            // The searched text and its replacement stand before the files.
            "sd" if !has(&["-p", "--preview"]) => {
                found.extend(arguments().skip(2).flat_map(|it| written(it, folder)));
            }
            "tar" | "bsdtar" | "unzip" | "7z" | "7za" | "cpio" | "gzip" | "gunzip" | "bzip2" | "bunzip2"
            | "xz" | "unxz" | "zstd" | "unzstd" | "zip" => patches::of_archive(program, rest, folder, found),
            // Their last argument is the output.
            "uniq" | "json.tool" | "ffmpeg" | "convert" | "magick" | "objcopy" | "split"
                if arguments().count() > 1 =>
            {
                found.extend(arguments().next_back().into_iter().flat_map(|it| written(it, folder)));
            }
            "zipfile" | "tarfile" if has(&["-e", "--extract"]) => {
                let into = arguments().nth(1).and_then(text).unwrap_or(".");
                found.push(Written::Below(folder.join(into), Vec::new()));
            }
            "cmake" => of_cmake(rest, folder, found),
            "patch" => patches::of_patch(rest, folder, found),
            "find" => searches::of_find(rest, folder, found),
            "xargs" | "parallel" => searches::of_xargs(rest, folder, found),
            "fd" | "fdfind" => searches::of_fd(rest, folder, found),
            "git" => git::of_git(rest, folder, found),
            _ => projects::manifests(program, rest, folder, found),
        }
    }
}

/// Finds the writes of `cmake -E`, which has its own commands for files.
fn of_cmake(rest: &[Word], folder: &Path, found: &mut Found) {
    let Some(at) = rest.iter().position(|it| text(it) == Some("-E")) else { return };
    let name = match rest.get(at + 1).and_then(text) {
        Some("rm" | "remove" | "remove_directory") => "rm",
        Some("rename") => "mv",
        Some("touch") => "touch",
        Some(copy) if copy.starts_with("copy") => "cp",
        _ => return,
    };
    let words = [&[Word::Plain(name.into())], rest.get(at + 2..).unwrap_or_default()].concat();
    found.deeper(|found| of_one(&words, folder, found));
}

/// Checks whether one of some options is among the arguments.
pub(super) fn has(rest: &[Word], options: &[&str]) -> bool {
    rest.iter().filter_map(text).any(|it| options.iter().any(|option| is(it, option)))
}

impl Formatter {
    fn writes(&self, rest: &[Word], folder: &Path, found: &mut Found) {
        // For `cargo +nightly fmt`, and options before the word.
        let is_first = |it: &&Word| !is_option(it) && !text(it).is_some_and(|it| it.starts_with('+'));
        let verb = rest.iter().position(|it| is_first(&it));
        let is_verb = verb.and_then(|at| text(&rest[at])).is_some_and(|it| self.verbs.contains(&it));
        if !(self.verbs.is_empty() || is_verb)
            || !(self.only_with.is_empty() || has(rest, self.only_with))
            || has(rest, self.not_with)
        {
            return;
        }
        let from = verb.filter(|_| is_verb).map_or(0, |at| at + 1);
        let named = rest[from..].iter().filter(|it| !is_option(it));
        let named: Vec<_> = named.flat_map(|it| written(it, folder)).collect();
        // Arguments of these programs are packages or other words, and not paths; without a path they write everything.
        let of_words = ["cargo", "go", "pre-commit", "mix", "golangci-lint", "ast-grep", "sg", "comby"];
        let all = named.is_empty() || of_words.contains(&self.name);
        found.extend(if all { vec![Written::Below(folder.to_owned(), Vec::new())] } else { named });
    }
}

/// Adds a file that is fetched under the name in its address.
fn by_address(program: &str, rest: &[Word], folder: &Path, found: &mut Found) {
    let named = match program {
        "curl" => {
            has(rest, &["--remote-name", "--remote-name-all"]) || is_among(rest, 'O', "sSLfkgivNJ#janpqRZ")
        }
        "wget" => values_of(rest, &["-O", "--output-document"], "qNcSxvrkpmHLKbdnE46").is_empty(),
        _ => false,
    };
    let names = rest.iter().filter_map(text).filter(|it| named && it.contains("://"));
    let names = names.filter_map(|it| it.split(['?', '#']).next()?.rsplit('/').next());
    let prefix = values_of(rest, &["-P", "--directory-prefix", "--output-dir"], "");
    let at = prefix.first().map_or_else(|| folder.to_owned(), |it| folder.join(it));
    found.extend(names.filter(|it| !it.is_empty()).map(|it| Written::Path(at.join(it))));
}

/// Checks whether an option of one letter is given, alone or after others without a value.
fn is_among(rest: &[Word], option: char, flags: &str) -> bool {
    let short = |it: &str| {
        let letters = it.strip_prefix('-').filter(|it| !it.starts_with('-'))?;
        let at = letters.find(option)?;
        Some(letters[..at].chars().all(|c| flags.contains(c)))
    };
    rest.iter().filter_map(text).any(|it| short(it) == Some(true))
}

/// Returns the values of options, in the next word or in the same one, also where options of one letter without a
/// value stand before them.
pub(super) fn values_of(rest: &[Word], options: &[&str], flags: &str) -> Vec<String> {
    let behind = |word: &str, option: &str| -> Option<String> {
        if let Some(value) = word.strip_prefix(option) {
            return Some(value.to_owned());
        }
        let letter = option.strip_prefix('-').filter(|it| it.len() == 1)?;
        let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'))?;
        let at = letters.find(letter)?;
        letters[..at].chars().all(|c| flags.contains(c)).then(|| letters[at + 1..].to_owned())
    };
    let of_word = |at: usize, word: &str| {
        let (option, value) = options.iter().find_map(|it| Some((it, behind(word, it)?)))?;
        match value.as_str() {
            "" => rest.get(at + 1).and_then(text).map(str::to_owned),
            value if option.starts_with("--") => value.strip_prefix('=').map(str::to_owned),
            value => Some(value.to_owned()),
        }
    };
    rest.iter().enumerate().filter_map(|(at, it)| of_word(at, text(it)?)).collect()
}

/// Checks whether an argument is an option, also with others of one letter, or with a value, in the same word.
pub(super) fn is(argument: &str, option: &str) -> bool {
    let short = option.len() == 2 && !argument.starts_with("--") && argument.starts_with('-');
    argument == option
        || argument.strip_prefix(option).is_some_and(|rest| option.len() > 2 && rest.starts_with('='))
        || (short && argument[1..].contains(&option[1..]))
}

/// Does the same for an option to write in place: letters after an option with a value are that value, as in `-Ilib`.
fn is_in_place(program: &str, argument: &str, option: &str) -> bool {
    let valued = match program {
        "sed" | "gsed" => "efl",
        "perl" => "eEFMmIx",
        "ruby" => "eEFIrx",
        _ => return is(argument, option),
    };
    let letters = argument.strip_prefix('-').filter(|it| option.len() == 2 && !it.starts_with('-'));
    letters.map_or_else(
        || is(argument, option),
        |letters| letters.split(|c| valued.contains(c)).next().is_some_and(|it| it.contains(&option[1..])),
    )
}

/// Returns the files that a word names.
pub(super) fn written(word: &Word, folder: &Path) -> Vec<Written> {
    let (text, pattern) = match word {
        Word::Plain(text) => (text, text.contains(['*', '?'])),
        Word::Pattern(text) => (text, true),
        Word::Made(_) | Word::Unknown | Word::Into | Word::From => return Vec::new(),
    };
    if !pattern {
        return vec![Written::Path(folder.join(text))];
    }
    // The folder in which the pattern begins, and the rest of the pattern.
    let fixed = text.find(['*', '?', '[', '{']).unwrap_or(text.len());
    let (at, rest) = match text[..fixed].rfind('/') {
        Some(0) => ("/", &text[1..]),
        Some(cut) => (&text[..cut], &text[cut + 1..]),
        None => ("", text.as_str()),
    };
    let mut all = vec![Written::Below(folder.join(at), vec![rest.to_owned()])];
    // Without a match, a shell takes the pattern literally: `app/[id]/page.ts` is a file's name.
    if !text.contains(['*', '?']) {
        all.push(Written::Path(folder.join(text)));
    }
    all
}
