//! An assistant that spells the same texts with other ids.

use std::sync::Arc;

use proptest::prelude::*;
use unspool_core::config::{AssistedSettings, MaxLength};
use unspool_core::draft::{Assist, TranslatedAssistant, Translation};
use unspool_core::{Output, Request, Result, Settings, TokenId, generate};
use unspool_testing::{ScriptedModel, tables};

const VOCAB: usize = 12;

/// The assistant spells backwards through the alphabet, and has one token more that joins the first two letters.
struct Backwards;

const JOINED: TokenId = VOCAB as TokenId;

impl Backwards {
    fn letters(ids: &[TokenId]) -> Vec<TokenId> {
        let last = VOCAB as TokenId - 1;
        ids.iter().flat_map(|id| if *id == JOINED { vec![0, 1] } else { vec![last.saturating_sub(*id)] }).collect()
    }
}

const PARTNERS: [Option<TokenId>; VOCAB + 1] = {
    let mut partners = [None; VOCAB + 1];
    let mut id = 0;
    while id < VOCAB {
        partners[id] = Some((VOCAB - 1 - id) as TokenId);
        id += 1;
    }
    partners
};

impl Translation for Backwards {
    fn to_assistant(&self, ids: &[TokenId], _special: bool) -> Result<Vec<TokenId>> {
        let (mut out, mut rest) = (Vec::new(), ids);
        while let [first, tail @ ..] = rest {
            match rest {
                [0, 1, after @ ..] => {
                    out.push(JOINED);
                    rest = after;
                }
                _ => {
                    out.push(VOCAB as TokenId - 1 - first);
                    rest = tail;
                }
            }
        }
        Ok(out)
    }

    fn to_target(&self, ids: &[TokenId]) -> Result<Vec<TokenId>> {
        Ok(Self::letters(ids))
    }

    fn partners(&self) -> &[Option<TokenId>] {
        &PARTNERS
    }
}

/// The model itself in the assistant's ids.
fn translated(model: ScriptedModel, blur: f32) -> ScriptedModel {
    ScriptedModel::from_fn(VOCAB + 1, move |ids| {
        use unspool_core::{Keep, Model, RowInput, SessionOptions};
        let mut session = model.open(&SessionOptions { rows: 1, capacity: 0 }).unwrap();
        let letters = Backwards::letters(ids);
        let logits = session.step(&[RowInput { tokens: &letters, keep: Keep::Last }]).unwrap();
        let own = logits.row(0).iter().rev().map(|score| score * blur);
        let missing = VOCAB - own.len().min(VOCAB);
        let scores = std::iter::repeat_n(-9.0, missing).chain(own);
        scores.chain([-0.5]).collect()
    })
}

fn ids(output: &Output) -> Vec<Vec<TokenId>> {
    output.prompts.iter().flat_map(|prompt| &prompt.sequences).map(|sequence| sequence.ids.clone()).collect()
}

fn how(tokens: usize) -> AssistedSettings {
    AssistedSettings {
        num_assistant_tokens: tokens,
        assistant_confidence_threshold: 0.0,
        assistant_lookbehind: 4,
        target_lookbehind: 3,
        ..AssistedSettings::default()
    }
}

