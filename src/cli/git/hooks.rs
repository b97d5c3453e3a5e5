//! The hooks themselves: small scripts that first run the hook that was there before.

use std::path::Path;

use provost_config::Unchecked;

/// The suffix that an earlier hook's name gets.
pub(super) const BEFORE: &str = ".before-provost";

/// The beginning of the second line of each of Provost's scripts.
const MARK: &str = "# provost hook";

/// A hook of Provost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hook {
    /// Git's name for it.
    pub(super) name: &'static str,
    /// Whether git writes to its standard input.
    reads: bool,
    /// Whether it can refuse git's operation.
    refuses: bool,
}

pub(super) const HOOKS: [Hook; 4] = [
    Hook { name: "pre-commit", reads: false, refuses: true },
    Hook { name: "prepare-commit-msg", reads: false, refuses: false },
    Hook { name: "post-commit", reads: false, refuses: false },
    Hook { name: "pre-push", reads: true, refuses: true },
];

/// Checks whether a hook's text is Provost's, of any version.
pub(super) fn is_ours(text: &[u8]) -> bool {
    let second = text.split(|byte| *byte == b'\n').nth(1);
    second.is_some_and(|line| line.starts_with(MARK.as_bytes()))
}

impl Hook {
    /// Returns the script. An earlier hook of plain `sh` is sourced and not started, so that `$0` stays the same:
    /// some hooks find out from it which hook they are. Any other hook is started.
    pub(super) fn script(self, program: &Path, when_unchecked: Unchecked) -> String {
        let Hook { name, reads, refuses } = self;
        let keep = if reads { "input=$(cat && echo .)\ninput=${input%.}\n" } else { "" };
        let feed = if reads { "printf %s \"$input\" | " } else { "" };
        let gone = if refuses && when_unchecked == Unchecked::Block { 1 } else { 0 };
        let program = quoted(&program.to_string_lossy());
        format!(
            r##"#!/bin/sh
{MARK} {name}: made by `provost git install`; `provost git uninstall` puts back what was here before.
{keep}before="$0{BEFORE}"
if [ -x "$before" ]; then
    IFS= read -r first < "$before"
    case "$first" in
        '#!/bin/sh' | '#!/usr/bin/sh' | '#!/usr/bin/env sh') {feed}( . "$before" ) ;;
        *) {feed}"$before" "$@" ;;
    esac
    status=$?
    [ "$status" -eq 0 ] || exit "$status"
fi
provost={program}
if ! [ -x "$provost" ] && ! provost=$(command -v provost); then
    echo "provost: not checked: the program is gone; install it again, or remove this hook: $0" >&2
    exit {gone}
fi
{feed}"$provost" git run {name} "$@"
"##
        )
    }
}

/// Quotes a text: within single quotes, sh takes everything literally but the quote itself.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
