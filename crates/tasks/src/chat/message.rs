//! One message of a conversation.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One message: who speaks, and what.
///
/// In JSON it is the object Python takes: `{"role": "user", "content": "Hello"}`. The content is a string, or a list of
/// parts (`[{"type": "text", "text": "Hello"}]`) for templates that know them. Every other field (`name`, `tool_calls`,
/// `reasoning_content`, ...) is kept and given to the template as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool`, or what else the template knows.
    pub role: String,
    /// A string, or a list of parts; null when the message has none (an assistant that only calls tools).
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub content: Value,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Message {
    /// A message of any role with a text.
    pub fn new(role: impl Into<String>, text: impl Into<String>) -> Message {
        Message { role: role.into(), content: Value::String(text.into()), other: Map::new() }
    }

    /// What the model is told about its task.
    pub fn system(text: impl Into<String>) -> Message {
        Message::new("system", text)
    }

    /// What the person says.
    pub fn user(text: impl Into<String>) -> Message {
        Message::new("user", text)
    }

    /// What the model said.
    pub fn assistant(text: impl Into<String>) -> Message {
        Message::new("assistant", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives_json() {
        let json = r#"{"role":"assistant","content":[{"type":"text","text":"a"}],"tool_calls":[{"b":1,"a":2}]}"#;
        let message = serde_json::from_str::<Message>(json).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), json);
        let bare = serde_json::from_str::<Message>(r#"{"role":"user"}"#).unwrap();
        assert!(bare.content.is_null());
        assert_eq!(serde_json::to_string(&Message::user("hi")).unwrap(), r#"{"role":"user","content":"hi"}"#);
    }
}
