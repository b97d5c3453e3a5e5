use std::collections::HashMap;

use tools::{cut, text};

use crate::store::{Cache, Keeps, Store, filled as full};

#[derive(Clone, Copy)]
pub enum State {
    Open,
    Paid(u32),
}

impl State {
    //? src/orders.rs:State.Paid
    pub fn paid(amount: u32) -> Self {
        Self::Paid(amount)
    }

    pub fn is_paid(self) -> bool {
        matches!(self, Self::Paid(_))
    }
}

pub struct Orders {
    store: Box<Store>,
    by_name: HashMap<String, State>,
}

impl Orders {
    //? src/store/mod.rs:filled
    pub fn open() -> Self {
        Orders { store: Box::new(full()), by_name: HashMap::new() }
    }

    //? src/store/mod.rs:Store.find src/store/cache.rs:Cache.sync
    pub fn look(&mut self) {
        self.store.find("a");
        self.store.cache.sync();
        self.by_name.get("a");
    }

    //? src/orders.rs:Orders.open src/orders.rs:Orders.look
    pub fn both() {
        let mut orders = Orders::open();
        orders.look();
    }

    //? util/src/text.rs:shorten util/src/text.rs:twice util/src/lib.rs:join
    pub fn words(&self) -> String {
        cut("a");
        text::twice("b");
        tools::join("c", "d")
    }
}

//? src/store/mod.rs:Keeps.keep_twice
pub fn generic(store: &mut impl Keeps) {
    store.keep_twice("a");
}

//? src/orders.rs:State.is_paid src/orders.rs:State.paid
pub fn cases() -> bool {
    let state = State::paid(1);
    state.is_paid()
}

//? src/store/cache.rs:Cache.find
pub fn closures(all: Vec<u32>) {
    let cache = Cache::new_like_nothing();
    let made: Cache = Cache;
    let each = |made: &Cache| made.find("a");
    for cache in all {
        cache.find();
    }
    each(&made);
}

//? src/orders.rs:Orders.words src/lib.rs:start
pub fn along(orders: &Orders) {
    println!("{}", orders.words());
    crate::start();
}
