//! A model's chat template: messages in, prompt text out.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;

use minijinja::Environment;
use serde_json::{Map, Value};
use unspool_core::{Error, Result};

use super::clock::Clock;
use super::environment::{RAISED, add_clock, environment};
use super::generation::without_generation;
use super::message::Message;
use super::source::{self, MAX_TEMPLATE_BYTES};
use crate::tokenizer::TokenizerConfig;

/// What a render may use: instructions, and 64 bytes of text each (see `Environment::set_fuel`). Enough for thousands
/// of messages; a template that loops on purpose ends within a second or so.
const BASE_FUEL: u64 = 5_000_000;
/// More for every byte that the messages bring.
const FUEL_PER_BYTE: u64 = 2;
/// The most text that messages, tools and extra variables may bring.
const MAX_INPUT_BYTES: usize = 256 << 20;

/// What a render is given besides the messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderOptions {
    /// Ends the prompt with the beginning of the assistant's answer. Python's default is false; to let the model answer,
    /// set it.
    pub add_generation_prompt: bool,
    /// Tools the model may call, each a JSON schema of a function; templates that know none ignore them.
    pub tools: Option<Vec<Value>>,
    /// Documents for templates that know them (`title`, `text`).
    pub documents: Option<Vec<Value>>,
    /// Which of several named templates; without it `tool_use` when there are tools and the model has it, else `default`.
    pub template: Option<String>,
    /// Variables of the template by name (`enable_thinking`, ...); they win over the special tokens.
    pub extra: Map<String, Value>,
    /// The time that `strftime_now` tells.
    pub clock: Clock,
}

/// The chat templates of a model, as Python's `apply_chat_template` renders them. Cheap to clone.
///
/// The text is then encoded without adding special tokens, since the template writes them itself.
///
/// ```
/// use unspool_tasks::{ChatTemplate, Message, RenderOptions};
///
/// # fn main() -> unspool_core::Result<()> {
/// let template = ChatTemplate::new(
///     "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}\n{% endfor %}\
///      {% if add_generation_prompt %}<|assistant|>{% endif %}",
/// )?;
/// let options = RenderOptions { add_generation_prompt: true, ..RenderOptions::default() };
/// assert_eq!(template.render(&[Message::user("Hi")], &options)?, "<|user|>Hi\n<|assistant|>");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "apply_chat_template")]
pub struct ChatTemplate {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    environment: Environment<'static>,
    templates: BTreeMap<String, String>,
    special_tokens: BTreeMap<String, String>,
}

impl ChatTemplate {
    /// The templates of a model folder: `chat_template.jinja`, else `chat_template` in `tokenizer_config.json`.
    ///
    /// # Errors
    /// When the model has none, or the template that is used by default is not Jinja (the message names its line).
    pub fn from_folder(folder: &Path) -> Result<ChatTemplate> {
        let special_tokens = TokenizerConfig::from_folder(folder)?.special_tokens;
        ChatTemplate::build(source::read(folder)?, special_tokens).map_err(|error| error.at(folder.display()))
    }

    /// One template, without special tokens.
    ///
    /// # Errors
    /// When it is larger than 1 MiB or not Jinja.
    pub fn new(template: &str) -> Result<ChatTemplate> {
        ChatTemplate::with_special_tokens(template, BTreeMap::new())
    }

    /// One template and the variables `bos_token`, `eos_token`, ... it may write.
    ///
    /// # Errors
    /// As [`new`](ChatTemplate::new).
    pub fn with_special_tokens(template: &str, special_tokens: BTreeMap<String, String>) -> Result<ChatTemplate> {
        ChatTemplate::build(BTreeMap::from([("default".to_owned(), template.to_owned())]), special_tokens)
    }

    fn build(templates: BTreeMap<String, String>, special_tokens: BTreeMap<String, String>) -> Result<ChatTemplate> {
        for (name, template) in &templates {
            if template.len() > MAX_TEMPLATE_BYTES {
                let message = format!("the chat template {name:?} is larger than {MAX_TEMPLATE_BYTES} bytes");
                return Err(Error::invalid_model(message));
            }
        }
        let templates =
            templates.into_iter().map(|(name, text)| (name, without_generation(&text).into_owned())).collect();
        let template =
            ChatTemplate { shared: Arc::new(Shared { environment: environment(), templates, special_tokens }) };
        if let Some((name, text)) = template.shared.templates.get_key_value("default") {
            let compiled = template.shared.environment.template_from_named_str(name, text);
            compiled.map_err(|error| describe(name, &error))?;
        }
        Ok(template)
    }

