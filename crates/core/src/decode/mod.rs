//! The loops over a session: prompts in chunks, one token per row and step, beams, a session kept between calls.

mod assisted;
mod beam;
mod chunks;
mod clock;
mod contrastive;
mod custom;
mod dola;
mod feed;
mod guidance;
mod lens;
mod pace;
mod padding;
pub(crate) mod prefill;
mod prompts;
pub mod resume;
mod single;
mod writing;

pub use chunks::chunks;
pub use custom::{CustomGenerate, Prepared};
pub use padding::AttentionMask;
pub use resume::KeptSession;

pub(crate) use assisted::Assisted;
pub(crate) use beam::Beams;
pub(crate) use clock::{Clock, check_numbers};
pub(crate) use contrastive::{Contrastive, states as contrastive_states};
pub(crate) use feed::feed;
pub(crate) use guidance::Guidance;
pub(crate) use lens::Lens;
pub(crate) use prompts::{OPEN_END, Prompt, check};
pub(crate) use resume::{keep, resume};
pub(crate) use single::{Chooser, Single};
pub(crate) use writing::Writing;
