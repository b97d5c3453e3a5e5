//! MCP for agents' hosts: calls of a tool against rmcp's bare echo over the same transport, and hosts that wait for a task.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;

use crate::http::{Line, Request, Server, run, started};
use crate::machine::{anonymous_kib, processor_ns, resident_kib};
use crate::mcp_echo::{HTTP_ROLE, STDIO_ROLE};
use crate::table::{Rounds, Table, Unit};
use crate::world::{Daemon, World, provost};

/// How much is done: as much as says something, or as little as shows that it works.
struct Amounts {
    rounds: usize,
    /// Calls of one round, over all hosts.
    calls: usize,
    /// Hosts that wait, and how often their task changes.
    hosts: usize,
    changes: usize,
}

const FULL: Amounts = Amounts { rounds: 7, calls: 2_000, hosts: 100, changes: 30 };
const SMALL: Amounts = Amounts { rounds: 2, calls: 100, hosts: 5, changes: 3 };

/// Chooses the small amounts, to see that the benchmark works.
const BRIEFLY: &str = "PROVOST_BENCH_BRIEFLY";

/// How long hosts are given until all of them wait, and how long they may wait.
const SETTLED: Duration = Duration::from_millis(500);
const WAIT_S: u64 = 45;

const CONFIG: &str = "[mcp]\nenabled = true\nport = 0\n[workers.slow]\ntype = \"polling\"\n";

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let amounts = if std::env::var_os(BRIEFLY).is_some() { SMALL } else { FULL };
    let world = World::new()?;
    let config = world.path("home/.config/provost/provost.toml");
    let mut file = fs::File::options().create_new(true).write(true).mode(0o600).open(config)?;
    file.write_all(CONFIG.as_bytes())?;
    let (daemon, _) = world.start()?;
    let ours = Server::new(daemon.port("mcp")?, daemon.pid());
    table.ratios(amounts.rounds)?;
    over_stdio(table, &amounts, &world, &daemon)?;
    over_http(table, &amounts, &world, ours)?;
    table.note(
        "\n| one task, which they wait for | daemon before | daemon while they wait | of which a host | a host's process | \
         woken: median | p99 | worst |\n|---|---|---|---|---|---|---|---|",
    )?;
    for transport in [Transport::Stdio, Transport::Http(ours)] {
        waiting(table, &amounts, &world, &daemon, transport)?;
    }
    daemon.stop()
}

/// A call of a tool, as hosts of the newer era send it.
fn call(tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// The same over HTTP, by a host of this name.
fn post(server: Server, agent: &str, tool: &str, arguments: &Value) -> Request {
    let body = call(tool, arguments);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\nx-provost-agent: {agent}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.at,
        body.len()
    );
    Request { bytes: head.into_bytes(), wanted: 200 }
}

/// What a tool has answered.
fn answered(message: &[u8]) -> Result<Value> {
    let mut message: Value = serde_json::from_slice(message)?;
    ensure!(message.get("error").is_none() && message["result"]["isError"] != true, "refused: {message}");
    Ok(message["result"]["structuredContent"].take())
}

/// A host that has started its server.
struct Pipe {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Pipe {
    fn begun(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let to = child.stdin.take().context("a pipe to it")?;
        let from = BufReader::new(child.stdout.take().context("a pipe from it")?);
        Ok(Self { child, to, from, line: Vec::new() })
    }

    /// `provost mcp` for a host of this name.
    fn provost(world: &World, agent: &str) -> Result<Self> {
        let mut command = Command::new(provost());
        command.args(["mcp", "--no-start", "--as", agent]).current_dir(world.path("repo")).env_clear();
        command
            .env("HOME", world.path("home"))
            .env("XDG_RUNTIME_DIR", world.path("run"))
            .env("USER", "bench");
        Self::begun(&mut command)
    }

    /// The bare echo.
    fn echo() -> Result<Self> {
        Self::begun(Command::new(std::env::current_exe()?).args([STDIO_ROLE, "-"]))
    }

    async fn ask(&mut self, request: &str) -> Result<&[u8]> {
        self.to.write_all(request.as_bytes()).await?;
        self.to.write_all(b"\n").await?;
        self.line.clear();
        ensure!(self.from.read_until(b'\n', &mut self.line).await? > 0, "the server has gone");
        Ok(&self.line)
    }

