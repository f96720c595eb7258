//! Beam search: the most likely continuations with their scores, best first.
//!
//!     cargo run --example beams -- MODEL ["The capital of France is"]

use unspool::Call;

fn main() -> unspool::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().expect("usage: beams MODEL [PROMPT]");
    let prompt = arguments.next().unwrap_or_else(|| "The capital of France is".into());

    let pipeline = unspool::open(model)?;
    let call = Call::new().num_beams(4).num_return_sequences(4).length_penalty(0.8).max_new_tokens(12);
    let answers = pipeline.generate(prompt, &call)?;
    for (text, sequence) in answers.texts().zip(answers.sequences()) {
        println!("{:.4} {text:?}", sequence.score.unwrap_or_default());
    }
    Ok(())
}
