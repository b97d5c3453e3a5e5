//! The jail of tier `job` itself. What is tried is what Wine does; `docs/windows.md` lists what it does not.

use std::fs::{self, OpenOptions};
use std::os::windows::io::AsRawHandle as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use provost::base::Ttl;
use provost::jail::{
    Draft, Environment, Exit, ExitReason, ForbiddenPaths, Layer, LiveOutput, Plan, SetupError, Step, Stream,
    Supervisor, Tier, find_place, launch, make_worker_folder, probe, resolve_program,
};
use tempfile::TempDir;
use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation};

use crate::support::eventually;
use crate::workers::program;

struct Ground {
    dir: TempDir,
}

impl Ground {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for name in ["home", "state"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        make_worker_folder(&dir.path().join("copy")).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        provost::system::real_path(self.dir.path()).unwrap().join(name)
    }

    fn draft(&self, args: &[&str]) -> Draft {
        let host = std::env::vars();
        let copy = find_place(&self.path("copy")).unwrap();
        let mut draft = Draft::new(resolve_program(&program()).unwrap(), Environment::new(host), copy);
        draft.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        draft.tier = Tier::Job;
        draft.limits.wall = Ttl::seconds_clamped(20);
        draft
    }

    /// As Wine can keep it: it restricts no token.
    fn unrestricted(&self, draft: Draft) -> Plan {
        self.plan(draft).without(&[Layer::Token])
    }

    fn plan(&self, draft: Draft) -> Plan {
        draft.check(&ForbiddenPaths { home: self.path("home"), forbidden: vec![self.path("state")] }).unwrap()
    }
}

async fn run(plan: &Plan, input: Option<&[u8]>) -> Result<(Exit, String), SetupError> {
    let output = LiveOutput::new(1 << 20);
    let input = input.map(<[u8]>::to_vec);
    let mut running = launch(&Supervisor::default(), plan, input, output.clone()).await?;
    let exit = running.wait().await;
    Ok((exit, output.text(Stream::Out).replace('\r', "")))
}

fn inheritable(path: &Path) -> fs::File {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path).unwrap();
    // SAFETY: the handle is open for as long as the file is.
    #[expect(unsafe_code, reason = "no safe word for it")]
    let done =
        unsafe { SetHandleInformation(file.as_raw_handle(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) };
    assert_ne!(done, 0);
    file
}

/// Wine's token does not confine, which is found out by trying it; then nothing runs, and `doctor` says so.
#[tokio::test]
async fn nothing_runs_where_the_token_does_not_confine() {
    let ground = Ground::new();
    let refused = run(&ground.plan(ground.draft(&["hold", "ran"])), None).await.unwrap_err();
    assert_eq!(refused.step, Step::Token, "{refused}");
    assert!(refused.to_string().contains("write everywhere"), "{refused}");
    assert!(!ground.path("copy/ran").exists());
    let host = probe(&Supervisor::default()).await;
    assert_eq!(host.tiers, [], "{host:?}");
    let names: Vec<_> = host.findings.iter().map(|it| (it.name, it.works)).collect();
    let expected =
        [("job objects", true), ("write-restricted token", false), ("reading", false), ("network", false)];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn nothing_runs_when_a_step_fails() {
    let ground = Ground::new();
    for step in Step::all(Tier::Job) {
        let plan = ground.unrestricted(ground.draft(&["grow", "ran"])).failing_at(*step);
        let refused = run(&plan, None).await.unwrap_err();
        assert_eq!((refused.step, refused.cause.as_str()), (*step, "made to fail"));
        assert!(!ground.path("copy/ran").exists(), "{step:?}");
    }
    let mut draft = ground.draft(&["grow", "ran"]);
    draft.tier = Tier::Ns;
    let refused = run(&ground.unrestricted(draft), None).await.unwrap_err();
    assert_eq!(refused.step, Step::System, "{refused}");
}

#[tokio::test]
async fn input_output_and_exit_code_pass_through() {
    let ground = Ground::new();
    let plan = ground.unrestricted(ground.draft(&["tell", "a b", r#"q"\"#, ""]));
    let (exit, said) = run(&plan, Some(b"to read")).await.unwrap();
    assert_eq!(exit.reason, ExitReason::Code(7), "{said}");
    assert!(said.starts_with("argument a b\nargument q\"\\\nargument \n"), "{said}");
    assert!(said.ends_with("to read"), "{said}");
    let (_, said) = run(&plan, None).await.unwrap();
    assert!(!said.contains("to read"), "{said}");
}

#[tokio::test]
async fn no_handle_of_ours_is_inherited() {
    let ground = Ground::new();
    let ours = inheritable(&ground.path("ours"));
    let number = (ours.as_raw_handle().addr()).to_string();
    let (_, said) = run(&ground.unrestricted(ground.draft(&["handle", &number])), None).await.unwrap();
    assert_eq!(said, "has it not\n");
    // The same attempt without the jail.
    let plain = Command::new(program()).args(["handle", &number]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&plain.stdout).trim(), "has it");
}

#[tokio::test]
async fn nothing_leaves_the_job_and_all_of_it_ends_when_it_is_let_go() {
    let ground = Ground::new();
    let (_, said) = run(&ground.unrestricted(ground.draft(&["break"])), None).await.unwrap();
    assert_eq!(said, "held\n");
    let plan = ground.unrestricted(ground.draft(&["tree", "held"]));
    let output = LiveOutput::new(1 << 20);
    let running = launch(&Supervisor::default(), &plan, None, output.clone()).await.unwrap();
    assert_eq!(running.layers()[0], "job object");
    let files = [ground.path("copy/held.1"), ground.path("copy/held.2")];
    eventually("the tree", || files.iter().all(|file| file.exists()));
    assert!(files.iter().all(|file| fs::remove_file(file).is_err()), "somebody holds them");
    drop(running);
    // The end is brought about by the runtime, which the test must not hold up.
    for file in files {
        while fs::remove_file(&file).is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn a_private_folder_is_removed_with_its_worker() {
    let ground = Ground::new();
    let (_, said) = run(&ground.unrestricted(ground.draft(&["tell"])), None).await.unwrap();
    let home = said.lines().find_map(|line| line.strip_prefix("variable USERPROFILE=")).unwrap();
    assert!(home.contains("provost-") && !Path::new(home).exists(), "{home}");
}
