use super::{Cache, Store};

impl Store {
    //? src/store/disk.rs:flush src/store/cache.rs:Cache.find
    pub(super) fn write_down(&self) {
        flush(&self.cache);
        self.cache.find("x");
    }
}

//? src/store/cache.rs:Cache.find
fn flush(cache: &Cache) {
    cache.find("y");
}
