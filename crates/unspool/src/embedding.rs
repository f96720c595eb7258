//! Texts as vectors.

use unspool_core::embed::{Pooling, embed};
use unspool_core::{Result, TokenId};

use crate::pipeline::Pipeline;
use crate::prompt::Prompts;

/// How texts become vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbedOptions {
    /// How the states of a text's tokens become one vector.
    pub pooling: Pooling,
    /// Give every vector the length 1.
    pub normalize: bool,
    /// Texts that run together.
    pub batch: usize,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        EmbedOptions { pooling: Pooling::Last, normalize: false, batch: 8 }
    }
}

impl Pipeline {
    /// One vector for each text, `[width] f32`: the decoder runs once over it, and its last hidden states (after the final
    /// norm) are pooled. The model's graph must give hidden states (see
    /// [`OpenOptions::hidden_states`](crate::OpenOptions::hidden_states)).
    ///
    /// # Errors
    ///
    /// When a text is not usable (the place is its index), the graph gives no hidden states, or the engine fails.
    ///
    /// ```no_run
    /// use unspool::{EmbedOptions, OpenOptions, Pipeline};
    ///
    /// # fn main() -> unspool::Result<()> {
    /// let options = OpenOptions { hidden_states: true, ..OpenOptions::default() };
    /// let pipeline = Pipeline::open("smollm2.gguf", &options)?;
    /// let vectors = pipeline.embed(["a river", "a stream"], &EmbedOptions { normalize: true, ..EmbedOptions::default() })?;
    /// let cosine: f32 = vectors[0].iter().zip(&vectors[1]).map(|(a, b)| a * b).sum();
    /// # Ok(())
    /// # }
    /// ```
    pub fn embed(&self, texts: impl Prompts, options: &EmbedOptions) -> Result<Vec<Vec<f32>>> {
        let texts = texts.into_prompts();
        let count = texts.len();
        let ids = texts
            .into_iter()
            .enumerate()
            .map(|(index, text)| self.tokens_read(&text).map_err(|error| error.at_one_of("text", index, count)))
            .collect::<Result<Vec<Vec<TokenId>>>>()?;
        self.embed_ids(&ids, options)
    }

    /// As [`embed`](Pipeline::embed), from token ids, all of which are read.
    ///
    /// # Errors
    ///
    /// As [`embed`](Pipeline::embed).
    pub fn embed_ids(&self, ids: &[Vec<TokenId>], options: &EmbedOptions) -> Result<Vec<Vec<f32>>> {
        embed(self.model(), ids, options.pooling, options.normalize, options.batch)
    }
}
