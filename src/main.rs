//! The one executable: a worker's supervisor, a hook's keeper, the daemon, or the command line.

use std::process::ExitCode;

use provost::cli::{self, Ports, Serve};
use provost::daemon::{self, DevitdForm, Start, TakenPorts};

fn main() -> ExitCode {
    // A supervisor forks, so this comes before any thread exists.
    provost::jail::main_if_asked();
    provost::effects::keep_if_asked();
    cli::main(&serve, &daemon::rehearse)
}

/// Connects the command line and the daemon, which do not know each other.
fn serve(asked: Serve) -> anyhow::Result<()> {
    let devitd = asked.devitd.map(|it| DevitdForm { socket: it.socket, secret: it.secret });
    daemon::run(Start {
        places: asked.places,
        config_file: asked.config_file,
        foreground: asked.foreground,
        devitd,
        auto_shutdown_after: asked.auto_shutdown_after,
        ports: match asked.ports {
            Ports::AsConfigured => TakenPorts::Refuse,
            Ports::Unattended => TakenPorts::Avoid,
            Ports::Any => TakenPorts::Replace,
        },
        allow_root: asked.allow_root,
        debug: asked.debug,
        ready: asked.ready,
    })
}
