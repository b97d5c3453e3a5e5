//! Judgement against a second, naive evaluator, over random rules and random requests.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod on_record;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use provost::base::{AgentId, Digest, Json, RepoPath, TaskId, Timestamp, Ttl};
use provost::domain::command::{AnswerApproval, MintToken, TakeScreenshot};
use provost::domain::{
    Command, Credentials, Decision, Delegate, Directory, Door, Facts, Git, Judge, Network, Principal, Proof,
    Scope, Scopes, SecretUse, Tier, Tool, Verdict, WorkerKind,
};
use provost::policy::{Action, CONDITIONS, File, Layer, Net, Request, RuleSet, explain, explain_request};
use provost_test_equipment::callers::caller;
use provost_test_equipment::naive;

/// Steele and Vigna's splitmix64: small, seeded, and good enough to wander about.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.roll() % most as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn some<T: Copy>(&mut self, from: &[T]) -> Vec<T> {
        (0..1 + self.below(2)).map(|_| self.pick(from)).collect()
    }
}

const NAMES: &[&str] = &["mcp", "client:a", "client:b", "bot-1", "worker/x", "é", "a[b]", "..", "shell"];
const NAME_PATTERNS: &[&str] =
    &["*", "client:*", "mcp", "*-1", "c*a", "*e*", "é", "a[b]", "?cp", "*/*", "{mcp}", "*.*"];
const TOOLS: &[&str] = &["devit_delegate", "devit_patch_apply", "devit_file_read", "other"];
const HOST_TOOLS: &[&str] =
    &["Bash", "Bash", "Bash", "Edit", "Read", "apply_patch", "mcp__files__write", "exec_command"];
const TOOL_PATTERNS: &[&str] =
    &["devit_*", "devit_file_read", "*er", "devit_patch_apply", "Bash", "Edit", "*s*", "mcp__*"];
const PARTS: &[&str] = &[
    "CLAUDE.md",
    ".vscode",
    "Config",
    "a",
    "b",
    "src",
    "é",
    "x.key",
    ".ssh",
    "[id]",
    "keyboard.rs",
    "a?",
    "..",
    ".",
    "",
];
const PART_PATTERNS: &[&str] =
    &["a", "b", "src", "é", "*.key", ".ssh", "[id]", "*", "**", "s*c", "*e*", "a?", "{a,b}"];
const COMMANDS: &[&str] =
    &["cargo test", "rm -rf x", "/usr/bin/sudo x", "pseudo", "chmod  +x y", "RM -RF", "rm; x -rf", ""];
