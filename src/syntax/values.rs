//! The value that a constant or a field begins with: the constant or the field calls what its value calls.

use super::walk::Walk;

impl Walk<'_> {
    /// A constant or a field around its value. Where no function is around, it is the caller of what the value calls.
    pub(super) fn open_value(&mut self, symbol: Option<u32>) {
        self.open(symbol);
        self.credit(symbol);
    }

    /// The same for a name whose members are not within the value: `const { a, b } = …`.
    pub(super) fn open_for_value(&mut self, symbol: Option<u32>) {
        self.open(None);
        self.credit(symbol);
    }

    fn credit(&mut self, symbol: Option<u32>) {
        let around = self.scope.caller.map(|caller| self.facts.symbols[caller as usize].kind);
        if !around.is_some_and(|kind| kind.is_callable()) {
            self.scope.caller = symbol.or(self.scope.caller);
        }
    }
}
