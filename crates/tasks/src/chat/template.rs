//! A model's chat template: messages in, prompt text out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;

use minijinja::Environment;
use serde_json::{Map, Value};
use unspool_core::{Error, Result};

use super::continuation::{Continuation, REASONING_FIELDS};
use super::environment::{RAISED, add_clock, environment};
use super::message::Message;
use super::options::ChatOptions;
use super::source::{self, MAX_TEMPLATE_BYTES};
use super::syntax;
use crate::tokenizer::TokenizerConfig;

/// What a render may use: instructions, and 64 bytes of text each (see `Environment::set_fuel`). Enough for thousands
/// of messages; a template that loops on purpose ends within a second or so.
const BASE_FUEL: u64 = 5_000_000;
/// More for every byte that the messages bring.
const FUEL_PER_BYTE: u64 = 2;
/// The most text that messages, tools and extra variables may bring.
const MAX_INPUT_BYTES: usize = 256 << 20;

/// The chat templates of a model, as Python's `apply_chat_template` renders them. Cheap to clone.
///
/// The text is then encoded without adding special tokens, since the template writes them itself.
///
/// ```
/// use unspool_tasks::{ChatOptions, ChatTemplate, Message};
///
/// # fn main() -> unspool_core::Result<()> {
/// let template = ChatTemplate::new(
///     "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}\n{% endfor %}\
///      {% if add_generation_prompt %}<|assistant|>{% endif %}",
/// )?;
/// let prompt = template.render(&[Message::user("Hi")], &ChatOptions::default())?;
/// assert_eq!(prompt, "<|user|>Hi\n<|assistant|>");
/// let prompt = template.render(&[Message::user("Hi"), Message::assistant("Hello, I")], &ChatOptions::default())?;
/// assert_eq!(prompt, "<|user|>Hi\n<|assistant|>Hello, I");
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
        let prepare = |(name, text): (String, String)| {
            prepared(&name, &text).map(Cow::into_owned).map(|text| (name.clone(), text))
        };
        let templates = templates.into_iter().map(prepare).collect::<Result<_>>()?;
        let template =
            ChatTemplate { shared: Arc::new(Shared { environment: environment(), templates, special_tokens }) };
        if let Some((name, text)) = template.shared.templates.get_key_value("default") {
            let compiled = template.shared.environment.template_from_named_str(name, text);
            compiled.map_err(|error| describe(name, &error))?;
        }
        Ok(template)
    }

    /// Whether `text` is the source of a template, and not the name of one.
    pub fn is_source(text: &str) -> bool {
        text.contains("{{") || text.contains("{%")
    }

    /// The names of the templates, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.shared.templates.keys().map(String::as_str)
    }

    /// The text of a conversation. A final message that is to be continued ends it, without what the template writes
    /// behind a message.
    ///
    /// # Errors
    /// When there is no message, no template of the wanted name, a final message that cannot be continued, or the template
    /// fails: by its own `raise_exception`, by a mistake, or by using more than its budget. The message names the template
    /// and the line.
    pub fn render(&self, messages: &[Message], options: &ChatOptions) -> Result<String> {
        if messages.is_empty() {
            return Err(Error::invalid_input("a chat needs at least one message"));
        }
        let continued = options.continued(messages);
        if continued.is_some() && options.add_generation_prompt == Some(true) {
            return Err(Error::invalid_input(
                "add_generation_prompt begins a new answer and continue_final_message continues the last one; give one of \
                 the two",
            ));
        }
        check_args(options)?;
        let (name, source) = self.choose(options)?;
        let bytes = input_size(messages, options)?;
        if bytes > MAX_INPUT_BYTES {
            return Err(Error::invalid_input(format!("the messages are larger than {MAX_INPUT_BYTES} bytes")));
        }
        let mut messages: Vec<_> = messages.iter().map(message_fields).collect();
        let continuation = match (continued, messages.last_mut()) {
            (Some(field), Some(last)) => Some(Continuation::mark(last, field, &source)?),
            _ => None,
        };
        let mut environment = self.shared.environment.clone();
        environment.set_fuel(Some(BASE_FUEL + FUEL_PER_BYTE * bytes as u64));
        add_clock(&mut environment, options.clock);
        let template = environment.template_from_named_str(name, &source).map_err(|error| describe(name, &error))?;
        let generation_prompt = options.add_generation_prompt.unwrap_or(continued.is_none());
        let context = self.context(messages, generation_prompt, options);
        let text = template.render(value(&context)).map_err(|error| describe(name, &error))?;
        match continuation {
            Some(continuation) => continuation.cut(text),
            None => Ok(text),
        }
    }

    /// The name and the source of the template.
    fn choose<'a>(&'a self, options: &'a ChatOptions) -> Result<(&'a str, Cow<'a, str>)> {
        let templates = &self.shared.templates;
        let named =
            |name: &str| templates.get_key_value(name).map(|(name, source)| (name.as_str(), source.as_str().into()));
        let Some(wanted) = options.chat_template.as_deref() else {
            let with_tools = if options.tools.is_some() { named("tool_use") } else { None };
            return with_tools.or_else(|| named("default")).ok_or_else(|| self.unknown("default"));
        };
        match named(wanted) {
            Some(found) => Ok(found),
            None if ChatTemplate::is_source(wanted) => Ok(("given", prepared("given", wanted)?)),
            None => Err(self.unknown(wanted)),
        }
    }

    fn unknown(&self, wanted: &str) -> Error {
        let names = self.names().collect::<Vec<_>>().join(", ");
        Error::invalid_input(format!("the model has no chat template named {wanted:?}; it has: {names}"))
    }

    /// The variables of the template, as Python gives them.
    fn context(&self, messages: Vec<Map<String, Value>>, generation_prompt: bool, options: &ChatOptions) -> Value {
        let mut context = Map::new();
        for (name, token) in &self.shared.special_tokens {
            context.insert(name.clone(), Value::String(token.clone()));
        }
        context.extend(options.template_args.iter().map(|(name, value)| (name.clone(), value.clone())));
        context.insert("messages".to_owned(), messages.into_iter().map(Value::Object).collect());
        context.insert("tools".to_owned(), options.tools.clone().map_or(Value::Null, Value::Array));
        context.insert("documents".to_owned(), options.documents.clone().map_or(Value::Null, Value::Array));
        context.insert("add_generation_prompt".to_owned(), Value::Bool(generation_prompt));
        Value::Object(context)
    }
}

