//! Promises of the loop and laws of the port over random requests on the scripted model.

use proptest::prelude::*;
use unspool_core::config::{MaxLength, Rules};
use unspool_core::processor::{WatermarkConfig, WatermarkingConfig};
use unspool_core::{PromptOutput, Request, Settings, TokenId, generate};
use unspool_testing::{ScriptedModel, Tolerance, check_batch_law, check_cache_law, check_step_law, random_prompts};

const VOCAB: usize = 12;

fn prompts() -> impl Strategy<Value = Vec<Vec<TokenId>>> {
    prop::collection::vec(prop::collection::vec(0..VOCAB as TokenId, 1..40), 1..6)
}

fn settings(do_sample: bool, sequences: usize) -> Settings {
    Settings {
        do_sample,
        num_return_sequences: sequences,
        eos_token_id: vec![2, 5],
        max_length: MaxLength::New(8),
        output_scores: true,
        output_logits: true,
        repetition_penalty: Some(1.3),
        ..Settings::default()
    }
}

/// The same with every kind of rule that looks at more than the scores.
fn ruled(do_sample: bool, sequences: usize) -> Settings {
    let rules = Rules {
        guidance_scale: Some(1.7),
        no_repeat_ngram_size: 2,
        encoder_repetition_penalty: Some(1.2),
        bad_words_ids: vec![vec![3], vec![4, 6]],
        sequence_bias: vec![(vec![1, 7], 2.0)],
        min_new_tokens: Some(3),
        forced_eos_token_id: vec![5],
        begin_suppress_tokens: vec![8],
        exponential_decay_length_penalty: Some((4, 1.5)),
        watermarking_config: Some(WatermarkingConfig::GreenList(WatermarkConfig::default())),
        typical_p: Some(0.9),
        renormalize_logits: true,
        ..Rules::default()
    };
    Settings { rules, ..settings(do_sample, sequences) }
}

fn run(prompts: Vec<Vec<TokenId>>, settings: &Settings, first_row: usize) -> Vec<PromptOutput> {
    let request = Request::new(prompts, settings.clone()).seed(11).first_row(first_row).logprobs(true);
    generate(&ScriptedModel::hashed(VOCAB), request).unwrap().prompts
}

proptest! {
    #[test]
    fn a_row_of_a_batch_equals_its_prompt_alone(prompts in prompts(), do_sample: bool, sequences in 1usize..4) {
        let settings = settings(do_sample, sequences);
        for (index, together) in run(prompts.clone(), &settings, 0).into_iter().enumerate() {
            let alone = run(vec![prompts[index].clone()], &settings, index);
            prop_assert_eq!(&together, &alone[0]);
        }
    }

    #[test]
    fn rules_and_guidance_see_their_own_row_only(prompts in prompts(), do_sample: bool, sequences in 1usize..4) {
        let settings = ruled(do_sample, sequences);
        for (index, together) in run(prompts.clone(), &settings, 0).into_iter().enumerate() {
            let alone = run(vec![prompts[index].clone()], &settings, index);
            prop_assert_eq!(&together, &alone[0]);
        }
    }

    #[test]
    fn requests_that_count_on_give_what_one_request_gives(prompts in prompts(), cut in 0usize..6) {
        let settings = settings(true, 2);
        let cut = cut.min(prompts.len());
        let mut parts = Vec::new();
        for (first, part) in [(0, &prompts[..cut]), (cut, &prompts[cut..])] {
            if !part.is_empty() {
                parts.extend(run(part.to_vec(), &settings, first));
            }
        }
        prop_assert_eq!(parts, run(prompts, &settings, 0));
    }

    #[test]
    fn the_order_of_prompts_does_not_matter_to_greedy(prompts in prompts()) {
        let settings = settings(false, 1);
        let mut backwards = run(prompts.iter().rev().cloned().collect(), &settings, 0);
        backwards.reverse();
        prop_assert_eq!(backwards, run(prompts, &settings, 0));
    }

    #[test]
    fn the_size_of_chunks_does_not_matter(prompts in prompts(), chunk in 1usize..50) {
        let whole = settings(true, 1);
        let chunked = Settings { prefill_chunk_size: chunk, ..whole.clone() };
        prop_assert_eq!(run(prompts.clone(), &chunked, 0), run(prompts, &whole, 0));
    }

    #[test]
    fn the_scripted_model_keeps_the_laws(seed: u64, crops: bool) {
        let model = ScriptedModel::hashed(VOCAB);
        let model = if crops { model } else { model.without_crop() };
        let prompts = random_prompts(seed, 4, 20, VOCAB);
        prop_assert_eq!(check_batch_law(&model, &prompts, Tolerance::EXACT), Ok(()));
        prop_assert_eq!(check_step_law(&model, &prompts, seed, Tolerance::EXACT), Ok(()));
        prop_assert_eq!(check_cache_law(&model, seed, 20, 16, Tolerance::EXACT), Ok(()));
    }
}
