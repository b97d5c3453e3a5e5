//! The page for people: who is let in to it, and what a browser shows of it.

mod acts;
mod acts_signed;
mod answers;
mod app;
mod checked;
mod crowd;
mod diffs;
mod elsewhere;
mod finding;
mod gate;
mod hostile;
mod hub;
mod hub_acts;
mod hub_apart;
mod hub_page;
mod hub_search;
mod lines;
mod looked;
mod million;
mod odd;
mod pace;
mod page;
mod phone;
mod replays;
mod sample;
mod scale;
mod sessions;
mod signed;
mod states;
mod taken;
mod taken_signed;

use serde_json::json;

use crate::support::browser::Tab;
use crate::support::loopback_client::Http;
use crate::support::rules::ASK;
use crate::support::{Daemon, World};

/// The configuration that opens the door.
const OPEN: &str = "[web]\nenabled = true\n";

/// A world whose page is open, and where who delegates waits for a person.
fn open_world() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(OPEN);
    world.rule(ASK);
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

/// Has an agent delegate something that waits for a person.
fn ask(world: &World, daemon: &Daemon, goal: &str) {
    let (_, reply) = world.client(daemon, "orch").delegate("shell", goal, json!({}));
    reply.ack();
}

fn at(door: Http, path: &str) -> String {
    format!("http://provost.localhost:{}{path}", door.port)
}

/// A phone and a desk, each in both schemes of colours.
const LOOKS: [(u32, u32, &str); 4] =
    [(360, 740, "light"), (360, 740, "dark"), (1280, 800, "light"), (1280, 800, "dark")];

/// Keeps a picture of what a tab shows, and says what is wrong with it: too wide, stopped by the policy of content, or of no use to
/// those who see or move otherwise.
fn examine(tab: &Tab<'_>, path: &str, (width, scheme): (u32, &str), name: &str) -> Vec<String> {
    let axe = std::env::var("PROVOST_TEST_PAGE_EXAMINERS").expect("what examines pages: run scripts/test");
    let axe = std::fs::read_to_string(format!("{axe}/node_modules/axe-core/axe.min.js")).unwrap();
    tab.picture(&format!("view-{name}-{width}-{scheme}"));
    let mut wrong = Vec::new();
    let wide = tab.eval("document.documentElement.scrollWidth").as_u64().unwrap();
    if wide > u64::from(width) {
        wrong.push(format!("{path} at {width}: {wide} wide"));
    }
    assert_eq!(tab.eval("globalThis.violations"), json!([]), "{path}");
    assert_eq!(tab.eval("document.querySelectorAll('h1').length"), json!(1), "{path}");
    tab.eval(&format!("{axe}; true"));
    let found = tab.eval(
        "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'] }).then((it) => \
         it.violations.flatMap((v) => \
         v.nodes.map((n) => `${v.id}: ${n.target} ${n.failureSummary}`)))",
    );
    let found = found.as_array().unwrap().iter();
    wrong.extend(found.map(|it| format!("{path} at {width} {scheme}: {it}")));
    wrong
}
