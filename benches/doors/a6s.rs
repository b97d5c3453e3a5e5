//! The A6s door: requests against a bare echo, a thousand editors, applies, and what a job adds to its program.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::task::{JoinSet, LocalSet};

use crate::fanout::{Course, read_on};
use crate::http::{Server, run, started};
use crate::machine::{flush_cost, processor_ns, resident_kib};
use crate::socket::{ECHO_ROLE, Socket, TO_ALL, frame, request};
use crate::table::{Rounds, Table, Unit};
use crate::world::{Daemon, World};

/// How much is done: as much as says something, or as little as shows that it works.
struct Amounts {
    rounds: usize,
    /// Requests of one round, over all connections.
    requests: usize,
    /// Editors that are connected, and those of them that stall.
    editors: usize,
    stalled: usize,
    /// Events that they are told of in a round.
    events: usize,
    files: usize,
    jobs: usize,
}

const FULL: Amounts =
    Amounts { rounds: 7, requests: 4_000, editors: 1_000, stalled: 50, events: 40, files: 500, jobs: 30 };

const SMALL: Amounts =
    Amounts { rounds: 2, requests: 200, editors: 40, stalled: 5, events: 5, files: 20, jobs: 3 };

/// Chooses the small amounts, to see that the benchmark works.
const BRIEFLY: &str = "PROVOST_BENCH_BRIEFLY";

/// The program of the agent that does nothing, and of the one that does not end.
const NOTHING: [&str; 3] = ["/bin/sh", "-c", "cat >/dev/null"];
const CONFIG: &str = r#"
[a6s]
enabled = true
[[agent]]
id = "nothing-ai"
command = ["/bin/sh", "-c", "cat >/dev/null"]
[[agent]]
id = "endless-ai"
command = ["/bin/sh", "-c", "sleep 3600"]
"#;

/// What is in the event by which one learns that a task was taken back, once.
const MARK: &str = r#""status":"cancelled""#;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let amounts = if std::env::var_os(BRIEFLY).is_some() { SMALL } else { FULL };
    // A thousand editors are a thousand descriptors, here and in the daemon.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    let world = World::new()?;
    world.configure(CONFIG)?;
    let (daemon, _) = world.start()?;
    let ours = Server::new(daemon.port("a6s")?, daemon.pid());
    let (_helper, echo) = started(ECHO_ROLE, &world.path("echo.port"))?;
    requests(table, &amounts, ours, echo)?;
    editors(table, &amounts, &daemon, ours, echo)?;
    applies(table, &amounts, &world, ours)?;
    jobs(table, &amounts, &world, ours)?;
    daemon.stop()
}

/// Closed loops: the next request is sent when the last one is answered.
fn requests(table: &mut Table, amounts: &Amounts, ours: Server, echo: Server) -> Result<()> {
    table.ratios(amounts.rounds)?;
    for method in ["background.list", "agents.list"] {
        for connections in [1, 16] {
            let (mut rate, mut floor_rate) = (Rounds::default(), Rounds::default());
            let (mut cost, mut floor_cost) = (Rounds::default(), Rounds::default());
            let each = amounts.requests / connections;
            for round in 0..=amounts.rounds {
                for (server, rate, cost) in
                    [(ours, &mut rate, &mut cost), (echo, &mut floor_rate, &mut floor_cost)]
                {
                    let before = processor_ns(server.pid)?;
                    let took = run(round_trips(server, method, connections, each))?;
                    let used = processor_ns(server.pid)?.saturating_sub(before);
                    // The first round finds everything cold.
                    if round > 0 {
                        let requests = (each * connections) as f64;
                        rate.push(requests / took.as_secs_f64());
                        cost.push(used as f64 / 1e3 / requests);
                    }
                }
            }
            let what = format!("{method}, connections: {connections}, to a bare WebSocket echo");
            table.ratio(&what, Unit::PerSecond, &rate, &floor_rate)?;
            table.ratio("… server's processor time a request", Unit::Microseconds, &cost, &floor_cost)?;
        }
    }
    Ok(())
}

