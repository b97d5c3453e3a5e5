//! Access lists of Windows, judged by their text. Texts as Windows gives them.

use provost::system::descriptor::{owned, private, trusted};

const US: &str = "S-1-5-21-1004336348-1177238915-682003330-1001";
const OTHER: &str = "S-1-5-21-1004336348-1177238915-682003330-1002";

/// A folder of a profile: the system, administrators and its owner, inherited.
fn of_a_profile() -> String {
    format!("O:{US}D:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIID;FA;;;{US})")
}

#[test]
fn a_folder_of_a_profile_is_its_owners_alone() {
    let text = of_a_profile();
    assert_eq!(owned(&text, US), Ok(()));
    assert_eq!(private(&text, US), Ok(()));
    assert_eq!(trusted(&text, US), Ok(()));
    assert!(private(&text, OTHER).unwrap_err().contains("belongs to"), "seen by somebody else");
    assert_eq!(private("O:BAD:P(A;;FA;;;OW)(D;;FA;;;WD)(A;;FA;;;LA)", US), Ok(()), "an administrator's");
}

#[test]
fn what_others_may_read_is_trusted_and_not_private() {
    for rights in ["FR", "FRFX", "GRGX", "0x1200a9", "0x120089"] {
        for who in ["BU", "WD", OTHER] {
            let text = format!("{}(A;OICI;{rights};;;{who})", of_a_profile());
            assert_eq!(trusted(&text, US), Ok(()), "{rights}");
            assert!(private(&text, US).unwrap_err().contains(who), "{rights}");
        }
    }
}

#[test]
fn what_others_may_change_is_neither() {
    for rights in
        ["FA", "GA", "GW", "FW", "FRFW", "WD", "WO", "SD", "DC", "0x1301bf", "0x2", "0x40000000", "0xg", "F"]
    {
        let text = format!("{}(A;;{rights};;;BU)", of_a_profile());
        assert!(trusted(&text, US).unwrap_err().contains("BU"), "{rights}");
        assert!(private(&text, US).is_err(), "{rights}");
    }
}

#[test]
fn what_is_not_understood_lets_others_in() {
    let owner = format!("O:{US}");
    let odd = [
        String::new(),
        owner.clone(),
        format!("{owner}D:NO_ACCESS_CONTROL"),
        format!("{owner}D:(XA;;FX;;;BU;(x==1))"),
        format!("{owner}D:(OA;;CR;guid;;WD)"),
        format!("{owner}D:(A;;FA;guid;;{US})"),
        format!("{owner}D:(A;;FA)"),
        format!("{owner}D:(Z;;;;;{US})"),
        format!("O:{OTHER}D:P(A;;FA;;;{US})"),
        "D:P(A;;FA;;;SY)".to_owned(),
    ];
    for text in odd {
        assert!(private(&text, US).is_err(), "{text}");
        assert!(trusted(&text, US).is_err(), "{text}");
    }
    assert!(private(&of_a_profile(), "").is_err(), "a user that is not known is nobody");
    // What is audited is nobody's right.
    assert_eq!(private(&format!("{}S:AI(AU;SA;FA;;;WD)", of_a_profile()), US), Ok(()));
}
