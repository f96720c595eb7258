//! Ctrl-C: while an answer is written it stops the answer; otherwise, or the second time, it ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static LISTENING: AtomicBool = AtomicBool::new(false);
static PRESSED: AtomicBool = AtomicBool::new(false);

/// Takes over Ctrl-C for the rest of the program.
pub fn install() {
    // A platform that refuses keeps its own way to end the program, which is good enough.
    let _ = ctrlc::set_handler(|| {
        if !LISTENING.load(Ordering::SeqCst) || PRESSED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
}

/// While this lives, the first Ctrl-C is only noted.
#[derive(Debug)]
pub struct Listening;

/// Begins to note Ctrl-C, forgetting an earlier one.
pub fn listen() -> Listening {
    PRESSED.store(false, Ordering::SeqCst);
    LISTENING.store(true, Ordering::SeqCst);
    Listening
}

impl Listening {
    /// Whether Ctrl-C was pressed.
    pub fn pressed(&self) -> bool {
        PRESSED.load(Ordering::SeqCst)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENING.store(false, Ordering::SeqCst);
    }
}

/// Whether Ctrl-C was pressed since [`listen`].
pub fn pressed() -> bool {
    PRESSED.load(Ordering::SeqCst)
}
