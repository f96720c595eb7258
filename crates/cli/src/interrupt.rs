//! Signals that end the program. While an answer is generated Ctrl-C stops the answer; work that would leave something
//! unfinished ends cleanly first, for a request to end (TERM) and a closed terminal (HUP) as for Ctrl-C.

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

/// The number of Ctrl-C's signal.
const INT: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(0);
static PRESSED: AtomicBool = AtomicBool::new(false);
/// The signal that came last.
static SIGNAL: AtomicU8 = AtomicU8::new(INT);

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

/// Takes over the signals for the rest of the program. A platform that refuses keeps its own way to end the program, which
/// is good enough.
#[cfg(unix)]
pub fn install() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            arrived(u8::try_from(signal).unwrap_or(INT));
        }
    });
}

/// Takes over Ctrl-C for the rest of the program.
#[cfg(not(unix))]
pub fn install() {
    let _ = ctrlc::set_handler(|| arrived(INT));
}

fn arrived(signal: u8) {
    SIGNAL.store(signal, Ordering::SeqCst);
    let again = PRESSED.swap(true, Ordering::SeqCst);
    let ends = match mode() {
        Mode::Ends => true,
        Mode::SecondEnds => again,
        // Where Ctrl-C stops an answer and no more, a request to end means the program.
        Mode::Noted => signal != INT,
    };
    if ends {
        std::process::exit(exit_code().into());
    }
}

/// The exit code of a program that a signal ended, as shells count: 130 after Ctrl-C, 143 after TERM, 129 after HUP.
pub fn exit_code() -> u8 {
    128 + SIGNAL.load(Ordering::SeqCst)
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

/// Whether Ctrl-C was pressed, or a signal to end came, since [`listen`].
pub fn pressed() -> bool {
    PRESSED.load(Ordering::SeqCst)
}
