//! Translates the configuration into the arguments of each part of the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::watch;

use super::policy_file::PolicyFile;
use super::{Prepared, Start, agents, code_owners, notice_addresses, now, pictures, queue, spending};
use provost_agents::{AgentSettings, Fleet, FleetAgent};
use provost_auth::keys::{KeyRing, Role};
use provost_auth::passkeys::{PASSKEYS_FILE, PasskeyFiles};
use provost_auth::{answers, entries};
use provost_base::limits::WIT_WORKTREES_MAX;
use provost_base::{AgentId, Destination, Digest, Json, Secret, Ttl};
use provost_config::env::Environment;
use provost_config::places::SYSTEM_CONFIG;
use provost_config::{
    self as config, AcrossDoors, AutoAcross, Config, ContractsBind, Places, RepositoryName, WebOrigin,
    WebRead, Worker,
};
use provost_domain::post::{Owner, owner_slugs};
use provost_domain::{self as domain, AutoSetting, CrewSetting, PostSettings, Settings, WorkerSetting};
use provost_effects::{HookCommand, HookParts, not_ours, runs_outside, shell_profile};
use provost_engine::{self as engine, SteadyClock};
use provost_index::{self as index, Index};
use provost_jail::{
    AcpSession, AsAgent, Bounds, Copies, ForbiddenPaths, Git, McpCall, ParseMode, Profile, Reader, Root,
    Supervisor,
};
use provost_policy::RuleSet;
use provost_protocols::devit;
use provost_protocols::own::{HubPages, Page, PasskeySetup};
use provost_service::{ApplyRules, Applying, Base, Configured, MergeSettings, Profiles};
use provost_store::{
    self as store, Artifacts, Database, HostWords, JobLogs, Keeping, Options, Password, Retention, Roots,
    SharedArtifacts, Store, journal,
};
use provost_system::folder_watch::FolderWatcher;
use provost_vault::{Delivery, Listed, Vault};
use provost_workspace::Versions;
use provost_workspace::collect::ChangesRoom;
use provost_workspace::work_trees::WorkTrees;

/// The most simultaneous runs of a worker that speaks ACP: more than `limits.workers` can be.
const WORKERS_MOST: u32 = 256;
/// The user whose list of passkeys comes before a person's own.
const ROOT: u32 = 0;

/// Returns the setting for a host's writes: which leases they take for its agent.
fn auto_setting(config: &Config) -> AutoSetting {
    AutoSetting {
        mode: match config.coordination.auto {
            config::Auto::Hold => domain::Auto::Hold,
            config::Auto::Announce => domain::Auto::Announce,
            config::Auto::Off => domain::Auto::Off,
        },
        everywhere: config.coordination.auto_across == AutoAcross::Hold,
        ttl: config.coordination.auto_ttl,
        subagents_differ: config.coordination.auto_subagents,
    }
}

