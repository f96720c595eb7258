//! A session kept between calls: a conversation's next turn runs only what is new.

use std::fmt;

use super::prompts::Prompt;
use crate::error::Result;
use crate::model::{Model, Session, SessionOptions};
use crate::token::TokenId;

/// A session of one row and the tokens it holds, to be given to the next
/// [`generate_kept`](crate::generate::generate_kept) of the same model.
pub struct KeptSession {
    session: Box<dyn Session>,
    tokens: Vec<TokenId>,
}

impl KeptSession {
    /// Keeps `session`, whose only row holds the first tokens of `ids`.
    fn new(session: Box<dyn Session>, mut ids: Vec<TokenId>) -> Self {
        ids.truncate(session.len(0));
        KeptSession { session, tokens: ids }
    }

    /// The tokens whose keys and values are held. The last token that was written is not among them: it has not been run.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }
}

/// Keeps a session after a generation that read `prompt` and wrote `new`. Unless `one_row` wrote
/// them, as without beams, the session holds other tokens too, and only the prompt is kept.
///
/// # Errors
///
/// Those of the session.
pub(crate) fn keep(
    mut session: Box<dyn Session>,
    prompt: &[TokenId],
    new: &[TokenId],
    one_row: bool,
) -> Result<Option<KeptSession>> {
    if one_row {
        return Ok(Some(KeptSession::new(session, [prompt, new].concat())));
    }
    if !session.can_crop() {
        return Ok(None);
    }
    session.reorder(&[0])?;
    session.crop(0, prompt.len())?;
    Ok(Some(KeptSession::new(session, prompt.to_vec())))
}

impl fmt::Debug for KeptSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptSession").field("tokens", &self.tokens.len()).finish()
    }
}

/// A session with one row per prompt, and how many of its prompt's tokens each row already holds.
///
/// A kept session serves a single prompt. What it shares with the prompt is used, but for the prompt's last token, whose scores are needed. What
/// it holds beyond that is forgotten; a session that cannot forget is replaced by a fresh one.
///
/// # Errors
///
/// When a session cannot be opened, or forgetting fails.
pub(crate) fn resume(
    model: &dyn Model,
    kept: Option<KeptSession>,
    prompts: &[Prompt<'_>],
    options: &SessionOptions,
) -> Result<(Box<dyn Session>, usize)> {
    if let (Some(KeptSession { mut session, tokens }), [Prompt { read, .. }]) = (kept, prompts) {
        let shared = tokens.iter().zip(read.iter()).take_while(|(kept, new)| kept == new).count();
        let shared = shared.min(read.len().saturating_sub(1));
        if tokens.len() == shared {
            return Ok((session, shared));
        }
        if shared > 0 && session.can_crop() {
            session.crop(0, shared)?;
            return Ok((session, shared));
        }
    }
    Ok((model.open(options)?, 0))
}
