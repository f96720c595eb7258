//! The log-probability of every new token, and the runners-up of each step.
//!
//!     cargo run --example logprobs -- MODEL ["The sea is"]

use unspool::select::Top;
use unspool::{Call, TokenId};

fn main() -> unspool::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().expect("usage: logprobs MODEL [PROMPT]");
    let prompt = arguments.next().unwrap_or_else(|| "The sea is".into());

    let pipeline = unspool::open(model)?;
    let answers = pipeline.generate(prompt, &Call::new().max_new_tokens(8).logprobs(true).output_scores(true))?;
    let sequence = &answers[0].output.sequences[0];
    let tokenizer = pipeline.tokenizer()?;
    let mut top = Top::default();
    for (step, (id, logprob)) in answers.ids().iter().zip(answers.logprobs()).enumerate() {
        print!("{logprob:8.4} {:?}, before", tokenizer.decode(&[*id], false));
        for (_, other) in top.best(&sequence.scores.as_ref().expect("asked for")[step], 4).iter().skip(1) {
            print!(" {:?}", tokenizer.decode(&[*other as TokenId], false));
        }
        println!();
    }
    let sum: f32 = answers.logprobs().iter().sum();
    println!("{sum:8.4} in all");
    Ok(())
}
