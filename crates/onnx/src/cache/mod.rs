//! Sessions: one per cache mode, over one kind of memory.

pub mod append;
pub mod fixed;
pub mod grow;
pub mod in_place;
pub mod kv;
pub mod lineage;
pub mod none;
pub mod runner;
pub mod session;
