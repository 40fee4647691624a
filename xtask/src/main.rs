//! Checks of style and layers.
fn main() {}
