//! Generation settings: Python's fields, their layers, and the checked [`Settings`] a generation runs with.

pub mod settings;

pub use settings::{MaxLength, Settings};
