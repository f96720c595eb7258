//! Texts that are there already: how likely each is, and how near they are as vectors.
//!
//!     cargo run --example score_embed -- MODEL
//!
//! Vectors need a graph with hidden states: open a checkpoint with `OpenOptions { hidden_states: true, .. }`.

use unspool::{Call, EmbedOptions, OpenOptions, Pipeline, Pooling, Scorable, ScoreOptions};

fn main() -> unspool::Result<()> {
    let model = std::env::args().nth(1).expect("usage: score_embed MODEL");
    let pipeline = Pipeline::open(model, &OpenOptions::default())?;

    // Which continuation is the likeliest?
    let cities = ["Paris", "Lyon", "Rome"];
    let texts = cities
        .map(|city| Scorable::Pair { prompt: "The capital of France is".into(), continuation: format!(" {city}.") });
    for (city, score) in cities.iter().zip(pipeline.score(&texts, &ScoreOptions::default())?) {
        println!("{city}: log-likelihood {:.3}, perplexity {:.2}", score.sum(), score.perplexity());
    }

    // Which two texts are the nearest?
    if pipeline.model().hidden().is_none() {
        println!("this graph has no hidden states, so there are no vectors");
        return Ok(());
    }
    let options = EmbedOptions { pooling: Pooling::Mean, normalize: true, ..EmbedOptions::default() };
    let vectors = pipeline.embed(["a river", "a stream", "an old letter"], &options)?;
    let cosine = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(x, y)| x * y).sum::<f32>();
    println!("a river and a stream: {:.3}; a river and a letter: {:.3}", cosine(0, 1), cosine(0, 2));

    // The hidden states behind them, of every layer and step.
    let answers = pipeline.generate("a river", &Call::new().max_new_tokens(2).output_hidden_states(true))?;
    println!("{} steps have hidden states", answers[0].output.sequences[0].hidden_states.as_ref().map_or(0, Vec::len));
    Ok(())
}