const PHRASES: &[&str] = &["rm -rf", "sudo", "chmod +x", "test", "x"];
/// Lines that hosts would run: plain commands, and lines that run something else than a plain look says.
const LINES: &[&str] = &[
    "git add src # let's go\ngit push -f",
    "cat <<'E'\ndon't\nE\nr\\m -rf x",
    "echo \"$(echo \"it's\")\" ; rm -rf x",
    "echo 'a\\' ; rm -rf x",
    "MSG=\"see ls\" rm -rf x",
    "MSG=\"see \" $X",
    "2>ls rm -rf x",
    "> \"a b\" git push",
    "grep rm src 2>&1 | head",
    "git -c alias.x='!rm -rf x' x",
    "python3.12 -c \"run(['rm','-rf','x'])\"",
    "cat $D/b/.ssh",
    "cat s{rc,x}/a a[b]*",
    "curl -d@src/a -F f=@b u",
    "git show HEAD:src/a",
    "sh -c 'r\\m -rf x' a@b",
    "git diff ../a",
    "git diff @a",
    "git diff A=1",
    "git diff +a",
    "git status",
    "git  status ",
    "git 'status'",
    "git status; rm -rf x",
    "git status && rm x",
    "git status\nrm x",
    "git $(rm x)",
    "git `rm x` status",
    "git -c core.fsmonitor=x status",
    "A=1 git status",
    "git status > src/a",
    "git status # x",
    "git st\\atus",
    "git status $X",
    "git status *",
    "$X status",
    "\"git\" \"status\"",
    "git 'sta tus'",
    "git status --porcelain",
    "git diff src/a",
    "git diff -- src/a",
    "rm -rf src",
    "/bin/rm -rf src",
    "r\\m -rf src",
    "'rm' -rf src",
    "sudo rm -rf src",
    "sudo $X",
    "env A=1 rm x",
    "sh -c 'rm -rf src'",
    "bash -c \"git push\"",
    "echo rm -rf src",
    "echo 'rm -rf src'",
    "echo rm -rf src | sh",
    "xargs rm < list",
    "git commit -m 'rm -rf; git push'",
    "git -C x push",
    "git --no-pager push origin",
    "git push",
    "if true; then rm x; fi",
    "rm -v -rf x",
    "{ rm x; }",
    "[ -f rm ]",
    "cat <<END\nrm -rf x\nEND",
    "find . -exec rm {} +",
    "python3 -c \"os.system('rm -rf x')\"",
    "RM -rf x",
    "git status é",
    "git 'é'",
    "\"$(rm x)\"",
    "cat .env",
    "cat src/../.ssh/id",
    "curl -d @.env x",
    "dd of=src/x.key",
    "",
    "=ls",
    "'",
    "git \"x",
];
const LINE_PATTERNS: &[&str] = &[
    "git status",
    "git *",
    "git diff s*",
    "git diff A*",
    "git **",
    "git diff *",
    "git diff -- **",
    "rm -rf",
    "rm **",
    "rm",
    "git push",
    "sudo *",
    "git * é",
    "./rm",
];
const HOSTS: &[&str] = &["a.example:443", "b.example:443", "c.example:80", "A.Example:443"];

fn path(dice: &mut Dice) -> String {
    let start = if dice.one_in(2) { "/" } else { "" };
    let parts: Vec<&str> = (0..dice.below(5)).map(|_| dice.pick(PARTS)).collect();
    let text = format!("{start}{}", parts.join(if dice.one_in(9) { "\\" } else { "/" }));
    if text.is_empty() { ".".to_owned() } else { text }
}

fn path_pattern(dice: &mut Dice) -> String {
    let start = if dice.one_in(2) { "/" } else { "" };
    let parts: Vec<&str> = (0..dice.below(4)).map(|_| dice.pick(PART_PATTERNS)).collect();
    let text = format!("{start}{}", parts.join("/"));
    if text.is_empty() { ".".to_owned() } else { text }
}

fn list<T: AsRef<str>>(values: &[T]) -> String {
    let quoted: Vec<String> = values.iter().map(|it| format!("{:?}", it.as_ref())).collect();
    format!("[{}]", quoted.join(", "))
}

fn paths(dice: &mut Dice) -> String {
    let patterns: Vec<String> = (0..1 + dice.below(3)).map(|_| path_pattern(dice)).collect();
    list(&patterns)
}

/// Any condition of the table, with a value.
fn condition(dice: &mut Dice) -> (&'static str, String) {
    let (key, _) = dice.pick(CONDITIONS);
    let actions =
        if dice.one_in(3) { &["delegate", "screenshot", "apply", "permission"][..] } else { &["delegate"] };
    let value = match key {
        "action" => list(&dice.some(actions)),
        "git" => list(&dice.some(&["read", "write"])),
        "door" => list(&dice.some(&["devit", "own"])),
        "proof" => list(&dice.some(&["shared_key", "own_key", "peer_uid", "person"])),
        "worker_kind" => list(&dice.some(&["cli", "polling"])),
        "tier" => list(&dice.some(&["ns", "ll", "job"])),
        "network" => list(&dice.some(&["none", "ports", "hosts", "any"])),
        "client" | "worker" => list(&dice.some(NAME_PATTERNS)),
        "tool" => list(&dice.some(TOOL_PATTERNS)),
        "cwd" | "path" | "path_outside" => paths(dice),
        "command_has" => list(&dice.some(PHRASES)),
        "command" => list(&dice.some(LINE_PATTERNS)),
        "path_missing" => "true".to_owned(),
        "max_bytes_over" => dice.pick(&["5", "\"1KiB\""]).to_owned(),
        "goal_bytes_max" | "goal_bytes_over" => "10".to_owned(),
        "depth_over" => "1".to_owned(),
        "running_over" => "2".to_owned(),
        "timeout_over" => dice.pick(&["\"5s\"", "\"1500ms\""]).to_owned(),
        "hours" => dice.pick(&["\"08:00-20:00Z\"", "\"22:30-06:00-03:30\""]).to_owned(),
        _ => panic!("`{key}` has no values here yet; write some, so that both judges are tried with it"),
    };
    (key, value)
}

