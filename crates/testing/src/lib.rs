//! Test support of Unspool: a model that plays written scores and records what it was asked, and the laws of the port as
//! checks that any model can be held against.

pub mod engines;
mod known_draft;
pub mod laws;
pub mod log;
pub mod scale;
pub mod scripted_model;
mod scripted_session;
pub mod tables;

pub use engines::engines_may_be_missing;
pub use known_draft::KnownDraft;
pub use laws::{Tolerance, check_batch_law, check_cache_law, check_step_law, random_prompts};
pub use log::{Call, CallLog, StepRow};
pub use scale::scaled;
pub use scripted_model::ScriptedModel;
