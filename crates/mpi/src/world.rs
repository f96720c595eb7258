//! All processes of an MPI run.

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::CommunicatorCollectives;
use unspool_core::{Peers, Result};

/// The processes that `mpirun` started, all of which generate at the same time.
///
/// MPI must be initialised (`mpi::initialize`), and every process must call from the thread that its initialisation allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct World;

impl Peers for World {
    fn any_running(&mut self, running: bool) -> Result<bool> {
        let mut count = 0i32;
        SimpleCommunicator::world().all_reduce_into(&i32::from(running), &mut count, SystemOperation::sum());
        Ok(count > 0)
    }
}
