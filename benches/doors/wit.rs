//! The wit door: pings, locks, intents and contracts, against a bare HTTP pong and a bare parse.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::floor::PONG_ROLE;
use crate::machine::{processor_ns, resident_kib};
use crate::table::{Rounds, Table, Unit};
use crate::world::{Daemon, Helper, World, provost};

const ROUNDS: usize = 7;
/// Functions of the file that locks are taken in; it has 1,000 lines.
const FUNCTIONS: usize = 125;
/// Pairs of acquire and release per connection and round.
const PAIRS: usize = 400;
/// Pairs whose file is another one each time.
const COLD_PAIRS: usize = 30;
/// Acquires over which memory is watched.
const MANY: usize = 100_000;
/// Files of the repository that is indexed.
const INDEXED: usize = 5_000;
/// How long an index may take.
const INDEX_MAX: Duration = Duration::from_secs(600);

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    fs::create_dir(world.path("repo/.wit"))?;
    for number in 0..1_000 {
        fs::write(world.path(&format!("repo/c{number}.ts")), module(20, number))?;
    }
    fs::write(world.path("repo/k.ts"), module(FUNCTIONS, 0))?;
    let (daemon, _) = world.start()?;
    let socket = world.path("repo/.wit/daemon.sock");
    let pong = world.path("pong.sock");
    let helper = Helper::listening(PONG_ROLE, &pong)?;
    pings(table, (&socket, daemon.pid()), (&pong, helper.0.id()))?;
    locks(table, &world, &daemon, &socket)?;
    intents(table, &daemon, &socket)?;
    contracts(table, &world, &daemon, &socket)?;
    stalls(table, &world, &socket)?;
    memory(table, &daemon, &socket)?;
    daemon.stop()?;
    index(table)
}

/// A TypeScript file of eight lines a function.
fn module(functions: usize, salt: usize) -> String {
    let mut text = String::new();
    for number in 0..functions {
        let calls = (number + 1) % functions;
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "// {salt}\nexport function f{number}(a: number, b: string): boolean {{\n  const list = [a, 1, 2];\n  \
             if (list.length > {number}) {{\n    return f{calls}(a + 1, b);\n  }}\n  return list.map(x => x + a).length > 0;\n}}\n"
        );
    }
    text
}

/// One keep-alive connection.
pub(crate) struct Line(UnixStream, String);

impl Line {
    pub(crate) fn to(socket: &Path, session: usize) -> Result<Self> {
        Ok(Self(UnixStream::connect(socket)?, format!("bench-{session}")))
    }

    /// The result of a method; an error ends the run.
    fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let body =
            json!({"jsonrpc": "2.0", "witVersion": "1", "id": "1", "method": method, "params": params});
        let mut answer: Value = serde_json::from_slice(&self.post(body.to_string().as_bytes())?)?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => bail!("{method}: {answer}"),
        }
    }

    fn post(&mut self, body: &[u8]) -> Result<Vec<u8>> {
        let head = format!(
            "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all(&[head.as_bytes(), body].concat())?;
        let (mut answer, mut block) = (Vec::new(), [0; 16 << 10]);
        loop {
            let read = self.0.read(&mut block)?;
            ensure!(read > 0, "the connection ended within an answer");
            answer.extend_from_slice(&block[..read]);
            let Some(end) = answer.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.context("an answer without a length")?.trim().parse()?;
            if answer.len() >= end + 4 + length {
                return Ok(answer.split_off(end + 4));
            }
        }
    }

    /// Acquires and releases a lock.
    pub(crate) fn pair(&mut self, symbol: &str) -> Result<()> {
        self.acquire(symbol)?;
        self.release(symbol)
    }

    /// Acquires a lock.
    pub(crate) fn acquire(&mut self, symbol: &str) -> Result<()> {
        self.call("lock.acquire", &json!({"symbolPath": symbol, "sessionId": self.1})).map(drop)
    }

    /// Releases a lock.
    pub(crate) fn release(&mut self, symbol: &str) -> Result<()> {
        self.call("lock.release", &json!({"symbolPath": symbol, "sessionId": self.1})).map(drop)
    }
}

