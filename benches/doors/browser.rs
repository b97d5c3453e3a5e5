//! A real Chromium, driven by its own protocol, for what a person waits for in the page.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::http::Server;
use crate::socket::{Socket, frame};

/// How long its start may take.
const START_MAX: Duration = Duration::from_secs(60);

/// A browser without a screen, with one tab; ended when dropped.
pub(crate) struct Browser {
    child: Child,
    socket: Socket,
    session: String,
    asked: u64,
}

impl Browser {
    /// Starts one below a folder of its own; `None` where there is no Chromium.
    pub(crate) async fn start(folder: &Path) -> Result<Option<Self>> {
        std::fs::create_dir_all(folder)?;
        let spawned = Command::new("chromium")
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-quic", "--no-proxy-server", "--enable-precise-memory-info"])
            .args(["--remote-debugging-port=0", "about:blank"])
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = spawned else { return Ok(None) };
        let file = folder.join("profile/DevToolsActivePort");
        let begun = Instant::now();
        let (port, path) = loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            if let Some((port, path)) = text.split_once('\n') {
                break (port.parse()?, path.trim().to_owned());
            }
            ensure!(begun.elapsed() < START_MAX, "the browser does not start");
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let socket = Socket::at(Server::new(port, child.id()), &path).await?;
        let mut browser = Self { child, socket, session: String::new(), asked: 0 };
        let target = browser.ask("Target.createTarget", &json!({ "url": "about:blank" })).await?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let said = browser.ask("Target.attachToTarget", &attach).await?;
        browser.session = said["sessionId"].as_str().context("a session")?.to_owned();
        browser.ask("Page.enable", &json!({})).await?;
        Ok(Some(browser))
    }

    /// Sends a request, whose number is returned.
    async fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.asked += 1;
        let mut request = json!({ "id": self.asked, "method": method, "params": params });
        if !self.session.is_empty() {
            request["sessionId"] = json!(self.session);
        }
        self.socket.send(&frame(&request.to_string())).await?;
        Ok(self.asked)
    }

    /// The answer to the request of this number; events are passed over.
    async fn answer(&mut self, id: u64) -> Result<Value> {
        loop {
            let message: Value = serde_json::from_slice(&self.socket.message().await?)?;
            if message["id"] == id {
                ensure!(message["error"].is_null(), "the browser refuses: {message}");
                return Ok(message["result"].clone());
            }
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send(method, params).await?;
        self.answer(id).await
    }

    /// Runs a script before those of each document from now on.
    pub(crate) async fn before(&mut self, source: &str) -> Result<()> {
        self.ask("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": source })).await.map(drop)
    }

    /// Goes to an address.
    pub(crate) async fn go(&mut self, address: &str) -> Result<()> {
        let said = self.ask("Page.navigate", &json!({ "url": address })).await?;
        match said["errorText"].as_str() {
            Some(why) => bail!("{address}: {why}"),
            None => Ok(()),
        }
    }

    /// Begins to evaluate an expression, whose promise is waited for by [`Self::value`].
    pub(crate) async fn begin(&mut self, expression: &str) -> Result<u64> {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        self.send("Runtime.evaluate", &params).await
    }

    /// What an expression has come to.
    pub(crate) async fn value(&mut self, id: u64) -> Result<Value> {
        let said = self.answer(id).await?;
        ensure!(said["exceptionDetails"].is_null(), "a script fails: {said}");
        Ok(said["result"]["value"].clone())
    }

    /// The value of an expression; a promise is waited for.
    pub(crate) async fn eval(&mut self, expression: &str) -> Result<Value> {
        let id = self.begin(expression).await?;
        self.value(id).await
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
