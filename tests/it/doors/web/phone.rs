//! The page in a real browser elsewhere: over a proxy with TLS, with a certificate of an authority of the test's own.

use serde_json::json;

use super::{LOOKS, examine};
use crate::support::browser::{Browser, Tab, Virtual};
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::passkeys::{answered, asks, code, get, json_at_the_terminal, waits};
use crate::support::proxied::{Elsewhere, HOST, TlsProxy};

/// A page with a proxy in front of it, and a browser that finds it.
fn page() -> (Elsewhere, Browser) {
    let proxy = TlsProxy::bind();
    let page = Elsewhere::at(&format!("{HOST}:{}", proxy.port));
    let spki = proxy.serve(page.socket.clone());
    (page, Browser::at_a_name(HOST, &spki))
}

fn at(page: &Elsewhere, path: &str) -> String {
    format!("{}{path}", page.origin())
}

/// Types a code and a name into the form of the page, and presses the button.
fn enrol(tab: &Tab<'_>, code: &str, name: &str) {
    tab.until("the form", "document.querySelector('#code')");
    tab.eval("document.querySelector('#code').focus()");
    tab.write(code);
    tab.eval("document.querySelector('#passkey-name').focus()");
    tab.write(name);
    tab.click("button[data-does=enrol]");
}

/// Enrols the first passkey there, and signs in with it.
fn signed_in<'a>(page: &Elsewhere, tab: &'a Tab<'a>) -> Virtual<'a> {
    let authenticator = tab.authenticator("internal");
    tab.shows(&format!("No passkey is enrolled for pages at {HOST}"));
    enrol(tab, &code(&page.world), "phone");
    tab.click("button[data-does=sign-in]");
    tab.until(
        "its rows",
        "document.body.dataset.live === 'live' && document.querySelector('#blocks section')",
    );
    authenticator
}

#[test]
fn a_phone_enrols_signs_in_and_approves_over_a_proxy_with_tls() {
    let (page, browser) = page();
    let tab = browser.open(&at(&page, "/"));
    let approval = asks(&page.world, "true");
    let authenticator = signed_in(&page, &tab);
    assert_eq!(tab.eval("isSecureContext && location.protocol"), json!("https:"));
    tab.shows(&format!("approval {approval}"));
    tab.looks(360, 740, "light");
    tab.picture("phone-needs-you");
    tab.go(&at(&page, &format!("/a/{approval}")));
    tab.shows("Signs for exactly what is shown here: phone.");
    tab.picture("phone-approval");
    // Being signed in answers nothing: without its user the passkey signs nothing.
    authenticator.verifies(false);
    tab.click("button[data-does=approve]");
    tab.shows("its user was not verified");
    assert!(waits(&page.world, approval));
    authenticator.verifies(true);
    tab.click("button[data-does=approve]");
    tab.shows("granted (proof: passkey, phone)");
    let event = answered(&page.world, approval);
    let client = event["kind"]["approval_answered"]["signed"]["client_data"].as_str().unwrap();
    let client = String::from_utf8(crate::support::authenticator::unb64(client)).unwrap();
    assert!(client.contains(&page.origin()), "{client}");
    // No script reads the cookie, and nothing was loaded from elsewhere.
    assert_eq!(tab.eval("document.cookie"), json!(""));
    assert_eq!(tab.eval("globalThis.violations"), json!([]));
    let foreign: Vec<String> = browser
        .requested()
        .into_iter()
        .filter(|it| !it.starts_with(&page.origin()) && it != "about:blank")
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    // The browser is listed at the page, and signs out.
    tab.go(&at(&page, "/passkeys"));
    tab.shows("Browsers that are signed in");
    tab.click("#sign-out:not([hidden])");
    tab.until("the form", "document.querySelector('button[data-does=sign-in]')");
    assert_eq!(tab.eval("fetch('/rows/needs-you').then((it) => it.status)"), json!(401));
}

#[test]
fn a_browser_whose_session_ends_elsewhere_shows_nothing_more() {
    let (page, browser) = page();
    let tab = browser.open(&at(&page, "/"));
    let _authenticator = signed_in(&page, &tab);
    asks(&page.world, "the secret plan");
    tab.shows("the secret plan");
    let tabs: Vec<Tab<'_>> = (0..6).map(|_| browser.open(&at(&page, "/"))).collect();
    tabs.iter().for_each(|it| it.shows("the secret plan"));
    let ended = page.world.command(&["web", "session", "end", "--all"]).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    tab.ask("Page.bringToFront", &json!({}));
    tab.until("the form", "document.querySelector('button[data-does=sign-in]')");
    assert!(!tab.text().contains("the secret plan"), "{}", tab.text());
}

