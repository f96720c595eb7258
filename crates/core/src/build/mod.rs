//! Settings become the ordered parts of a generation: the only place that knows Python's order.
