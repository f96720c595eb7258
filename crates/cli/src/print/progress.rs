//! Progress bars on standard error; invisible when it is not a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over `total` bytes.
pub fn bytes(total: u64, what: &str) -> ProgressBar {
    bar(total, what, "{msg} [{wide_bar}] {bytes}/{total_bytes} ({eta})")
}

/// A bar over `total` prompts of which `done` were answered before.
pub fn prompts(total: u64, done: u64) -> ProgressBar {
    let bar = bar(total, "prompts", "{msg} [{wide_bar}] {pos}/{len} ({eta})");
    bar.set_position(done);
    bar.reset_eta();
    bar
}

fn bar(total: u64, what: &str, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_message(what.to_string())
}
