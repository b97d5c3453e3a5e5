//! A person with a passkey at the page of a repository, by raw requests: what is signed goes over the page's door.

use serde_json::{Value, json};

use crate::support::authenticator::{Authenticator, Kind};
use crate::support::loopback_client::{Answer, Http};
use crate::support::passkeys::{assertion, enrol};
use crate::support::{Daemon, World};

const OWN: (&str, &str) = ("Host", "provost.localhost:PORT");
const PAGE: (&str, &str) = ("Origin", "http://provost.localhost:PORT");
const IS_JSON: (&str, &str) = ("Content-Type", "application/json");

/// A person with a passkey at the page of a repository.
pub(crate) struct SigningDesk {
    pub(crate) world: World,
    pub(crate) daemon: Daemon,
    pub(crate) door: Http,
    pub(crate) key: Authenticator,
}

impl SigningDesk {
    pub(crate) fn new(rules: &str) -> Self {
        Self::with(rules, |_| "[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n".to_owned())
    }

    /// With other agents.
    pub(crate) fn with(rules: &str, agents: impl FnOnce(&World) -> String) -> Self {
        let world = World::new();
        world.configure(&format!("[web]\nenabled = true\n{}", agents(&world)));
        world.rule(rules);
        world.write("src/a.py", "def f():\n    return 1\n");
        let daemon = world.start();
        let door = Http::web(&world);
        let mut key = Authenticator::new(Kind::Es256);
        key.origin = format!("http://provost.localhost:{}", door.port);
        let (status, said) = enrol(&world, &mut key, "phone", None);
        assert_eq!(status, 200, "{said}");
        Self { world, daemon, door, key }
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.door.bare(&format!("POST {path}"), &[OWN, PAGE, IS_JSON], body.to_string().as_bytes())
    }

    pub(crate) fn challenge(&self, verb: &str, arguments: &Value) -> Value {
        let answer = self.post("/word-challenge", &json!({ "verb": verb, "arguments": arguments }));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    pub(crate) fn hand_in(&self, challenge: &Value, assertion: &Value) -> Answer {
        self.post("/signed-word", &json!({ "nonce": challenge["nonce"], "assertion": assertion }))
    }

    /// Signs a verb, from the beginning.
    pub(crate) fn act(&mut self, verb: &str, arguments: &Value) -> Answer {
        let challenge = self.challenge(verb, arguments);
        let signed = assertion(&mut self.key, &challenge);
        self.hand_in(&challenge, &signed)
    }

    /// Runs a command as an agent, which has to succeed.
    pub(crate) fn as_agent(&self, agent: &str, arguments: &[&str]) -> Value {
        let output =
            self.world.command(arguments).arg("--json").env("PROVOST_AGENT", agent).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }
}
