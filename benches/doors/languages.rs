//! What each language costs: a lock in a file that is known and in one that is new, and the index of a repository, against bare
//! parses of the same text.

mod sources;

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::machine::{processor_ns, resident_kib};
use crate::table::{Rounds, Table, Unit};
use crate::wit::{Line, wait_for_index};
use crate::world::World;
use sources::{SOURCES, Source};

/// A build for tests shows that the section runs; its numbers say nothing.
const IS_QUICK: bool = cfg!(debug_assertions);
const ROUNDS: usize = if IS_QUICK { 2 } else { 7 };
/// Functions of the file that locks are taken in; it has 1,000 lines and a few.
const FUNCTIONS: usize = 125;
/// Pairs of acquire and release in each round, in a file that is known.
const PAIRS: usize = if IS_QUICK { 20 } else { 200 };
/// Pairs whose file is another one each time.
const NEW_PAIRS: usize = if IS_QUICK { 3 } else { 30 };
/// Functions of a file of a repository that is indexed, which has 80 lines and a few.
const FUNCTIONS_OF_A_FILE: usize = 10;
/// Files of one language, and of all of them together.
const FILES: usize = if IS_QUICK { 40 } else { 1_500 };
const FILES_TOGETHER: usize = if IS_QUICK { 280 } else { 20_000 };

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let world = World::new()?;
    fs::create_dir(world.path("repo/.wit"))?;
    let (daemon, _) = world.start()?;
    let mut line = Line::to(&world.path("repo/.wit/daemon.sock"), 0)?;
    table.note(
        "Processor time of the daemon to that of a bare parse: for an acquire and a release in a known file, for an acquire in a new \
         one, and for its release.\n",
    )?;
    table.ratios(ROUNDS)?;
    for source in SOURCES {
        locks(table, &world, daemon.pid(), &mut line, source)?;
    }
    daemon.stop()?;
    table.note("\nProcessor time of the daemon from its start until its index is complete, to that of bare parses.\n")?;
    table.ratios(1)?;
    let mut held =
        String::from("\n| index of | files | lines | resident memory a file |\n|---|---|---|---|\n");
    for source in SOURCES {
        held.push_str(&index(table, source.name, &[source], FILES)?);
    }
    let all: Vec<&Source> = SOURCES.iter().collect();
    held.push_str(&index(table, "all together", &all, FILES_TOGETHER)?);
    table.note(held.trim_end())
}

fn locks(table: &mut Table, world: &World, pid: u32, line: &mut Line, source: &Source) -> Result<()> {
    let name = format!("k{}", source.suffix);
    let mut wrote = 0;
    let mut write = || {
        wrote += 1;
        let text = source.text(FUNCTIONS, 0, wrote);
        fs::write(world.path(&format!("repo/{name}")), &text).map(|()| text)
    };
    let text = write()?;
    ensure!((1_000..=1_005).contains(&text.lines().count()), "the file has another length");
    let mut parses = Parses::of(source)?;
    let symbol = |at: usize| format!("{name}:{}", source.symbol(0, at % FUNCTIONS));
    line.pair(&symbol(0))?;
    let (mut known, mut new, mut released) = (Rounds::default(), Rounds::default(), Rounds::default());
    let (mut floor, mut floor_of_new) = (Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        let before = processor_ns(pid)?;
        (0..PAIRS).try_for_each(|at| line.pair(&symbol(at)))?;
        known.push(processor_ns(pid)?.saturating_sub(before) as f64 / 1e6 / PAIRS as f64);
        floor.push(parses.ms(&text)?);
    }
    for at in 0..NEW_PAIRS {
        let text = write()?;
        let before = processor_ns(pid)?;
        line.acquire(&symbol(at))?;
        let acquired = processor_ns(pid)?;
        line.release(&symbol(at))?;
        new.push(acquired.saturating_sub(before) as f64 / 1e6);
        released.push(processor_ns(pid)?.saturating_sub(acquired) as f64 / 1e6);
        floor_of_new.push(parses.ms(&text)?);
    }
    table.ratio(&format!("{}, known", source.name), Unit::Milliseconds, &known, &floor)?;
    table.ratio(&format!("{}, new", source.name), Unit::Milliseconds, &new, &floor_of_new)?;
    table.ratio("… its release", Unit::Milliseconds, &released, &floor_of_new)
}

