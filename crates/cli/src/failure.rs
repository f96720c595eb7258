//! How a command ends when it does not succeed.

use std::process::ExitCode;

use unspool::Error;

use crate::print::line::one_line;

/// The end of a command that did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The command line itself is wrong: exit code 2.
    Usage(String),
    /// Something failed: exit code 1.
    Error(Error),
    /// A signal ended it: exit code 130 after Ctrl-C, 143 after TERM, 129 after HUP, as shells expect.
    Interrupted,
    /// Something failed, and the user was told when it did: exit code 1.
    Reported,
    /// The reader of the output went away; nothing to say.
    Quiet,
}

impl Failure {
    /// A wrong command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure::Usage(message.into())
    }

    /// The same, and a wrong command line names the help of `command`, or of the program.
    pub fn of_command(self, command: Option<&str>) -> Self {
        match self {
            Failure::Usage(message) => {
                let command = command.map(|name| format!("{name} ")).unwrap_or_default();
                Failure::Usage(format!("{message}; see `unspool {command}--help`"))
            }
            other => other,
        }
    }

    /// Tells the user, in one line on standard error, and gives the exit code.
    pub fn report(self) -> ExitCode {
        let (message, code) = match self {
            Failure::Usage(message) => (message, 2),
            Failure::Error(error) => (error.to_string(), 1),
            Failure::Interrupted => return ExitCode::from(crate::interrupt::exit_code()),
            Failure::Reported => return ExitCode::from(1),
            Failure::Quiet => return ExitCode::SUCCESS,
        };
        let _ =
            std::io::Write::write_all(&mut std::io::stderr(), format!("error: {}\n", one_line(&message)).as_bytes());
        ExitCode::from(code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}