async fn round_trips(server: Server, method: &str, connections: usize, each: usize) -> Result<Duration> {
    let question = frame(&request("req_1", method, &json!({})));
    let mut ready = Vec::new();
    for _ in 0..connections {
        let mut socket = Socket::to(server).await?;
        socket.send(&question).await?;
        socket.message().await?;
        ready.push(socket);
    }
    let (begun, mut tasks) = (Instant::now(), JoinSet::new());
    for mut socket in ready {
        let question = question.clone();
        tasks.spawn(async move {
            for _ in 0..each {
                socket.send(&question).await?;
                let answer = socket.message().await?;
                ensure!(memchr::memmem::find(&answer, b"\"error\"").is_none(), "a request was refused");
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(begun.elapsed())
}

/// How long until everybody knows that a task was taken back, while another one runs.
fn editors(table: &mut Table, amounts: &Amounts, daemon: &Daemon, ours: Server, echo: Server) -> Result<()> {
    let Amounts { rounds, editors, stalled, events, .. } = *amounts;
    let before = resident_kib(daemon.pid())?;
    let (mut alone, mut floor, mut beside) = (Rounds::default(), Rounds::default(), Rounds::default());
    let mut after = 0;
    for _ in 0..rounds {
        alone
            .push(p99(run(told(ours, editors, 0, events, || after = resident_kib(ours.pid).unwrap_or(0)))?)?);
        floor.push(p99(run(echoed(echo, editors, events))?)?);
        beside.push(p99(run(told(ours, editors - stalled, stalled, events, || ()))?)?);
    }
    table.note("")?;
    table.ratios(rounds)?;
    let what = format!("p99 of an event's way to {editors} editors, to a bare echo's");
    table.ratio(&what, Unit::Milliseconds, &alone, &floor)?;
    let what = format!("… with {stalled} of them stalled, to that with none");
    table.ratio(&what, Unit::Milliseconds, &beside, &alone)?;
    table.note(&format!(
        "\nResident memory: {before} KiB before, {after} KiB with {editors} editors connected and a job that runs."
    ))
}

/// Milliseconds from taking a task back to each editor's knowing of it.
async fn told(
    server: Server,
    editors: usize,
    stalled: usize,
    events: usize,
    connected: impl FnOnce(),
) -> Result<Vec<f64>> {
    let mut asker = Socket::to(server).await?;
    // The first one runs, and the others wait for it.
    let mut tasks = Vec::new();
    for _ in 0..=events {
        let params = json!({ "agentType": "endless-ai", "task": "Nothing." });
        let begun = asker.ask("l", "background.launch", &params).await?;
        tasks.push(begun["taskId"].as_str().context("a task without an id")?.to_owned());
    }
    let mut deaf = Vec::new();
    for _ in 0..stalled {
        deaf.push(deafened(server).await?);
    }
    let (course, local) = (Course::new(editors), LocalSet::new());
    for _ in 0..editors {
        let mut socket = Socket::to(server).await?;
        socket.ask("r", "fleet.status", &Value::Null).await?;
        local.spawn_local(read_on(socket.into_stream(), course.clone(), MARK));
    }
    let running = tasks.remove(0);
    let run = async {
        connected();
        for task in tasks {
            let cancel =
                async { asker.ask("c", "background.cancel", &json!({ "taskId": task })).await.map(drop) };
            Course::event(&course, cancel).await?;
        }
        anyhow::Ok(())
    };
    local.run_until(run).await?;
    let took = Course::taken(&course);
    ensure!(took.len() == editors * events, "{} of {} arrived", took.len(), editors * events);
    asker.ask("c", "background.cancel", &json!({ "taskId": running })).await?;
    Ok(took)
}

/// One that asks much and reads nothing.
async fn deafened(server: Server) -> Result<Socket> {
    let mut socket = Socket::narrow(server).await?;
    let odd = frame(&request("d", &"x".repeat(2_000), &Value::Null)).repeat(20);
    for _ in 0..20 {
        socket.send(&odd).await?;
        // No more at once than are answered side by side.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(socket)
}

/// The same by way of the floor.
async fn echoed(server: Server, editors: usize, events: usize) -> Result<Vec<f64>> {
    let event =
        json!({ "data": { "progress": 0, "taskId": "task_0123456789abcdef" }, "type": "task.update" });
    let text = format!("{}{MARK}{event}", String::from_utf8_lossy(TO_ALL));
    let (course, local) = (Course::new(editors), LocalSet::new());
    let mut asker = Socket::to(server).await?;
    for _ in 0..editors {
        let socket = Socket::to(server).await?;
        local.spawn_local(read_on(socket.into_stream(), course.clone(), MARK));
    }
    let run = async {
        for _ in 0..events {
            Course::event(&course, async {
                asker.send(&frame(&text)).await?;
                asker.message().await.map(drop)
            })
            .await?;
        }
        anyhow::Ok(())
    };
    local.run_until(run).await?;
    Ok(Course::taken(&course))
}

fn p99(took: Vec<f64>) -> Result<f64> {
    took.get(took.len() * 99 / 100).copied().context("nothing was measured")
}

/// Files of four kilobytes, each another one in each round.
fn applies(table: &mut Table, amounts: &Amounts, world: &World, ours: Server) -> Result<()> {
    let repo = world.path("repo");
    let aside = world.path("aside");
    fs::create_dir_all(aside.join("src"))?;
    fs::create_dir_all(repo.join("src"))?;
    let content = |round: usize, n: usize| format!("line {n} of round {round}\n").repeat(200);
    for n in 0..amounts.files {
        fs::write(repo.join(format!("src/f{n}.txt")), content(0, n))?;
    }
    let (mut preview, mut apply) = (Rounds::default(), Rounds::default());
    let (mut read, mut write) = (Rounds::default(), Rounds::default());
    for round in 1..=amounts.rounds + 1 {
        let file = |n: usize| json!({ "id": "", "type": "file", "path": format!("src/f{n}.txt"), "content": content(round, n) });
        let params = json!({ "artifacts": (0..amounts.files).map(file).collect::<Vec<_>>() });
        let begun = Instant::now();
        let bytes: usize = (0..amounts.files)
            .map(|n| fs::read(repo.join(format!("src/f{n}.txt"))).map(|it| it.len()))
            .sum::<std::io::Result<usize>>()?;
        let plain_read = begun.elapsed();
        ensure!(bytes > 0, "nothing was read");
        let (previewed, applied) = run(async {
            let mut socket = Socket::to(ours).await?;
            let begun = Instant::now();
            let shown = socket.ask("p", "artifacts.preview", &params).await?;
            let previewed = begun.elapsed();
            ensure!(shown["files"].as_array().map(Vec::len) == Some(amounts.files), "{shown}");
            let begun = Instant::now();
            let done = socket.ask("a", "artifacts.apply", &params).await?;
            ensure!(done["applied"] == amounts.files, "{done}");
            Ok((previewed, begun.elapsed()))
        })?;
        let begun = Instant::now();
        for n in 0..amounts.files {
            replace(&aside.join("src"), &format!("f{n}.txt"), content(round, n).as_bytes())?;
        }
        let plain_write = begun.elapsed();
        if round > 1 {
            let took = [
                (&mut preview, previewed),
                (&mut apply, applied),
                (&mut read, plain_read),
                (&mut write, plain_write),
            ];
            took.into_iter().for_each(|(rounds, took)| rounds.push(took.as_secs_f64() * 1e3));
        }
    }
    let flush = flush_cost(&world.path("aside"))?;
    table.note(&format!(
        "\n4 KiB on this disk (`fdatasync`, 100 times): best {:.2} ms, median {:.2} ms.\n",
        flush.best(Unit::Milliseconds),
        flush.median()
    ))?;
    table.ratios(amounts.rounds)?;
    let files = amounts.files;
    table.ratio(
        &format!("preview of {files} files, to reading them"),
        Unit::Milliseconds,
        &preview,
        &read,
    )?;
    let what = format!("apply of {files} files, to writing, flushing and renaming each");
    table.ratio(&what, Unit::Milliseconds, &apply, &write)
}

/// What an editor does that takes care.
fn replace(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let new = folder.join(format!("{name}.new"));
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, folder.join(name))?;
    Ok(File::open(folder)?.sync_all()?)
}

/// A whole execution, its private copy and all its phases, against its program alone.
fn jobs(table: &mut Table, amounts: &Amounts, world: &World, ours: Server) -> Result<()> {
    let (mut job, mut bare) = (Rounds::default(), Rounds::default());
    for round in 0..=amounts.jobs {
        let whole = run(execution(ours))?;
        let begun = Instant::now();
        let mut child = Command::new(NOTHING[0])
            .args(&NOTHING[1..])
            .current_dir(world.path("repo"))
            .stdin(Stdio::piped())
            .spawn()?;
        child.stdin.take().context("it takes a prompt")?.write_all(b"Nothing.")?;
        ensure!(child.wait()?.success(), "the program failed");
        if round > 0 {
            job.push(whole.as_secs_f64() * 1e3);
            bare.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    table.note("")?;
    table.ratios(amounts.jobs)?;
    let what = format!("a job in a workspace of {} files, to its program alone", amounts.files);
    table.ratio(&what, Unit::Milliseconds, &job, &bare)
}

/// How long it takes from the question until it is over.
async fn execution(server: Server) -> Result<Duration> {
    let mut socket = Socket::to(server).await?;
    let begun = Instant::now();
    let params = json!({ "agentType": "nothing-ai", "task": "Nothing." });
    let id = socket.ask("i", "agents.invoke", &params).await?["executionId"].clone();
    loop {
        let message: Value = serde_json::from_slice(&socket.message().await?)?;
        if message["type"] == "execution.complete" && message["data"]["executionId"] == id {
            ensure!(message["data"]["status"] == "success", "{message}");
            return Ok(begun.elapsed());
        }
    }
}
