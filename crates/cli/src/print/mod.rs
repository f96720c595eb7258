//! What goes to standard output and standard error.

pub mod file;
pub mod json;
pub mod line;
pub mod out;
pub mod progress;
pub mod streamed;
pub mod summary;
pub mod table;
