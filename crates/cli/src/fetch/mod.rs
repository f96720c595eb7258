//! Getting models that are not on this machine yet.

pub mod choice;
pub mod demo;
pub mod hub;
pub mod pip;
