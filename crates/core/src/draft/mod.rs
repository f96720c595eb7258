//! Drafts: cheap guesses at the next tokens, verified many at a time by the model. <https://arxiv.org/abs/2211.17192>.

mod align;
pub mod assistant;
mod choice;
mod confidence;
pub mod contract;
mod drafter;
pub mod prompt_lookup;
pub mod translated;

pub use assistant::Assistant;
pub use contract::{Ask, Assist, Draft, Drafted, Start, StartRow};
pub use prompt_lookup::PromptLookup;
pub use translated::{TranslatedAssistant, Translation};

pub(crate) use choice::from_settings;
pub(crate) use contract::Candidate;
