//! Judgement: rules as they are written, and what they say.

use provost::policy::{Builtin, Layer};

#[test]
fn the_shipped_rules_load_and_their_examples_hold() {
    for it in Builtin::ALL {
        let layer = Layer::parse(it.text(), it.name()).unwrap_or_else(|e| panic!("{e}"));
        assert!(layer.file().rules.len() > 10, "{}", it.name());
    }
}
