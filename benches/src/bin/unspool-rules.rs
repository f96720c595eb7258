//! What the rules of one token cost: `unspool-rules [ROUNDS]`.
//!
//! Prints a table: microseconds of each chain over 49,152 scores after 512 tokens, the copy of the scores taken off. For
//! instructions, run it under callgrind, whose counts do not mind noise.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use unspool_core::build::processors;
use unspool_core::config::{Rules, Settings};
use unspool_core::processor::{Processor, WatermarkConfig, WatermarkingConfig};
use unspool_core::{Result, Row, TokenId};

const VOCAB: usize = 49_152;
const TOKENS: u32 = 512;

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).filter(|rounds| *rounds > 0);
    match run(rounds.unwrap_or(300)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("unspool-rules: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(rounds: u32) -> Result<()> {
    // Scores like a model's: a few high ones above a wide middle.
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    let scores: Vec<f32> = (0..VOCAB).map(|_| (0..4).map(|_| random()).sum::<f32>() * 6.0).collect();
    let ids: Vec<TokenId> = (0..TOKENS).map(|index| index * 97 % VOCAB as TokenId).collect();
    let row = Row { ids: &ids, prompt_len: 256, prompt: 0 };

    let copied = time(rounds, &scores, |_| Ok(()))?;
    println!("| rules | microseconds |\n|---|---|");
    for (name, settings) in chains() {
        let (mut chain, _) = processors(&settings, VOCAB, None, Vec::new())?;
        let spent = time(rounds, &scores, |scores| chain.apply(&row, scores))?;
        println!("| {name} | {:.1} |", (spent - copied).max(0.0));
    }
    Ok(())
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

fn chains() -> Vec<(&'static str, Settings)> {
    let ruled = |rules| Settings { rules, top_k: None, eos_token_id: vec![2], ..Settings::default() };
    let sampled = |settings| Settings { do_sample: true, eos_token_id: vec![2], ..settings };
    let usual =
        Rules { no_repeat_ngram_size: 3, min_new_tokens: Some(300), bad_words_ids: words(), ..Rules::default() };
    vec![
        ("repetition_penalty", Settings { repetition_penalty: Some(1.2), ..Settings::default() }),
        ("no_repeat_ngram_size 3", ruled(Rules { no_repeat_ngram_size: 3, ..Rules::default() })),
        ("bad_words_ids, 500 of them", ruled(Rules { bad_words_ids: words(), ..Rules::default() })),
        ("top_k 50", sampled(Settings { top_k: Some(50), ..Settings::default() })),
        ("top_p 0.9", sampled(Settings { top_p: Some(0.9), top_k: None, ..Settings::default() })),
        (
            "usual: repetition, n-grams, bad words, lengths, temperature, top_k, top_p",
            sampled(Settings {
                repetition_penalty: Some(1.2),
                temperature: Some(0.7),
                top_k: Some(50),
                top_p: Some(0.9),
                rules: usual,
                ..Settings::default()
            }),
        ),
        ("typical_p 0.9", sampled(ruled(Rules { typical_p: Some(0.9), ..Rules::default() }))),
        ("top_h 0.5", sampled(ruled(Rules { top_h: Some(0.5), ..Rules::default() }))),
        ("eta_cutoff 0.001", sampled(ruled(Rules { eta_cutoff: Some(0.001), ..Rules::default() }))),
        (
            "watermark, green list",
            ruled(Rules {
                watermarking_config: Some(WatermarkingConfig::GreenList(WatermarkConfig::default())),
                ..Rules::default()
            }),
        ),
    ]
}

/// Half single tokens, half pairs.
fn words() -> Vec<Vec<TokenId>> {
    (0..500).map(|index| if index % 2 == 0 { vec![index * 11] } else { vec![index * 7, index * 13] }).collect()
}
