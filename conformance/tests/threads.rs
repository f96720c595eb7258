//! Models of one process share ONNX Runtime's threads, or have their own when they want another number; either way each
//! writes what it writes alone, also at the same time as the others.

use std::path::Path;

use unspool::{Call, EngineChoice, OpenOptions, Pipeline, TokenId};

const PROMPT: [TokenId; 6] = [160, 121, 254, 161, 98, 121];

fn write(pipeline: &Pipeline) -> Vec<TokenId> {
    let call = Call::new().set("max_new_tokens", 24).unwrap();
    let answers = pipeline.generate_ids(vec![PROMPT.to_vec()], &call, None).unwrap();
    answers.answers[0].output.sequences[0].ids.clone()
}

#[test]
fn models_that_run_at_the_same_time_write_what_they_write_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/gpt2");
    let open = |threads| {
        let options = OpenOptions { engine: EngineChoice::Ort, threads: Some(threads), ..OpenOptions::default() };
        Pipeline::open(&folder, &options)
    };
    let models = match [2, 2, 1, 3].map(open) {
        [Err(error), ..]
            if error.to_string().contains("was not found") && unspool_testing::engines_may_be_missing() =>
        {
            eprintln!("SKIPPED: ONNX Runtime cannot be used here: {error}");
            return;
        }
        models => models.map(Result::unwrap),
    };
    assert_eq!(models.each_ref().map(|model| model.description().unwrap().threads), [2, 2, 1, 3]);
    let alone = write(&models[0]);
    assert_eq!(alone.len(), 24);
    std::thread::scope(|scope| {
        let writers = models.iter().map(|model| scope.spawn(|| (0..5).map(|_| write(model)).collect::<Vec<_>>()));
        for written in writers.collect::<Vec<_>>() {
            assert!(written.join().unwrap().iter().all(|tokens| *tokens == alone));
        }
    });
}
