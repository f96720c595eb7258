//! Rules that change a row's scores before a token is picked, one file each.

pub mod contract;

pub use contract::Processor;
