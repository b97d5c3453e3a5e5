//! Judgement: rule files that are refused, and why.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use provost::base::limits::POLICY_BYTES_MAX;
use provost::domain::{Decision, Judge as _};
use provost::policy::{Builtin, Case, Layer, LoadError, Request, RuleSet, Source, builtin};

/// A file with one rule in lines 2 to 5, to which `more` is added from line 6 on.
fn with(more: &str) -> String {
    format!("version = 1\n[[rule]]\nid = \"it\"\ndecision = \"allow\"\nreason = \"r\"\n{more}\n")
}

/// Returns the problems of a file, one line per problem.
fn complaint(text: &str) -> String {
    match Layer::parse(text, "p.toml") {
        Ok(_) => panic!("this loads:\n{text}"),
        Err(problems) => problems.to_string(),
    }
}

#[test]
fn a_wrong_file_is_refused_with_line_and_key_and_what_to_do() {
    let allow = |more: &str| with(&format!("when.action = \"delegate\"\n{more}"));
    let ask = |more: &str| with(&format!("when.depth_over = 1\n{more}")).replace("\"allow\"", "\"approve\"");
    for (text, said) in [
        ("rule = [".to_owned(), "p.toml:1: this is not TOML"),
        ("[[rule]]\n".to_owned(), "p.toml:1: `version` is missing; begin the file with `version = 1`"),
        ("version = 2".to_owned(), "p.toml:1: `version`: 2 is not known to this program; write 1"),
        ("version = \"1\"".to_owned(), "p.toml:1: `version`: must be a whole number"),
        (
            "version = 1\n\ndefault = \"allow\"".to_owned(),
            "p.toml:3: `default`: what no rule matches is always denied",
        ),
        (
            "version = 1\nrules = []".to_owned(),
            "p.toml:2: `rules` is not a key known here; did you mean `rule`?",
        ),
        ("version = 1\nrule = 1".to_owned(), "p.toml:2: `rule`: must be a list of tables"),
        ("version = 1\nrule = [1]".to_owned(), "p.toml:2: `rule` must hold tables"),
        (with(""), "p.toml:2: `when`: the rule has no condition; add one, or say `when.any = true`"),
        (with("when = 1"), "p.toml:6: `when`: must be a table"),
        (with("").replace("id = \"it\"", ""), "p.toml:2: `id`: is missing; give the rule a name"),
        (with("").replace("\"it\"", "\"\""), "p.toml:3: `id`: is empty"),
        (
            with("").replace("\"allow\"", "\"alow\""),
            "p.toml:4: `decision`: `alow` is not one of allow, approve, deny; did you mean `allow`?",
        ),
        (with("").replace("reason = \"r\"", ""), "p.toml:2: `reason`: is missing; give a reason"),
        (with("").replace("\"r\"", "\" \""), "p.toml:5: `reason`: is empty"),
        (
            with("[[rule]]\nid = \"it\"\ndecision = \"deny\"\nreason = \"r\"\nwhen.any = true"),
            "p.toml:7: `id`: `it` is already the name of the rule in line 2",
        ),
        (with("when.any = false"), "p.toml:6: `when.any`: can only be `true`; leave it out otherwise"),
        (
            allow("when.any = true"),
            "p.toml:6: `when`: `when.any` matches everything; remove it or the other conditions",
        ),
        (
            with("when.worker = \"x\""),
            "p.toml:6: `when`: an allow rule says what it allows; add `when.action`",
        ),
        (
            with("\nwhen.actoin = \"delegate\""),
            "p.toml:7: `when.actoin` is not a key known here; did you mean `when.action`?",
        ),
        (
            with("when.colour = \"red\""),
            "p.toml:6: `when.colour` is not a key known here; known are any, action,",
        ),
        (with("when.action = []"), "p.toml:6: `when.action`: is empty, which nothing can match"),
        (
            with("when.action = [\n\"delegate\",\n\"dance\"]"),
            "p.toml:8: `when.action`: `dance` is not one of delegate, screenshot, apply, permission, approve, token",
        ),
        (
            allow("when.proof = \"ownkey\""),
            "p.toml:7: `when.proof`: `ownkey` is not one of shared_key, own_key, peer_uid, person, desktop, jailed, token, passkey; did you mean `own_key`?",
        ),
        (
            allow("when.network = \"all\""),
            "p.toml:7: `when.network`: `all` is not one of none, ports, hosts, or any",
        ),
        (allow("when.client = 7"), "p.toml:7: `when.client`: must be a text in quotes"),
        (allow("when.client = [7]"), "p.toml:7: `when.client` must hold texts in quotes"),
        (
            allow("when.client = \"a**\""),
            "p.toml:7: `when.client`: `a**`: names have no slashes to cross, write a single `*`",
        ),
        (
            allow("when.cwd = \"src**/x\""),
            "p.toml:7: `when.cwd`: `src**/x`: `**` stands alone between slashes",
        ),
        (allow("when.cwd = \"a/../b\""), "p.toml:7: `when.cwd`: `a/../b`: `..` cannot be matched here"),
        (allow("when.path = \"/../b\""), "p.toml:7: `when.path`: `/../b`: `..` cannot be matched here"),
        (allow("when.cwd = 'a\\b'"), "p.toml:7: `when.cwd`: `a\\b`: separate with `/`, not with a backslash"),
        (allow("when.cwd = \"\""), "p.toml:7: `when.cwd`: is empty; the root itself is written \".\""),
        (
            allow("when.command_has = \"--\""),
            "p.toml:7: `when.command_has`: `--` has no letters or digits to look for",
        ),
        (
            allow("when.depth_over = -1"),
            "p.toml:7: `when.depth_over`: must be a whole number that is not negative",
        ),
        (allow("when.depth_over = 5000000000"), "p.toml:7: `when.depth_over`: is too large"),
        (
            allow("when.goal_bytes_max = \"4KB\""),
            "p.toml:7: `when.goal_bytes_max`: `4KB` is not a size; write a number and B, KiB, MiB or GiB",
        ),
        (allow("when.timeout_over = 120"), "p.toml:7: `when.timeout_over`: must be a text in quotes"),
        (
            allow("when.hours = \"08:00-20:00\""),
            "p.toml:7: `when.hours`: `08:00-20:00` has no offset from UTC; write \"08:00-20:00Z\"",
        ),
        (allow("when.hours = \"8-20Z\""), "p.toml:7: `when.hours`: `8-20Z` is not a time of day"),
        (
            allow("when.hours = \"08:00-25:00Z\""),
            "p.toml:7: `when.hours`: `08:00-25:00Z` is not a time of day",
        ),
        (
            allow("when.hours = \"08:00-20:00+1\""),
            "p.toml:7: `when.hours`: `08:00-20:00+1` is not a time of day",
        ),
        (
            allow("when.hours = \"08:00-08:00Z\""),
            "p.toml:7: `when.hours`: `08:00-08:00Z` is empty or the whole day",
        ),
        (
            allow("when.hours = \"08:00-é0:00Zé\""),
            "p.toml:7: `when.hours`: `08:00-é0:00Zé` is not a time of day",
        ),
        (
            allow("limit.timeout = \"20 minutes\""),
            "p.toml:7: `limit.timeout`: `20 minutes` is not a duration; write a number and ms, s, m, h or d, as in \"20m\"",
        ),
        (
            allow("limit.timeout = \"0s\""),
            "p.toml:7: `limit.timeout`: `0s` is out of range: more than nothing, at most 7d",
        ),
        (
            allow("limit.timeout = \"99999999999999999999s\""),
            "p.toml:7: `limit.timeout`: `99999999999999999999s` is not a duration",
        ),
        (
            allow("limit.timeout = \"18446744073709551615d\""),
            "p.toml:7: `limit.timeout`: `18446744073709551615d` is out of range",
        ),
        (
            allow("limit.memory = \"18446744073709551615GiB\""),
            "p.toml:7: `limit.memory`: `18446744073709551615GiB` is too large",
        ),
        (
            allow("limit.memory = 0"),
            "p.toml:7: `limit.memory`: nothing could run with 0; write a deny rule instead",
        ),
        (allow("limit.retries = 6"), "p.toml:7: `limit.retries`: a task begins again 5 times at the most"),
        (allow("limit.concurrent = 0"), "p.toml:7: `limit.concurrent`: nothing could run with 0"),
        (
            allow("limit.rate = \"often\""),
            "p.toml:7: `limit.rate`: `often` is not a rate; write \"30/h per client\" or \"5/30s\"",
        ),
        (
            allow("limit.rate = \"0/h\""),
            "p.toml:7: `limit.rate`: `0/h` is out of range: between 1 and 1000 uses",
        ),
        (allow("limit.rate = \"5/fortnight\""), "p.toml:7: `limit.rate`: `5/fortnight` is not a rate"),
        (allow("limit.tier_min = \"vm\""), "p.toml:7: `limit.tier_min`: `vm` is not one of job, ll, ns"),
        (
            allow("limit.hosts = [\"a.example\"]"),
            "p.toml:7: `limit.hosts`: `a.example` is not a host; write \"name:port\"",
        ),
        (
            allow("limit.hosts = [\"*.example:443\"]"),
            "p.toml:7: `limit.hosts`: `*.example:443` is not a host",
        ),
        (
            allow("limit.tierr_min = \"ns\""),
            "p.toml:7: `limit.tierr_min` is not a key known here; did you mean `limit.tier_min`?",
        ),
        (
            allow("limit.timeout = \"1m\"").replace("\"allow\"", "\"deny\""),
            "p.toml:7: `limit`: a deny rule lets nothing through that could be limited",
        ),
        (
            allow("approve.by = \"human\""),
            "p.toml:7: `approve`: belongs to approve rules, this one says allow",
        ),
        (ask(""), "p.toml:2: `approve.by`: is missing; say who may answer"),
        (ask("approve.expires = \"5m\""), "p.toml:7: `approve.by`: is missing; say who may answer"),
        (ask("approve.by = [\"\"]"), "p.toml:7: `approve.by`: `` is empty"),
        (
            ask("approve.by = \"human\"\napprove.auth = \"ssh-signature\""),
            "p.toml:8: `approve.auth`: signed answers are not available in this version; write \"terminal\" for people or \"key\" for agents",
        ),
        (
            ask("approve.by = [\"human\", \"a\"]\napprove.auth = \"terminal\""),
            "p.toml:8: `approve.auth`: \"terminal\" is a person's proof, and `approve.by` names an agent",
        ),
        (
            ask("approve.by = [\"human\", \"a\"]\napprove.auth = \"key\""),
            "p.toml:8: `approve.auth`: \"key\" is an agent's proof, and `approve.by` names `human`",
        ),
        (
            ask("approve.by = [\"host\", \"human\"]\napprove.auth = \"terminal\""),
            "p.toml:8: `approve.auth`: \"terminal\" does not prove which person sits at a host, and `approve.by` names `host`",
        ),
        (
            ask("approve.by = [\"human\"]\napprove.auth = \"keys\""),
            "p.toml:8: `approve.auth`: `keys` is not one of terminal, key; did you mean `key`?",
        ),
        (
            ask("approve.by = [\"human\"]\napprove.scope = \"always\""),
            "p.toml:8: `approve.scope`: an answer counts for the one request that was shown; write \"once\"",
        ),
        (
            ask("approve.by = \"human\"").replace("depth_over = 1", "action = \"approve\""),
            "p.toml:6: `when`: an answer to an approval cannot wait for another one; allow or deny it",
        ),
        (
            allow("example.deny = [{}]"),
            "p.toml:7: `example.deny` is not a key known here; known are allow, not",
        ),
        (allow("example.allow = {}"), "p.toml:7: `example.allow`: must be a list of tables"),
        (
            allow("example.allow = [\n{ cleint = \"a\" }]"),
            "p.toml:8: `cleint` is not a key known here; did you mean `client`?",
        ),
        (
            allow("example.allow = [{ now = \"noon\" }]"),
            "p.toml:7: `now`: `noon` is not a moment; write it like",
        ),
        (allow("example.allow = [{ root = \"a\" }]"), "p.toml:7: `root`: `a` must begin with `/`"),
        (
            allow("when.depth_over = 1\nexample.allow = [\n{ depth = 1 }]"),
            "p.toml:9: an example of `it` does not match it: when.depth_over wants 1, the example has 1; correct the example or the rules",
        ),
        (
            allow("example.not = [\n{ depth = 1 }]"),
            "p.toml:8: an example of what `it` is not about matches it",
        ),
        (
            allow(
                "example.allow = [{ depth = 2 }]\n[[rule]]\nid = \"deep\"\ndecision = \"deny\"\nreason = \"r\"\nwhen.depth_over = 1",
            ),
            "p.toml:7: an example of `it` matches it, but the file as a whole says deny because of `deep`",
        ),
    ] {
        let complaints = complaint(&text);
        assert!(
            complaints.lines().any(|line| line.starts_with(said)),
            "{text}\nwanted: {said}\nsaid: {complaints}"
        );
    }
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_the_file() {
    let said = complaint(&with("when.actoin = 1\nlimit.timeout = \"x\"\nlimit.memory = \"y\""));
    let lines: Vec<_> = said.lines().map(|line| line.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["6", "6", "7", "8"], "{said}");
}

#[test]
fn a_file_beyond_reason_is_refused() {
    let large = format!("version = 1\n#{}", " ".repeat(POLICY_BYTES_MAX));
    assert!(complaint(&large).starts_with("p.toml:1: is larger than 1048576 bytes"));
    let rule =
        |i: usize| format!("[[rule]]\nid = \"{i}\"\ndecision = \"deny\"\nreason = \"r\"\nwhen.any = true\n");
    let many: String = (0..2001).map(rule).collect();
    assert!(complaint(&format!("version = 1\n{many}")).contains("there are more than 2000 rules"));
}

#[test]
fn a_test_table_is_refused_with_lines_too() {
    let said = |text: &str| Case::parse(text, "cases.toml").unwrap_err().to_string();
    assert!(said("").contains("cases.toml:1: there is no `[[case]]` in this file"));
    assert!(said("[[case]]\nclient = \"a\"").contains("cases.toml:1: `expect`: is missing"));
    assert!(
        said("[[case]]\nexpect = \"allow\"\n\nrulle = \"x\"")
            .contains("cases.toml:4: `rulle` is not a key known here; did you mean `rule`?")
    );
}

/// A folder that only its owner can write, with a rule file in it that denies everything as `mine`.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("policy.toml");
    write(&path, "mine");
    (folder, path)
}

