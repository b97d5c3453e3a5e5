//! MCP, for agents' hosts: over standard input and over loopback HTTP.

mod changes;
mod conformance;
mod connection;
mod crew;
mod devit;
mod elicitation;
mod examined;
mod hostile;
mod hosts;
#[cfg(unix)]
mod http;
mod named_resources;
mod older_tasks;
mod own_word;
mod pictures;
#[cfg(unix)]
mod proof;
mod resources;
mod shapes;
mod strained;
mod surface;
mod taking_in;
mod tasks;
mod texts;
mod workers;
