//! Two processes (or more) over one model that needs all of them at every step, as a model with sharded weights does.
//!
//!     mpirun -n 2 target/debug/examples/synced          # ends: process 0 keeps stepping until all are done
//!     mpirun -n 2 target/debug/examples/synced alone    # hangs: process 0 stops stepping, the others wait for ever
//!
//! Process `r` writes `4 + 8 r` tokens. Every step of the model sums a number over all processes, which waits for all.

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};
use unspool_core::config::MaxLength;
use unspool_core::{Logits, Model, Own, Request, Result, RowInput, Session, SessionOptions, Settings, generate};
use unspool_mpi::World;
use unspool_testing::{ScriptedModel, tables};

/// A model whose every step waits for all processes.
struct Sharded(ScriptedModel);

struct ShardedSession(Box<dyn Session>);

impl Model for Sharded {
    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }

    fn max_positions(&self) -> Option<usize> {
        self.0.max_positions()
    }

    fn open(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(ShardedSession(self.0.open(options)?)))
    }
}

impl Session for ShardedSession {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn len(&self, row: usize) -> usize {
        self.0.len(row)
    }

    fn step(&mut self, rows: &[RowInput<'_>]) -> Result<Logits<'_>> {
        let mut gathered = 0i32;
        SimpleCommunicator::world().all_reduce_into(&1, &mut gathered, SystemOperation::sum());
        self.0.step(rows)
    }

    fn reorder(&mut self, from: &[usize]) -> Result<()> {
        self.0.reorder(from)
    }

    fn can_crop(&self) -> bool {
        self.0.can_crop()
    }

    fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        self.0.crop(row, len)
    }
}

fn main() -> Result<()> {
    let _universe = mpi::initialize().expect("MPI was started by nobody else");
    let rank = SimpleCommunicator::world().rank();
    let settings = Settings { max_length: MaxLength::New(4 + 8 * rank.unsigned_abs() as usize), ..Settings::default() };
    let mut request = Request::new(vec![vec![0]], settings);
    if std::env::args().nth(1).as_deref() != Some("alone") {
        request = request.own(Own::new().peers(World));
    }
    let output = generate(&Sharded(ScriptedModel::table(&tables::C)), request)?;
    println!("process {rank} wrote {} tokens", output.prompts[0].sequences[0].ids.len());
    Ok(())
}
