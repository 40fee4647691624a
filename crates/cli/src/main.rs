//! The `onrush` command.
fn main() {}
