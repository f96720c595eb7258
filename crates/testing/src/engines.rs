//! Whether a test may pass without the engine that it is about.

/// Whether tests of an engine that is not on this machine are skipped. They fail where `UNSPOOL_REQUIRE_ENGINES` or `CI` is
/// set, so that they cannot pass there by not running.
pub fn engines_may_be_missing() -> bool {
    let set = |name: &str| std::env::var(name).is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    !set("UNSPOOL_REQUIRE_ENGINES") && !set("CI")
}