fn limits(dice: &mut Dice, out: &mut String) {
    for (key, values) in [
        ("tier_min", &["\"ns\"", "\"ll\"", "\"job\""][..]),
        ("timeout", &["\"5m\"", "\"90s\""]),
        ("memory", &["\"1GiB\"", "4096"]),
        ("processes", &["7", "9"]),
        ("concurrent", &["1", "2"]),
        ("retries", &["0", "3"]),
        ("rate", &["\"30/h per client\"", "\"5/30s\"", "\"600/h\"", "\"10/m\""]),
        ("hosts", &["[\"a.example:443\", \"b.example:443\"]", "[\"b.example:443\"]"]),
        ("credentials", &["\"proxy\"", "\"file\"", "\"env\"", "\"env\""]),
    ] {
        if dice.one_in(if key == "tier_min" { 12 } else { 5 }) {
            writeln!(out, "limit.{key} = {}", dice.pick(values)).unwrap();
        }
    }
}

fn rule(dice: &mut Dice, id: &str, decision: &str) -> String {
    let mut out =
        format!("[[rule]]\nid = \"{id}\"\ndecision = \"{decision}\"\nreason = \"because of {id}\"\n");
    let mut when: BTreeMap<&str, String> = (0..dice.below(4)).map(|_| condition(dice)).collect();
    if decision == "allow" && !when.is_empty() && !when.contains_key("action") {
        let actions = dice.pick(&[
            &["delegate"][..],
            &["delegate", "screenshot", "approve"],
            &["approve"],
            &["permission"],
            &["delegate", "permission"],
        ]);
        when.insert("action", list(actions));
    }
    if when.is_empty() {
        when.insert("any", "true".to_owned());
    }
    when.iter().for_each(|(key, value)| writeln!(out, "when.{key} = {value}").unwrap());
    if decision != "deny" {
        limits(dice, &mut out);
    }
    if decision == "approve" {
        let by = dice.some(&["human", "passkey", "passkey-if-enrolled", "host", "client:approver", "bot-1"]);
        writeln!(out, "approve.by = {}", list(&by)).unwrap();
        if dice.one_in(2) {
            writeln!(out, "approve.expires = \"{}m\"", 1 + dice.below(20)).unwrap();
        }
        if dice.one_in(2) {
            writeln!(out, "approve.ask_again = {}", dice.below(4)).unwrap();
        }
    }
    out
}

fn file(dice: &mut Dice) -> String {
    let mut out = "version = 1\n".to_owned();
    for i in 0..1 + dice.below(7) {
        let decision = dice.pick(&["allow", "allow", "allow", "approve", "approve", "deny"]);
        out.push_str(&rule(dice, &format!("r{i}"), decision));
    }
    out
}

fn request(dice: &mut Dice) -> Request {
    let request = any_request(dice);
    if request.action != Action::Permission {
        return request;
    }
    let command = dice.one_in(2).then(|| dice.pick(LINES).into());
    let path = request.path.filter(|_| dice.one_in(2));
    Request { tool: dice.pick(HOST_TOOLS).into(), command, path, ..request }
}