/// Does something over several connections at once, each on a thread; how long it took.
fn at_once(
    socket: &Path,
    connections: usize,
    each: impl Fn(usize, &mut Line) -> Result<()> + Sync,
) -> Result<Duration> {
    let mut lines = (0..connections).map(|it| Line::to(socket, it)).collect::<Result<Vec<_>>>()?;
    let (each, begun) = (&each, Instant::now());
    std::thread::scope(|scope| {
        let work: Vec<_> = lines
            .iter_mut()
            .enumerate()
            .map(|(number, line)| scope.spawn(move || each(number, line)))
            .collect();
        work.into_iter().try_for_each(|it| it.join().map_err(|_| anyhow::anyhow!("a client ended badly"))?)
    })?;
    Ok(begun.elapsed())
}

fn pings(table: &mut Table, ours: (&Path, u32), floor: (&Path, u32)) -> Result<()> {
    table.ratios(ROUNDS)?;
    for connections in [1, 16] {
        let each = 4_000 / connections;
        let (mut rate, mut floor_rate) = (Rounds::default(), Rounds::default());
        let (mut cost, mut floor_cost) = (Rounds::default(), Rounds::default());
        for round in 0..=ROUNDS {
            for ((socket, pid), rate, cost) in
                [(ours, &mut rate, &mut cost), (floor, &mut floor_rate, &mut floor_cost)]
            {
                let before = processor_ns(pid)?;
                let took = at_once(socket, connections, |_, line| {
                    (0..each).try_for_each(|_| line.call("ping", &json!({})).map(drop))
                })?;
                let used = processor_ns(pid)?.saturating_sub(before);
                if round > 0 {
                    let messages = (each * connections) as f64;
                    rate.push(messages / took.as_secs_f64());
                    cost.push(used as f64 / 1e3 / messages);
                }
            }
        }
        let what = format!("ping, connections: {connections}, to a bare HTTP pong");
        table.ratio(&what, Unit::PerSecond, &rate, &floor_rate)?;
        table.ratio("… server's processor time a message", Unit::Microseconds, &cost, &floor_cost)?;
    }
    Ok(())
}

/// Processor time of one pair, in milliseconds, against what a bare parse of the file takes.
fn locks(table: &mut Table, world: &World, daemon: &Daemon, socket: &Path) -> Result<()> {
    let text = fs::read_to_string(world.path("repo/k.ts"))?;
    ensure!(text.lines().count() == 1_000, "the file has another length");
    for connections in [1, 16] {
        let (mut cached, mut floor) = (Rounds::default(), Rounds::default());
        let each = PAIRS / connections;
        for round in 0..=ROUNDS {
            let before = processor_ns(daemon.pid())?;
            // Clients never want the same symbol, so that none is refused.
            at_once(socket, connections, |number, line| {
                (0..each).try_for_each(|at| line.pair(&format!("k.ts:f{}", number + connections * (at % 7))))
            })?;
            let used = processor_ns(daemon.pid())?.saturating_sub(before);
            if round > 0 {
                cached.push(used as f64 / 1e6 / (each * connections) as f64);
                floor.push(parse_ms(&text)?);
            }
        }
        let what = format!(
            "acquire + release in a 1,000-line file, known, connections: {connections}, processor time, to a bare parse"
        );
        table.ratio(&what, Unit::Milliseconds, &cached, &floor)?;
    }
    let (mut cold, mut floor) = (Rounds::default(), Rounds::default());
    let mut line = Line::to(socket, 0)?;
    for number in 0..COLD_PAIRS {
        let other = module(FUNCTIONS, number + 1);
        fs::write(world.path("repo/k.ts"), &other)?;
        let before = processor_ns(daemon.pid())?;
        line.pair("k.ts:f7")?;
        cold.push((processor_ns(daemon.pid())?.saturating_sub(before)) as f64 / 1e6);
        floor.push(parse_ms(&other)?);
    }
    table.ratio("… in a file that was written since", Unit::Milliseconds, &cold, &floor)
}

