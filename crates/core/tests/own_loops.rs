//! A caller's own decoding loop, and processes that step together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use unspool_core::config::MaxLength;
use unspool_core::decode::Prepared;
use unspool_core::select::argmax;
use unspool_core::{
    Error, Keep, Own, Peers, PromptOutput, Request, Result, Row, RowInput, Sequence, Settings, TokenId, generate,
};
use unspool_testing::{ScriptedModel, tables};

/// Two processes whose steps are counted against each other, as threads.
#[derive(Clone)]
struct Pair {
    barrier: Arc<Barrier>,
    /// For each of the two: whether it still runs.
    running: Arc<[AtomicBool; 2]>,
    me: usize,
}

impl Peers for Pair {
    fn any_running(&mut self, running: bool) -> Result<bool> {
        self.running[self.me].store(running, Ordering::SeqCst);
        self.barrier.wait();
        let any = self.running.iter().any(|running| running.load(Ordering::SeqCst));
        self.barrier.wait();
        Ok(any)
    }
}

#[test]
fn a_process_that_is_done_keeps_stepping_until_all_are() {
    let (barrier, running) = (Arc::new(Barrier::new(2)), Arc::new([const { AtomicBool::new(false) }; 2]));
    let run = |me: usize, new: usize, fails: bool| {
        let (barrier, running) = (barrier.clone(), running.clone());
        std::thread::spawn(move || {
            let model = ScriptedModel::table(&tables::C);
            let settings = Settings { max_length: MaxLength::New(new), ..Settings::default() };
            let mut own = Own::new().peers(Pair { barrier, running, me });
            if fails {
                own = own.processor(|_: &Row<'_>, _: &mut [f32]| Err(Error::invalid_input("no")));
            }
            let written = generate(&model, Request::new(vec![vec![0; 3]], settings).own(own))
                .map(|output| output.prompts[0].sequences[0].ids.len());
            (written.ok(), model.log().steps().len())
        })
    };
    let (short, long) = (run(0, 2, false), run(1, 30, false));
    assert_eq!((short.join().unwrap(), long.join().unwrap()), ((Some(2), 30), (Some(30), 30)));
    let (failing, long) = (run(0, 2, true), run(1, 30, false));
    assert_eq!((failing.join().unwrap(), long.join().unwrap()), ((None, 30), (Some(30), 30)));
}

#[test]
fn a_callers_loop_gets_what_the_built_ones_get() {
    let model = ScriptedModel::hashed(12);
    let settings = Settings { repetition_penalty: Some(1.3), max_length: MaxLength::New(6), ..Settings::default() };
    let prompts = vec![vec![1, 2], vec![3, 4, 5]];
    let greedy = |prepared: &mut Prepared<'_, '_>| {
        let count = prepared.prompts();
        let mut rows: Vec<Vec<TokenId>> = (0..count).map(|index| prepared.prompt(index).0.to_vec()).collect();
        let lens: Vec<usize> = rows.iter().map(Vec::len).collect();
        let vocab = prepared.vocab();
        let mut scores = prepared.prefill()?;
        let mut finish = vec![None; count];
        while finish.iter().any(Option::is_none) {
            for (index, (ids, scores)) in rows.iter_mut().zip(scores.chunks_mut(vocab)).enumerate() {
                let prompt_len = lens[index];
                if finish[index].is_none() {
                    prepared.process(&Row { ids, prompt_len, prompt: index }, index, scores)?;
                    ids.push(argmax(scores));
                    finish[index] = prepared.check(&Row { ids, prompt_len, prompt: index }, scores)?;
                }
            }
            let inputs: Vec<_> =
                rows.iter().map(|ids| RowInput { tokens: &ids[ids.len() - 1..], keep: Keep::Last }).collect();
            let logits = prepared.step(&inputs)?;
            (0..count).for_each(|row| scores[row * vocab..][..vocab].copy_from_slice(logits.row(row)));
        }
        let outputs = rows.into_iter().zip(lens).zip(finish).map(|((mut ids, len), finish)| PromptOutput {
            sequences: vec![Sequence::new(ids.split_off(len), finish.unwrap())],
        });
        Ok(outputs.collect())
    };
    let built = generate(&model, Request::new(prompts.clone(), settings.clone())).unwrap();
    let own = generate(&model, Request::new(prompts.clone(), settings.clone()).own(Own::new().custom_generate(greedy)))
        .unwrap();
    assert_eq!(own.prompts, built.prompts);

    let nothing = |_: &mut Prepared<'_, '_>| Ok(Vec::new());
    let error = generate(&model, Request::new(prompts, settings).own(Own::new().custom_generate(nothing))).unwrap_err();
    assert!(error.message().contains("0 outputs for 2 prompts"), "{error}");
}
