//! Several processes generate in step; Python's `synced_gpus`.
//!
//! A model that is spread over processes (sharded weights that are gathered for every forward pass) stands still when one of
//! them stops calling it. So before every step each process says that it still runs, and one whose own rows are finished
//! keeps stepping, on a row of its own that is thrown away, until nobody runs any more.

use crate::error::Result;
use crate::model::{Keep, Model, RowInput, Session, SessionOptions};

/// Tokens of the row that is thrown away; then it begins anew, so that its cache stays small.
const IDLE_TOKENS: usize = 16;

/// The processes that step together.
///
/// [`any_running`](Peers::any_running) is called once before every step of every process, and once more when nobody runs;
/// all calls of the same number belong together, like a sum over all processes.
///
/// ```
/// use unspool_core::{Peers, Result};
///
/// /// One process by itself: nobody to wait for.
/// struct Alone;
///
/// impl Peers for Alone {
///     fn any_running(&mut self, running: bool) -> Result<bool> {
///         Ok(running)
///     }
/// }
/// ```
#[doc(alias = "synced_gpus")]
pub trait Peers: Send {
    /// Tells the others whether this process still `running`, waits for all of them, and returns whether any is.
    ///
    /// # Errors
    ///
    /// When another process cannot be reached.
    fn any_running(&mut self, running: bool) -> Result<bool>;
}

/// Keeps stepping until every process is done.
///
/// # Errors
///
/// Those of the model and of the other processes.
pub(crate) fn wait_for(peers: &mut dyn Peers, model: &dyn Model) -> Result<()> {
    let limit = model.max_positions().unwrap_or(IDLE_TOKENS).clamp(1, IDLE_TOKENS);
    let mut idle: Option<Box<dyn Session>> = None;
    while peers.any_running(false)? {
        let session = match idle.take().filter(|session| session.len(0) < limit) {
            Some(session) => idle.insert(session),
            None => idle.insert(model.open(&SessionOptions { rows: 1, capacity: limit })?),
        };
        session.step(&[RowInput { tokens: &[0], keep: Keep::Last }])?;
    }
    Ok(())
}