/// Processor time is the clock's here, since nothing else happens in this thread.
fn parse_ms(text: &str) -> Result<f64> {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into())?;
    let begun = Instant::now();
    parser.parse(text, None).context("nothing was parsed")?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

fn intents(table: &mut Table, daemon: &Daemon, socket: &Path) -> Result<()> {
    let mut line = Line::to(socket, 0)?;
    let mut live = 0;
    let mut declare = |line: &mut Line, session: String| -> Result<()> {
        let file = format!("elsewhere/{live}.ts");
        live += 1;
        let params = json!({"sessionId": session, "description": "bench", "files": [file]});
        line.call("intent.declare", &params).map(drop)
    };
    let mut first: Option<Rounds> = None;
    for present in [0, 1_000, 10_000] {
        let mut rounds = Rounds::default();
        while rounds.0.len() < ROUNDS {
            let before = processor_ns(daemon.pid())?;
            for number in 0..100 {
                declare(&mut line, format!("few-{present}-{number}"))?;
            }
            rounds.push(processor_ns(daemon.pid())?.saturating_sub(before) as f64 / 1e3 / 100.0);
        }
        let floor = first.get_or_insert_with(|| rounds.clone()).clone();
        let what =
            format!("intent.declare with {present} and some live ones, processor time, to that with none");
        table.ratio(&what, Unit::Microseconds, &rounds, &floor)?;
        let more = if present == 0 { 1_000 - 700 } else { 9_000 - 700 };
        if present < 10_000 {
            (0..more).try_for_each(|number| declare(&mut line, format!("many-{}", number % 50)))?;
        }
    }
    Ok(())
}

fn contracts(table: &mut Table, world: &World, daemon: &Daemon, socket: &Path) -> Result<()> {
    let mut line = Line::to(socket, 0)?;
    for number in 0..1_000 {
        let symbol = format!("c{number}.ts:f3");
        let offered = line.call("contract.propose", &json!({"sessionId": "a", "symbolPath": symbol}))?;
        let answer = json!({"contractId": offered["contractId"], "sessionId": "b", "accept": true});
        line.call("contract.respond", &answer)?;
    }
    for files in [50, 1_000] {
        let (mut ours, mut floor) = (Rounds::default(), Rounds::default());
        for round in 0..ROUNDS {
            let staged: Vec<(String, String)> =
                (0..files).map(|it| (format!("c{it}.ts"), module(20, 10_000 * (round + 1) + it))).collect();
            let list: Vec<Value> =
                staged.iter().map(|(path, content)| json!({"path": path, "content": content})).collect();
            let before = processor_ns(daemon.pid())?;
            let checked = line.call("check-contracts", &json!({"files": list}))?;
            ours.push(processor_ns(daemon.pid())?.saturating_sub(before) as f64 / 1e6);
            ensure!(checked["violations"] == json!([]), "unexpected: {checked}");
            floor.push(staged.iter().map(|(_, text)| parse_ms(text)).sum::<Result<f64>>()?);
        }
        let what = format!("check-contracts, {files} files of 160 lines, processor time, to bare parses");
        table.ratio(&what, Unit::Milliseconds, &ours, &floor)?;
    }
    let left = world.path("repo/c0.ts").exists();
    ensure!(left, "the files are gone");
    Ok(())
}