    fn pid(&self) -> Result<u32> {
        self.child.id().context("it runs")
    }
}

/// Closed loops: each host calls again when it was answered.
fn over_stdio(table: &mut Table, amounts: &Amounts, world: &World, daemon: &Daemon) -> Result<()> {
    for hosts in [1, 8] {
        let (mut rate, mut floor_rate) = (Rounds::default(), Rounds::default());
        let (mut cost, mut floor_cost) = (Rounds::default(), Rounds::default());
        let each = amounts.calls / hosts;
        for round in 0..=amounts.rounds {
            for is_ours in [true, false] {
                let one =
                    |number| if is_ours { Pipe::provost(world, &format!("h{number}")) } else { Pipe::echo() };
                let tool = if is_ours { "locks_list" } else { "echo" };
                let (took, used) = run(async {
                    let mut ready = Vec::new();
                    for number in 0..hosts {
                        let mut host = one(number)?;
                        answered(host.ask(&call(tool, &json!({}))).await?)?;
                        ready.push(host);
                    }
                    let mut pids = ready.iter().map(Pipe::pid).collect::<Result<Vec<_>>>()?;
                    pids.extend(is_ours.then(|| daemon.pid()));
                    let before = all_ns(&pids)?;
                    let begun = Instant::now();
                    let mut tasks = JoinSet::new();
                    for mut host in ready {
                        tasks.spawn(async move {
                            let request = call(tool, &json!({}));
                            for _ in 0..each {
                                host.ask(&request).await?;
                            }
                            // They live until all have been measured.
                            anyhow::Ok(host)
                        });
                    }
                    let all = tasks.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
                    let (took, used) = (begun.elapsed(), all_ns(&pids)?.saturating_sub(before));
                    drop(all);
                    anyhow::Ok((took, used))
                })?;
                // The first round finds everything cold.
                if round > 0 {
                    let (rate, cost) =
                        if is_ours { (&mut rate, &mut cost) } else { (&mut floor_rate, &mut floor_cost) };
                    let calls = (each * hosts) as f64;
                    rate.push(calls / took.as_secs_f64());
                    cost.push(used as f64 / 1e3 / calls);
                }
            }
        }
        let what = format!("tools/call over stdio, hosts: {hosts}, to rmcp's echo");
        table.ratio(&what, Unit::PerSecond, &rate, &floor_rate)?;
        table.ratio(
            "… processor time of servers and daemon a call",
            Unit::Microseconds,
            &cost,
            &floor_cost,
        )?;
    }
    Ok(())
}

fn all_ns(pids: &[u32]) -> Result<u64> {
    pids.iter().map(|pid| processor_ns(*pid)).sum()
}

fn over_http(table: &mut Table, amounts: &Amounts, world: &World, ours: Server) -> Result<()> {
    let (_helper, echo) = started(HTTP_ROLE, &world.path("mcp-echo.port"))?;
    for connections in [1, 8] {
        let (mut rate, mut floor_rate) = (Rounds::default(), Rounds::default());
        let (mut cost, mut floor_cost) = (Rounds::default(), Rounds::default());
        let each = amounts.calls / connections;
        for round in 0..=amounts.rounds {
            for (server, tool, rate, cost) in
                [(ours, "locks_list", &mut rate, &mut cost), (echo, "echo", &mut floor_rate, &mut floor_cost)]
            {
                let one = |number| vec![post(server, &format!("h{number}"), tool, &json!({})); each + 1];
                let magazines = (0..connections).map(one).collect();
                let before = processor_ns(server.pid)?;
                let took = crate::http::persistent(server, magazines)?;
                let used = processor_ns(server.pid)?.saturating_sub(before);
                if round > 0 {
                    let calls = (each * connections) as f64;
                    rate.push(calls / took.as_secs_f64());
                    cost.push(used as f64 / 1e3 / calls);
                }
            }
        }
        let what = format!("tools/call over HTTP, connections: {connections}, to rmcp's echo");
        table.ratio(&what, Unit::PerSecond, &rate, &floor_rate)?;
        table.ratio("… server's processor time a call", Unit::Microseconds, &cost, &floor_cost)?;
    }
    Ok(())
}

/// How a host reaches its server.
#[derive(Clone, Copy)]
enum Transport {
    Stdio,
    Http(Server),
}

enum Host {
    Stdio(Box<Pipe>),
    Http(Line, Server, String),
}

impl Host {
    async fn to(world: &World, transport: Transport, number: usize) -> Result<Self> {
        let agent = format!("waiting-{number}");
        Ok(match transport {
            Transport::Stdio => Self::Stdio(Box::new(Pipe::provost(world, &agent)?)),
            Transport::Http(server) => Self::Http(Line::to(server).await?, server, agent),
        })
    }

