//! A decoding loop of one's own over the same session, rules and criteria: typical of research on decoding.
//!
//!     cargo run --release --example custom_generate -- MODEL "Once upon a time"
//!
//! Here: greedy decoding that, whenever the two best tokens are nearly as likely as each other, looks one step further along
//! both and takes the one whose continuation the model is surer of. Python: `generate(..., custom_generate=function)`.

use unspool::{Call, Keep, Prepared, PromptOutput, Result, Row, RowInput, Sequence, TokenId};

/// Scores that are nearer than this are looked into.
const NEAR: f32 = 0.5;

fn look_ahead(prepared: &mut Prepared<'_, '_>) -> Result<Vec<PromptOutput>> {
    let (prompt, _) = prepared.prompt(0);
    let (mut ids, prompt_len) = (prompt.to_vec(), prompt.len());
    let mut scores = prepared.prefill()?;
    loop {
        prepared.process(&Row { ids: &ids, prompt_len, prompt: 0 }, 0, &mut scores)?;
        let (first, second) = two_best(&scores);
        let near = scores[first as usize] - scores[second as usize] < NEAR;
        let mut token = first;
        if near {
            // Both go on for one step, as two rows; then the surer one is kept.
            prepared.reorder(&[0, 0])?;
            let rows = [[first], [second]];
            let inputs = rows.each_ref().map(|tokens| RowInput { tokens, keep: Keep::Last });
            let logits = prepared.step(&inputs)?;
            let sure = |row: usize| {
                let (a, b) = two_best(logits.row(row));
                logits.row(row)[a as usize] - logits.row(row)[b as usize]
            };
            let winner = usize::from(sure(1) > sure(0));
            scores.copy_from_slice(logits.row(winner));
            prepared.reorder(&[winner])?;
            token = rows[winner][0];
        }
        ids.push(token);
        if let Some(finish) = prepared.check(&Row { ids: &ids, prompt_len, prompt: 0 }, &scores)? {
            return Ok(vec![PromptOutput { sequences: vec![Sequence::new(ids.split_off(prompt_len), finish)] }]);
        }
        if !near {
            let logits = prepared.step(&[RowInput { tokens: &[token], keep: Keep::Last }])?;
            scores.copy_from_slice(logits.row(0));
        }
    }
}

fn two_best(scores: &[f32]) -> (TokenId, TokenId) {
    let mut top = unspool::select::Top::default();
    let best = top.best(scores, 2);
    (best[0].1 as TokenId, best[best.len() - 1].1 as TokenId)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(model), Some(text)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: custom_generate MODEL TEXT");
        std::process::exit(2);
    };
    let pipeline = unspool::open(model)?;
    let call = Call::new().set("max_new_tokens", 40)?.custom_generate(look_ahead);
    let answers = pipeline.generate(text, &call)?;
    println!("{}", answers.text());
    Ok(())
}
