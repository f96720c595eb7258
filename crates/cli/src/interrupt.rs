//! Ctrl-C: while an answer is written it stops the answer; otherwise it ends the program.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// What Ctrl-C does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The program ends.
    Ends,
    /// The first one is noted, so that work can end cleanly; the second one ends the program.
    SecondEnds,
    /// It is only ever noted.
    Noted,
}

static MODE: AtomicU8 = AtomicU8::new(0);
static PRESSED: AtomicBool = AtomicBool::new(false);

fn mode() -> Mode {
    match MODE.load(Ordering::SeqCst) {
        1 => Mode::SecondEnds,
        2 => Mode::Noted,
        _ => Mode::Ends,
    }
}

fn set_mode(mode: Mode) {
    let number = match mode {
        Mode::Ends => 0,
        Mode::SecondEnds => 1,
        Mode::Noted => 2,
    };
    MODE.store(number, Ordering::SeqCst);
}

/// Takes over Ctrl-C for the rest of the program.
pub fn install() {
    // A platform that refuses keeps its own way to end the program, which is good enough.
    let _ = ctrlc::set_handler(|| {
        let again = PRESSED.swap(true, Ordering::SeqCst);
        if mode() == Mode::Ends || (again && mode() == Mode::SecondEnds) {
            std::process::exit(130);
        }
    });
}

/// While this lives, Ctrl-C does what its mode says; then what it did before.
#[derive(Debug)]
pub struct Listening {
    before: Mode,
}

/// Begins to listen in `mode`, forgetting an earlier Ctrl-C.
pub fn listen(mode_now: Mode) -> Listening {
    let before = mode();
    PRESSED.store(false, Ordering::SeqCst);
    set_mode(mode_now);
    Listening { before }
}

impl Drop for Listening {
    fn drop(&mut self) {
        set_mode(self.before);
    }
}

/// Whether Ctrl-C was pressed since [`listen`].
pub fn pressed() -> bool {
    PRESSED.load(Ordering::SeqCst)
}
