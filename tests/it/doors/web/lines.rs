//! Links to lines of a log, in a real browser: who opens one stands at that line, and stays there while the log grows.

use serde_json::json;

use super::{LOOKS, OPEN, at, examine};
use crate::support::browser::{Browser, Tab};
use crate::support::loopback_client::Http;
use crate::support::rules::ALLOW;
use crate::support::{Daemon, World};

fn world() -> (World, Daemon, Http) {
    let world = World::new();
    world.configure(OPEN);
    world.rule(ALLOW);
    let daemon = world.start();
    let door = Http::web(&world);
    (world, daemon, door)
}

/// Where a line stands in what is seen of the log, in points; `null` where it is not seen.
fn place(tab: &Tab<'_>, line: u32) -> Option<f64> {
    let found = format!(
        "(() => {{ const log = document.querySelector('pre.log').getBoundingClientRect(); \
         const line = document.querySelector('pre.log .line[data-n=\"{line}\"]')?.getBoundingClientRect(); \
         return line && line.top >= log.top && line.bottom <= log.bottom ? Math.round(line.top - log.top) : null; }})()"
    );
    tab.eval(&found).as_f64()
}

const LINKED: &str = "[...document.querySelectorAll('pre.log .linked')].map((it) => it.dataset.n).join(' ')";

#[test]
fn a_link_to_a_line_of_a_live_log_opens_there_and_stays_there_while_the_log_grows() {
    let (world, daemon, door) = world();
    let goal = "seq 1 400; while [ ! -e more ]; do sleep 0.05; done; seq 401 900; while [ ! -e over ]; do sleep 0.05; done; echo the-end";
    let (task, reply) = world.client(&daemon, "orch").delegate("shell", goal, json!({}));
    reply.ack();
    let browser = Browser::start();
    let tab = browser.open(&at(door, &format!("/t/{task}#L120")));
    tab.until("the line", &format!("{LINKED} === '120'"));
    let stood = place(&tab, 120).expect("it is seen");
    assert_eq!(
        tab.eval("document.querySelector('pre.log .line[data-n=\"120\"]').textContent"),
        json!("120\n")
    );
    world.write("more", "");
    tab.until("more lines", "document.querySelectorAll('pre.log .line').length >= 900");
    tab.shows("new lines");
    assert_eq!(place(&tab, 120), Some(stood), "the log has grown, and the line is where it was");
    // A line that has not come yet is said to be so, and is stood at once it comes.
    tab.eval("location.hash = '#L901'");
    tab.shows("Line 901 has not come yet.");
    world.write("over", "");
    tab.until("the last line", &format!("{LINKED} === '901'"));
    tab.shows("completed");
    // The end is followed again by the button alone.
    tab.eval("location.hash = '#L300-L310'");
    tab.until("several lines", &format!("{LINKED}.split(' ').length === 11"));
    assert!(place(&tab, 300).is_some());
    let mut wrong = Vec::new();
    for (width, height, scheme) in LOOKS {
        tab.looks(width, height, scheme);
        wrong.extend(examine(&tab, "/t#L300-L310", (width, scheme), "log-lines"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn a_number_is_a_link_and_what_has_none_leads_nowhere() {
    let (world, daemon, door) = world();
    let (task, reply) =
        world.client(&daemon, "orch").delegate("shell", "seq 1 60000; echo the-end", json!({}));
    reply.ack();
    let browser = Browser::start();
    // Among more lines than are kept here, an early one: what comes behind it does not push it out.
    let tab = browser.open(&at(door, &format!("/t/{task}#L7")));
    tab.until("the line", &format!("{LINKED} === '7'"));
    let stood = place(&tab, 7).expect("it is seen");
    tab.shows("completed");
    assert_eq!(place(&tab, 7), Some(stood));
    assert!(tab.is("document.querySelectorAll('pre.log .line').length <= 20200"), "bounded");
    // A number is typed, and pressed.
    tab.eval("document.querySelector('.find input[type=number]').focus()");
    tab.write("55");
    tab.press_code("Enter", 13);
    tab.until("the typed line", &format!("{LINKED} === '55' && location.hash === '#L55'"));
    let press = "(() => { const it = document.querySelector('pre.log .line[data-n=\"57\"]'); const at = it.getBoundingClientRect(); \
                 it.dispatchEvent(new MouseEvent('click', { bubbles: true, clientX: at.left + OFFSET, clientY: at.top + 2 })); return location.hash; })()";
    assert_eq!(tab.eval(&press.replace("OFFSET", "4")), json!("#L57"));
    assert_eq!(
        tab.eval(&press.replace("OFFSET", "300").replace("57", "59")),
        json!("#L57"),
        "a press on the text is no link"
    );
    // The end, and a line that is not there.
    tab.click("button.more");
    tab.until("the end", "document.querySelector('pre.log').textContent.includes('the-end')");
    tab.eval("location.hash = '#L90000'");
    tab.shows("Line 90000");
    for odd in ["#L0", "#L-3", "#Lx", "#L1e9", "#L<b>"] {
        tab.eval(&format!("location.hash = {}", json!(odd)));
    }
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
}

#[test]
fn behind_a_part_that_is_not_kept_no_line_has_a_number() {
    let (world, daemon, door) = world();
    // Long lines: the document has 20,000 lines at the most, and the first of them go.
    let goal = r#"seq 1 100; yes "$(printf %0700d 7)" | head -c 6000000; echo; echo the-end"#;
    let (task, reply) = world.client(&daemon, "orch").delegate("shell", goal, json!({}));
    reply.ack();
    let browser = Browser::start();
    // It has ended before anyone looks, so that its middle is gone.
    let tab = browser.open(&at(door, "/tasks"));
    tab.shows("completed");
    tab.go(&at(door, &format!("/t/{task}")));
    tab.until("the end", "document.querySelector('pre.log')?.textContent.includes('the-end')");
    assert!(tab.is("document.querySelector('pre.log').textContent.includes('bytes are not kept here')"));
    let last = "[...document.querySelectorAll('pre.log .line')].at(-1)";
    assert_eq!(
        tab.eval(&format!("[{last}.textContent, {last}.dataset.n ?? null]")),
        json!(["the-end\n", null])
    );
    tab.go(&at(door, &format!("/t/{task}#L90")));
    tab.until("a line before it", &format!("{LINKED} === '90'"));
}