/// Indexes a repository of these languages, in equal parts; the row of what it holds.
fn index(table: &mut Table, what: &str, of: &[&Source], files: usize) -> Result<String> {
    let empty = World::new()?;
    let (daemon, _) = empty.start()?;
    wait_for_index(&empty, 0)?;
    let (memory_of_none, used_by_none) = (resident_kib(daemon.pid())?, processor_ns(daemon.pid())?);
    daemon.stop()?;
    let world = World::new()?;
    fs::create_dir(world.path("repo/.wit"))?;
    let mut parses = of.iter().map(|it| Parses::of(it)).collect::<Result<Vec<_>>>()?;
    let text = |number: usize| of[number % of.len()].text(FUNCTIONS_OF_A_FILE, number, number);
    let mut parse_all = || {
        let parsed = (0..files).map(|number| parses[number % of.len()].ms(&text(number)));
        parsed.sum::<Result<f64>>()
    };
    let mut lines = 0;
    for number in 0..files {
        let folder = world.path(&format!("repo/p{}", number / 100));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("m{number}{}", of[number % of.len()].suffix)), text(number))?;
        lines += text(number).lines().count();
    }
    // Before and after, since a machine may become slower or faster meanwhile.
    let floor_before = parse_all()?;
    let (daemon, _) = world.start()?;
    wait_for_index(&world, files)?;
    let used = processor_ns(daemon.pid())?.saturating_sub(used_by_none) as f64 / 1e6;
    let memory = resident_kib(daemon.pid())?.saturating_sub(memory_of_none);
    let floor = (floor_before + parse_all()?) / 2.0;
    let row = format!("{what}, {files} files of {} lines", lines / files);
    table.ratio(&row, Unit::Milliseconds, &Rounds(vec![used]), &Rounds(vec![floor]))?;
    if of.len() > 1 {
        among_all(table, &world, daemon.pid(), of)?;
    }
    daemon.stop()?;
    Ok(format!("| {what} | {files} | {lines} | {:.1} KiB |\n", memory as f64 / files as f64))
}

/// A lock in one of these many files, to that of a bare parse of the file.
fn among_all(table: &mut Table, world: &World, pid: u32, of: &[&Source]) -> Result<()> {
    let mut line = Line::to(&world.path("repo/.wit/daemon.sock"), 0)?;
    let text = of[0].text(FUNCTIONS_OF_A_FILE, 0, 0);
    let symbol = |at: usize| format!("p0/m0{}:{}", of[0].suffix, of[0].symbol(0, at % FUNCTIONS_OF_A_FILE));
    line.pair(&symbol(0))?;
    let (mut known, mut floor, mut parses) = (Rounds::default(), Rounds::default(), Parses::of(of[0])?);
    for at in 0..PAIRS {
        let before = processor_ns(pid)?;
        line.pair(&symbol(at))?;
        known.push(processor_ns(pid)?.saturating_sub(before) as f64 / 1e6);
        floor.push(parses.ms(&text)?);
    }
    table.ratio("… a lock and its release in one of them, known", Unit::Milliseconds, &known, &floor)
}

/// Bare parses by one parser.
struct Parses(tree_sitter::Parser);

impl Parses {
    fn of(source: &Source) -> Result<Self> {
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&(source.grammar)())?;
        Ok(Self(parser))
    }

    /// Processor time of a parse; nothing else happens in this process.
    fn ms(&mut self, text: &str) -> Result<f64> {
        let before = own_processor_ns()?;
        let tree = self.0.parse(text, None).context("nothing was parsed")?;
        let used = own_processor_ns()?.saturating_sub(before);
        ensure!(!tree.root_node().has_error(), "the file does not parse");
        Ok(used as f64 / 1e6)
    }
}

/// Processor time of this process. The system brings it up to date when a thread stops, if only for a moment.
fn own_processor_ns() -> Result<u64> {
    std::thread::sleep(Duration::from_micros(1));
    processor_ns(std::process::id())
}
