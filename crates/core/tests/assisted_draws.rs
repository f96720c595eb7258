//! Draws with an assistant have the model's own distribution: chi-square over many draws on a small vocabulary.

use std::sync::Arc;

use unspool_core::config::{AssistedSettings, MaxLength, Rules};
use unspool_core::draft::{Assist, Assistant};
use unspool_core::{Output, Request, Settings, TokenId, generate};
use unspool_testing::ScriptedModel;
use unspool_testing::tables::{ASSISTANT, MAIN};

fn ids(output: &Output) -> Vec<Vec<TokenId>> {
    output.prompts.iter().flat_map(|prompt| &prompt.sequences).map(|sequence| sequence.ids.clone()).collect()
}

/// The pairs of tokens written after one prompt, over many draws with an assistant.
fn pairs(settings: &Settings, draws: usize) -> Vec<u32> {
    let how = AssistedSettings {
        num_assistant_tokens: 2,
        assistant_confidence_threshold: 0.0,
        ..AssistedSettings::default()
    };
    let mut assistant = Assistant::new(Arc::new(ScriptedModel::table(&ASSISTANT)), how);
    let mut counts = vec![0; 16];
    let batch = 500;
    for part in 0..draws / batch {
        let all = Settings {
            do_sample: true,
            num_return_sequences: batch,
            max_length: MaxLength::New(2),
            ..settings.clone()
        };
        let request = Request::new(vec![vec![1]], all).first_row(part).seed(17);
        let output =
            generate(&ScriptedModel::table(&MAIN), request.assist(Assist::new(&mut assistant).always(true))).unwrap();
        assert!(output.drafts().unwrap().drafted > 0);
        for ids in ids(&output) {
            counts[(ids[0] * 4 + ids[1]) as usize] += 1;
        }
    }
    counts
}

/// The probability of every pair by plain decoding: the processed scores of each step, normalised.
fn expected(settings: &Settings) -> Vec<f64> {
    let after = |ids: Vec<TokenId>| -> Vec<f64> {
        let one = Settings {
            do_sample: true,
            output_scores: true,
            max_length: MaxLength::Total(ids.len() + 1),
            ..settings.clone()
        };
        let output = generate(&ScriptedModel::table(&MAIN), Request::new(vec![ids], one)).unwrap();
        let scores = output.prompts[0].sequences[0].scores.as_ref().unwrap()[0].clone();
        let mass: f64 = scores.iter().map(|score| f64::from(*score).exp()).sum();
        scores.iter().map(|score| f64::from(*score).exp() / mass).collect()
    };
    let first = after(vec![1]);
    let second: Vec<Vec<f64>> = (0..4).map(|id| after(vec![1, id])).collect();
    (0..16).map(|pair| first[pair / 4] * second[pair / 4][pair % 4]).collect()
}

#[test]
fn draws_with_an_assistant_have_the_models_distribution() {
    let base = Settings { top_k: None, ..Settings::default() };
    let cases = [
        base.clone(),
        Settings { temperature: Some(0.5), ..base.clone() },
        Settings { temperature: Some(1.8), ..base.clone() },
        Settings { top_k: Some(2), ..base.clone() },
        Settings { top_p: Some(0.8), temperature: Some(1.2), ..base.clone() },
        Settings { repetition_penalty: Some(1.7), min_p: Some(0.1), ..base.clone() },
        Settings {
            rules: Rules { suppress_tokens: vec![3], typical_p: Some(0.9), ..Rules::default() },
            ..base.clone()
        },
    ];
    for settings in cases {
        let (counts, shares) = (pairs(&settings, 20_000), expected(&settings));
        let (mut chi, mut free) = (0.0, -1.0f64);
        for (count, share) in counts.iter().zip(&shares) {
            if *share < 1e-9 {
                assert_eq!(*count, 0, "{settings:?}");
            } else {
                let wanted = share * 20_000.0;
                chi += (f64::from(*count) - wanted).powi(2) / wanted;
                free += 1.0;
            }
        }
        // Three standard deviations and more above the mean of the distribution of chi-square.
        assert!(chi < free + 3.5 * (2.0 * free).sqrt() + 3.0, "{chi} of {free}: {counts:?} {shares:?} {settings:?}");
    }
}
