//! A criterion of one's own: the answer ends when it has so many characters.
//!
//!     cargo run --example criterion -- MODEL [CHARACTERS]
//!
//! A criterion sees the row after each token and may end it. Python's `stopping_criteria`.

use unspool::{Call, FinishReason, Row};

fn main() -> unspool::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().expect("usage: criterion MODEL [CHARACTERS]");
    let most = arguments.next().map_or(30, |number| number.parse().expect("CHARACTERS is a number"));

    let pipeline = unspool::open(model)?;
    let tokenizer = pipeline.tokenizer()?.clone();
    let long_enough = move |row: &Row<'_>, _scores: &[f32]| {
        let characters = tokenizer.decode(row.new_tokens(), true).chars().count();
        Ok((characters >= most).then(|| FinishReason::Custom(format!("{most} characters"))))
    };
    let call = Call::new().max_new_tokens(100).criterion(long_enough);
    let answers = pipeline.generate("A long story about", &call)?;
    println!("{:?}", answers.text());
    println!("ended: {}", answers[0].output.sequences[0].finish.as_str());
    Ok(())
}
