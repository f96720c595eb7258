//! What a chat's prompt is made of besides its messages.

use serde_json::{Map, Value};

use super::clock::Clock;
use super::message::Message;

/// What a chat template is given besides the messages: the arguments of Python's `apply_chat_template`.
///
/// The defaults are those of Python's text-generation pipeline: a chat that ends with an assistant's message is continued
/// there, and any other is ended with the beginning of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatOptions {
    /// Whether the prompt ends with the beginning of the assistant's answer. `None`: unless the final message is continued.
    pub add_generation_prompt: Option<bool>,
    /// Whether the prompt ends inside the last message, so that the model continues it.
    pub continue_final_message: ContinueFinalMessage,
    /// Tools that the model may call, each the JSON schema of a function. Templates that know none ignore them.
    pub tools: Option<Vec<Value>>,
    /// Documents for templates that know them, objects with `title` and `text`.
    pub documents: Option<Vec<Value>>,
    /// The name of one of the model's templates, or the text of another. `None`: `tool_use` when there are tools and the
    /// model has it, else `default`.
    pub chat_template: Option<String>,
    /// Variables of the template by name (`enable_thinking`, ...). They replace special tokens of the same name.
    #[doc(alias = "chat_template_kwargs")]
    pub template_args: Map<String, Value>,
    /// The time that `strftime_now` tells.
    pub clock: Clock,
}

/// Whether the last message is continued; Python's `continue_final_message`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContinueFinalMessage {
    /// When it is an assistant's, and no generation prompt was asked for: the default of Python's pipeline.
    #[default]
    WhenAssistant,
    /// Never: the default of `apply_chat_template`.
    Never,
    /// Always, in this field of the message; Python's `True` is the field `content`.
    Field(String),
}

impl From<bool> for ContinueFinalMessage {
    fn from(continues: bool) -> Self {
        if continues { ContinueFinalMessage::Field(CONTENT.to_owned()) } else { ContinueFinalMessage::Never }
    }
}

/// The field that is continued unless another is named.
const CONTENT: &str = "content";

impl ChatOptions {
    /// The field of the last message that is continued, if any.
    pub(super) fn continued(&self, messages: &[Message]) -> Option<&str> {
        match &self.continue_final_message {
            ContinueFinalMessage::Field(field) => Some(field),
            ContinueFinalMessage::Never => None,
            ContinueFinalMessage::WhenAssistant => {
                let is_assistant = messages.last().is_some_and(|message| message.role == "assistant");
                (is_assistant && self.add_generation_prompt != Some(true)).then_some(CONTENT)
            }
        }
    }
}
