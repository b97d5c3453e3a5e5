//! `provost web`: the page for people, at this machine and outside of it, and the browsers that are signed in to it.

use clap::{Args, Subcommand};
use serde_json::json;

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, args, out, up, web_all};
use provost_api::wire;
use provost_base::{Door, Ttl};
use provost_config::Config;

/// `provost web`.
#[derive(Subcommand, Debug)]
pub(super) enum Web {
    /// Open the page until the daemon stops, and print its address; with `enabled = true` in `[web]` it is always open
    #[command(
        after_help = "Examples:\n  provost web open\n  xdg-open \"$(provost web open)\"\n  provost web open --json | jq -r .address\n  provost web open --qr   # for the camera of a phone; see provost web setup\n  provost web open --all"
    )]
    Open(Open),
    /// Close the page over all repositories; the page of one repository is open until its daemon stops
    #[command(after_help = "Example:\n  provost web close")]
    Close,
    /// Say what is missing until a phone has the page, with the lines for tailscale, Caddy and nginx
    #[command(after_help = "Examples:\n  provost web setup\n  provost web setup --json")]
    Setup,
    /// Make a link at a terminal, with which one browser without a passkey sees states, and no words, differences or logs
    #[command(
        after_help = "Examples:\n  provost web invite --read --ttl 1d\n  provost web invite --read --at https://host.example.ts.net"
    )]
    Invite(Invite),
    /// List and end what browsers are signed in with
    #[command(
        subcommand,
        after_help = "Examples:\n  provost web session list\n  provost web session end 3f0c2a91b7de"
    )]
    Session(Sessions),
}

/// `provost web open`.
#[derive(Args, Debug)]
pub(super) struct Open {
    /// Draw the public address as a picture for the camera of a phone
    #[arg(long)]
    qr: bool,
    /// One page over all of your repositories, in a process of its own until `provost web close`, at the port `all_port` of `[web]`;
    /// it can read, and hands on what your passkeys sign
    #[arg(long, conflicts_with = "qr")]
    all: bool,
    /// Stay in this terminal; Ctrl-C ends the page
    #[arg(long, requires = "all")]
    pub(super) foreground: bool,
    /// Standard output is a pipe to the process that waits for the page
    #[arg(long, hide = true, requires = "foreground")]
    pub(super) ready_on_stdout: bool,
}

/// `provost web invite`.
#[derive(Args, Debug)]
pub(super) struct Invite {
    /// The one who opens the link reads, and does nothing else
    #[arg(long, required = true)]
    read: bool,
    /// For how long the link and the browser that opens it are good, up to seven days
    #[arg(long, value_parser = args::duration, default_value = "24h")]
    ttl: Ttl,
    /// The public address, where there are several
    #[arg(long, value_name = "ORIGIN")]
    at: Option<String>,
}

/// `provost web session`.
#[derive(Subcommand, Debug)]
pub(super) enum Sessions {
    /// List browsers that are signed in, and invitations that were not opened
    #[command(after_help = "Examples:\n  provost web session list\n  provost web session list --json")]
    List,
    /// Sign a browser out, or end an invitation, at once
    #[command(
        after_help = "Examples:\n  provost web session end 3f0c2a91b7de\n  provost web session end --all"
    )]
    End(End),
}

/// `provost web session end`.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct End {
    /// The id that `provost web session list` shows
    id: Option<String>,
    /// End all of them
    #[arg(long)]
    all: bool,
}

pub(super) fn web(here: &RepoContext, asked: Web) -> Result<u8, CliError> {
    match asked {
        Web::Open(it) if it.all => web_all::open(here, &it),
        Web::Open(it) => open(here, &it),
        Web::Close => web_all::close(here),
        Web::Setup => setup(here),
        Web::Invite(it) => invite(here, it),
        Web::Session(Sessions::List) => list(here),
        Web::Session(Sessions::End(it)) => end(here, it),
    }
}

