//! A prompt that ends inside the last message, so that the model continues it; Python's `continue_final_message`.

use serde_json::{Map, Value};
use unspool_core::{Error, Result};

use super::strings::is_space;

/// Names a message's reasoning is passed under; the first is the standard one.
pub(super) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Written behind the text that is continued, and looked for in the rendered prompt. The space shows whether the template
/// strips the ends of messages.
const TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// The place in a rendered prompt where the last message ends.
#[derive(Debug)]
pub(super) struct Continuation {
    text: String,
}

impl Continuation {
    /// Marks the end of `field` in the last message; `template` is the source of the template.
    pub(super) fn mark(message: &mut Map<String, Value>, field: &str, template: &str) -> Result<Continuation> {
        let refused = |why: String| Error::invalid_input(format!("the final message cannot be continued: {why}"));
        let Some(value) = message.get(field).cloned() else {
            return Err(refused(format!("it has no {field:?}; give its text, or do not continue it")));
        };
        let fields = match REASONING_FIELDS.contains(&field) {
            true => REASONING_FIELDS.into_iter().filter(|name| message.get(*name) == Some(&value)).collect(),
            false => vec![field],
        };
        if !fields.iter().any(|name| template.contains(name)) {
            return Err(refused(format!("the chat template does not read {field:?}")));
        }
        let text = match value {
            Value::String(text) => {
                for name in fields {
                    message.insert(name.to_owned(), Value::String(format!("{text}{TAG}")));
                }
                text
            }
            Value::Array(mut parts) => {
                let last = parts.iter_mut().rev().find_map(|part| match part.get_mut("text") {
                    Some(Value::String(text)) => Some(text),
                    _ => None,
                });
                let text = last.ok_or_else(|| refused(format!("{field:?} has no part with a text")))?;
                let whole = text.clone();
                text.push_str(TAG);
                message.insert(field.to_owned(), Value::Array(parts));
                whole
            }
            _ => return Err(refused(format!("{field:?} is neither a text nor a list of parts"))),
        };
        Ok(Continuation { text })
    }

    /// The rendered prompt up to the end of the message's text.
    pub(super) fn cut(&self, mut prompt: String) -> Result<String> {
        let missing = || {
            Error::invalid_input(
                "the final message cannot be continued: the chat template does not write it as it is; end the chat with a \
                 message of the user, or do not continue the final one",
            )
        };
        let tag = TAG.trim_end();
        if !prompt.contains(self.text.trim_matches(is_space)) {
            return Err(missing());
        }
        let at = prompt.rfind(tag).ok_or_else(missing)?;
        let keeps_spaces = prompt.get(at..).is_some_and(|rest| rest.starts_with(TAG));
        prompt.truncate(at);
        if !keeps_spaces {
            prompt.truncate(prompt.trim_end_matches(is_space).len());
        }
        Ok(prompt)
    }
}
