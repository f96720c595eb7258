//! The commands, one file each.

pub mod cache;
pub mod chat;
pub mod completions;
pub mod demo;
pub mod demo_model;
pub mod detect;
pub mod embed;
pub mod generate;
pub mod import;
pub mod inspect;
pub mod notice;
pub mod reading;
pub mod score;
pub mod spoken;
