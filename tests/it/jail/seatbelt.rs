//! The profile that a Mac gets for a plan, as text. It was never in force anywhere in these tests.

use provost::jail::{Missing, ReadOnlyPath, SEATBELT_LACKS, seatbelt_profile};

use crate::support::jails::*;

fn profile(draft: Draft, world: &World) -> String {
    seatbelt_profile(&world.plan(draft), Path::new("/private/tmp/provost-1")).unwrap()
}

/// Where a rule stands; of two that fit, the later one counts.
#[track_caller]
fn line(profile: &str, rule: &str) -> usize {
    profile.lines().position(|line| line == rule).unwrap_or_else(|| panic!("no {rule}\n{profile}"))
}

#[test]
fn a_profile_denies_what_it_does_not_allow_and_protects_last() {
    let world = World::new();
    let mut draft = world.sh("true").tier(Tier::Ll);
    draft.read_only.push(find_place(&world.path("outside")).unwrap());
    draft.guards.push(ReadOnlyPath {
        path: provost::base::RepoPath::parse("ci/deep/steps").unwrap(),
        missing: Missing::Leave,
    });
    let text = profile(draft, &world);
    let workspace = world.workspace().display().to_string();
    assert!(text.starts_with("(version 1)\n(deny default)\n"));
    line(&text, &format!("(allow file-read* (subpath \"{}\"))", world.path("outside").display()));
    let writes = line(&text, &format!("(allow file-read* file-write* (subpath \"{workspace}\"))"));
    line(&text, "(allow file-read* file-write* (subpath \"/private/tmp/provost-1\"))");
    let root = workspace.replace('.', "\\.");
    let repository = format!("(deny file-write* (regex #\"^{root}/\\.[gG][iI][tT](/.*)?$\"))");
    assert!(line(&text, &repository) > writes, "what is protected is denied after it was allowed");
    // Nothing on the way to it can be renamed.
    line(&text, &format!("(deny file-write-unlink (literal \"{workspace}\"))"));
    line(&text, &format!("(deny file-write-unlink (regex #\"^{root}/[cC][iI]/[dD][eE][eE][pP]$\"))"));
    line(
        &text,
        &format!("(deny file-read* file-write* (regex #\"^{root}/\\.[dD][eE][vV][iI][tT](/.*)?$\"))"),
    );
    assert!(!text.contains("network"), "{text}");
    for service in ["SecurityServer", "securityd", "launchd", "appleevents", "pasteboard", "coreservices"] {
        assert!(!text.to_lowercase().contains(&service.to_lowercase()), "{service}");
    }
    assert_eq!(text.matches("mach-lookup").count(), 1);
    assert!(
        !text.contains(&format!("(subpath \"{}\")", world.path("home").display())),
        "the home stays shut"
    );
    assert!(!SEATBELT_LACKS.is_empty());
}

#[test]
fn no_name_of_a_directory_can_say_something_in_a_profile() {
    let world = World::new();
    let odd = world.path("outside/a\"b\\c)(allow default");
    fs::create_dir(&odd).unwrap();
    let mut draft = world.sh("true").tier(Tier::Ll);
    draft.writable.push(find_place(&odd).unwrap());
    let text = profile(draft, &world);
    assert!(
        !text.lines().any(|line| line.contains("(allow default")
            && !line.contains("a\\\"b\\\\c)(allow default")
            && !line.contains("#\"")),
        "{text}"
    );
    for line in text.lines().filter(|line| line.contains("#\"")) {
        assert_eq!(line.matches('"').count(), 2, "an expression holds no quote of its own: {line}");
    }
}
