//! A person on the page in a real browser: enrols a passkey, and does what stands with a row.

use crate::support::World;
use crate::support::browser::{Tab, Virtual};
use crate::support::passkeys::code;

/// Enrols the first passkey of a world on the page at this address.
pub(crate) fn enrol<'a>(world: &World, tab: &'a Tab<'a>, page: &str) -> Virtual<'a> {
    let authenticator = tab.authenticator("internal");
    tab.go(page);
    tab.until("the form", "document.querySelector('#code')");
    tab.eval("document.querySelector('#code').focus()");
    tab.write(&code(world));
    tab.eval("document.querySelector('#passkey-name').focus()");
    tab.write("phone");
    tab.click("button[data-does=enrol]");
    tab.shows("phone answers from now on");
    authenticator
}

/// Opens what can be done about the row that has a button for this, and what has to be written for it.
pub(crate) fn open(tab: &Tab<'_>, does: &str) {
    tab.until(does, &format!("document.querySelector('button[data-does={does}]')"));
    tab.eval(&format!("{{ const it = document.querySelector('button[data-does={does}]').closest('details'); if (it) it.open = true; }} true"));
}

/// Writes into the field that stands with the button for this.
pub(crate) fn write(tab: &Tab<'_>, does: &str, text: &str) {
    tab.eval(&format!(
        "document.querySelector('button[data-does={does}]').closest('.here').querySelector('input, textarea').focus()"
    ));
    tab.write(text);
}