/// The slowest pings while somebody else locks in a file of 100,000 lines, against those while nobody does.
fn stalls(table: &mut Table, world: &World, socket: &Path) -> Result<()> {
    let (mut busy, mut idle) = (Rounds::default(), Rounds::default());
    for round in 0..ROUNDS {
        let mut text = String::new();
        while text.lines().count() < 100_000 {
            text.push_str(&format!("const a{round} = [1, 2];\nf();\n\n// x\n").repeat(5_000));
        }
        fs::write(world.path("repo/long.ts"), text)?;
        idle.push(p99(socket, || false)?);
        let (socket_of_other, order) =
            (socket.to_owned(), json!({"symbolPath": "long.ts:a", "sessionId": "slow"}));
        let other = std::thread::spawn(move || Line::to(&socket_of_other, 99)?.call("lock.acquire", &order));
        busy.push(p99(socket, || !other.is_finished())?);
        other.join().map_err(|_| anyhow::anyhow!("the other client ended badly"))??;
    }
    table.ratio(
        "ping's p99 while another locks in a file of 100,000 lines, to that of a quiet daemon",
        Unit::Milliseconds,
        &busy,
        &idle,
    )
}

/// The 99th percentile of at least 500 pings, and of as many more as are sent until `going` says no.
fn p99(socket: &Path, going: impl Fn() -> bool) -> Result<f64> {
    let mut line = Line::to(socket, 0)?;
    let mut all = Vec::new();
    while all.len() < 500 || going() {
        let begun = Instant::now();
        line.call("ping", &json!({}))?;
        all.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() * 99 / 100])
}

fn memory(table: &mut Table, daemon: &Daemon, socket: &Path) -> Result<()> {
    let mut line = Line::to(socket, 0)?;
    (0..2_000).try_for_each(|at| line.pair(&format!("k.ts:f{}", at % FUNCTIONS)))?;
    let before = resident_kib(daemon.pid())?;
    (0..MANY).try_for_each(|at| line.pair(&format!("k.ts:f{}", at % FUNCTIONS)))?;
    let after = resident_kib(daemon.pid())?;
    table.note(&format!(
        "\nResident memory: {before} KiB before, {after} KiB after {MANY} pairs of acquire and release."
    ))
}

/// How long a repository takes to be read, and what it takes to remember it.
fn index(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    let (empty, _) = world.start()?;
    let before = resident_kib(empty.pid())?;
    empty.stop()?;
    let mut lines = 0;
    for number in 0..INDEXED {
        let folder: PathBuf = world.path(&format!("repo/p{}", number / 100));
        fs::create_dir_all(&folder)?;
        let text = format!(
            "import {{ f0 as other }} from './m{}'\n{}export const used{number} = () => other(1, '')\n",
            number.saturating_sub(1),
            module(10, number)
        );
        lines += text.lines().count();
        fs::write(folder.join(format!("m{number}.ts")), text)?;
    }
    let begun = Instant::now();
    let (daemon, ready) = world.start()?;
    wait_for_index(&world, INDEXED)?;
    let took = begun.elapsed();
    let used = processor_ns(daemon.pid())? as f64 / 1e9;
    let after = resident_kib(daemon.pid())?;
    table.note(&format!(
        "\nIndex of {INDEXED} files ({lines} lines): complete {:.1} s after the start, {used:.1} s of processor time; the \
         first answer came after {:.0} ms. Resident memory {} KiB, against {before} KiB in an empty repository.",
        took.as_secs_f64(),
        ready.as_secs_f64() * 1e3,
        after
    ))?;
    daemon.stop()
}

/// Returns once a daemon has an index of so many files.
pub(crate) fn wait_for_index(world: &World, files: usize) -> Result<()> {
    let begun = Instant::now();
    loop {
        let out = Command::new(provost())
            .args(["graph", "status", "--json"])
            .current_dir(world.path("repo"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", world.path("home"))
            .env("USER", "bench")
            .env("XDG_RUNTIME_DIR", world.path("run"))
            .output()?;
        let status: Value = serde_json::from_slice(&out.stdout)
            .with_context(|| String::from_utf8_lossy(&out.stderr).into_owned())?;
        if status["complete"] == json!(true) && status["files"].as_u64() >= Some(files as u64) {
            return Ok(());
        }
        ensure!(begun.elapsed() < INDEX_MAX, "the index does not end: {status}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
