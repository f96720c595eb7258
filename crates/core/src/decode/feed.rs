//! Rows that bring their tokens chunk by chunk, all in the same steps.

use super::chunks::chunks;
use crate::model::{Keep, RowInput};
use crate::token::TokenId;

/// The steps in which rows bring their tokens; a row that has none left waits with no tokens.
pub(crate) struct Feed<'a, I> {
    rows: Vec<(&'a [TokenId], I)>,
    keep: Keep,
}

/// Feeds `rows` in chunks of at most `max_chunk` tokens. With [`Keep::Last`] scores are asked for only with a row's last
/// chunk.
pub(crate) fn feed<'a>(
    rows: &[&'a [TokenId]],
    max_chunk: usize,
    keep: Keep,
) -> Feed<'a, impl Iterator<Item = usize> + use<'a>> {
    Feed { rows: rows.iter().map(|tokens| (*tokens, chunks(tokens.len(), max_chunk))).collect(), keep }
}

impl<'a, I: Iterator<Item = usize>> Iterator for Feed<'a, I> {
    type Item = Vec<RowInput<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let keep = self.keep;
        let take = |(left, sizes): &mut (&'a [TokenId], I)| {
            let (tokens, rest) = left.split_at(sizes.next().unwrap_or(0));
            *left = rest;
            let inner = !rest.is_empty() || tokens.is_empty();
            let keep = if keep == Keep::Last && inner { Keep::None } else { keep };
            RowInput { tokens, keep }
        };
        let inputs: Vec<_> = self.rows.iter_mut().map(take).collect();
        inputs.iter().any(|input| !input.tokens.is_empty()).then_some(inputs)
    }
}