/// Returns the core's part of the configuration, and the profiles of the usable workers.
pub(super) fn workers_and_settings(config: &Config, vault: &Vault) -> (Settings, Profiles) {
    let mut settings = Settings::new(config.approvals.default_target.clone());
    settings.expected_versions =
        config.daemon.expected_worker_version.0.iter().map(|it| it.as_str().into()).collect();
    settings.lease_min = config.devit.lease_min;
    settings.away_keep = config.devit.away_keep;
    settings.mail_keep = config.devit.mail_keep;
    settings.deny_across_doors = config.coordination.across_doors == AcrossDoors::Deny;
    settings.contracts_by_branch = config.coordination.contracts == ContractsBind::Branch;
    settings.auto = auto_setting(config);
    settings.counted = config.coordination.resources.0.clone();
    let crew = &config.agent_protocol;
    settings.crew = CrewSetting {
        dead_after: crew.dead_after,
        detection_window: crew.detection_window,
        heartbeat_interval: crew.heartbeat_interval,
        beats: crew.heartbeat_events,
        lead: crew.lead_agent.clone(),
        honour_dependencies: crew.honour_dependencies,
        strict_scope: crew.strict_scope,
        show_foreign: crew.show_foreign,
    };
    settings.spending = spending::settings(config);
    settings.approval_wait_max = config.approvals.expires;
    settings.tasks_per_agent = config.limits.tasks_per_agent;
    queue::settings(config, &mut settings);
    settings.hooks = hook(config).is_some();
    settings.notices = notice_addresses::for_the_core(config);
    settings.push = notice_addresses::push_for_the_core(config);
    settings.posts = posts(config);
    pictures::settings(config, &mut settings);
    let mut profiles = BTreeMap::new();
    for (id, worker) in &config.workers {
        if worker.kind == config::WorkerKind::Polling {
            let setting = setting(worker, domain::WorkerKind::Polling, Vec::new(), None);
            settings.workers.insert(id.clone(), setting);
            continue;
        }
        let agent = config.agents.iter().find(|agent| agent.id == *id);
        let usable = secrets(worker, vault).and_then(|secrets| {
            let profile = agents::profile(profile(id, worker, &secrets)?, agent)?;
            Ok((profile, secrets))
        });
        let (secrets, broken) = match usable {
            Ok((mut profile, secrets)) => {
                profile.protect.extend(config.workspace.protect.iter().cloned());
                profile.run_outside.extend(run_outside(config));
                profiles.insert(id.clone(), Arc::new(profile));
                (secrets, None)
            }
            Err(why) => (Vec::new(), Some(why.into())),
        };
        settings.workers.insert(id.clone(), setting(worker, domain::WorkerKind::Cli, secrets, broken));
    }
    for (name, refused) in &config.refused_workers {
        // No task can be delegated to a name that is no id.
        let Ok(id) = AgentId::parse(name) else { continue };
        let broken = Some(format!("{}: {}", refused.file, refused.reason).into());
        settings.workers.insert(id, setting(&Worker::default(), domain::WorkerKind::Cli, Vec::new(), broken));
    }
    (settings, Arc::new(profiles))
}

/// Returns the agents to which editors can delegate; if none is configured, the workers that the daemon starts.
fn fleet(config: &Config) -> Fleet {
    // A configuration that names agents, even wrongly, means only these agents.
    if !config.agents.is_empty() || config.refused_workers.values().any(|it| it.is_agent) {
        let all = config.agents.iter().map(|it| agents::in_the_fleet(it, config.limits.workers));
        return all.collect();
    }
    let cli = config.workers.iter().filter(|(_, it)| it.kind != config::WorkerKind::Polling);
    let agent = |(id, _): (&AgentId, &Worker)| FleetAgent {
        id: id.clone(),
        name: id.as_str().into(),
        description: match id.as_str() {
            "shell" => "Runs the task as a shell command, in a private copy of the workspace".into(),
            _ => "A worker that is no agent; it is given the task as it stands, and a private copy".into(),
        },
        capability: "BUILD".into(),
        region: "local".into(),
        max_parallel: config.limits.workers,
        enabled: true,
    };
    cli.map(agent).collect()
}

/// Returns the settings for messages between agents.
fn posts(config: &Config) -> PostSettings {
    let (supervisor, conflict) = (&config.supervisor, &config.conflict);
    let owner = |(pattern, by): (&String, &String)| Owner {
        pattern: pattern.as_str().into(),
        by: by.split_whitespace().flat_map(|it| owner_slugs(it.trim_start_matches('@'))).collect(),
        source: "[coordination.owners]".into(),
    };
    PostSettings {
        detector: supervisor.enabled,
        window: Ttl::seconds_clamped(conflict.window_seconds.into()),
        warn_on_overlap: conflict.warn_on_intent_overlap,
        escalate: conflict.escalate_on_violation,
        nudge: supervisor.verify_on_commit_nudge,
        settle_s: supervisor.republish_working_ttl_seconds.into(),
        code_owners: Vec::new(),
        owners: config.coordination.owners.iter().map(owner).collect(),
    }
}

/// Returns the same as [`workers_and_settings`], with the repository's owners of files.
pub(super) fn of_this_repository(config: &Config, places: &Places) -> (Settings, Configured, AgentSettings) {
    let (mut settings, profiles) = workers_and_settings(config, &Vault::at(places.secrets()));
    settings.posts.code_owners = code_owners::read(&places.root);
    let agents = Arc::new(agents::agents(config, &settings));
    let changes = &config.changes;
    let keeping = Keeping { runs: changes.runs as usize, days: changes.days.into() };
    let shared = shared_artifacts(places, config);
    let artifacts = Artifacts::at(&places.state).keeping(keeping).sharing(shared);
    let job_logs = JobLogs::at(&places.state);
    job_logs.remove_old();
    let surroundings = agents::surroundings(places);
    let agents = AgentSettings { agents, fleet: fleet(config), job_logs, surroundings };
    let room = ChangesRoom { files: changes.files as usize, bytes: changes.size.0 };
    let merges = Arc::new(MergeSettings {
        scratch: places.state.join("merge"),
        checks: config.merge.checks.iter().map(|it| it.as_str().into()).collect(),
        check_timeout: config.merge.check_timeout,
    });
    (settings, Configured { profiles, artifacts, room, merges }, agents)
}

