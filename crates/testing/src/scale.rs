//! How many cases a property is tried with.

/// `cases`, or as many times as many as the environment variable `UNSPOOL_TEST_SCALE` says: `.ci/long` sets it.
///
/// # Panics
///
/// When the variable is no positive number.
pub fn scaled(cases: u32) -> u32 {
    let scale = match std::env::var("UNSPOOL_TEST_SCALE") {
        Ok(text) => text.parse().unwrap_or(0),
        Err(_) => 1,
    };
    assert!(scale > 0, "UNSPOOL_TEST_SCALE must be a positive number");
    cases.saturating_mul(scale)
}
