//! What people type: a line editor with history on a terminal, plain lines elsewhere.

pub mod editor;
pub mod lines;
pub mod message;
mod nonblocking;