fn any_request(dice: &mut Dice) -> Request {
    let cwd = path(dice);
    let place = dice.below(4);
    let maybe = |dice: &mut Dice, from: &[u64]| dice.one_in(2).then(|| dice.pick(from));
    Request {
        action: match dice.below(16) {
            12..=15 => Action::Permission,
            0 => Action::Screenshot,
            1 => Action::Apply,
            2 => Action::Approve,
            3 => Action::Token,
            _ => Action::Delegate,
        },
        client: dice.pick(NAMES).into(),
        door: dice.pick(&[
            Door::Devit,
            Door::Own,
            Door::Worker,
            Door::Wit,
            Door::AgentProtocol,
            Door::Broker,
            Door::A6s,
            Door::Mcp,
        ]),
        proof: dice.pick(&[Proof::SharedKey, Proof::OwnKey, Proof::PeerUid, Proof::Terminal]),
        worker: dice.pick(NAMES).into(),
        worker_kind: dice.pick(&[
            Some(WorkerKind::Cli),
            Some(WorkerKind::Cli),
            Some(WorkerKind::Polling),
            None,
        ]),
        tier: dice.pick(&[None, None, Some(Tier::Ll), Some(Tier::Ns), Some(Tier::Job)]),
        network: dice.pick(&[Net::None, Net::None, Net::Ports, Net::Hosts]),
        git: dice.pick(&[Git::Read, Git::Read, Git::Write]),
        hosts: dice.some(HOSTS).into_iter().map(Into::into).collect(),
        credentials: dice.pick(&[
            None,
            None,
            None,
            Some(Credentials::Proxy),
            Some(Credentials::File),
            Some(Credentials::Env),
        ]),
        root: (place == 0).then(|| dice.pick(&["/", "/a", "/a/b", "/src"]).into()),
        cwd: (place != 1).then(|| cwd.trim_start_matches(if place == 2 { "" } else { "/" }).into()),
        tool: dice.pick(TOOLS).into(),
        path: dice.one_in(2).then(|| path(dice).into()),
        command: dice.one_in(2).then(|| dice.pick(COMMANDS).into()),
        max_bytes: maybe(dice, &[0, 5, 6, 1024, 1025, u64::MAX]),
        timeout_secs: maybe(dice, &[0, 1, 2, 5, 6, u64::MAX]),
        goal_bytes: dice.pick(&[0, 10, 11, u64::MAX]),
        depth: dice.pick(&[0, 1, 2, u32::MAX]),
        running: dice.pick(&[0, 2, 3]),
        now: Timestamp(
            dice.pick(&[0, -1, 28_800_000, 72_000_000, 1_790_000_000_000, i64::MAX, i64::MIN])
                .saturating_add(60_000 * dice.below(1440) as i64),
        ),
    }
}

/// The same question as a door would put it; `None` for what has no verb yet or does not come this far.
fn as_command(request: &Request) -> Option<(Principal, Command, Facts)> {
    let agent = request.client.as_ref();
    let who = caller(agent, request.door, &[Scope::Delegate, Scope::Approve], request.proof);
    let mut facts = Facts { now: request.now, ..Facts::default() };
    let command = match request.action {
        Action::Apply | Action::Permission => return None,
        Action::Screenshot => Command::from(TakeScreenshot { task: TaskId::parse("s-1").unwrap() }),
        Action::Approve => {
            let verdict = Verdict::Granted;
            Command::from(AnswerApproval {
                approval: Default::default(),
                verdict,
                note: None,
                shown: None,
                signed: None,
            })
        }
        Action::Token => Command::from(MintToken {
            digest: Digest::default(),
            agent: AgentId::parse(agent).unwrap(),
            scopes: Scopes::default(),
            ttl: Ttl::minutes(1),
        }),
        Action::Delegate => delegate(request, &mut facts)?.into(),
    };
    Some((who, command, facts))
}

