//! Padding in prompts: tokens that the rules see and the model does not read.

use std::borrow::Cow;

use crate::config::Settings;
use crate::token::TokenId;

/// Which tokens of a prompt the model reads; Python's `attention_mask`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(alias = "attention_mask")]
pub enum AttentionMask {
    /// As Python's `generate()` without a mask: all but the padding token, unless that is an end token too. Ids that come
    /// from elsewhere are often padded.
    #[default]
    #[doc(alias = "_prepare_attention_mask_for_generation")]
    Inferred,
    /// All of them: the mask that a tokenizer gives with a text.
    Ones,
}

impl AttentionMask {
    /// The token that is padding wherever it stands in a prompt, if there is one.
    pub fn padding(self, settings: &Settings) -> Option<TokenId> {
        let told_apart = |pad: &TokenId| !settings.eos_token_id.contains(pad);
        settings.pad_token_id.filter(told_apart).filter(|_| self == AttentionMask::Inferred)
    }

    /// The tokens of `ids` that the model reads. Positions are counted over these alone, so a prompt gives the same scores
    /// with padding and without.
    ///
    /// ```
    /// use unspool_core::{AttentionMask, Settings};
    ///
    /// let settings = Settings { pad_token_id: Some(0), ..Settings::default() };
    /// assert_eq!(AttentionMask::Inferred.read(&[0, 0, 5, 6], &settings)[..], [5, 6]);
    /// assert_eq!(AttentionMask::Ones.read(&[0, 0, 5, 6], &settings)[..], [0, 0, 5, 6]);
    /// ```
    pub fn read<'a>(self, ids: &'a [TokenId], settings: &Settings) -> Cow<'a, [TokenId]> {
        match self.padding(settings) {
            Some(pad) if ids.contains(&pad) => Cow::Owned(ids.iter().copied().filter(|id| *id != pad).collect()),
            _ => Cow::Borrowed(ids),
        }
    }

    /// A warning when `ids` hold padding.
    pub fn warning(self, ids: &[TokenId], settings: &Settings) -> Option<String> {
        self.padding(settings).filter(|pad| ids.contains(pad)).map(|pad| {
            format!(
                "the padding token {pad} in ids is not read by the model, as in Python without an attention_mask; give \
                 prompts of any lengths without padding"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_token_is_no_padding() {
        let mut settings = Settings { pad_token_id: Some(0), eos_token_id: vec![2, 3], ..Settings::default() };
        assert_eq!(AttentionMask::Inferred.padding(&settings), Some(0));
        assert_eq!(*AttentionMask::Inferred.read(&[0, 4, 0, 5, 0], &settings), [4, 5]);
        settings.eos_token_id.push(0);
        assert_eq!(AttentionMask::Inferred.padding(&settings), None);
        assert_eq!(*AttentionMask::Inferred.read(&[0, 4], &settings), [0, 4]);
        settings.pad_token_id = None;
        assert_eq!(AttentionMask::Inferred.padding(&settings), None);
    }

    #[test]
    fn padding_is_told() {
        let settings = Settings { pad_token_id: Some(0), ..Settings::default() };
        let told = AttentionMask::Inferred.warning(&[0, 0, 1], &settings).unwrap();
        assert!(told.starts_with("the padding token 0 in ids is not read"), "{told}");
        assert_eq!(AttentionMask::Inferred.warning(&[1], &settings), None);
        assert_eq!(AttentionMask::Ones.warning(&[0, 1], &settings), None);
    }
}
