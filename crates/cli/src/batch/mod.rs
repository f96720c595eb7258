//! Many prompts: reading them from a file of JSON lines, and a result file that survives a cut.

pub mod chat;
pub mod read;
pub mod results;