fn delegate(request: &Request, facts: &mut Facts) -> Option<Delegate> {
    let root = provost::base::normalised_path(request.root.as_deref().unwrap_or("/workspace"));
    let cwd = RepoPath::parse(request.cwd.as_deref().unwrap_or(".")).ok()?;
    let absolute = provost::base::normalised_path(&format!("{root}/{}", cwd.as_str())).into();
    facts.directory = Some(Directory { relative: cwd, absolute, dev: 1, ino: 1 });
    facts.worker_kind = request.worker_kind;
    let own = (request.worker_kind == Some(WorkerKind::Cli)).then_some(Tier::Ns);
    facts.tier = request.tier.or(own);
    facts.network = match request.network {
        Net::None => Network::None,
        Net::Ports => Network::Ports(vec![8080]),
        Net::Hosts => Network::Hosts(request.hosts.clone()),
    };
    facts.git = request.git;
    let by = |by| SecretUse { name: "s".into(), by };
    facts.secrets = request.credentials.map(by).into_iter().collect();
    (facts.depth, facts.running) = (request.depth, request.running);
    let goal = "g".repeat(usize::try_from(request.goal_bytes).ok().filter(|bytes| *bytes < 1000)?);
    Some(Delegate {
        task: TaskId::parse("t").unwrap(),
        goal: goal.into(),
        worker: AgentId::parse(&request.worker).unwrap(),
        return_to: None,
        tool: Tool {
            name: request.tool.clone(),
            path: request.path.clone(),
            command: request.command.clone(),
            max_bytes: request.max_bytes,
            timeout_s: request.timeout_secs,
        },
        timeout: Ttl::minutes(1),
        model: None,
        context: None,
        watch_patterns: Vec::new(),
        working_dir: request.cwd.clone(),
        format: None,
        payload: Json::null(),
        errand: None,
        work_tree: None,
        continues: None,
        placement: None,
        trace: None,
    })
}

fn strictness(decision: &Decision) -> u8 {
    match decision {
        Decision::Allow { .. } => 0,
        Decision::NeedApproval { .. } => 1,
        Decision::Deny { .. } => 2,
    }
}

fn layers(dice: &mut Dice) -> Vec<Layer> {
    let count = dice.pick(&[1, 1, 2, 3]);
    (0..count)
        .map(|_| {
            let text = file(dice);
            Layer::parse(&text, "random.toml").unwrap_or_else(|problems| panic!("{problems}\n{text}"))
        })
        .collect()
}

fn stacked(layers: &[Layer]) -> RuleSet {
    RuleSet::layered(layers[0].clone(), layers[1..].to_vec())
}

/// Runs `check` for every seed, on two threads.
fn for_seeds(seeds: u64, check: impl Fn(&mut Dice) + Sync) {
    std::thread::scope(|scope| {
        for half in 0..2 {
            let check = &check;
            scope.spawn(move || {
                (0..seeds).filter(|seed| seed % 2 == half).for_each(|seed| check(&mut Dice(seed)))
            });
        }
    });
}

#[test]
fn both_evaluators_agree_on_a_million_random_requests() {
    let seen = std::sync::Mutex::new([0u64; 4]);
    for_seeds(1000, |dice| {
        let layers = layers(dice);
        let rules = stacked(&layers);
        let files: Vec<&File> = layers.iter().map(Layer::file).collect();
        let mut counts = [0; 4];
        for _ in 0..1000 {
            let request = request(dice);
            let decision = rules.decide_request(&request);
            let expected = naive::decide(&files, &request);
            assert_eq!(decision, expected, "{request:#?}\n{files:#?}");
            counts[usize::from(strictness(&decision))] += 1;
            counts[3] +=
                u64::from(matches!(&decision, Decision::Deny { rule, .. } if rule.as_str().starts_with('r')));
        }
        let mut seen = seen.lock().unwrap();
        seen.iter_mut().zip(counts).for_each(|(all, it)| *all += it);
    });
    let seen = seen.into_inner().unwrap();
    assert!(seen.iter().all(|count| *count > 20_000), "the random requests are too much alike: {seen:?}");
}

