//! A row of `--prompts` that is a chat.

use serde_json::Value;
use unspool::{Chat, ChatOptions, Error, Message, Result};

use super::row::Keys;
use crate::args::template::{object, objects};

/// The keys of a row that belong to its messages.
pub const KEYS: [&str; 3] = ["tools", "documents", "chat_template_kwargs"];

/// The chat of a row; its keys beside the messages are taken out of `row`.
///
/// # Errors
///
/// When one of them has another form.
pub fn chat(messages: Value, row: &mut Keys) -> Result<Chat> {
    let messages: Vec<Message> = serde_json::from_value(messages)
        .map_err(|error| Error::invalid_input("messages are not a list of {role, content}").because(error))?;
    let [tools, documents, template_args] = KEYS.map(|key| row.take(key).filter(|value| !value.is_null()));
    Ok(Chat {
        messages,
        options: ChatOptions {
            tools: tools.map(|tools| objects(tools, "tools")).transpose()?,
            documents: documents.map(|documents| objects(documents, "documents")).transpose()?,
            template_args: template_args.map(object).transpose()?.unwrap_or_default(),
            ..ChatOptions::default()
        },
    })
}

/// What a row leaves open is as the command line says; its own variables replace those of the same name.
pub fn complete(row: &mut ChatOptions, given: &ChatOptions) {
    let mut template_args = given.template_args.clone();
    template_args.append(&mut row.template_args);
    *row = ChatOptions {
        tools: row.tools.take().or_else(|| given.tools.clone()),
        documents: row.documents.take().or_else(|| given.documents.clone()),
        template_args,
        ..given.clone()
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_goes_before_the_command_line() {
        let keys = |row: Value| Keys::read(&row.to_string()).unwrap();
        let mut row = keys(json!({"tools": [{"a": 1}], "documents": null, "chat_template_kwargs": {"x": 1}, "id": 7}));
        let mut options = chat(json!([{"role": "user", "content": "a"}]), &mut row).unwrap().options;
        assert_eq!(row, keys(json!({"id": 7})));
        let given = ChatOptions {
            tools: Some(vec![]),
            documents: Some(vec![json!({"title": "t"})]),
            template_args: json!({"x": 2, "y": 3}).as_object().unwrap().clone(),
            add_generation_prompt: Some(false),
            ..ChatOptions::default()
        };
        complete(&mut options, &given);
        assert_eq!(options.tools, Some(vec![json!({"a": 1})]));
        assert_eq!(options.documents, given.documents);
        assert_eq!(Value::Object(options.template_args), json!({"x": 1, "y": 3}));
        assert_eq!(options.add_generation_prompt, Some(false));
        assert!(chat(json!([]), &mut keys(json!({"tools": "a"}))).is_err());
        assert!(chat(json!([1]), &mut Keys::default()).is_err());
    }
}
