//! The `unspool` command line.
fn main() {}
