//! A file of prompts, one a line, in batches; one line of JSON for each.
//!
//!     cargo run --example batch -- MODEL prompts.txt
//!
//! Lengths may differ, and a prompt's answer does not depend on the batch it is in, nor on the batch size.

use unspool::{Call, json};

/// Prompts that run together.
const BATCH: usize = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(model), Some(file)) = (arguments.next(), arguments.next()) else { panic!("usage: batch MODEL FILE") };
    let text = std::fs::read_to_string(file)?;
    let prompts: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();

    let pipeline = unspool::open(model)?;
    let call = Call::new().max_new_tokens(20).do_sample(true).seed(1);
    for (index, batch) in prompts.chunks(BATCH).enumerate() {
        // With the index of its first prompt, a batch has the draws that it would have in one large call.
        let call = Call { first_prompt: index * BATCH, ..call.clone() };
        let answers = pipeline.generate(batch, &call)?;
        for (prompt, answer) in batch.iter().zip(&answers) {
            println!("{}", json!({"prompt": prompt, "answer": answer.text(), "tokens": answer.ids().len()}));
        }
    }
    Ok(())
}
