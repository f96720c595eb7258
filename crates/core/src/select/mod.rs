//! Processed scores become one token: the best, or one drawn from their softmax.

pub mod argmax;
pub(crate) mod exp;
pub mod log_prob;
pub(crate) mod mass;
pub mod multinomial;
pub(crate) mod peak;
pub(crate) mod speculative;

pub use argmax::argmax;
pub use log_prob::log_prob;
pub use multinomial::Multinomial;

pub(crate) use speculative::Speculative;
