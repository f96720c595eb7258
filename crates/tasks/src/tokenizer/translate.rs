//! Two tokenizers between which drafts are translated.

use std::collections::HashMap;

use unspool_core::draft::Translation;
use unspool_core::{Result, TokenId, Vocabulary};

use super::load::Tokenizer;

/// A model's tokenizer and an assistant's, for drafts in the other's ids; Python's `tokenizer` and `assistant_tokenizer`.
#[doc(alias = "AssistantToTargetTranslator")]
#[derive(Clone, Debug)]
pub struct TokenizerPair {
    target: Tokenizer,
    assistant: Tokenizer,
    partners: Vec<Option<TokenId>>,
}

impl TokenizerPair {
    /// Pairs the tokens of both that have the same string, whatever sign each tokenizer has for a space.
    pub fn new(target: Tokenizer, assistant: Tokenizer) -> Self {
        let own: HashMap<&str, TokenId> = tokens(&target).map(|(id, token)| (token, id)).collect();
        let signs = (space_sign(&target), space_sign(&assistant));
        let partner = |token: &str| match signs {
            (Some(own_sign), Some(sign)) if own_sign != sign && token.starts_with(sign) => {
                let rest = &token[sign.len_utf8()..];
                own.get(format!("{own_sign}{rest}").as_str()).copied()
            }
            _ => own.get(token).copied(),
        };
        let mut partners = vec![None; Vocabulary::size(&assistant)];
        for (id, token) in tokens(&assistant) {
            partners[id as usize] = partner(token);
        }
        TokenizerPair { target, assistant, partners }
    }

    /// Whether both give every token the same id, so that nothing needs to be translated.
    pub fn is_same(&self) -> bool {
        let least = Vocabulary::size(&self.target).min(Vocabulary::size(&self.assistant));
        // The longer one may be filled up with tokens that no text has.
        let known =
            |tokenizer: &Tokenizer| tokens(tokenizer).all(|(id, _)| (id as usize) < least || tokenizer.is_special(id));
        (0..least as TokenId).all(|id| self.target.token(id) == self.assistant.token(id))
            && known(&self.target)
            && known(&self.assistant)
    }
}

fn tokens(tokenizer: &Tokenizer) -> impl Iterator<Item = (TokenId, &str)> {
    let ids = 0..TokenId::try_from(Vocabulary::size(tokenizer)).unwrap_or(TokenId::MAX);
    ids.filter_map(|id| Some((id, tokenizer.token(id)?)))
}

/// How the tokenizer writes a space at the beginning of a token.
fn space_sign(tokenizer: &Tokenizer) -> Option<char> {
    let ids = tokenizer.encode(" ", false).ok()?;
    tokenizer.token(*ids.first()?)?.chars().next()
}

impl Translation for TokenizerPair {
    fn to_assistant(&self, ids: &[TokenId], special: bool) -> Result<Vec<TokenId>> {
        self.assistant.encode(&self.target.decode(ids, true), special)
    }

    fn to_target(&self, ids: &[TokenId]) -> Result<Vec<TokenId>> {
        self.target.encode(&self.assistant.decode(ids, true), true)
    }

    fn partners(&self) -> &[Option<TokenId>] {
        &self.partners
    }
}