fn open(here: &RepoContext, asked: &Open) -> Result<u8, CliError> {
    let page = wait_for(async { Ok(here.daemon(None).await?.open_page().await?) })?;
    if !asked.qr {
        if here.json {
            return out::json(&page).map(|()| DONE);
        }
        out::line(out::one_line(&page.address, 400))?;
        other_port(here, &page.address).iter().for_each(out::note);
        return Ok(DONE);
    }
    let Some(address) = page.public.first() else {
        return Err(CliError::of("the page is at no address that a phone can open")
            .because("no public address is set, or its socket could not be had: provost daemon status")
            .next("provost web setup"));
    };
    let address = format!("{address}/");
    if here.json {
        return out::json(&page).map(|()| DONE);
    }
    out::line(out::one_line(&address, 400))?;
    let picture = picture(&address).ok_or_else(|| CliError::of("the address is too long for a picture"))?;
    picture.iter().try_for_each(|line| out::text_as_is(&format!("{line}\n")))?;
    Ok(DONE)
}

/// Returns a note where the page is not at the port of the settings.
fn other_port(here: &RepoContext, address: &str) -> Option<String> {
    let wanted = here.config(None).ok()?.config.doors.of(Door::Web)?.port;
    let (_, host) = address.split_once("://")?;
    let port: u16 = host.split('/').next()?.rsplit_once(':')?.1.parse().ok()?;
    (wanted != 0 && port != wanted).then(|| {
        format!("port {wanted} was another program's when this page got its port, so it is at port {port}")
    })
}

/// Returns the lines of the QR code, in its own colours where colours are used: terminals show their usual ones either way round.
fn picture(address: &str) -> Option<Vec<String>> {
    let environment = |name: &str| std::env::var(name).ok();
    let look = provost_ui::Theme::of(environment, None);
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
    let in_colour = look.colour && is_terminal;
    let lines = provost_ui::qr_lines(address, !in_colour && look.light)?;
    let dressed = |line: String| match in_colour {
        true => format!("\u{1b}[38;2;255;255;255;48;2;0;0;0m{line}\u{1b}[0m"),
        false => line,
    };
    Some(lines.into_iter().map(dressed).collect())
}

/// A condition under which a phone gets the page.
pub(super) struct Step {
    /// The subject of the condition.
    pub(super) what: &'static str,
    /// Whether it is met.
    pub(super) is_done: bool,
    /// The present state, or the next step.
    pub(super) says: String,
}

/// Returns the conditions under which a phone gets the page, each with its state.
pub(super) fn steps(here: &RepoContext, config: &Config, about: Option<&wire::About>) -> Vec<Step> {
    let web = &config.web;
    let socket = web.socket.within(&here.places.runtime);
    let public: Vec<&str> = web.public.iter().map(|it| it.as_str()).collect();
    let first = public.first().copied().unwrap_or("https://host.example.ts.net");
    let step = |what, is_done, says: String| Step { what, is_done, says };
    let mut steps = vec![match public.is_empty() {
        true => step(
            "public address",
            false,
            format!("name it in your provost.toml: [web] public = [\"{first}\"]"),
        ),
        false => step("public address", true, public.join(" ")),
    }];
    steps.push(match web.proxy_uids.as_slice() {
        [] => step(
            "proxy",
            false,
            "name its user: [web] proxy_uids = [0] for tailscale; else `id -u caddy`".into(),
        ),
        uids => {
            let uids: Vec<String> = uids.iter().map(ToString::to_string).collect();
            step("proxy", true, format!("runs as user {}", uids.join(" or ")))
        }
    });
    let is_open = about.is_some_and(|it| !it.public.is_empty());
    let not_open = "open the page: provost web open; if it stays shut, provost daemon status says why";
    steps.push(match is_open {
        true => step("socket", true, socket.display().to_string()),
        false => step("socket", false, not_open.into()),
    });
    steps
}

