//! Settings become the ordered parts of a generation: the only place that knows Python's order.

pub mod criteria;
pub mod processors;

pub use criteria::criteria;
pub use processors::processors;
