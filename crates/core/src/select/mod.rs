//! Processed scores become one token: the best, or one drawn from their softmax.

pub mod argmax;
mod drawable;
pub(crate) mod exp;
pub mod log_prob;
pub(crate) mod mass;
pub mod multinomial;
pub(crate) mod peak;
pub(crate) mod speculative;
pub mod top;
pub mod without_replacement;

pub use argmax::argmax;
pub use log_prob::log_prob;
pub(crate) use log_prob::prob;
pub use multinomial::Multinomial;
pub(crate) use speculative::Speculative;
pub use top::Top;
pub use without_replacement::WithoutReplacement;
