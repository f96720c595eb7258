//! A model of one's own: pairs of tokens counted in a text. Everything else (sampling, beams, streams, drafts) works on it.
//!
//!     cargo run --example own_model -- MODEL ["text to count in"]
//!
//! Of MODEL only the tokenizer is used.

use std::path::Path;
use std::sync::Arc;

use unspool::{
    Call, Error, GenerationConfig, Keep, Logits, Model, Pipeline, Result, RowInput, Session, SessionOptions, TokenId,
    Tokenizer,
};

/// The log-probability of each token after each other one.
#[derive(Clone)]
struct Pairs {
    after: Arc<Vec<Vec<f32>>>,
}

impl Pairs {
    fn count(ids: &[TokenId], vocab: usize) -> Self {
        let mut after = vec![vec![0.01f32; vocab]; vocab];
        for pair in ids.windows(2) {
            after[pair[0] as usize][pair[1] as usize] += 1.0;
        }
        for counts in &mut after {
            let sum: f32 = counts.iter().sum();
            counts.iter_mut().for_each(|count| *count = (*count / sum).ln());
        }
        Pairs { after: Arc::new(after) }
    }
}

impl Model for Pairs {
    fn vocab_size(&self) -> usize {
        self.after.len()
    }

    fn max_positions(&self) -> Option<usize> {
        None
    }

    fn open(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(Rows { model: self.clone(), rows: vec![Vec::new(); options.rows], logits: Vec::new() }))
    }
}

/// Rows that are generated: their tokens are all the cache that this model needs.
struct Rows {
    model: Pairs,
    rows: Vec<Vec<TokenId>>,
    logits: Vec<f32>,
}

impl Session for Rows {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn len(&self, row: usize) -> usize {
        self.rows[row].len()
    }

    fn step(&mut self, rows: &[RowInput<'_>]) -> Result<Logits<'_>> {
        self.logits.clear();
        for (row, input) in self.rows.iter_mut().zip(rows) {
            row.extend_from_slice(input.tokens);
            let kept = match input.keep {
                Keep::None => &[],
                Keep::Last => &input.tokens[input.tokens.len().saturating_sub(1)..],
                Keep::All => input.tokens,
            };
            for id in kept {
                let scores = self.model.after.get(*id as usize);
                let scores = scores.ok_or_else(|| Error::invalid_input(format!("there is no token {id}")))?;
                self.logits.extend_from_slice(scores);
            }
        }
        Ok(Logits::new(&mut self.logits, self.model.after.len()))
    }

    fn reorder(&mut self, from: &[usize]) -> Result<()> {
        self.rows = from.iter().map(|&row| self.rows[row].clone()).collect();
        Ok(())
    }

    fn can_crop(&self) -> bool {
        true
    }

    fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        self.rows[row].truncate(len);
        Ok(())
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().expect("usage: own_model MODEL [TEXT]");
    let text = arguments.next().unwrap_or_else(|| "she sells sea shells by the sea shore".into());

    let tokenizer = Tokenizer::from_folder(Path::new(&model))?;
    let vocab = tokenizer.tokens().map(|(id, _)| id as usize + 1).max().unwrap_or(0);
    let pairs = Pairs::count(&tokenizer.encode(&text, false)?, vocab);
    let pipeline = Pipeline::from_parts(Arc::new(pairs), Some(tokenizer), GenerationConfig::new());

    let call = Call::new().max_new_tokens(12);
    println!("greedy: {:?}", pipeline.generate("s", &call)?.text());
    println!("beams:  {:?}", pipeline.generate("s", &call.clone().num_beams(3))?.text());
    println!("drawn:  {:?}", pipeline.generate("s", &call.do_sample(true).seed(1))?.text());
    Ok(())
}
