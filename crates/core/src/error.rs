//! The one error type of Unspool: a kind, what went wrong, where, and the cause.

use std::error::Error as StdError;
use std::fmt;

/// Shorthand for a result with Unspool's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What sort of failure an [`Error`] is; doors (exit codes, HTTP statuses) map it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A prompt, id, text or argument of the caller is not usable.
    InvalidInput,
    /// A prompt or a conversation has more tokens than the model's positions or `max_length` have room for.
    TooLong,
    /// A generation setting has a value that Python's `generate()` refuses too.
    InvalidConfig,
    /// The request is legal but not supported here; the message names what is refused.
    Unsupported,
    /// A file of a model (graph, checkpoint, tokenizer, JSON) is broken or hostile.
    InvalidModel,
    /// Reading or writing a file failed.
    Io,
    /// The engine failed while it ran a graph.
    Engine,
    /// A callback of the caller (rule, criterion, sink) failed.
    Callback,
    /// Something was to be fetched and could not be.
    Network,
}

/// An error that says what, got, expected and what to do, in one line.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    place: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` with a message that names what was got, what was expected and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), place: None, source: None }
    }

    /// Adds where it happened (a file, an input name, a row, a step). The first place given stays.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.place.get_or_insert_with(|| place.to_string());
        self
    }

    /// Adds which of `count` things it happened to; a single one needs no number.
    #[must_use]
    pub fn at_one_of(self, what: &str, index: usize, count: usize) -> Self {
        if count > 1 { self.at(format_args!("{what} {index}")) } else { self }
    }

    /// Puts before the place which of `count` things it happened to; a single one needs no number.
    #[must_use]
    pub(crate) fn within_one_of(mut self, what: &str, index: usize, count: usize) -> Self {
        if count > 1 {
            let inner = self.place.take().map_or(String::new(), |place| format!(", {place}"));
            self.place = Some(format!("{what} {index}{inner}"));
        }
        self
    }

    /// Names the setting that asked for what failed.
    pub(crate) fn of(mut self, setting: &str) -> Self {
        self.message = format!("{setting} is set, and {}", self.message);
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What sort of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened, without place and cause.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where it happened, when known.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }
}

/// One constructor per kind, so that call sites read as a sentence: `Error::invalid_input("...")`.
macro_rules! constructors {
    ($($name:ident => $kind:ident, $doc:literal;)*) => {
        impl Error {
            $(#[doc = $doc]
            pub fn $name(message: impl Into<String>) -> Self {
                Error::new(ErrorKind::$kind, message)
            })*
        }
    };
}

constructors! {
    invalid_input => InvalidInput, "An [`ErrorKind::InvalidInput`].";
    too_long => TooLong, "An [`ErrorKind::TooLong`].";
    invalid_config => InvalidConfig, "An [`ErrorKind::InvalidConfig`].";
    unsupported => Unsupported, "An [`ErrorKind::Unsupported`].";
    invalid_model => InvalidModel, "An [`ErrorKind::InvalidModel`].";
    io => Io, "An [`ErrorKind::Io`].";
    engine => Engine, "An [`ErrorKind::Engine`].";
    callback => Callback, "An [`ErrorKind::Callback`].";
    network => Network, "An [`ErrorKind::Network`].";
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(source) = &self.source {
            write!(f, " ({source})")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
