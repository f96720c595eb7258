//! What the rules of one token cost over 49,152 scores after 512 tokens.
//!
//! `unspool-rules [ROUNDS]` prints a table of microseconds, the copy of the scores taken off. `unspool-rules ROUNDS NAME`
//! calls one rule only (a name of the table, or `copy` for the copy of the scores alone) and prints nothing: for
//! callgrind, whose counts do not mind noise. Two runs of different ROUNDS differ by the calls alone:
//!
//! `rules_instructions.py` makes these runs for every rule.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use unspool_core::build::processors;
use unspool_core::config::{MaxLength, Rules, Settings};
use unspool_core::processor::{
    Chain, PrefixConstrained, Processor, SeedingScheme, SynthIdConfig, WatermarkConfig, WatermarkingConfig,
};
use unspool_core::{Error, Result, Row, TokenId};

const VOCAB: usize = 49_152;
const TOKENS: u32 = 512;
const PROMPT: usize = 256;

/// What is run: its name, the settings that ask for it, and the rules made of them.
struct Case {
    name: &'static str,
    chain: Chain,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(Some(300), |rounds| rounds.parse().ok().filter(|rounds| *rounds > 0));
    let done = match (rounds, arguments.next()) {
        (None, _) => Err(Error::invalid_input("usage: unspool-rules [ROUNDS [NAME]]")),
        (Some(rounds), None) => table(rounds),
        (Some(rounds), Some(name)) => one(rounds, &name),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("unspool-rules: {error}");
            ExitCode::FAILURE
        }
    }
}

fn table(rounds: u32) -> Result<()> {
    let (scores, ids) = inputs();
    let copied = time(rounds, &scores, |_| Ok(()))?;
    println!("| rules | microseconds |\n|---|---|");
    for mut case in cases()? {
        let spent = time(rounds, &scores, |scores| case.chain.apply(&row(&ids), scores))?;
        println!("| {} | {:.1} |", case.name, (spent - copied).max(0.0));
    }
    Ok(())
}

fn one(rounds: u32, name: &str) -> Result<()> {
    let (scores, ids) = inputs();
    if name == "copy" {
        return time(rounds, &scores, |_| Ok(())).map(drop);
    }
    let cases = cases()?;
    let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    let unknown = Error::invalid_input(format!("there is no {name:?}; there are copy, {}", names.join(", ")));
    let mut case = cases.into_iter().find(|case| case.name == name).ok_or(unknown)?;
    time(rounds, &scores, |scores| case.chain.apply(&row(&ids), scores)).map(drop)
}

/// Scores like a model's, a few high ones above a wide middle, and the tokens of a row.
fn inputs() -> (Vec<f32>, Vec<TokenId>) {
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    let scores = (0..VOCAB).map(|_| (0..4).map(|_| random()).sum::<f32>() * 6.0).collect();
    (scores, (0..TOKENS).map(|index| index * 97 % VOCAB as TokenId).collect())
}

fn row(ids: &[TokenId]) -> Row<'_> {
    Row { ids, prompt_len: PROMPT, prompt: 0 }
}

/// Microseconds of one call on a fresh copy of `scores`.
fn time(rounds: u32, scores: &[f32], mut call: impl FnMut(&mut [f32]) -> Result<()>) -> Result<f64> {
    let mut copy = scores.to_vec();
    let start = Instant::now();
    for _ in 0..rounds {
        copy.copy_from_slice(scores);
        call(black_box(&mut copy))?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds))
}

fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (name, settings) in settings() {
        let (chain, _) = processors(&settings, VOCAB, None, Vec::new())?;
        cases.push(Case { name, chain });
    }
    let allowed = PrefixConstrained::new(|_, _| (0..100).map(|id| id * 31).collect());
    let (chain, _) = processors(&Settings::default(), VOCAB, Some(allowed), Vec::new())?;
    cases.push(Case { name: "prefix_allowed_tokens_fn", chain });
    Ok(cases)
}

