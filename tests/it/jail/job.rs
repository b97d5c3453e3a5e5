//! The limits of a worker of tier `job` on Windows, as text and numbers. They are in force in `tests/windows` alone.

use provost::jail::{
    JobLimits, Network, OPEN_IN_JOB, PlanRefused, Topic, command_line, environment_block, folder_descriptor,
    folder_identity, job_environment, job_limits, object_descriptor, probe,
};

use crate::support::jails::*;

fn line(program: &str, args: &[&str]) -> Result<String, String> {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    command_line(Path::new(program), &args)
}

#[test]
fn arguments_arrive_as_they_were_given() {
    let tool = r"C:\Tools and more\tool.exe";
    let quoted = line(tool, &["plain", "two words", "", r#"a "quote""#, r"C:\end\", r#"\\" x"#]).unwrap();
    let expected =
        r#""C:\Tools and more\tool.exe" "plain" "two words" "" "a \"quote\"" "C:\end\\" "\\\\\" x""#;
    assert_eq!(quoted, expected);
    // The shell takes everything after its last option as it is.
    let shell = line(r"C:\Windows\System32\CMD.EXE", &["/d", "/s", "/c", r#"echo "x" & dir"#]).unwrap();
    assert_eq!(shell, r#""C:\Windows\System32\CMD.EXE" /d /s /c "echo "x" & dir""#);
}

#[test]
fn what_windows_would_start_through_a_shell_is_refused() {
    for program in [r"C:\tool.bat", r"C:\tool.cmd", r"C:\tool.ps1", r"C:\tool", r"C:\tool.exe.", r"C:\a.exe "]
    {
        assert!(line(program, &[]).unwrap_err().contains("not an .exe"), "{program}");
    }
    assert!(line("C:\\a\".exe", &[]).unwrap_err().contains("quotation mark"));
    let long = "x".repeat(40_000);
    assert!(line(r"C:\tool.exe", &[&long]).unwrap_err().contains("longer than"));
}

#[test]
fn each_folder_has_an_identity_and_lets_that_one_change_it() {
    let (one, two) = (folder_identity(Path::new("/copies/one")), folder_identity(Path::new("/copies/two")));
    assert_ne!(one, two);
    assert_eq!(one, folder_identity(Path::new("/elsewhere/one")), "its own name makes it");
    let parts: Vec<&str> = one.strip_prefix("S-1-5-21-").unwrap().split('-').collect();
    assert_eq!(parts.len(), 4);
    assert!(parts.iter().all(|part| part.parse::<u32>().is_ok()), "{one}");
    let text = folder_descriptor("S-1-5-21-1", &one);
    assert!(text.starts_with("D:P(A;OICI;FA;;;S-1-5-21-1)"), "nobody else comes in from above: {text}");
    assert!(text.contains(&format!("(A;OICI;0x1301bf;;;{one})")), "{text}");
    assert!(text.ends_with("S:(ML;OICI;NW;;;LW)"), "{text}");
    // Neither the folder's rights nor its owner, nor deleting the folder's own entries in the name of the
    // folder.
    assert_eq!(0x1301bf & (0x4_0000 | 0x8_0000 | 0x40), 0);
    let objects = object_descriptor("S-1-5-21-1", &[one.clone(), two.clone()]);
    assert_eq!(objects, format!("D:(A;;GA;;;S-1-5-21-1)(A;;GA;;;SY)(A;;GA;;;{one})(A;;GA;;;{two})"));
}

#[test]
fn limits_are_those_of_the_plan_in_the_systems_units() {
    let limits = Limits {
        processes: 7,
        data_bytes: 1 << 20,
        resident_bytes: 2 << 20,
        cpu_seconds: 3,
        ..Limits::default()
    };
    let expected =
        JobLimits { processes: 7, process_bytes: 1 << 20, job_bytes: 2 << 20, process_time: 30_000_000 };
    assert_eq!(job_limits(&limits), expected);
    let endless = job_limits(&Limits { cpu_seconds: u64::MAX, ..limits });
    assert_eq!(endless.process_time, i64::MAX, "never less for being more");
}

#[test]
fn variables_lead_to_the_private_folder_and_nowhere_else() {
    let world = World::new();
    let mut draft = world.sh("true").tier(Tier::Job);
    draft.environment.set("EXTRA", "more").unwrap();
    let all = job_environment(&world.plan(draft), Path::new("/tmp/provost-1"));
    let value = |name: &str| all.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    for name in ["HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
        assert_eq!(value(name), Some("/tmp/provost-1/home"), "{name}");
    }
    for name in ["TEMP", "TMP", "TMPDIR"] {
        assert_eq!(value(name), Some("/tmp/provost-1/tmp"), "{name}");
    }
    assert_eq!(value("EXTRA"), Some("more"));
    let names: Vec<&String> = all.iter().map(|(name, _)| name).collect();
    assert!(names.is_sorted(), "{names:?}");
    let block = environment_block(&[("A".into(), "1".into()), ("B".into(), "ö".into())]);
    assert_eq!(block, "A=1\0B=ö\0\0".encode_utf16().collect::<Vec<_>>());
}

#[test]
fn a_plan_of_tier_job_says_what_stays_open() {
    let world = World::new();
    let plan = world.plan(world.sh("true").tier(Tier::Job));
    let facts = plan.describe();
    let said = |topic: Topic| -> String {
        facts.iter().filter(|(known, _)| *known == topic).map(|(_, text)| format!("{text}\n")).collect()
    };
    assert!(said(Topic::Read).contains("NOT walled in"));
    assert!(said(Topic::Network).contains("NOT walled in"));
    assert!(said(Topic::Protected).contains("nothing: tier job"));
    assert!(said(Topic::Masked).contains("nothing"));
    assert!(said(Topic::Tier).starts_with("job: writes only"));
    assert!(said(Topic::Limits).contains("job object") && !said(Topic::Limits).contains("RLIMIT"));
    assert!(OPEN_IN_JOB.iter().any(|open| open.attempt == "job.network"));

    let mut networked = world.sh("true").tier(Tier::Job);
    (networked.network, networked.outlets) = (Network::Ports(vec![80]), vec![80]);
    let forbidden_paths = ForbiddenPaths { home: world.path("home"), forbidden: vec![] };
    assert_eq!(networked.check(&forbidden_paths).unwrap_err(), PlanRefused::NetworkInJob);
}

#[tokio::test]
async fn linux_has_no_tier_job() {
    let world = World::new();
    let plan = world.plan(world.sh("touch ran").tier(Tier::Job));
    let refused = launch(&Supervisor::default(), &plan, None, LiveOutput::new(1 << 10)).await.unwrap_err();
    assert!(refused.to_string().contains("tier job is for Windows"), "{refused}");
    assert!(!world.path("workspace/ran").exists());
    assert!(!probe(&supervisor()).await.tiers.contains(&Tier::Job));
}
