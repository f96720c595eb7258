//! Processes that generate in step, over MPI: [`Peers`](unspool_core::Peers) (Python's `synced_gpus`) on the `mpi` crate.
//!
//! With the feature `mpi`, which needs an MPI library and libclang when it is built, there is `World`: the processes that
//! `mpirun` started. Without it this crate is empty. The example `synced` runs two processes whose model needs both at every
//! step:
//!
//! ```sh
//! cargo build -p unspool-mpi --features mpi --example synced
//! mpirun -n 2 target/debug/examples/synced
//! ```

#[cfg(feature = "mpi")]
mod world;

#[cfg(feature = "mpi")]
pub use world::World;