#[test]
fn a_command_is_judged_like_the_request_that_describes_it() {
    let judged = std::sync::atomic::AtomicU64::new(0);
    for_seeds(200, |dice| {
        let layers = layers(dice);
        let rules = stacked(&layers);
        let files: Vec<&File> = layers.iter().map(Layer::file).collect();
        for _ in 0..200 {
            let mut request = request(dice);
            request.root.get_or_insert_with(|| "/workspace".into());
            let Some((who, command, facts)) = as_command(&request) else { continue };
            let decision = rules.decide(&who, &command, &facts);
            let back = Request::of(&who, &command, &facts).unwrap();
            assert_eq!(decision, naive::decide(&files, &back), "{back:#?}\n{files:#?}");
            assert_eq!(decision, rules.decide_request(&back));
            judged.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert!(judged.into_inner() > 10_000);
}

#[test]
fn an_explanation_tells_the_decision_and_agrees_with_it() {
    for_seeds(100, |dice| {
        let rules = stacked(&layers(dice));
        for _ in 0..100 {
            let request = request(dice);
            let told = explain_request(&rules, &request);
            let decision = rules.decide_request(&request);
            let (rule, outcome) = match &decision {
                Decision::Allow { rule, .. } => (rule, "allow"),
                Decision::NeedApproval { rule, .. } => (rule, "approve"),
                Decision::Deny { rule, .. } => (rule, "deny"),
            };
            assert_eq!((told.outcome.decision.name(), &told.outcome.rule), (outcome, rule));
            assert!(told.rules.iter().all(|it| it.matched == it.first_failed.is_none()));
            let decided_by_a_rule = rule.as_str().starts_with('r');
            assert!(!decided_by_a_rule || told.rules.iter().any(|it| it.id == *rule && it.matched));
            if let Some((who, command, facts)) = as_command(&request) {
                let told = explain(&rules, &who, &command, &facts);
                let decision = rules.decide(&who, &command, &facts);
                assert_eq!(usize::from(strictness(&decision)), told.outcome.decision as usize);
            }
        }
    });
}

#[test]
fn adding_a_deny_rule_never_allows_more() {
    for_seeds(200, |dice| {
        let text = file(dice);
        let denying = format!("{text}{}", rule(dice, "r-extra", "deny"));
        let parsed = |text: &str| RuleSet::parse(text, "random.toml").unwrap();
        let (before, after) = (parsed(&text), parsed(&denying));
        for _ in 0..100 {
            let request = request(dice);
            let (before, after) = (before.decide_request(&request), after.decide_request(&request));
            assert!(strictness(&before) <= strictness(&after), "{request:?}\n{denying}");
            assert!(strictness(&after) == 2 || before == after, "{request:?}\n{denying}");
        }
    });
}

#[test]
fn adding_a_layer_never_allows_more() {
    for_seeds(200, |dice| {
        let mut layers = layers(dice);
        let before = stacked(&layers);
        layers.push(Layer::parse(&file(dice), "extra.toml").unwrap());
        let after = stacked(&layers);
        for _ in 0..100 {
            let request = request(dice);
            let (before, after) = (before.decide_request(&request), after.decide_request(&request));
            assert!(strictness(&before) <= strictness(&after), "{request:?}");
            if let (Decision::Allow { terms: old, .. }, Decision::Allow { terms: new, .. }) =
                (&before, &after)
            {
                assert!(old.timeout.is_none() || (new.timeout.is_some() && new.timeout <= old.timeout));
                assert!(old.memory.is_none() || (new.memory.is_some() && new.memory <= old.memory));
                assert!(new.tier_min >= old.tier_min);
                assert!(new.hosts.iter().all(|host| old.hosts.contains(host)));
            }
        }
    });
}
