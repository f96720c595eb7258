//! Rules that change a row's scores before a token is picked, one file each.

pub mod chain;
pub mod contract;
pub mod min_p;
pub mod repetition_penalty;
pub(crate) mod softmax;
pub mod temperature;
pub mod top_k;
pub mod top_p;

pub use chain::Chain;
pub use contract::Processor;
pub use min_p::MinP;
pub use repetition_penalty::RepetitionPenalty;
pub use temperature::Temperature;
pub use top_k::TopK;
pub use top_p::TopP;

#[cfg(test)]
mod tests;
