//! The look of names: two names that cannot be told apart have the same look.

use provost::base::look_of;

#[test]
fn a_character_of_ascii_looks_the_same_whatever_stands_beside_it() {
    // A text with a character beyond ASCII is looked up as a whole, one of ASCII alone by its characters.
    let beyond = "\u{436}";
    let ascii = || (0..128_u8).map(char::from);
    for (one, other) in ascii().flat_map(|one| ascii().map(move |other| (one, other))) {
        let text = format!("{one}{other}");
        assert_eq!(look_of(&format!("{text}{beyond}")), look_of(&text) + &look_of(beyond), "{text:?}");
    }
}

#[test]
fn names_that_are_read_as_one_another_look_the_same() {
    for (one, other) in [("pr0vost", "provost"), ("hurnan", "human"), ("H0ST", "host"), ("1ist", "list")] {
        assert_eq!(look_of(one), look_of(other), "{one}");
    }
    assert_ne!(look_of("feat-a"), look_of("feat-b"));
    assert_ne!(look_of("provost"), look_of("provosts"));
}
