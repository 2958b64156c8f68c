//! The `sublane` binary.
fn main() {}
