//! Jobs over a kill -9: what was committed is carried out, and what had run ends. Real workers in the real jail.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::a6s_client::{OPEN, Socket, world};
use crate::support::loopback_client::Http;
use crate::support::{World, eventually};

fn socket(world: &World) -> Socket {
    let socket = Socket::open(Http::a6s(world));
    socket.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

fn launch(socket: &mut Socket, command: &str) -> String {
    let begun = socket.result("background.launch", &json!({ "agentType": "shell", "task": command }));
    begun["taskId"].as_str().unwrap().to_owned()
}

fn row(world: &World, task: &str) -> Value {
    let list = socket(world).result("background.list", &json!({}));
    list.as_array().unwrap().iter().find(|it| it["id"] == task).cloned().unwrap_or_default()
}

fn store(world: &World) -> rusqlite::Connection {
    rusqlite::Connection::open(world.state_dir().join("provost.db")).unwrap()
}

/// The jobs that are owed, each with whether it had begun.
fn owed(world: &World) -> Vec<(String, bool)> {
    let db = store(world);
    let query = "SELECT json_extract(body, '$.run_job.job'), started FROM effect WHERE body LIKE '%run_job%' ORDER BY id";
    let mut rows = db.prepare(query).unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Leaves of a job what its commit had left, before anything was done for it.
fn as_it_was_committed(world: &World, job: &str) {
    let changed = store(world).execute_batch(&format!(
        "UPDATE job SET body = json_set(body, '$.tasks', json('[]')) WHERE id = '{job}';
         DELETE FROM effect WHERE body LIKE '%spawn_worker%job_{job}%';
         DELETE FROM task WHERE id = 'job_{job}';"
    ));
    changed.unwrap();
}

#[test]
fn a_job_goes_on_after_a_kill_before_its_start_and_ends_after_one_while_it_ran() {
    let world = world();
    world.configure(&format!("{OPEN}[limits]\nworkers = 1\n"));
    let mut daemon = world.start();
    let mut first = socket(&world);
    let runs = launch(&mut first, "sleep 987652");
    eventually("it runs", || row(&world, &runs)["status"] == "running");
    let (waits, given_up) = (launch(&mut first, "echo after all"), launch(&mut first, "echo never"));
    let job = |task: &str| task.split_once('_').unwrap().1.to_owned();
    eventually("both wait for a place", || {
        let tasks = world.command(&["task", "list", "--json", "--filter", "active"]).output().unwrap();
        let tasks = String::from_utf8(tasks.stdout).unwrap();
        [&waits, &given_up].iter().all(|it| tasks.contains(&format!("job_{}", job(it))))
    });
    daemon.kill();
    assert_eq!(owed(&world), [(job(&runs), true), (job(&waits), false), (job(&given_up), false)]);
    as_it_was_committed(&world, &job(&waits));
    as_it_was_committed(&world, &job(&given_up));
    // Nothing but the effect has a job carried out.
    let settled = format!("DELETE FROM effect WHERE body LIKE '%run_job%{}%'", job(&given_up));
    assert_eq!(store(&world).execute(&settled, []).unwrap(), 1);

    let mut daemon = world.start();
    let mut again = socket(&world);
    // Whoever comes to a door is told how it is by then.
    assert_eq!(row(&world, &runs)["status"], "failed");
    eventually("what was committed is carried out", || row(&world, &waits)["status"] == "completed");
    let output = again.result("background.output", &json!({ "taskId": waits }));
    assert_eq!(output.as_str().unwrap().trim(), "after all");
    assert_eq!(row(&world, &given_up)["status"], "queued");
    daemon.kill();
    assert!(owed(&world).is_empty(), "each is settled with its end");
}
