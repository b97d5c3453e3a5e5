pub mod orders;
pub mod store;

pub use store::{self as storage, Store};

macro_rules! twice {
    ($it:expr) => {
        ($it, $it)
    };
}

//? src/store/mod.rs:filled src/lib.rs:twice src/lib.rs:one
pub fn start() -> Store {
    let _two = twice!(one());
    storage::filled()
}

fn one() -> u32 {
    1
}

//?
pub fn shadowed(one: fn() -> u32) -> u32 {
    one()
}

//? src/lib.rs:one
pub fn named_like_its_value() -> u32 {
    let one = one();
    one
}

mod inner {
    use super::*;

    //? src/lib.rs:one src/lib.rs:inner.deep
    pub fn one() -> u32 {
        self::deep();
        super::one()
    }

    //? src/lib.rs:start
    fn deep() {
        start();
    }
}

#[cfg(test)]
mod tests {
    use super::inner;

    //? src/lib.rs:inner.one src/lib.rs:start
    #[test]
    fn it_starts() {
        assert_eq!(inner::one(), 1);
        super::start();
    }
}
