//! A terminal that can be asked what was typed already, without waiting.

/// Standard input that can be read without waiting.
#[derive(Debug)]
pub struct Reopened(());

#[cfg(unix)]
mod unix {
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
    use rustix::stdio::{dup2_stdin, stdin};
    use rustix::termios::ttyname;

    use super::Reopened;

    /// How long the rest of a paste may take to arrive.
    const PAUSE: Duration = Duration::from_millis(20);

    impl Reopened {
        /// Opens the terminal of standard input anew, so that the shell, which shares the old one, does not see its mode
        /// change. `None` where that is not possible.
        pub fn new() -> Option<Self> {
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            let named = ttyname(stdin(), Vec::new()).and_then(|name| open(name, flags, Mode::empty()));
            let terminal = named.or_else(|_| open("/proc/self/fd/0", flags, Mode::empty())).ok()?;
            dup2_stdin(terminal).ok()?;
            Some(Reopened(()))
        }

        /// Runs `read` so that reading standard input fails where it would wait; before that, waits a moment for what is
        /// on its way.
        pub fn without_waiting<T>(&self, read: impl FnOnce() -> T) -> Option<T> {
            let pause = Timespec::try_from(PAUSE).ok()?;
            // A signal ends the wait early, which does no harm.
            let _ = poll(&mut [PollFd::new(&stdin(), PollFlags::IN)], Some(&pause));
            let flags = fcntl_getfl(stdin()).ok()?;
            fcntl_setfl(stdin(), flags | OFlags::NONBLOCK).ok()?;
            let result = read();
            fcntl_setfl(stdin(), flags).ok()?;
            Some(result)
        }
    }
}

#[cfg(not(unix))]
impl Reopened {
    /// Not possible here: each line is a message.
    pub fn new() -> Option<Self> {
        None
    }

    /// Never called.
    pub fn without_waiting<T>(&self, _read: impl FnOnce() -> T) -> Option<T> {
        None
    }
}