fn write(path: &Path, id: &str) {
    let rule = format!("[[rule]]\nid = \"{id}\"\ndecision = \"deny\"\nreason = \"r\"\nwhen.any = true\n");
    fs::write(path, format!("version = 1\n{rule}")).unwrap();
    mode(path, 0o600);
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn load(path: &Path) -> Result<RuleSet, LoadError> {
    Source::File(path.to_owned()).load().map(RuleSet::new)
}

fn refusal(path: &Path) -> String {
    let error = load(path).err().unwrap_or_else(|| panic!("{} was trusted", path.display()));
    assert!(matches!(error, LoadError::Untrusted { .. }), "{error}");
    error.to_string()
}

fn denies_as(rules: &RuleSet, id: &str) -> bool {
    matches!(rules.decide_request(&Request::default()), Decision::Deny { rule, .. } if rule.as_str() == id)
}

#[test]
fn a_rule_file_of_ones_own_is_read() {
    let (_folder, path) = folder();
    assert!(denies_as(&load(&path).unwrap(), "mine"));
    mode(&path, 0o444);
    assert!(load(&path).is_ok());
}

#[test]
fn a_rule_file_that_others_can_write_is_not_read() {
    let (_folder, path) = folder();
    for bits in [0o620, 0o602, 0o666] {
        mode(&path, bits);
        let said = refusal(&path);
        assert!(
            said.contains(&format!("its mode 0{bits:o} lets others write it; run `chmod go-w` on it")),
            "{said}"
        );
    }
}

#[test]
fn a_rule_file_in_a_folder_that_others_can_write_is_not_read() {
    let (folder, _) = folder();
    let inner = folder.path().canonicalize().unwrap().join("open/inner");
    fs::create_dir_all(&inner).unwrap();
    write(&inner.join("policy.toml"), "mine");
    mode(inner.parent().unwrap(), 0o777);
    let said = refusal(&inner.join("policy.toml"));
    assert!(said.contains("others can write in the folder") && said.contains("/open;"), "{said}");
    mode(inner.parent().unwrap(), 0o1777);
    assert!(load(&inner.join("policy.toml")).is_ok(), "the sticky bit protects what is inside");
}

#[test]
fn a_link_is_not_read() {
    let (_folder, path) = folder();
    let link = path.with_file_name("link.toml");
    symlink(&path, &link).unwrap();
    assert!(refusal(&link).contains("it is a symbolic link; put the file itself there"));
}

#[test]
fn a_rule_file_of_somebody_else_is_not_read() {
    let (folder, path) = folder();
    // Only root can give files away; an ordinary user cannot set this scene.
    if chown(&path, Some(54_321), None).is_err() {
        return;
    }
    assert!(refusal(&path).contains("it belongs to user 54321; it must be yours or root's (chown)"));
    chown(&path, Some(0), None).unwrap();
    assert!(load(&path).is_ok());
    let link = path.with_file_name("folder");
    symlink(folder.path(), &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(54_321), None).unwrap();
    assert!(
        refusal(&link.join("policy.toml"))
            .contains("on the way to it is a symbolic link; name the real folder")
    );
    chown(folder.path(), Some(54_321), None).unwrap();
    assert!(refusal(&path).contains("belongs to user 54321"));
}

#[test]
fn what_is_no_file_is_not_read() {
    let (_folder, path) = folder();
    assert!(refusal(path.parent().unwrap()).contains("it is not a regular file"));
    let missing = load(&path.with_file_name("missing.toml")).unwrap_err().to_string();
    assert!(missing.contains("missing.toml") && missing.contains("No such file"), "{missing}");
    fs::write(&path, b"version = 1\n# \xff").unwrap();
    assert!(matches!(load(&path), Err(LoadError::Unreadable { .. })));
    fs::write(&path, "version = 3").unwrap();
    let wrong = load(&path).unwrap_err().to_string();
    assert!(wrong.starts_with(&format!("{}:1: `version`", path.display())), "{wrong}");
}

#[test]
fn the_base_is_the_named_file_else_the_users_else_the_shipped_default() {
    let (_folder, user) = folder();
    let missing = user.with_file_name("missing.toml");
    let base = |named: Option<&str>, user: &Path| Source::base(named, user).unwrap();
    assert_eq!(base(None, &missing), Source::Builtin(Builtin::Default));
    assert_eq!(base(None, &user), Source::File(user.clone()));
    assert_eq!(base(Some("builtin:strict"), &user), Source::Builtin(Builtin::Strict));
    assert_eq!(base(Some("/x/p.toml"), &user), Source::File("/x/p.toml".into()));
    let unknown = Source::base(Some("builtin:lax"), &user).unwrap_err().to_string();
    assert_eq!(unknown, "there are no shipped rules named `lax`; known are default, strict and open");
    symlink("/nowhere", &missing).unwrap();
    assert_eq!(base(None, &missing), Source::File(missing.clone()), "a dangling link is not an absent file");
    assert!(
        Source::load_layers(&base(Some("/x/p.toml"), &user), &user).is_err(),
        "a named file must be there"
    );
}

#[test]
fn a_system_file_lies_over_the_base_when_it_is_there() {
    let (_folder, system) = folder();
    let missing = system.with_file_name("missing.toml");
    let base = Source::Builtin(Builtin::Default);
    let alone = Source::load_layers(&base, &missing).unwrap();
    assert_eq!(alone.version(), builtin("default").unwrap().version());
    let both = Source::load_layers(&base, &system).unwrap();
    assert_eq!(both.layers().len(), 2);
    assert!(denies_as(&both, "mine"));
    mode(&system, 0o666);
    assert!(matches!(Source::load_layers(&base, &system), Err(LoadError::Untrusted { .. })));
}

#[test]
fn a_rule_can_name_every_door_that_a_caller_comes_in_through() {
    for (_, door) in provost::domain::Door::ENTRANCES {
        let rule = format!(
            "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"t\"\ndecision = \"allow\"\nreason = \"r\"\n\
             when.action = [\"delegate\"]\nwhen.door = [\"{}\"]\n",
            door.name()
        );
        RuleSet::parse(&rule, "test.toml").unwrap_or_else(|problems| panic!("{}: {problems}", door.name()));
    }
}
