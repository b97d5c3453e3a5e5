//! A store, whose parts are spread over files.
mod disk;
pub(crate) mod cache;

pub use cache::Cache;

pub trait Keeps {
    fn keep(&mut self, key: &str);
    //? src/store/mod.rs:Keeps.keep
    fn keep_twice(&mut self, key: &str) {
        self.keep(key);
        self.keep(key);
    }
}

#[derive(Default)]
pub struct Store {
    pub cache: Cache,
    limit: usize,
}

impl Store {
    //? src/store/cache.rs:Cache.new
    pub fn new() -> Self {
        Self { cache: Cache::new(), limit: 0 }
    }

    //? src/store/cache.rs:Cache.find src/store/mod.rs:Store.grow
    pub fn find(&mut self, key: &str) -> u32 {
        self.grow();
        self.cache.find(key)
    }

    //? src/store/disk.rs:Store.write_down
    fn grow(&mut self) {
        self.limit += 1;
        self.write_down();
    }
}

impl Keeps for Store {
    //? src/store/mod.rs:Store.grow src/store/cache.rs:Cache.put
    fn keep(&mut self, key: &str) {
        self.grow();
        self.cache.put(key);
    }
}

//? src/store/mod.rs:Store.new src/store/mod.rs:Store.find src/store/mod.rs:Keeps.keep_twice
pub fn filled() -> Store {
    let mut store = Store::new();
    store.find("a");
    store.keep_twice("b");
    store
}