/// Returns the store in which runs of other hosts leave their results. Without its password the daemon would not have started.
fn shared_artifacts(places: &Places, config: &Config) -> Option<SharedArtifacts> {
    let found = database(places, config);
    let found = found.inspect_err(|why| tracing::error!("results of other hosts are not to be had: {why:#}"));
    Some(SharedArtifacts::of(&places.state, found.ok()??))
}

/// The engine over its opened store, and the rules and settings with which it was started.
pub(super) struct Opened {
    pub policy: PolicyFile,
    pub rules: RuleSet,
    pub workers: Configured,
    pub agents: AgentSettings,
    pub words: HostWords,
    pub started: engine::Started,
}

/// Reads the policy and what the settings name, opens the store, and starts the engine.
pub(super) fn opened(places: &Places, config: &Config) -> Result<Opened> {
    let mut policy = PolicyFile::find(config, places)?;
    let rules = policy.load().context("the policy cannot be used, and without one nothing is allowed")?;
    let (store, words) = store(places, config)?;
    let (settings, workers, agents) = of_this_repository(config, places);
    let (clock, check) = (SteadyClock::default(), Box::new(entries::check));
    let judge = Box::new(rules.clone());
    let started = engine::start_checking(store, judge, settings, Box::new(clock), retention(config), check)?;
    Ok(Opened { policy, rules, workers, agents, words, started })
}

/// Opens the store of this daemon, as durable as the configuration asks, and the messages of this daemon and other hosts.
fn store(places: &Places, config: &Config) -> Result<(Box<dyn Store>, HostWords)> {
    let durable = config.store.durability == config::Durability::Full;
    let anchors = vec![journal::syslog_sink()];
    let (database, outside) = (database(places, config)?, Some(places.anchor()));
    let words = HostWords::of(&places.state);
    let answers: Option<store::AnswerCheck> = Some(Box::new(answers::check));
    let options =
        Options { database, always_durable: durable, anchors, outside, words: Some(words.clone()), answers };
    Ok((store::open(&places.state, options)?, words))
}

/// Returns the database that holds the state instead of the state folder, if there is one.
fn database(places: &Places, config: &Config) -> Result<Option<Database>> {
    let it = &config.store;
    let Some(url) = &it.url else { return Ok(None) };
    let mut database =
        Database::at(url, it.ca.as_deref(), it.name.as_ref().map(RepositoryName::as_str), &places.root);
    if let Some(name) = &it.password {
        password(places, name)?;
        let (places, name) = (places.clone(), name.clone());
        database.password = Some(Password::by(move || {
            password(&places, &name).map_err(|err| err.root_cause().to_string().into())
        }));
    }
    let places = places.clone();
    database.roots = Roots::by(move || config::root_commits(&places));
    Ok(Some(database))
}

/// Reads the password of the database from the vault.
fn password(places: &Places, name: &str) -> Result<Secret> {
    let found = Vault::at(places.secrets()).get(name).context("the password of `[store] url`")?;
    anyhow::ensure!(
        matches!(found.delivery, Delivery::Daemon),
        "the secret `{name}` is for workers; keep the database's password with: provost secret add NAME --daemon"
    );
    Ok(found.value)
}

/// Opens the daemon's own stores of users' files, in the daemon's folder.
pub(super) fn kept(
    places: &Places,
    config: &Config,
    root: &Root,
) -> Result<(Versions, Applying, Arc<WorkTrees>)> {
    let versions = Versions::open(&places.state).context("the folder of versions of claimed files")?;
    let applying =
        Applying::open(&places.state, apply_rules(config)).context("the folder of records of applies")?;
    let folder = config.worktrees.folder.clone();
    let folder = folder.unwrap_or_else(|| places.state.with_extension("trees"));
    let trees = WorkTrees::new(root.place().path(), &folder);
    Ok((versions, applying, Arc::new(trees)))
}

