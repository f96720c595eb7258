//! Many prompts: read from JSON lines, and results written to a file that can be continued.

pub mod chat;
pub mod read;
pub mod results;
pub mod row;
pub mod source;
