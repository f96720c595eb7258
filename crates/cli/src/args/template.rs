//! Arguments that say what a chat template is given besides the messages.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value};
use unspool::{ChatOptions, ContinueFinalMessage, Error, Result, file, json};

use crate::failure::Failure;

/// The largest file of tools, documents or a template, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// What the chat template is given besides the messages.
#[derive(Args, Clone, Debug, Default)]
pub struct TemplateArgs {
    /// Tools that the model may call: a file with a JSON list of function schemas.
    #[arg(long, value_name = "FILE", help_heading = "Chat template")]
    pub tools: Option<PathBuf>,

    /// Documents that the model answers from: a file with a JSON list of {"title": ..., "text": ...}.
    #[arg(long, value_name = "FILE", help_heading = "Chat template")]
    pub documents: Option<PathBuf>,

    /// Variables of the chat template, as a JSON object: {"enable_thinking": false}.
    #[arg(long, value_name = "JSON", help_heading = "Chat template")]
    pub template_args: Option<String>,

    /// Which of the model's chat templates, by its name; or a file with another one (its name ends in .jinja).
    #[arg(long, value_name = "NAME|FILE", help_heading = "Chat template")]
    pub chat_template: Option<String>,
}

/// How the prompt of a chat ends.
#[derive(Args, Clone, Debug, Default)]
pub struct EndingArgs {
    /// Continue the last message in place of a new answer; a field of it other than content can be named [default: when
    /// it is an assistant's].
    #[arg(
        long,
        value_name = "true|false|FIELD",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = "Chat template"
    )]
    pub continue_final_message: Option<String>,

    /// Leave out the beginning of an answer, which ends the prompt of a chat.
    #[arg(long, help_heading = "Chat template")]
    pub no_add_generation_prompt: bool,
}

impl TemplateArgs {
    /// The options of a chat.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or the JSON has another form; the message names the flag.
    pub fn read(&self) -> Result<ChatOptions, Failure> {
        let list = |path: &Option<PathBuf>, flag: &str| match path {
            Some(path) => objects(json::parse(&text(path)?).map_err(|error| error.at(path.display()))?, flag)
                .map(Some)
                .map_err(|error| error.at(path.display())),
            None => Ok(None),
        };
        let template_args = match &self.template_args {
            Some(text) => json::parse(text).and_then(object).map_err(|error| error.at("--template-args"))?,
            None => Map::new(),
        };
        let chat_template = match &self.chat_template {
            Some(name) if name.ends_with(".jinja") => Some(text(Path::new(name))?),
            name => name.clone(),
        };
        Ok(ChatOptions {
            tools: list(&self.tools, "tools")?,
            documents: list(&self.documents, "documents")?,
            template_args,
            chat_template,
            ..ChatOptions::default()
        })
    }
}

impl EndingArgs {
    /// Sets how the prompt ends.
    pub fn apply(&self, options: &mut ChatOptions) {
        options.continue_final_message = match self.continue_final_message.as_deref() {
            None => ContinueFinalMessage::WhenAssistant,
            Some("true" | "True") => true.into(),
            Some("false" | "False") => false.into(),
            Some(field) => ContinueFinalMessage::Field(field.to_owned()),
        };
        options.add_generation_prompt = self.no_add_generation_prompt.then_some(false);
    }
}

/// A list of objects; `what` names it.
///
/// # Errors
///
/// When it is something else.
pub fn objects(value: Value, what: &str) -> Result<Vec<Value>> {
    match value {
        Value::Array(list) if list.iter().all(Value::is_object) => Ok(list),
        _ => Err(Error::invalid_input(format!("{what} must be a JSON list of objects"))),
    }
}

/// A JSON object of template variables.
///
/// # Errors
///
/// When it is something else.
pub fn object(value: Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(Error::invalid_input(
            "expected a JSON object of template variables, such as {\"enable_thinking\": false}",
        )),
    }
}

fn text(path: &Path) -> Result<String> {
    file::read_text(path, MAX_BYTES)?.ok_or_else(|| Error::invalid_input("there is no such file").at(path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_and_json_become_options() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let tools = write("tools.json", r#"[{"type": "function"}]"#);
        let template = write("own.jinja", "{{ messages }}");
        let args = TemplateArgs {
            tools: Some(tools.clone()),
            template_args: Some(r#"{"enable_thinking": false}"#.into()),
            chat_template: Some(template.to_string_lossy().into_owned()),
            ..TemplateArgs::default()
        };
        let options = args.read().unwrap();
        assert_eq!(options.tools, Some(vec![json!({"type": "function"})]));
        assert_eq!(options.template_args["enable_thinking"], false);
        assert_eq!(options.chat_template.as_deref(), Some("{{ messages }}"));
        let named = TemplateArgs { chat_template: Some("rag".into()), ..TemplateArgs::default() };
        assert_eq!(named.read().unwrap().chat_template.as_deref(), Some("rag"));
        let message = |args: TemplateArgs| format!("{:?}", args.read().unwrap_err());
        let args = TemplateArgs { template_args: Some("[1]".into()), ..TemplateArgs::default() };
        assert!(message(args).contains("--template-args"));
        let args = TemplateArgs { documents: Some(write("d.json", "[1]")), ..TemplateArgs::default() };
        assert!(message(args).contains("documents must be a JSON list of objects"));
        let args = TemplateArgs { tools: Some(folder.path().join("none")), ..TemplateArgs::default() };
        assert!(message(args).contains("no such file"));
    }
}