proptest! {
    #[test]
    fn greedy_writes_what_it_writes_alone(
        prompts in prop::collection::vec(prop::collection::vec(0..VOCAB as TokenId, 1..12), 1..4),
        tokens in 0usize..6, right: bool,
    ) {
        let settings = Settings { max_length: MaxLength::New(30), eos_token_id: vec![5], ..Settings::default() };
        let model = ScriptedModel::hashed(VOCAB);
        let plain = generate(&model, Request::new(prompts.clone(), settings.clone())).unwrap();
        let small = translated(model.clone(), if right { 1.0 } else { -1.0 });
        let mut assistant = TranslatedAssistant::new(Arc::new(small), how(tokens), Arc::new(Backwards));
        let assist = Assist::new(&mut assistant).always(true);
        let assisted = generate(&model, Request::new(prompts, settings).assist(assist)).unwrap();
        prop_assert_eq!(ids(&assisted), ids(&plain));
    }

    #[test]
    fn drawing_does_not_depend_on_the_batch(
        prompts in prop::collection::vec(prop::collection::vec(0..VOCAB as TokenId, 1..12), 1..4), sequences in 1usize..3,
    ) {
        let settings = Settings { do_sample: true, num_return_sequences: sequences, ..Settings::default() };
        let model = ScriptedModel::hashed(VOCAB);
        let draw = |prompts: Vec<Vec<TokenId>>, first: usize| {
            let small = translated(model.clone(), 0.6);
            let mut assistant = TranslatedAssistant::new(Arc::new(small), how(3), Arc::new(Backwards));
            let request = Request::new(prompts, settings.clone()).seed(2).first_row(first);
            generate(&model, request.assist(Assist::new(&mut assistant))).unwrap().prompts
        };
        for (index, together) in draw(prompts.clone(), 0).into_iter().enumerate() {
            prop_assert_eq!(&together, &draw(vec![prompts[index].clone()], index)[0]);
        }
    }
}

#[test]
fn an_assistant_that_agrees_saves_most_runs() {
    let model = ScriptedModel::hashed(VOCAB);
    for (do_sample, blur) in [(false, 1.0), (true, 1.0)] {
        let settings = Settings { do_sample, max_length: MaxLength::New(40), top_k: None, ..Settings::default() };
        let small = translated(model.clone(), blur);
        let mut assistant = TranslatedAssistant::new(Arc::new(small), how(4), Arc::new(Backwards));
        let assist = Assist::new(&mut assistant).always(true);
        let output = generate(&model, Request::new(vec![vec![1, 2, 3, 4, 0, 1, 7]], settings).assist(assist)).unwrap();
        let counts = output.drafts().unwrap();
        assert!(counts.target_runs < 16, "{do_sample}: {counts:?}");
    }
}

#[test]
fn draws_have_the_models_distribution() {
    // The four letters of the table, at the end of the assistant's alphabet.
    let model = ScriptedModel::from_fn(VOCAB, |ids| {
        let row = tables::C[ids.last().map_or(0, |id| *id as usize % 4)];
        (0..VOCAB).map(|id| row.get(id).map_or(f32::NEG_INFINITY, |share| share.ln())).collect()
    });
    let small =
        ScriptedModel::from_fn(VOCAB + 1, |_| (0..=VOCAB).map(|id| if id % 2 == 0 { 0.4 } else { -0.3 }).collect());
    let mut assistant = TranslatedAssistant::new(Arc::new(small), how(2), Arc::new(Backwards));
    let mut counts = [0u32; 4];
    for part in 0..40 {
        let settings = Settings {
            do_sample: true,
            num_return_sequences: 500,
            max_length: MaxLength::New(2),
            temperature: Some(1.3),
            ..Settings::default()
        };
        let request = Request::new(vec![vec![2]], settings).first_row(part).seed(4);
        let output = generate(&model, request.assist(Assist::new(&mut assistant).always(true))).unwrap();
        let counted = output.drafts().unwrap();
        assert!(counted.accepted > 0 && counted.accepted < counted.drafted, "{counted:?}");
        ids(&output).iter().for_each(|ids| counts[ids[0] as usize] += 1);
    }
    let weights: Vec<f64> = tables::C[2].iter().map(|share| f64::from(*share).powf(1.0 / 1.3)).collect();
    let mass: f64 = weights.iter().sum();
    let chi: f64 = counts
        .iter()
        .zip(&weights)
        .map(|(count, weight)| {
            let wanted = weight / mass * 20_000.0;
            (f64::from(*count) - wanted).powi(2) / wanted
        })
        .sum();
    // Three degrees of freedom: one chance in a thousand lies above this.
    assert!(chi < 16.3, "{chi}: {counts:?}");
}
