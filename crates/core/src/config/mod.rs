//! Generation settings: Python's fields, their layers, and the checked [`Settings`] a generation runs with.
//!
//! The way of a setting: [`fields`] names it, [`GenerationConfig`] holds what a file or a call says about it, [`Layers`]
//! merges default, model file and call into a [`Resolved`], and [`Settings::resolve`] checks it.

pub mod assisted;
pub mod beams;
pub mod contrast;
pub mod field;
pub mod fields;
pub mod generation_config;
pub mod layers;
pub mod mode;
pub mod rules;
pub mod settings;
pub(crate) mod validate;

pub use assisted::{AssistedSettings, Schedule};
pub use beams::{Beams, Constraint, EarlyStopping};
pub use contrast::{Contrastive, DolaLayers};
pub use field::{Field, Fill, Group, Kind, Neutral, Status};
pub use fields::FIELDS;
pub use generation_config::{GenerationConfig, from_folder_json, shown};
pub use layers::{Layers, Resolved, Source};
pub use mode::GenerationMode;
pub use rules::Rules;
pub use settings::{MaxLength, ModelFacts, Settings};

#[cfg(test)]
mod tests;