/// Refuses variables of the caller that would be hidden by what the template is given anyway.
fn check_args(options: &ChatOptions) -> Result<()> {
    for name in ["messages", "tools", "documents", "add_generation_prompt"] {
        if options.template_args.contains_key(name) {
            let message = format!(
                "{name:?} is no variable of the caller's: every template is given it; set it by its own option"
            );
            return Err(Error::invalid_input(message));
        }
    }
    Ok(())
}

/// A template as the engine takes it.
fn prepared<'a>(name: &str, template: &'a str) -> Result<Cow<'a, str>> {
    if template.len() > MAX_TEMPLATE_BYTES {
        let message = format!("the chat template {name:?} is larger than {MAX_TEMPLATE_BYTES} bytes");
        return Err(Error::invalid_model(message));
    }
    Ok(syntax::adapted(template))
}

/// A message as the template sees it: fields that are null are left out, and reasoning has its newer and older names.
fn message_fields(message: &Message) -> Map<String, Value> {
    let own = [("role", Value::String(message.role.clone())), ("content", message.content.clone())];
    let mut fields = own.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<Map<_, _>>();
    fields.extend(message.other.clone());
    fields.retain(|_, value| !value.is_null());
    let Some(reasoning) = REASONING_FIELDS.iter().find_map(|name| fields.get(*name)).cloned() else { return fields };
    // The order of the names shows where a template writes a whole message.
    let mut aliased = Map::from_iter([("thinking".to_owned(), reasoning.clone())]);
    aliased.extend(fields);
    aliased.insert("reasoning_content".to_owned(), reasoning);
    aliased
}

/// How deep the JSON of messages and tools may be.
const MAX_DEPTH: usize = 100;

/// The bytes of all that a caller gives, each part no deeper than [`MAX_DEPTH`].
fn input_size(messages: &[Message], options: &ChatOptions) -> Result<usize> {
    let fields = messages.iter().flat_map(|message| std::iter::once(&message.content).chain(message.other.values()));
    let lists = options.tools.iter().chain(&options.documents).flatten();
    let mut bytes = messages.len().saturating_mul(64);
    for value in fields.chain(lists).chain(options.template_args.values()) {
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
