//! The page and the real program in a real terminal at one of several machines: agents of the others are shown with their machine.

use serde_json::{Value, json};

use super::real::Terminal;
use crate::support::World;
use crate::support::commands::said;
use crate::support::loopback_client::Http;
use crate::support::machines::Machines;
use crate::support::waits::until_some;

/// The id of the host that is not the asking machine's own, as it is shown.
fn other_host(world: &World) -> String {
    let (_, listed) = said(&world.command(&["host", "list", "--json"]).output().unwrap());
    let other = listed["hosts"].as_array().unwrap().iter().find(|it| it["here"] == false).unwrap();
    other["host"].as_str().unwrap()[..8].to_owned()
}

/// The columns of the page's list of agents, and the row of one of them, if it is there.
fn row_of(door: Http, query: &str, agent: &str) -> Option<(Vec<Value>, Value)> {
    let view = door.look(&format!("/rows/agents{query}")).json();
    let list = view["blocks"].as_array()?.iter().find(|it| it["columns"].is_array())?;
    let row = list["rows"].as_array()?.iter().find(|it| it["key"] == agent)?;
    Some((list["columns"].as_array()?.clone(), row.clone()))
}

#[test]
fn an_agent_of_another_machine_is_shown_with_it_on_the_page_and_in_the_terminal() {
    let machines = Machines::joined_with(2, "[web]\nenabled = true\n");
    let daemons = machines.start();
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let robot = b.client(&daemons[1], "robot");
    robot.say("REGISTER", json!({ "caps": [], "version": "x/1" })).ack();
    robot.poll();
    let host = other_host(a);
    let door = Http::web(a);
    let shown = until_some("the page shows its machine", || {
        let (columns, row) = row_of(door, "", "robot")?;
        let at = columns.iter().position(|it| it == "Host")?;
        row["cells"][at]["text"].as_str().map(str::to_owned)
    });
    assert_eq!(shown, host);
    assert!(row_of(door, &format!("?q={host}"), "robot").is_some(), "a filter takes the machine");

    let terminal = Terminal::of(a, "ui");
    terminal.shows("live");
    terminal.keys(&["3"]);
    terminal.shows("robot");
    terminal.shows("Host");
    terminal.shows(&host);
    machines.check();
}