/// Returns the rules for files that are written for editors.
pub(super) fn apply_rules(config: &Config) -> ApplyRules<'_> {
    let a6s = &config.a6s;
    let mut protect = config.workspace.protect.clone();
    protect.extend(config.workers.values().flat_map(|worker| worker.protect.iter().cloned()));
    let lines = run_outside(config);
    let held = Box::new(move |root: &Path, new: &[_]| runs_outside(root, &protect, &lines, new));
    let files = config.changes.files_per_call as usize;
    ApplyRules { deny: &a6s.deny, unknown: a6s.apply_unknown, settings: a6s.apply_settings, files, held }
}

/// Returns the places of passkeys' lists, and the pages that may ask for a passkey.
pub(super) fn passkeys(config: &Config, places: &Places) -> PasskeySetup {
    let system = Path::new(SYSTEM_CONFIG).join(PASSKEYS_FILE);
    let marks =
        [places.config.join("keys"), places.state.parent().unwrap_or(&places.state).to_owned()].into();
    let files = PasskeyFiles { user: places.config.clone(), system, owner: ROOT, marks };
    let page = |it: &WebOrigin| Page { origin: it.as_str().to_owned(), host: it.host().to_owned() };
    let names = config.web.names.iter().map(|it| it.as_str().to_owned()).collect();
    let reads = config.web.read == WebRead::Open;
    let hub = HubPages { names, port: config.web.all_port, path: format!("/r/{}", places.hash), reads };
    let pages = config.passkeys.origins.iter().map(page).collect();
    PasskeySetup { files, pages, hub, state: places.state.clone() }
}

/// Returns the work trees of the repository, for queries about files in one of them.
pub(super) fn bases(places: &Places) -> provost_protocols::own::Bases {
    let places = places.clone();
    Box::new(move |at| {
        let known = places.worktrees(WIT_WORKTREES_MAX).iter().any(|top| top == at);
        known.then(|| Root::open(at).ok().map(Base::new)).flatten()
    })
}

/// Returns the command lines that run outside of every jail, in the workspace, each behind its variables.
fn run_outside(config: &Config) -> Vec<String> {
    let of_hook = |hook: Arc<HookCommand>| {
        let variables = hook.env.iter().filter(|(_, value)| !value.contains('\''));
        let variables: String = variables.map(|(name, value)| format!("{name}='{value}'; ")).collect();
        variables + &hook.line
    };
    hook(config).map(of_hook).into_iter().collect()
}

/// Returns the command that runs for notifications, if there is one.
pub(super) fn hook(config: &Config) -> Option<Arc<HookCommand>> {
    let line = config.notify.command.as_deref().map(str::trim).filter(|line| !line.is_empty())?;
    let (timeout, env) = (config.notify.timeout.as_duration(), config.notify.env.clone());
    Some(Arc::new(HookCommand { line: line.to_owned(), timeout, env }))
}

/// Returns the salt that makes this repository's ids of approvals on the wire its own.
fn approval_salt(start: &Start) -> Digest {
    Digest::of_fields([b"provost approval".as_slice(), start.places.hash.as_bytes()])
}

/// Returns the parts of the daemon that hooks need.
pub(super) fn hook_parts(
    start: &Start,
    config: &Config,
    command: watch::Receiver<Option<Arc<HookCommand>>>,
) -> HookParts {
    let salt = approval_salt(start);
    HookParts {
        command,
        words: Box::new(move |notice| provost_protocols::devit::hook_words(notice, &salt)),
        folder: start.places.runtime.join("hooks"),
        root: start.places.root.clone(),
        executable: provost_jail::Supervisor::default().executable().to_owned(),
        concurrent: config.limits.hooks as usize,
    }
}