fn settings() -> Vec<(&'static str, Settings)> {
    let plain = Settings { top_k: None, eos_token_id: vec![2], ..Settings::default() };
    let ruled = |rules| Settings { rules, ..plain.clone() };
    let sampled = |settings: Settings| Settings { do_sample: true, ..settings };
    let filtered = |rules| sampled(ruled(rules));
    let none = Rules::default;
    let green = |seeding_scheme| {
        let config = WatermarkConfig { seeding_scheme, ..WatermarkConfig::default() };
        ruled(Rules { watermarking_config: Some(WatermarkingConfig::GreenList(config)), ..none() })
    };
    let synth_id = WatermarkingConfig::SynthId(SynthIdConfig::new(5, (1..=30).map(|key| key * 7919).collect()));
    let usual = Rules { no_repeat_ngram_size: 3, min_new_tokens: Some(300), bad_words_ids: words(), ..none() };
    let biases = words().into_iter().map(|word| (word, 0.5)).collect();
    let many: Vec<TokenId> = (0..100).map(|index| index * 31).collect();
    vec![
        ("sequence_bias", ruled(Rules { sequence_bias: biases, ..none() })),
        ("encoder_repetition_penalty", ruled(Rules { encoder_repetition_penalty: Some(1.2), ..none() })),
        ("repetition_penalty", Settings { repetition_penalty: Some(1.2), ..plain.clone() }),
        ("no_repeat_ngram_size", ruled(Rules { no_repeat_ngram_size: 3, ..none() })),
        ("encoder_no_repeat_ngram_size", ruled(Rules { encoder_no_repeat_ngram_size: 3, ..none() })),
        ("bad_words_ids", ruled(Rules { bad_words_ids: words(), ..none() })),
        ("min_length", ruled(Rules { min_length: 600, ..none() })),
        ("min_new_tokens", ruled(Rules { min_new_tokens: Some(300), ..none() })),
        ("forced_bos_token_id", ruled(Rules { forced_bos_token_id: Some(1), ..none() })),
        (
            "forced_eos_token_id",
            Settings {
                max_length: MaxLength::Total(TOKENS as usize + 1),
                ..ruled(Rules { forced_eos_token_id: vec![2], ..none() })
            },
        ),
        ("remove_invalid_values", ruled(Rules { remove_invalid_values: true, ..none() })),
        (
            "exponential_decay_length_penalty",
            ruled(Rules { exponential_decay_length_penalty: Some((10, 1.01)), ..none() }),
        ),
        ("suppress_tokens", ruled(Rules { suppress_tokens: many.clone(), ..none() })),
        ("begin_suppress_tokens", ruled(Rules { begin_suppress_tokens: many, ..none() })),
        ("temperature", sampled(Settings { temperature: Some(0.7), ..plain.clone() })),
        ("top_h", filtered(Rules { top_h: Some(0.5), ..none() })),
        ("top_k", sampled(Settings { top_k: Some(50), ..plain.clone() })),
        ("top_p", sampled(Settings { top_p: Some(0.9), ..plain.clone() })),
        ("min_p", sampled(Settings { min_p: Some(0.05), ..plain.clone() })),
        ("typical_p", filtered(Rules { typical_p: Some(0.9), ..none() })),
        ("epsilon_cutoff", filtered(Rules { epsilon_cutoff: Some(0.001), ..none() })),
        ("eta_cutoff", filtered(Rules { eta_cutoff: Some(0.001), ..none() })),
        ("lefthash", green(SeedingScheme::LeftHash)),
        ("selfhash", green(SeedingScheme::SelfHash)),
        ("synth_id", ruled(Rules { watermarking_config: Some(synth_id), ..none() })),
        ("renormalize_logits", ruled(Rules { renormalize_logits: true, ..none() })),
        ("sampling", sampled(Settings { temperature: Some(0.7), top_k: Some(50), top_p: Some(0.9), ..plain.clone() })),
        (
            "usual",
            sampled(Settings {
                repetition_penalty: Some(1.2),
                temperature: Some(0.7),
                top_k: Some(50),
                top_p: Some(0.9),
                rules: usual,
                ..plain.clone()
            }),
        ),
    ]
}

/// Half single tokens, half pairs.
fn words() -> Vec<Vec<TokenId>> {
    (0..500).map(|index| if index % 2 == 0 { vec![index * 11] } else { vec![index * 7, index * 13] }).collect()
}