    /// The names of the templates, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.shared.templates.keys().map(String::as_str)
    }

    /// The text of a conversation.
    ///
    /// # Errors
    /// When there is no message, no template of the wanted name, or the template fails: by its own `raise_exception`, by
    /// a mistake, or by using more than its budget. The message names the template and the line.
    pub fn render(&self, messages: &[Message], options: &RenderOptions) -> Result<String> {
        if messages.is_empty() {
            return Err(Error::invalid_input("a chat needs at least one message"));
        }
        let (name, source) = self.choose(options)?;
        let bytes = input_size(messages, options)?;
        if bytes > MAX_INPUT_BYTES {
            return Err(Error::invalid_input(format!("the messages are larger than {MAX_INPUT_BYTES} bytes")));
        }
        let mut environment = self.shared.environment.clone();
        environment.set_fuel(Some(BASE_FUEL + FUEL_PER_BYTE * bytes as u64));
        add_clock(&mut environment, options.clock);
        let template = environment.template_from_named_str(name, source).map_err(|error| describe(name, &error))?;
        template.render(value(&self.context(messages, options))).map_err(|error| describe(name, &error))
    }

    fn choose(&self, options: &RenderOptions) -> Result<(&str, &str)> {
        let templates = &self.shared.templates;
        let with_tools = if options.tools.is_some() { templates.get_key_value("tool_use") } else { None };
        let chosen = match &options.template {
            Some(name) => templates.get_key_value(name),
            None => with_tools.or_else(|| templates.get_key_value("default")),
        };
        chosen.map(|(name, source)| (name.as_str(), source.as_str())).ok_or_else(|| {
            let names = self.names().collect::<Vec<_>>().join(", ");
            let wanted = options.template.as_deref().unwrap_or("default");
            Error::invalid_input(format!("the model has no chat template named {wanted:?}; it has: {names}"))
        })
    }

    /// The variables of the template, as Python gives them.
    fn context(&self, messages: &[Message], options: &RenderOptions) -> Value {
        let mut context = Map::new();
        for (name, token) in &self.shared.special_tokens {
            context.insert(name.clone(), Value::String(token.clone()));
        }
        context.extend(options.extra.iter().map(|(name, value)| (name.clone(), value.clone())));
        context.insert("messages".to_owned(), Value::Array(messages.iter().map(message_value).collect()));
        context.insert("tools".to_owned(), options.tools.clone().map_or(Value::Null, Value::Array));
        context.insert("documents".to_owned(), options.documents.clone().map_or(Value::Null, Value::Array));
        context.insert("add_generation_prompt".to_owned(), Value::Bool(options.add_generation_prompt));
        Value::Object(context)
    }
}

/// A message as the template sees it: fields that are null are left out, and reasoning has its newer and older names.
fn message_value(message: &Message) -> Value {
    let own = [("role", Value::String(message.role.clone())), ("content", message.content.clone())];
    let mut fields = own.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<Map<_, _>>();
    fields.extend(message.other.clone());
    fields.retain(|_, value| !value.is_null());
    let reasoning = ["reasoning_content", "thinking", "reasoning"].iter().find_map(|name| fields.get(*name)).cloned();
    if let Some(reasoning) = reasoning {
        fields.entry("thinking").or_insert_with(|| reasoning.clone());
        fields.insert("reasoning_content".to_owned(), reasoning);
    }
    Value::Object(fields)
}

/// How deep the JSON of messages and tools may be.
const MAX_DEPTH: usize = 100;

/// The bytes of all that a caller gives, each part no deeper than [`MAX_DEPTH`].
fn input_size(messages: &[Message], options: &RenderOptions) -> Result<usize> {
    let fields = messages.iter().flat_map(|message| std::iter::once(&message.content).chain(message.other.values()));
    let lists = options.tools.iter().chain(&options.documents).flatten();
    let mut bytes = messages.len().saturating_mul(64);
    for value in fields.chain(lists).chain(options.extra.values()) {
        bytes = bytes.saturating_add(size(value, 0)?);
    }
    Ok(bytes)
}

/// The bytes of all strings and items, with a bound on the depth.
fn size(value: &Value, depth: usize) -> Result<usize> {
    if depth > MAX_DEPTH {
        return Err(Error::invalid_input(format!("the messages are nested more than {MAX_DEPTH} levels deep")));
    }
    Ok(match value {
        Value::String(text) => text.len(),
        Value::Array(list) => {
            list.iter().try_fold(8, |sum: usize, item| Ok(sum.saturating_add(size(item, depth + 1)?)))?
        }
        Value::Object(map) => map.iter().try_fold(8, |sum: usize, (key, item)| {
            Ok(sum.saturating_add(key.len()).saturating_add(size(item, depth + 1)?))
        })?,
        _ => 8,
    })
}

/// JSON as a value of the engine; the order of keys stays. Called after [`size`] bounded the depth.
fn value(json: &Value) -> minijinja::Value {
    match json {
        Value::Null => minijinja::Value::from(()),
        Value::Bool(flag) => minijinja::Value::from(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => minijinja::Value::from(number),
            (_, Some(number), _) => minijinja::Value::from(number),
            (_, _, number) => minijinja::Value::from(number.unwrap_or(f64::NAN)),
        },
        Value::String(text) => minijinja::Value::from(text.as_str()),
        Value::Array(list) => minijinja::Value::from(list.iter().map(value).collect::<Vec<_>>()),
        Value::Object(map) => minijinja::Value::from_pairs(map.iter().map(|(key, item)| (key.as_str(), value(item)))),
    }
}

/// An error of the engine in one line: which template, which line, what.
fn describe(name: &str, error: &minijinja::Error) -> Error {
    let mut place = format!("chat template {name:?}");
    let mut line = error.line();
    let mut detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    // An error inside a macro comes wrapped; the innermost one says what happened.
    let mut source = error.source();
    while let Some(inner) = source.and_then(|source| source.downcast_ref::<minijinja::Error>()) {
        line = inner.line().or(line);
        detail = inner.detail().map_or_else(|| inner.kind().to_string(), str::to_owned);
        source = inner.source();
    }
    if let Some(line) = line {
        place += &format!(" line {line}");
    }
    match error.kind() {
        minijinja::ErrorKind::SyntaxError => Error::invalid_model(format!("{place} is not valid: {detail}")),
        minijinja::ErrorKind::OutOfFuel => {
            Error::invalid_model(format!("{place}: the template works too long or writes too much, so it was stopped"))
        }
        _ if detail.starts_with(RAISED) => Error::invalid_input(format!("{place}: {detail}")),
        _ => Error::invalid_input(format!("{place} failed: {detail}")),
    }
}

#[cfg(test)]
mod tests;