fn setting(
    worker: &Worker,
    kind: domain::WorkerKind,
    secrets: Vec<Listed>,
    broken: Option<Box<str>>,
) -> WorkerSetting {
    let secrets = secrets
        .into_iter()
        .map(|it| domain::SecretUse { by: it.delivery.credentials(), name: it.name })
        .collect();
    let network = match worker.network {
        config::Network::None => domain::Network::None,
        config::Network::Ports => domain::Network::Ports(worker.ports.clone()),
        config::Network::Hosts => {
            domain::Network::Hosts(worker.hosts.iter().map(|it| it.as_str().into()).collect())
        }
    };
    let tier = match worker.tier {
        config::Tier::Ns => domain::Tier::Ns,
        config::Tier::Ll => domain::Tier::Ll,
        config::Tier::Job => domain::Tier::Job,
    };
    let git = match worker.git {
        config::Git::Write if worker.copies() == config::Copies::No && kind == domain::WorkerKind::Cli => {
            domain::Git::Write
        }
        config::Git::Write | config::Git::Read => domain::Git::Read,
    };
    WorkerSetting {
        kind,
        network,
        git,
        secrets,
        tier,
        copy: worker.copies() != config::Copies::No,
        other_hosts: worker.other_hosts,
        speaks: worker.kind == config::WorkerKind::Acp,
        needs: worker.needs.0.clone(),
        needs_wait: worker.needs_wait,
        retries: domain::Retries {
            most: worker.retries,
            delay: worker.retry_delay,
            lost: worker.retry_lost,
            timeouts: worker.retry_timeouts,
        },
        broken,
    }
}

/// Returns the secrets that a worker names, and the way in which each would be given, without their values.
fn secrets(worker: &Worker, vault: &Vault) -> Result<Vec<Listed>, String> {
    let mut taken = BTreeSet::new();
    let mut found = Vec::new();
    for name in &worker.secrets {
        let listed = vault.look(name).map_err(|err| err.to_string())?;
        if listed.delivery == Delivery::Daemon {
            return Err(format!("its secret `{name}` is for notices of the daemon; no worker gets it"));
        }
        if let Delivery::Proxy(by) = &listed.delivery {
            let to = by.upstream.authority();
            let reaches = |host: &String| Destination::parse(host).is_ok_and(|host| host.authority == *to);
            if !worker.hosts.iter().any(reaches) {
                return Err(format!("its secret `{name}` is for {to}: add \"{to}\" to its `hosts`"));
            }
        }
        if let Some(twice) = places(&listed.delivery).into_iter().find(|place| !taken.insert(place.clone())) {
            return Err(format!("its secret `{name}` wants {twice}, which another one has"));
        }
        found.push(listed);
    }
    Ok(found)
}

/// Returns the variables and files that a secret occupies in a worker's environment.
fn places(delivery: &Delivery) -> Vec<String> {
    match delivery {
        Delivery::Proxy(by) => by.base_url.iter().chain(&by.token).cloned().collect(),
        Delivery::File { path } => vec![format!("~/{path}")],
        Delivery::Env { variable } => vec![variable.clone()],
        Delivery::Daemon => Vec::new(),
    }
}

/// Returns the profile of one entry of `[workers]`.
fn profile(id: &AgentId, worker: &Worker, secrets: &[Listed]) -> Result<Profile, String> {
    worker.ports.iter().try_for_each(|port| not_ours(*port))?;
    let binary = worker.binary.as_deref().ok_or("it has no `binary`")?;
    let program =
        provost_system::find_program(binary).ok_or_else(|| format!("there is no executable '{binary}'"))?;
    let built_in = shell_profile();
    if *id == built_in.id && program == built_in.program && worker.env.is_empty() {
        // The built-in worker keeps its own time limit, unless the configuration sets one.
        let timeout = if worker.timeout_secs == Worker::default().timeout_secs {
            built_in.timeout
        } else {
            provost_base::Ttl::seconds_clamped(worker.timeout_secs)
        };
        return Ok(Profile { timeout, ..from_entry(id, worker, program, secrets) });
    }
    Ok(from_entry(id, worker, program, secrets))
}

