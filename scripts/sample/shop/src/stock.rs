//! What is in stock.

/// A shelf of one kind of goods.
pub struct Shelf {
    held: u32,
    reserved: u32,
}

impl Shelf {
    /// How many can still be sold.
    pub fn free(&self) -> u32 {
        self.held.saturating_sub(self.reserved)
    }

    /// Reserves some, if there are as many.
    pub fn reserve(&mut self, wanted: u32) -> bool {
        let enough = wanted <= self.free();
        if enough {
            self.reserved += wanted;
        }
        enough
    }
}
