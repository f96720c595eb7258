//! The commands, one file each.

pub mod chat;
pub mod demo;
pub mod detect;
pub mod generate;
pub mod import;
pub mod inspect;
pub mod notice;
pub mod spoken;