    /// What a tool answers, and when the answer was there.
    async fn asks(&mut self, tool: &str, arguments: &Value) -> Result<(Instant, Value)> {
        let (at, message) = match self {
            Self::Stdio(pipe) => {
                let message = pipe.ask(&call(tool, arguments)).await?;
                (Instant::now(), message)
            }
            Self::Http(line, server, agent) => {
                let message = line.ask(&post(*server, agent, tool, arguments)).await?;
                (Instant::now(), message)
            }
        };
        Ok((at, answered(message)?))
    }
}

/// Many hosts wait for one task; each change of it wakes them all.
fn waiting(
    table: &mut Table,
    amounts: &Amounts,
    world: &World,
    daemon: &Daemon,
    transport: Transport,
) -> Result<()> {
    let name = if matches!(transport, Transport::Stdio) { "stdio" } else { "HTTP" };
    let task = format!("waited-for-over-{name}");
    let before = resident_kib(daemon.pid())?;
    let (mut took, while_waiting, process) = run(async {
        let mut hosts = Vec::new();
        for number in 0..amounts.hosts {
            hosts.push(Host::to(world, transport, number).await?);
        }
        let first = hosts.first_mut().context("there is a host")?;
        let asked = json!({ "goal": "wait", "worker": "slow", "task_id": task });
        first.asks("delegate", &asked).await?;
        let (mut took, mut while_waiting, mut process) = (Vec::new(), 0, None);
        for change in 0..amounts.changes {
            let mut waits = JoinSet::new();
            for mut host in std::mem::take(&mut hosts) {
                let task = task.clone();
                waits.spawn(async move {
                    let now = host.asks("task_wait", &json!({ "task_id": task })).await?.1;
                    let more = json!({ "task_id": task, "cursor": now["cursor"], "max_wait_s": WAIT_S });
                    let (at, then) = host.asks("task_wait", &more).await?;
                    ensure!(then["cursor"] != now["cursor"], "nothing has changed");
                    anyhow::Ok((host, at))
                });
            }
            tokio::time::sleep(SETTLED).await;
            while_waiting = resident_kib(daemon.pid())?;
            let sent = Instant::now();
            report(daemon, &task, change)?;
            while let Some(woken) = waits.join_next().await {
                let (host, at) = woken??;
                took.push(at.duration_since(sent).as_secs_f64() * 1e3);
                hosts.push(host);
            }
        }
        for host in &hosts {
            if let Host::Stdio(pipe) = host {
                process = Some((resident_kib(pipe.pid()?)?, anonymous_kib(pipe.pid()?)?));
            }
        }
        anyhow::Ok((took, while_waiting, process))
    })?;
    took.sort_by(f64::total_cmp);
    let at =
        |share: usize| took.get((took.len() * share / 100).min(took.len() - 1)).copied().unwrap_or(f64::NAN);
    let of_each = while_waiting.saturating_sub(before) / amounts.hosts as u64;
    let process = process.map_or("none".to_owned(), |(all, own)| format!("{all} KiB, {own} of its own"));
    table.note(&format!(
        "| {} hosts over {name} | {before} KiB | {while_waiting} KiB | {of_each} KiB | {process} | {:.2} ms | {:.2} ms | {:.2} ms |",
        amounts.hosts,
        at(50),
        at(99),
        at(100),
    ))
}

/// The worker says how far it is.
fn report(daemon: &Daemon, task: &str, number: usize) -> Result<()> {
    use std::io::Read as _;
    let said = json!({ "task_id": task, "status": "progress", "artifacts": { "summary": format!("step {number}") } });
    let mut stream = std::os::unix::net::UnixStream::connect(&daemon.socket)?;
    stream.write_all(&daemon.frame("NOTIFY", "slow", "orchestrator", &said.to_string()))?;
    let mut answer = [0; 4096];
    let read = stream.read(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer[..read]);
    ensure!(answer.contains("\"ACK\""), "the report was not taken: {answer}");
    Ok(())
}
