//! The loops over a session: prompts in chunks, one token per row and step, a session kept between calls.

mod assisted;
mod clock;
mod guidance;
mod pace;
pub mod prefill;
mod prompts;
pub mod resume;
mod single;
mod writing;

pub use prefill::chunks;
pub use resume::KeptSession;

pub(crate) use assisted::Assisted;
pub(crate) use clock::Clock;
pub(crate) use guidance::Guidance;
pub(crate) use prompts::{Prompt, check};
pub(crate) use resume::resume;
pub(crate) use single::{Chooser, Single};
pub(crate) use writing::Writing;
