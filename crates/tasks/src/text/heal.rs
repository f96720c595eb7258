//! Token healing: which tokens may stand in the place of a prompt's last one.

use std::collections::BTreeSet;

use unspool_core::{Error, Result, TokenId};

use crate::tokenizer::Tokenizer;

/// Added to the score of every token that extends the last one.
const EXTENDS: f64 = 10.0;

/// Added to the score of the last token itself, so that it stays when the others are hardly better.
const STAYS: f64 = 11.0;

/// A prompt that was read anew; Python's `heal_tokens` up to the model's choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Healing {
    /// The prompt's tokens, with the last one as the tokenizer gives it.
    pub ids: Vec<TokenId>,
    /// How its last token is chosen again; `None` when it stays.
    pub choice: Option<HealingChoice>,
    /// Why the last token stays although others extend its text.
    pub warning: Option<String>,
}

/// A choice of one token, greedy unless the model's own settings draw.
#[derive(Clone, Debug, PartialEq)]
pub struct HealingChoice {
    /// What the token follows: [`Healing::ids`] without the last one.
    pub after: Vec<TokenId>,
    /// Numbers added to the scores of tokens, as `sequence_bias` does.
    pub bias: Vec<(TokenId, f64)>,
    /// The token in place of a beginning-of-sequence token; Python hides it from the model unless it ends texts too.
    pub pad: TokenId,
}

impl Tokenizer {
    /// Reads a prompt anew for token healing, and tells which tokens may stand in the place of its last one.
    ///
    /// As in Python the text is decoded without special tokens, loses the spaces around it and is encoded again; the
    /// beginning-of-sequence token becomes padding; and a token extends the last one when its own string begins with the
    /// text of that. A last token whose own string does not (SentencePiece's first word, `▁t`) stays; Python fails there
    /// with a `KeyError`.
    ///
    /// # Errors
    ///
    /// When the tokenizer names no `pad_token`, as in Python, or cannot encode the text.
    #[doc(alias = "heal_tokens")]
    #[doc(alias = "token_healing")]
    pub fn heal(&self, ids: &[TokenId]) -> Result<Healing> {
        let pad = self.special_token_id("pad_token").ok_or_else(|| {
            Error::invalid_config(
                "token_healing needs a pad_token, and the tokenizer names none; set one in tokenizer_config.json",
            )
        })?;
        let bos = self.special_token_id("bos_token");
        let text = self.decode(ids, true);
        let read = self.encode(text.trim_matches(is_space), true)?;
        let mut ids: Vec<TokenId> = read.into_iter().map(|id| if Some(id) == bos { pad } else { id }).collect();
        let kept = |ids: Vec<TokenId>, warning| Ok(Healing { ids, choice: None, warning });

        let Some((&last, before)) = ids.split_last() else { return kept(ids, None) };
        let real = ids.iter().filter(|id| **id != pad).count();
        if real == 0 {
            return kept(ids, None);
        }
        let extensions = self.extensions(last);
        if extensions.len() < 2 || before.is_empty() {
            return kept(ids, None);
        }
        if !extensions.contains(&last) {
            let token = self.token(last).unwrap_or_default();
            let warning =
                format!("token_healing leaves the last token {token:?} as it is: its own text is spelt otherwise");
            return kept(ids, Some(warning));
        }
        let mut after = before.to_vec();
        // The only token of a prompt is chosen again from the beginning of the sequence.
        if let (1, Some(bos), Some(place)) = (real, bos, after.last_mut()) {
            *place = bos;
            ids.splice(..after.len(), after.iter().copied());
        }
        let bias = extensions.into_iter().map(|id| (id, if id == last { STAYS } else { EXTENDS })).collect();
        Ok(Healing { ids, choice: Some(HealingChoice { after, bias, pad }), warning: None })
    }

    /// The tokens whose own string begins with the text of `last`.
    fn extensions(&self, last: TokenId) -> BTreeSet<TokenId> {
        let mut text = self.decode(&[last], false);
        // Python writes spaces as the first character of the token " ", or of the unknown token where there is none.
        let space = self.id(" ").or_else(|| self.special_token_id("unk_token")).and_then(|id| self.token(id));
        if let Some(mark) = space.and_then(|token| token.chars().next()) {
            text = text.replace(' ', mark.encode_utf8(&mut [0; 4]));
        }
        let extends = |(_, token): &(TokenId, &str)| !token.is_empty() && token.starts_with(&text);
        self.tokens().filter(extends).map(|(id, _)| id).collect()
    }
}

/// What Python's `str.strip` takes away.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokenizer(pad: bool) -> Tokenizer {
        let tokens = ["<s>", "<p>", "<u>", "h", "t", "ht", "htt", "http", "Ġ", "p", "s", "ps"];
        let vocab: serde_json::Map<_, _> =
            tokens.iter().enumerate().map(|(id, t)| (t.to_string(), json!(id))).collect();
        let special = |id: usize| {
            json!({"id": id, "content": tokens[id], "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true})
        };
        let json = json!({"version": "1.0", "added_tokens": [special(0), special(1), special(2)],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
            "post_processor": {"type": "TemplateProcessing", "pair": [],
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
            "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
            "model": {"type": "BPE", "vocab": vocab, "merges": ["h t", "ht t", "htt p", "p s"]}});
        let mut config = json!({"bos_token": "<s>", "unk_token": "<u>"});
        if pad {
            config["pad_token"] = json!("<p>");
        }
        Tokenizer::from_json(&json.to_string(), Some(&config.to_string())).unwrap()
    }

    #[test]
    fn a_last_token_that_others_extend_is_chosen_again() {
        let tokenizer = tokenizer(true);
        // " s ht " without its spaces; the tokens that begin with "ht" are 5, 6 and 7.
        let healing = tokenizer.heal(&[0, 8, 10, 8, 5, 8]).unwrap();
        assert_eq!(healing.ids, [1, 10, 8, 5]);
        let choice = healing.choice.unwrap();
        assert_eq!((choice.after, choice.pad), (vec![1, 10, 8], 1));
        assert_eq!(choice.bias, [(5, 11.0), (6, 10.0), (7, 10.0)]);
    }

    #[test]
    fn the_only_token_follows_the_beginning_of_the_sequence() {
        let healing = tokenizer(true).heal(&[5]).unwrap();
        assert_eq!((healing.ids, healing.choice.unwrap().after), (vec![0, 5], vec![0]));
    }

    #[test]
    fn a_last_token_stays_when_nothing_extends_it() {
        let tokenizer = tokenizer(true);
        for (ids, expected) in [(vec![10, 7], vec![1, 10, 7]), (vec![8], vec![1]), (vec![], vec![1])] {
            assert_eq!(tokenizer.heal(&ids).unwrap(), Healing { ids: expected, choice: None, warning: None });
        }
    }

    #[test]
    fn without_a_padding_token_it_is_refused() {
        assert!(tokenizer(false).heal(&[5]).unwrap_err().to_string().contains("pad_token"));
    }
}
