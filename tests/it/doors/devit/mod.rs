//! The DevIt door, with the workers that its clients delegate to.

mod devitd_form;
mod document;
mod door;
mod fields;
mod hostile_work;
mod policy;
mod results;
mod shell;
mod workers;