fn from_entry(id: &AgentId, worker: &Worker, program: PathBuf, secrets: &[Listed]) -> Profile {
    let is_acp = worker.kind == config::WorkerKind::Acp;
    Profile {
        id: id.clone(),
        program,
        args: worker.args.clone(),
        parse: match worker.parse_mode {
            config::ParseMode::Json if !is_acp => ParseMode::Json,
            _ => ParseMode::Text,
        },
        mcp: (worker.kind == config::WorkerKind::Mcp).then(|| McpCall {
            tool: worker.mcp_tool.clone(),
            arguments: worker
                .mcp_arguments
                .clone()
                .unwrap_or_else(|| Json::from_value(&serde_json::json!({}))),
        }),
        acp: is_acp
            .then(|| AcpSession { mode: worker.acp_mode.clone(), sign_in: worker.acp_sign_in.clone() }),
        working_dir: worker.working_dir.clone(),
        timeout: provost_base::Ttl::seconds_clamped(worker.timeout_secs),
        response_bytes_max: worker.max_response_chars.map(|it| usize::try_from(it).unwrap_or(usize::MAX)),
        default_model: worker.default_model.clone(),
        allowed_models: worker.allowed_models.clone().unwrap_or_default(),
        env: worker.env.clone(),
        secrets: secrets.iter().map(|it| (it.name.to_string(), it.delivery.digest())).collect(),
        read_only: worker.read_only.clone(),
        protect: worker.protect.clone(),
        run_outside: Vec::new(),
        git: match worker.git {
            config::Git::Read => Git::Read,
            config::Git::Write => Git::Write,
        },
        copies: match worker.copies() {
            config::Copies::No => Copies::No,
            config::Copies::Thrown => Copies::Thrown,
            config::Copies::Kept => Copies::Kept,
            config::Copies::WorkTree => Copies::WorkTree,
        },
        bounds: bounds(worker),
        // Its output is read like an agent's, and it may have as many runs at the same time as there are places for workers.
        agent: is_acp.then_some(AsAgent {
            by_stdin: false,
            reader: Reader::Acp,
            edits: true,
            parallel: WORKERS_MOST,
        }),
    }
}

fn bounds(worker: &Worker) -> Bounds {
    Bounds {
        memory: Some(worker.memory.0),
        processes: Some(worker.processes),
        open_files: Some(worker.open_files),
        file_bytes: Some(worker.file_size.0),
        tmp_bytes: Some(worker.tmp_size.0),
        cpu_seconds: worker.cpu_secs,
        growth_bytes: Some(worker.growth.0),
        growth_entries: Some(worker.growth_files),
    }
}

/// Returns the options of the DevIt door.
pub(super) fn devit_options(start: &Start, prepared: &Prepared, config: &Config) -> devit::Options {
    devit::Options {
        advertised_version: config.daemon.advertised_version.clone(),
        hold: config.devit.poll_hold.map_or(Duration::ZERO, |it| it.as_duration()),
        dialect_document: config.devit.dialect_document,
        salt: approval_salt(start),
        uid: prepared.uid,
    }
}

/// Returns how long finished tasks and other records are kept.
pub(super) fn retention(config: &Config) -> Retention {
    let days = |days: u32| Duration::from_secs(u64::from(days) * 24 * 60 * 60);
    Retention {
        tasks: days(config.store.tasks_keep_days),
        tasks_most: config.store.tasks_keep,
        events: days(config.store.events_keep_days),
    }
}

/// Begins to read the code of the workspace.
pub(super) fn index(root: &Path, watcher: &FolderWatcher, config: &Config) -> Result<Index> {
    let settings = &config.coordination;
    let options = index::Options { on: settings.index, files_max: settings.index_files as usize };
    Index::start(root, Arc::default(), watcher, options)
        .with_context(|| format!("workspace {}", root.display()))
}

/// Returns the starter of workers' supervisors, which run as the workers' user if there is one.
pub(super) fn supervisor(places: &Places, prepared: &Prepared) -> Supervisor {
    let supervisor = Supervisor::default().sharing_among(prepared.loaded.config.limits.workers);
    match prepared.worker_user {
        Some((uid, gid)) => supervisor.running_as(uid, gid),
        None => supervisor.with_control_groups().keeping_spares_in(places.spares()),
    }
}

/// Returns the paths that no worker ever sees: the user's home, and the daemon's folders.
pub(super) fn forbidden_paths(places: &Places) -> Result<ForbiddenPaths> {
    let home = Environment::current().home.context("HOME is not set")?;
    let forbidden = vec![places.state.clone(), places.runtime.clone(), places.config.clone()];
    Ok(ForbiddenPaths { home, forbidden })
}

/// Opens the keys. The approver has a key of its own from the beginning, so that the shared secret can never speak for it.
pub(super) fn open_keys(start: &Start, config: &Config) -> Result<KeyRing> {
    let keys = KeyRing::open(&start.places.config.join("keys"))?;
    let approver = &config.approvals.default_target;
    if !keys.has(approver) {
        keys.add(approver, Role::Approver, now())?;
    }
    Ok(keys)
}