#[test]
fn who_was_invited_opens_a_link_once_and_sees_states() {
    let (page, browser) = page();
    asks(&page.world, "the secret plan");
    let made = json_at_the_terminal(&page.world, "web invite --read --json");
    let link = made["link"].as_str().unwrap();
    let tab = browser.open(link);
    tab.shows("approval 1");
    assert_eq!(tab.eval("location.href"), json!(at(&page, "/")), "the secret has left the address");
    assert!(
        !tab.text().contains("the secret plan") && !tab.text().contains("provost approve"),
        "{}",
        tab.text()
    );
    assert!(!tab.is("document.querySelector('button[data-does=answer-here]')"));
    let requested = browser.requested().join(" ");
    assert!(!requested.contains(link.split_once('=').unwrap().1), "{requested}");
    tab.go(&at(&page, "/a/1"));
    tab.shows("sees states alone");
    // Who opens it again comes too late.
    tab.go(&at(&page, "/"));
    tab.click("#sign-out:not([hidden])");
    tab.shows("No passkey is enrolled for pages at");
    tab.go("about:blank");
    tab.go(link);
    tab.shows("this invitation was opened already");
}

#[test]
fn a_passkey_of_this_machine_signs_for_one_of_a_phone_at_its_own_page() {
    let (page, browser) = page();
    let port = Http::web(&page.world).port;
    let desk_page = format!("http://provost.localhost:{port}/passkeys");
    let desk = browser.open(&desk_page);
    let _desk_key = desk.authenticator("usb");
    enrol(&desk, &code(&page.world), "desk");
    desk.shows("desk answers from now on");
    let phone = browser.open(&at(&page, "/"));
    let _phone_key = phone.authenticator("internal");
    phone.shows(&format!(
        "No passkey is enrolled for pages at {HOST}. One of another page does not sign here"
    ));
    enrol(&phone, &code(&page.world), "phone");
    phone.shows("phone waits. Sign for it within ten minutes");
    let known = || {
        let all = get(&page.world, "/passkeys");
        all["passkeys"].as_array().unwrap().iter().map(|it| it["source"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(known(), [json!("code")], "it does not count yet");
    let text = phone.text();
    let mark = text.split("the same mark: ").nth(1).unwrap().get(..12).unwrap().to_owned();
    // A made-up signature takes nothing of it away.
    let waiting = get(&page.world, "/passkeys")["waiting"].clone();
    let none = json!({ "credential": "", "client_data": "", "authenticator_data": "", "signature": "" });
    let body = json!({ "nonce": waiting["challenge"]["nonce"], "assertion": none });
    let (status, said) = own(&page.world, ("POST", "/vouch-passkey"), &[], &body);
    assert_eq!(status, 403, "{said}");
    desk.ask("Page.bringToFront", &json!({}));
    desk.go(&desk_page);
    desk.shows("A new passkey waits");
    desk.until("its mark", &format!("document.querySelector('#mark')?.textContent === '{mark}'"));
    desk.click("button[data-does=vouch]");
    desk.shows("the signature of another one");
    assert_eq!(known(), [json!("code"), json!("vouched")]);
    phone.ask("Page.bringToFront", &json!({}));
    phone.go(&at(&page, "/"));
    phone.click("button[data-does=sign-in]");
    phone.shows("All is calm");
    let verified = page.world.command(&["journal", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn signing_in_is_whole_narrow_and_wide_dark_and_light_and_accessible() {
    let (page, browser) = page();
    let tab = browser.open(&at(&page, "/"));
    let mut wrong = Vec::new();
    let looks = |name: &str, state: &str, wrong: &mut Vec<String>| {
        for (width, height, scheme) in LOOKS {
            tab.looks(width, height, scheme);
            tab.go(&at(&page, "/"));
            tab.until(name, state);
            wrong.extend(examine(&tab, "/", (width, scheme), name));
        }
    };
    looks("enrol-elsewhere", "document.querySelector('#code')", &mut wrong);
    let _authenticator = signed_in(&page, &tab);
    tab.click("#sign-out:not([hidden])");
    looks("sign-in", "document.querySelector('button[data-does=sign-in]')", &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
