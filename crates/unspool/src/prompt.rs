//! What a model is asked.

use unspool_core::{AttentionMask, TokenId};
use unspool_tasks::{ChatOptions, Message};

/// One prompt, in one of the forms people have.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Prompt {
    /// A text to go on from, encoded with the special tokens that the tokenizer puts around a text (as Python's
    /// `tokenizer(text)` does).
    Text(String),
    /// A text encoded exactly as it is, without special tokens around it.
    Raw(String),
    /// Token ids.
    Ids(Vec<TokenId>),
    /// A conversation, put into the model's chat template.
    Chat(Chat),
}

/// A conversation and what the chat template is given besides it.
///
/// ```
/// use serde_json::json;
/// use unspool::{Chat, ChatOptions, Message};
///
/// let mut chat = Chat::from(vec![Message::user("What is the weather in Paris?")]);
/// chat.options.tools = Some(vec![json!({"type": "function", "function": {"name": "weather"}})]);
/// chat.options.template_args.insert("enable_thinking".into(), false.into());
/// # let _: &ChatOptions = &chat.options;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chat {
    /// The messages, in order. Where the last one is an assistant's, the model continues it, unless `options` say else.
    pub messages: Vec<Message>,
    /// Tools, documents, variables of the template, and how the prompt ends.
    pub options: ChatOptions,
}

impl From<Vec<Message>> for Chat {
    fn from(messages: Vec<Message>) -> Self {
        Chat { messages, options: ChatOptions::default() }
    }
}

impl Prompt {
    /// Which of its tokens the model reads: of a text all, of ids all but padding.
    pub fn attention_mask(&self) -> AttentionMask {
        match self {
            Prompt::Ids(_) => AttentionMask::Inferred,
            Prompt::Text(_) | Prompt::Raw(_) | Prompt::Chat(_) => AttentionMask::Ones,
        }
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Prompt::Text(text.to_string())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Prompt::Text(text)
    }
}

impl From<Vec<TokenId>> for Prompt {
    fn from(ids: Vec<TokenId>) -> Self {
        Prompt::Ids(ids)
    }
}

impl From<&[TokenId]> for Prompt {
    fn from(ids: &[TokenId]) -> Self {
        Prompt::Ids(ids.to_vec())
    }
}

impl From<Vec<Message>> for Prompt {
    fn from(messages: Vec<Message>) -> Self {
        Prompt::Chat(messages.into())
    }
}

impl From<Chat> for Prompt {
    fn from(chat: Chat) -> Self {
        Prompt::Chat(chat)
    }
}

/// One or several prompts; what [`Pipeline::generate`](crate::Pipeline::generate) takes.
pub trait Prompts {
    /// The prompts, in order.
    fn into_prompts(self) -> Vec<Prompt>;
}

impl Prompts for Prompt {
    fn into_prompts(self) -> Vec<Prompt> {
        vec![self]
    }
}

impl Prompts for &str {
    fn into_prompts(self) -> Vec<Prompt> {
        vec![self.into()]
    }
}

impl Prompts for String {
    fn into_prompts(self) -> Vec<Prompt> {
        vec![self.into()]
    }
}

impl<P: Into<Prompt> + Clone> Prompts for &[P] {
    fn into_prompts(self) -> Vec<Prompt> {
        self.iter().cloned().map(Into::into).collect()
    }
}

impl<P: Into<Prompt>, const N: usize> Prompts for [P; N] {
    fn into_prompts(self) -> Vec<Prompt> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<P: Into<Prompt> + Clone, const N: usize> Prompts for &[P; N] {
    fn into_prompts(self) -> Vec<Prompt> {
        self.as_slice().into_prompts()
    }
}

impl<P: Into<Prompt>> Prompts for Vec<P> {
    fn into_prompts(self) -> Vec<Prompt> {
        self.into_iter().map(Into::into).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_one_text_or_many() {
        assert_eq!("a".into_prompts(), [Prompt::Text("a".into())]);
        assert_eq!(["a", "b"].into_prompts().len(), 2);
        assert_eq!((&["a", "b"]).into_prompts().len(), 2);
        assert_eq!(vec![vec![1, 2], vec![3]].into_prompts(), [Prompt::Ids(vec![1, 2]), Prompt::Ids(vec![3])]);
    }
}
