//! A real Chromium, driven by its own protocol: tabs, scripts that run in them, and what the tabs have asked for.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::a6s_client::Socket;
use super::loopback_client::Http;
use super::waits::until_some;

const START_PATIENCE: Duration = Duration::from_secs(90);

/// A browser without a screen; ended when dropped.
pub(crate) struct Browser {
    child: Child,
    _profile: TempDir,
    link: RefCell<Link>,
}

/// The connection over which it is driven.
struct Link {
    socket: Socket,
    asked: u64,
    /// Events that came while an answer was waited for.
    events: Vec<Value>,
}

/// A tab of a browser.
pub(crate) struct Tab<'a> {
    browser: &'a Browser,
    session: String,
}

impl Browser {
    /// Starts one that asks for nothing by itself.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one for which this name leads to this machine, and which believes the certificate of this key there.
    pub(crate) fn at_a_name(host: &str, spki: &str) -> Self {
        Self::start_with(&[
            format!("--host-resolver-rules=MAP {host} 127.0.0.1"),
            format!("--ignore-certificate-errors-spki-list={spki}"),
        ])
    }

    fn start_with(more: &[String]) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(profile.path().join("log")).unwrap();
        let child = Command::new("chromium")
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-quic", "--no-proxy-server", "--remote-debugging-port=0"])
            .args(more)
            .arg("about:blank")
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("chromium is installed: scripts/test names its package");
        let file = profile.path().join("profile/DevToolsActivePort");
        let mut found = None;
        // The first start of a browser reads hundreds of megabytes, beside the other tests.
        super::waits::within(START_PATIENCE, || {
            found = std::fs::read_to_string(&file).ok().and_then(|text| {
                let (port, path) = text.split_once('\n')?;
                Some((port.parse::<u16>().ok()?, path.to_owned()))
            });
            found.is_some()
        });
        let log = || std::fs::read_to_string(profile.path().join("log")).unwrap_or_default();
        let (port, path) = found.unwrap_or_else(|| panic!("the browser does not start: {}", log()));
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {}\r\nSec-WebSocket-Version: 13\r\n\r\n",
            super::a6s_client::KEY
        );
        let (socket, head) = Socket::with_head(Http { port }, request.as_bytes());
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        Self { child, _profile: profile, link: RefCell::new(Link { socket, asked: 0, events: Vec::new() }) }
    }

    /// Asks the browser, or one of its tabs.
    fn ask(&self, session: Option<&str>, method: &str, params: &Value) -> Value {
        let said = self.try_ask(session, method, params);
        said.unwrap_or_else(|why| panic!("{method} {params}: {why}"))
    }

    /// The same, where what is asked may be of a document that is left at that moment.
    fn try_ask(&self, session: Option<&str>, method: &str, params: &Value) -> Result<Value, Value> {
        let mut link = self.link.borrow_mut();
        link.asked += 1;
        let id = link.asked;
        let mut request = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            request["sessionId"] = json!(session);
        }
        link.socket.text(&request.to_string());
        loop {
            let message = link.socket.message();
            if message["id"] == id {
                return match message.get("error") {
                    Some(why) => Err(why.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
            link.events.push(message);
        }
    }

    /// A tab at an address, which notes what its policy of content has stopped.
    pub(crate) fn open(&self, address: &str) -> Tab<'_> {
        let target = self.ask(None, "Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session =
            self.ask(None, "Target.attachToTarget", &attach)["sessionId"].as_str().unwrap().to_owned();
        let tab = Tab { browser: self, session };
        tab.ask("Page.enable", &json!({}));
        tab.ask("Network.enable", &json!({}));
        let source = "globalThis.violations = []; document.addEventListener('securitypolicyviolation', (it) => \
                      globalThis.violations.push(`${it.violatedDirective} ${it.blockedURI} ${it.sample}`));";
        tab.ask("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": source }));
        tab.go(address);
        tab
    }

    /// Returns the parameters of the events of this kind so far.
    pub(crate) fn told(&self, method: &str) -> Vec<Value> {
        let link = self.link.borrow();
        link.events.iter().filter(|it| it["method"] == method).map(|it| it["params"].clone()).collect()
    }

    /// The service worker that runs, to have scripts run in it.
    pub(crate) fn worker(&self) -> Tab<'_> {
        let target = until_some("a service worker", || {
            let all = self.ask(None, "Target.getTargets", &json!({}));
            let all = all["targetInfos"].as_array().unwrap().clone();
            all.into_iter().find(|it| it["type"] == "service_worker")
        });
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session =
            self.ask(None, "Target.attachToTarget", &attach)["sessionId"].as_str().unwrap().to_owned();
        Tab { browser: self, session }
    }

    /// Lets pages of this origin show notifications.
    pub(crate) fn lets_notify(&self, origin: &str) {
        self.ask(
            None,
            "Browser.grantPermissions",
            &json!({ "origin": origin, "permissions": ["notifications"] }),
        );
    }

    /// The addresses that all tabs have asked for.
    pub(crate) fn requested(&self) -> Vec<String> {
        let link = self.link.borrow();
        let asked = link.events.iter().filter(|it| it["method"] == "Network.requestWillBeSent");
        asked.map(|it| it["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Tab<'_> {
    pub(crate) fn ask(&self, method: &str, params: &Value) -> Value {
        self.browser.ask(Some(&self.session), method, params)
    }

    /// Goes to an address.
    pub(crate) fn go(&self, address: &str) {
        self.ask("Page.navigate", &json!({ "url": address }));
    }

    /// The value of an expression; a promise is waited for.
    pub(crate) fn eval(&self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let said = self.ask("Runtime.evaluate", &params);
        assert!(said.get("exceptionDetails").is_none(), "{expression}: {said}");
        said["result"]["value"].clone()
    }

    /// Whether an expression is true; in a document that has not come yet, none is.
    pub(crate) fn is(&self, expression: &str) -> bool {
        let params = json!({ "expression": format!("Boolean({expression})"), "returnByValue": true });
        let said = self.browser.try_ask(Some(&self.session), "Runtime.evaluate", &params);
        said.is_ok_and(|it| it["result"]["value"] == json!(true))
    }

    /// Returns the readable text of the document.
    pub(crate) fn text(&self) -> String {
        let params =
            json!({ "expression": "document.body ? document.body.innerText : ''", "returnByValue": true });
        let said = self.browser.try_ask(Some(&self.session), "Runtime.evaluate", &params);
        said.ok().and_then(|it| it["result"]["value"].as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Waits until a text can be read.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) {
        let found = super::waits::within(Duration::from_secs(20), || self.text().contains(text));
        assert!(found, "{text} is not in:\n{}", self.text());
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, expression: &str) {
        let came = super::waits::within(Duration::from_secs(20), || self.is(expression));
        assert!(came, "{what} did not happen: {expression}\n{}", self.text());
    }

    /// Presses a key that is a letter or a sign.
    pub(crate) fn press(&self, key: &str) {
        let text = if key.len() == 1 { key } else { "" };
        self.ask("Input.dispatchKeyEvent", &json!({ "type": "keyDown", "key": key, "text": text }));
        self.ask("Input.dispatchKeyEvent", &json!({ "type": "keyUp", "key": key }));
    }

    /// Presses a key that is no letter, which does what it does in a document.
    pub(crate) fn press_code(&self, key: &str, code: u32) {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.ask("Input.dispatchKeyEvent", &event);
        }
    }

    /// Writes a text where the focus is.
    pub(crate) fn write(&self, text: &str) {
        self.ask("Input.insertText", &json!({ "text": text }));
    }

    /// Presses what this selector finds, once it is there.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        let found = format!("document.querySelector('{selector}')");
        self.until(selector, &format!("{found} && !{found}.disabled"));
        self.eval(&format!("{found}.click()"));
    }

    /// Runs a script before those of each document from now on.
    pub(crate) fn before(&self, source: &str) {
        self.ask("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": source }));
    }

    /// An authenticator whose owner is there and is verified.
    pub(crate) fn authenticator(&self, transport: &str) -> Virtual<'_> {
        self.ask("WebAuthn.enable", &json!({}));
        let options = json!({
            "protocol": "ctap2", "transport": transport, "hasResidentKey": true, "hasUserVerification": true,
            "isUserVerified": true, "automaticPresenceSimulation": true,
        });
        let made = self.ask("WebAuthn.addVirtualAuthenticator", &json!({ "options": options }));
        Virtual { tab: self, id: made["authenticatorId"].as_str().unwrap().to_owned() }
    }

    /// Is so many points wide, in this scheme of colours.
    pub(crate) fn looks(&self, width: u32, height: u32, scheme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.ask("Emulation.setDeviceMetricsOverride", &size);
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.ask("Emulation.setEmulatedMedia", &features);
    }

    /// Keeps a picture of the whole document, where the run keeps pictures.
    pub(crate) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("PROVOST_TEST_PICTURES") else { return };
        let said =
            self.ask("Page.captureScreenshot", &json!({ "format": "png", "captureBeyondViewport": true }));
        let bytes = base64::engine::general_purpose::STANDARD.decode(said["data"].as_str().unwrap()).unwrap();
        std::fs::write(PathBuf::from(folder).join(format!("{name}.png")), bytes).unwrap();
    }
}

