//! A desk for questions about code at the A6s door, with a stand-in for the model that answers.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::support::a6s_client::{OPEN, Socket};
use crate::support::loopback_client::Http;
use crate::support::{Daemon, World};

/// Stands in for a language model, and says so.
pub(crate) const ANSWERS: &str = include_str!("../fixtures/agents/answers.sh");

/// A world with an agent, and what lies beside that agent.
pub(crate) struct Desk {
    pub(crate) world: World,
    pub(crate) tools: PathBuf,
}

impl Desk {
    /// With one agent whose work consists of this, and more for the configuration.
    pub(crate) fn new(output: &str, more: &str) -> Self {
        let world = World::new();
        let desk = Self { tools: world.path("tools"), world };
        std::fs::create_dir_all(&desk.tools).unwrap();
        desk.put("agent.sh", ANSWERS);
        let agent = desk.entry("coder-ai", output, "");
        desk.world.configure(&format!("{OPEN}{more}\n{agent}"));
        desk
    }

    /// The entry of one more agent.
    pub(crate) fn entry(&self, id: &str, output: &str, more: &str) -> String {
        let tools = self.tools.display();
        format!(
            "[[agent]]\nid = \"{id}\"\ncommand = [\"/bin/sh\", \"{tools}/agent.sh\"]\nread_only = [\"{tools}\"]\n\
             output = \"{output}\"\n{more}\n"
        )
    }

    /// Sets what the agent does or says from now on.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.tools.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.tools.join(name)).unwrap();
    }

    /// A file of the workspace, as editors call it.
    pub(crate) fn file(&self, path: &str, text: &str) -> String {
        let file = self.world.repo().join(path);
        self.world.put(&file, text);
        file.to_string_lossy().into_owned()
    }

    pub(crate) fn start(&self) -> (Daemon, Socket) {
        let daemon = self.world.start();
        (daemon, self.socket())
    }

    pub(crate) fn socket(&self) -> Socket {
        let socket = Socket::open(Http::a6s(&self.world));
        socket.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        socket
    }
}

/// Jobs that were begun.
pub(crate) fn begun(socket: &mut Socket) -> usize {
    socket.result("background.list", &json!({})).as_array().unwrap().len()
}