fn setup(here: &RepoContext) -> Result<u8, CliError> {
    let loaded = here.config(None)?;
    let about = wait_for(async { here.client().about().await.map_err(CliError::from) }).ok();
    let known = wait_for(async { here.client().passkeys().await.map_err(CliError::from) }).ok();
    let mut steps = steps(here, &loaded.config, about.as_ref());
    let hosts: Vec<&str> = loaded.config.web.public.iter().map(|it| it.host()).collect();
    let is_enrolled = known
        .iter()
        .flat_map(|it| &it.passkeys)
        .any(|it| it.revoked_at.is_none() && hosts.contains(&it.rp_id.as_str()));
    steps.push(Step {
        what: "passkey",
        is_done: is_enrolled,
        says: match is_enrolled {
            true => "one is enrolled for the public address".into(),
            false => "open the public address on the phone, and enrol one there with the code of `provost passkey add`".into(),
        },
    });
    let socket = loaded.config.web.socket.within(&here.places.runtime);
    let host = hosts.first().copied().unwrap_or("host.example.ts.net");
    let proxies = proxies(&socket.display().to_string(), host);
    if here.json {
        let rows: Vec<_> =
            steps.iter().map(|it| json!({ "what": it.what, "done": it.is_done, "says": it.says })).collect();
        let proxies: Vec<_> =
            proxies.iter().map(|(name, lines)| json!({ "proxy": name, "lines": lines })).collect();
        return out::json(&json!({ "socket": socket, "steps": rows, "proxies": proxies })).map(|()| DONE);
    }
    let mark = |it: &Step| if it.is_done { "ok" } else { "missing" };
    let rows: Vec<[String; 3]> =
        steps.iter().map(|it| [mark(it).into(), it.what.into(), out::one_line(&it.says, 400)]).collect();
    out::text_as_is(&out::table(&rows))?;
    out::line("\nA proxy of yours brings browsers from elsewhere to the socket. One of these:")?;
    for (name, lines) in &proxies {
        out::line(format!("\n# {name}"))?;
        lines.iter().try_for_each(|line| out::line(out::one_line(line, 400)))?;
    }
    out::line("\nMore: docs/phone.md")?;
    Ok(DONE)
}

/// Returns the lines for each proxy.
fn proxies(socket: &str, host: &str) -> [(&'static str, Vec<String>); 3] {
    [
        ("tailscale", vec![format!("sudo tailscale serve --bg unix:{socket}")]),
        ("Caddy", vec![format!("{host} {{"), format!("    reverse_proxy unix/{socket}"), "}".into()]),
        (
            "nginx, within a server of yours with a certificate",
            vec![
                "location / {".into(),
                format!("    proxy_pass http://unix:{socket}:;"),
                "    proxy_set_header Host $http_host;".into(),
                "    proxy_http_version 1.1;".into(),
                "    proxy_buffering off;".into(),
                "}".into(),
            ],
        ),
    ]
}

fn invite(here: &RepoContext, asked: Invite) -> Result<u8, CliError> {
    up::start_if_absent(here, true)?;
    let Invite { read: _, ttl, at } = asked;
    let request = wire::InviteReader { ttl_s: Some(ttl.as_seconds().max(1)), origin: at };
    let made = wait_for(async { Ok(here.daemon(None).await?.invite_reader(&request).await?) })?;
    if here.json {
        return out::json(&made).map(|()| DONE);
    }
    out::line(&made.link)?;
    out::note(format!(
        "good for one browser, until {}; it sees states, and no words, differences or logs; end it: provost web session end {}",
        short_time(&made.session.until),
        made.session.id
    ));
    Ok(DONE)
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let all = wait_for(async { Ok(here.daemon(None).await?.web_sessions().await?) })?;
    if here.json {
        return out::json(&all).map(|()| DONE);
    }
    if all.is_empty() {
        out::note("no browser is signed in");
        return Ok(DONE);
    }
    let mut rows = vec![["SESSION", "READER", "AT", "SINCE", "USED", "ENDS"].map(String::from)];
    rows.extend(all.iter().map(|it| {
        let reader = match &it.passkey {
            Some(name) => format!("passkey {}", out::one_line(name, 60)),
            None => it.reader.clone(),
        };
        let times = [&it.began_at, &it.used_at, &it.ends_at].map(|at| short_time(at));
        let [since, used, ends] = times;
        [it.id.clone(), reader, out::one_line(&it.origin, 100), since, used, ends]
    }));
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}

fn end(here: &RepoContext, asked: End) -> Result<u8, CliError> {
    let request = wire::EndWebSession { id: asked.id, all: asked.all };
    let ended = wait_for(async { Ok(here.daemon(None).await?.end_web_session(&request).await?) })?;
    if here.json {
        return out::json(&ended).map(|()| DONE);
    }
    if ended.is_empty() {
        out::note("no browser was signed in");
    }
    for it in ended {
        out::line(format!("{} of {} has ended", it.id, out::one_line(&it.origin, 100)))?;
    }
    Ok(DONE)
}
