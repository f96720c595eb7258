//! How far an import is.

use std::fmt;
use std::sync::Arc;

use unspool_core::Result;

/// How far an import is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Tensors written.
    pub done: usize,
    /// Tensors of the checkpoint.
    pub total: usize,
    /// Bytes of the checkpoint that were read for them.
    pub bytes: u64,
    /// Bytes of all tensors of the checkpoint.
    pub total_bytes: u64,
    /// The tensor written last; empty before the first.
    pub tensor: &'a str,
}

/// A progress callback, called after each tensor and while an import waits for another one; an error ends the import, and
/// nothing is left behind.
#[derive(Clone)]
pub struct OnProgress(Arc<dyn Fn(Progress<'_>) -> Result<()> + Send + Sync>);

impl OnProgress {
    /// A callback that calls `callback`.
    pub fn new(callback: impl Fn(Progress<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        OnProgress(Arc::new(callback))
    }

    /// Calls it.
    ///
    /// # Errors
    ///
    /// The callback's own.
    pub fn call(&self, progress: Progress<'_>) -> Result<()> {
        (self.0)(progress)
    }
}

impl fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnProgress")
    }
}
