//! Progress bars on standard error; invisible when it is not a terminal.

use std::sync::{Mutex, OnceLock};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use unspool::OnProgress;
use unspool::hub::{Download, OnDownload};

use crate::commands::notice;

/// A bar over `total` bytes.
pub fn bytes(total: u64, what: &str) -> ProgressBar {
    bar(total, what, "{msg} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec} ({eta})")
}

/// A bar for each file that is downloaded, one after the other.
pub fn downloads() -> OnDownload {
    let shown: Mutex<Option<(String, ProgressBar)>> = Mutex::new(None);
    OnDownload::new(move |download: &Download<'_>| {
        let Ok(mut shown) = shown.lock() else { return };
        if shown.as_ref().is_none_or(|(file, _)| file != download.file) {
            let bar = bytes(download.total.unwrap_or(0), download.file);
            // What an earlier run fetched says nothing about the speed of this one.
            bar.set_position(download.done);
            bar.reset_eta();
            *shown = Some((download.file.to_owned(), bar));
        }
        let Some((_, bar)) = &*shown else { return };
        if let Some(total) = download.total {
            bar.set_length(total);
        }
        bar.set_position(download.done);
        if download.total == Some(download.done) {
            bar.finish_and_clear();
        }
    })
}

/// A bar over the bytes of the checkpoint that is imported.
pub fn import() -> OnProgress {
    let bar = OnceLock::new();
    OnProgress::new(move |progress| {
        // Nothing is known while it waits for another import.
        if progress.total > 0 {
            let bar: &ProgressBar = bar.get_or_init(|| bytes(progress.total_bytes, "importing"));
            bar.set_position(progress.bytes);
            if progress.done == progress.total {
                bar.finish_and_clear();
            }
        }
        Ok(())
    })
}

/// A bar over `total` prompts of which `done` were answered before.
pub fn prompts(total: u64, done: u64) -> ProgressBar {
    let bar = bar(total, "prompts", "{msg} [{wide_bar}] {pos}/{len} ({eta})");
    bar.set_position(done);
    bar.reset_eta();
    bar
}

/// Prompts below so many tokens are read without a progress line.
const LONG_PROMPT: usize = 256;

/// A line that shows how many tokens of long prompts have run.
#[derive(Debug, Default)]
pub struct PromptBar(Option<ProgressBar>);

impl PromptBar {
    /// `done` of `total` tokens have run.
    pub fn at(&mut self, done: usize, total: usize) {
        if done >= total {
            self.clear();
        } else if total >= LONG_PROMPT {
            let template = "{msg} [{wide_bar}] {pos}/{len} tokens ({eta})";
            let bar = self.0.get_or_insert_with(|| bar(total as u64, "reading the prompt", template));
            bar.set_position(done as u64);
            bar.tick();
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.0.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for PromptBar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn bar(total: u64, what: &str, template: &str) -> ProgressBar {
    let target = if notice::is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_message(what.to_string())
}
