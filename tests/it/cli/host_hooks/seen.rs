//! Command lines that write a file that another agent holds in ways that are less plain, and ones near to
//! them that do not.

use super::shells::with_redirections;
use super::{CODE, told, world};
use crate::support::World;

fn refused(world: &World, commands: &[&str]) {
    for command in commands.iter().flat_map(|it| with_redirections(it)) {
        world.is_refused("claude", &told(world, &command));
    }
}

fn free(world: &World, commands: &[&str]) {
    for command in commands.iter().flat_map(|it| with_redirections(it)) {
        world.goes_on("claude", &told(world, &command));
    }
}

#[test]
fn what_is_copied_into_a_folder_is_a_file_in_it() {
    let world = world("claude");
    world.write("docs/a.md", "a\n");
    world.write("docs/auth.ts", "a\n");
    world.write("tree/src/auth.ts", "a\n");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    free(
        &world,
        &[
            "cp docs/a.md src/",
            "cp docs/a.md src",
            "cp -t src docs/a.md",
            "mv docs/a.md src/",
            "install -m 644 docs/a.md src/",
            "ln -s ../docs/a.md src/",
            "rsync -a docs/a.md src/",
            "cp docs/*.md src/",
            "cp -r docs src/",
            "mkdir -p src && install -d src/new",
        ],
    );
    refused(
        &world,
        &[
            "cp docs/auth.ts src/",
            "cp docs/a.md docs/auth.ts src",
            "cp -t src docs/auth.ts",
            "mv docs/auth.ts src/",
            "mv src docs/",
            "mv src/auth.ts docs/",
            "install docs/auth.ts src/",
            "ln -sf ../docs/auth.ts src/",
            "cp docs/*.ts src/",
            "cp docs/* src/",
            "cp -r docs/. src/",
            "cp -rT docs src",
            "rsync -a docs/ src/",
            "cp -r tree/src .",
            "cp --parents -r src tree/.. && cp docs/auth.ts $PWD/src",
            "cp $UNKNOWN src/",
            "cp docs/auth.ts src/auth.ts",
        ],
    );
}

#[test]
fn names_with_brackets_are_names() {
    let world = world("claude");
    world.write("app/[id]/page.ts", CODE);
    world.write("app/[id]/other.ts", CODE);
    let _daemon = world.start();
    world.done("codex-1", &["lock", "app/[id]/page.ts"]);
    refused(
        &world,
        &[
            "rm app/[id]/page.ts",
            "sed -i s/a/b/ app/[id]/page.ts",
            "echo x > app/[id]/page.ts",
            "echo x > 'app/[id]/page.ts'",
            "cd app/[id] && rm page.ts",
            "rm app/\\[id\\]/page.ts",
            "rm -r app/[id]",
            "rm -r app/[id]/",
            "rm app/*/page.ts",
            "git checkout -- app/[id]/page.ts",
            "cp app/[id]/other.ts app/[id]/page.ts",
            "mv app/[id] app/[slug]",
            "git rm app/[id]/page.ts",
        ],
    );
    free(
        &world,
        &[
            "rm app/[id]/other.ts",
            "sed -i s/a/b/ app/[id]/other.ts",
            "cat app/[id]/page.ts",
            "cp app/[id]/page.ts app/[id]/third.ts",
        ],
    );
}

