//! The command line: what can be said, and what it means.

pub mod assistant;
pub mod cache;
pub mod command;
pub mod fields;
pub mod help;
pub mod model;
pub mod prompts;
pub mod switches;
pub mod template;
pub mod texts;
pub mod wrong;
