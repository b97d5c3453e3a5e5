//! The hooks themselves: small scripts that let the hook that was there before have the first word.

use std::path::Path;

use provost_config::Unchecked;

/// What a hook that was there before is called now, behind its name.
pub(super) const BEFORE: &str = ".before-provost";

/// Begins the second line of every script of ours.
const MARK: &str = "# provost hook";

/// A hook of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hook {
    /// Git's name for it.
    pub(super) name: &'static str,
    /// Whether git says something on its standard input.
    reads: bool,
    /// Whether it can refuse.
    refuses: bool,
}

pub(super) const HOOKS: [Hook; 4] = [
    Hook { name: "pre-commit", reads: false, refuses: true },
    Hook { name: "prepare-commit-msg", reads: false, refuses: false },
    Hook { name: "post-commit", reads: false, refuses: false },
    Hook { name: "pre-push", reads: true, refuses: true },
];

/// Whether a hook's text is ours, of whatever version.
pub(super) fn is_ours(text: &[u8]) -> bool {
    let second = text.split(|byte| *byte == b'\n').nth(1);
    second.is_some_and(|line| line.starts_with(MARK.as_bytes()))
}

impl Hook {
    /// The script. A hook of plain `sh` is read and not started, so that `$0` is what it was: some look there for who
    /// they are. Everything else is started.
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

/// Within single quotes, sh takes everything literally but the quote itself.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