#[test]
fn a_wide_write_near_an_intent_says_so() {
    let world = world("claude");
    world.write("docs/a.md", "a\n");
    let _daemon = world.start();
    world.done("codex-1", &["intent", "declare", "new tokens", "--file", "src/auth.ts"]);
    let said = |command: &str| {
        let output = world.call("claude", "PreToolUse", &told(&world, command));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for command in ["rm -r src", "prettier --write .", "git ls-files | xargs sed -i s/a/b/", "rm src/*.ts"] {
        let said = said(command);
        assert!(said.contains("additionalContext") && said.contains("new tokens"), "{command}: {said}");
        assert!(!said.contains("permissionDecision"), "{said}");
    }
    assert_eq!(said("prettier --write docs"), "");
}

#[test]
fn variables_mean_all_that_they_may_have() {
    let world = world("claude");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    refused(
        &world,
        &[
            "for d in src docs; do for f in a.md auth.ts; do rm $d/$f; done; done",
            "for f in src/auth.ts docs/a.md; do g=$f; rm $g; done",
            "if true; then f=src/auth.ts; else f=docs/a.md; fi; rm $f",
            "rm ${NOWHERE_SET:-src/auth.ts}",
            "rm $'src/auth.ts'",
            "rm $'src/\\x61uth.ts'",
            "rm $\"src/auth.ts\"",
            "d=src; rm \"${d}/auth.ts\"",
            "X=$(echo \")\"; rm src/auth.ts)",
            "env -S 'rm src/auth.ts'",
        ],
    );
    free(
        &world,
        &[
            "for d in lib docs; do for f in a.md auth.ts; do rm $d/$f; done; done",
            "f=src/auth.ts; f=docs/a.md; rm $f",
            "rm ${NOWHERE_SET:-docs/a.md}",
        ],
    );
}

#[test]
fn files_that_scripts_of_sed_and_awk_write_are_seen() {
    let world = world("claude");
    world.write("docs/a.md", "a\n");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    refused(
        &world,
        &[
            "sed -n 'w src/auth.ts' docs/a.md",
            "sed -n 's/a/b/gw src/auth.ts' docs/a.md",
            "sed -e '1p' -ne '/a/w src/auth.ts' docs/a.md",
            "sed '1e rm src/auth.ts' docs/a.md",
            "sed --expression='w src/auth.ts' docs/a.md",
            "awk '{ print > \"src/auth.ts\" }' docs/a.md",
            "awk '{ printf \"%s\", $0 >> \"src/auth.ts\" }' docs/a.md",
            "awk -v out=src/auth.ts '{ print > out }' docs/a.md",
            "awk 'BEGIN { out = \"src/auth.ts\" } { print > out }' docs/a.md",
            "node -e \"const x = { a: 1, b: 2 }; fs.writeFileSync('src/auth.ts', x)\"",
            "cat <<EOF > docs/a.md\n$(rm src/auth.ts)\nEOF",
            "cat <<< \"$(rm src/auth.ts)\"",
            "awk 'BEGIN { system(\"rm src/auth.ts\") }'",
            "awk '{ print | \"tee src/auth.ts\" }' docs/a.md",
            "awk '{ print > FILENAME }' src/auth.ts",
            "gawk '/\"/ { print > \"src/auth.ts\" }' docs/a.md",
        ],
    );
    free(
        &world,
        &[
            "sed -n 's/w/b/p' src/auth.ts",
            "sed -n 'w docs/b.md' src/auth.ts",
            "awk '{ print $1 > \"docs/b.md\" }' src/auth.ts",
            "awk '$1 > 3 { print }' src/auth.ts",
            "cat <<'EOF' > docs/a.md\n$(rm src/auth.ts)\nEOF",
            "echo '{a,src/auth.ts}' > docs/a.md",
        ],
    );
}

/// Each was tried against the hook by an agent that wanted the file, and went by once.
#[test]
fn lines_that_went_by_once_are_seen() {
    let world = world("claude");
    world.write("docs/a.md", "a\n");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    refused(
        &world,
        &[
            "f() { echo x > \"$1\"; }; f src/auth.ts",
            "function f { rm \"$@\"; }; f docs/a.md src/auth.ts",
            "sh -c 'rm \"$1\"' _ src/auth.ts",
            "sh -c 'rm $0' src/auth.ts",
            "bash -c -- 'rm src/auth.ts'",
            "bash -s src/auth.ts <<< 'rm $1'",
            "set -- docs/a.md src/auth.ts; rm \"$2\"",
            "set -- src/auth.ts; rm \"$@\"",
            "a=(docs/a.md src/auth.ts); rm \"${a[@]}\"",
            "a=(src/auth.ts); for f in \"${a[@]}\"; do rm $f; done",
            "trap 'rm src/auth.ts' EXIT",
            "coproc rm src/auth.ts",
            "echo 'rm src/auth.ts' | sh",
            "printf 'rm %s\\n' src/auth.ts | bash",
            "watch -n 1 'rm src/auth.ts'",
            "strace -o /dev/null rm src/auth.ts",
            "su -c 'rm src/auth.ts'",
            "script -c 'rm src/auth.ts' /dev/null",
            "cd src; cd -; rm src/auth.ts",
            "rm $(echo src/auth.ts)",
            "rm \"$(printf 'src/%s' auth.ts)\"",
            "perl -e '`rm src/auth.ts`'",
            "python3 -c \"import os; os.open('src/auth.ts', os.O_WRONLY | os.O_TRUNC)\"",
            "uniq docs/a.md src/auth.ts",
            "cmake -E copy docs/a.md src/auth.ts",
            "cmake -E rm src/auth.ts",
            "chown nobody src/auth.ts",
            "iconv -f latin1 docs/a.md -o src/auth.ts",
            "git grep -l login | xargs perl -pi -e 's/a/b/'",
            "echo \"${x:-$(rm src/auth.ts)}\"",
            "F='src/auth.ts' bash -c 'rm $F'",
            "env F=src/auth.ts sh -c 'rm $F'",
            "cd $(dirname src/auth.ts) && rm auth.ts",
            "rm \"$(realpath src/auth.ts)\"",
            "echo \"open('src/auth.ts','w')\" | python3",
            "python3 -c \"import sys; open(sys.argv[1], 'w')\" src/auth.ts",
            "node -e \"require('fs').writeFileSync(process.argv[1], 'x')\" src/auth.ts",
            "perl -e 'open(F, \">\", $ARGV[0])' src/auth.ts",
            "awk 'BEGIN { print \"x\" > ARGV[1] }' src/auth.ts",
            "npx rimraf src/auth.ts",
            "$EDITOR src/auth.ts",
            "${SHELL} -c 'rm src/auth.ts'",
            "bash -c \"$(echo 'rm src/auth.ts')\"",
            "flock /tmp/l -c 'rm src/auth.ts'",
            "python3 -m json.tool docs/a.json src/auth.ts",
            "git merge-file src/auth.ts docs/a.md docs/b.md",
            "git config -f src/auth.ts a.b c",
            "hg revert --all",
            "dotnet format",
            "rm src/auth.ts{,.bak}",
            "rm -rf {src,docs}",
            "mv {src,lib}",
            "rm {docs/a.md,src/{auth,b}.ts}",
            "python3 -c \"n = 'auth'; open(f'src/{n}.ts', 'w')\"",
            "python3 -c \"open('src/%s' % 'auth.ts', 'w')\"",
            "node -e 'const n = \"auth\"; require(\"fs\").writeFileSync(`src/${n}.ts`, \"x\")'",
            "perl -MFile::Copy -e 'copy(\"docs/a.md\", \"src/auth.ts\")'",
            "scp host:auth.ts src/",
            "python3 -m zipfile -e docs/a.zip src",
            "git rebase -x 'rm src/auth.ts' HEAD",
        ],
    );
    free(
        &world,
        &[
            "f() { cat \"$1\"; }; f src/auth.ts",
            "sh -c 'cat \"$1\"' _ src/auth.ts",
            "a=(src/auth.ts); cat \"${a[@]}\"",
            "echo src/auth.ts | cat",
            "cd src; cd -; rm auth.ts",
            "python3 -c \"import os; os.open('src/auth.ts', os.O_RDONLY)\"",
            "uniq src/auth.ts",
            "python3 -c \"import sys; print(open(sys.argv[1]).read())\" src/auth.ts",
            "git config -f src/auth.ts --get a.b",
            "echo \"${x:-$(cat src/auth.ts)}\"",
            "git grep -l login | xargs perl -ne 'print'",
            "set -e; rm docs/a.md",
            "rm docs/{a,b}.md",
            "mv docs/a.md{,.old}",
            "python3 -c \"n = 'a'; open(f'docs/{n}.md', 'w')\"",
        ],
    );
}
