//! A rule of one's own: a text without a certain letter.
//!
//!     cargo run --example processor -- MODEL [LETTER]
//!
//! A rule changes the scores of one row before its next token is chosen; minus infinity forbids a token. Python's
//! `logits_processor`.

use std::sync::Arc;

use unspool::{Call, Row};

fn main() -> unspool::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().expect("usage: processor MODEL [LETTER]");
    let letter = arguments.next().unwrap_or_else(|| "e".into()).to_lowercase();

    let pipeline = unspool::open(model)?;
    let tokenizer = pipeline.tokenizer()?;
    let ids = tokenizer.tokens().map(|(id, _)| id);
    let has_letter = ids.filter(|id| tokenizer.decode(&[*id], false).to_lowercase().contains(&letter));
    // Each generation uses a clone of the rule, so large tables go behind an `Arc`.
    let forbidden: Arc<[u32]> = has_letter.collect();
    println!("{} tokens are forbidden", forbidden.len());

    let lipogram = move |_row: &Row<'_>, scores: &mut [f32]| {
        for id in forbidden.iter() {
            if let Some(score) = scores.get_mut(*id as usize) {
                *score = f32::NEG_INFINITY;
            }
        }
        Ok(())
    };
    let call = Call::new().max_new_tokens(40).processor(lipogram);
    println!("{:?}", pipeline.generate("A long story about", &call)?.text());
    Ok(())
}
