pub struct Cache;

impl Cache {
    pub fn new() -> Self {
        Cache
    }

    pub fn find(&self, _key: &str) -> u32 {
        0
    }

    pub fn put(&mut self, _key: &str) {}

    #[cfg(unix)]
    pub fn sync(&self) {}

    #[cfg(not(unix))]
    pub fn sync(&self) {}
}