/// An authenticator of a tab, which lives as long as the tab.
pub(crate) struct Virtual<'a> {
    tab: &'a Tab<'a>,
    id: String,
}

impl Virtual<'_> {
    fn ask(&self, method: &str, more: &Value) -> Value {
        let mut params = json!({ "authenticatorId": self.id });
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        self.tab.ask(&format!("WebAuthn.{method}"), &params)
    }

    /// Whether its owner passes the check of a finger, a face or a PIN.
    pub(crate) fn verifies(&self, is: bool) {
        self.ask("setUserVerified", &json!({ "isUserVerified": is }));
    }

    /// Whether its owner touches it by themselves.
    pub(crate) fn is_touched(&self, is: bool) {
        self.ask("setAutomaticPresenceSimulation", &json!({ "enabled": is }));
    }

    /// Its passkeys, with their private keys and counters.
    pub(crate) fn passkeys(&self) -> Vec<Value> {
        self.ask("getCredentials", &json!({}))["credentials"].as_array().unwrap().clone()
    }

    /// Puts a passkey in the place of the one of the same id.
    pub(crate) fn replace(&self, passkey: &Value) {
        self.ask("removeCredential", &json!({ "credentialId": passkey["credentialId"] }));
        self.ask("addCredential", &json!({ "credential": passkey }));
    }
}
