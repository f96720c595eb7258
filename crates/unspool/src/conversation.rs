//! A conversation whose cache is kept between turns.

use unspool_core::decode::KeptSession;
use unspool_core::generate::generate_kept;
use unspool_core::stop::FinishReason;
use unspool_core::{Assist, AttentionMask, Error, ErrorKind, Result, Sequence, Settings, Timing, TokenId};
use unspool_tasks::{ChatOptions, Message, StopHold};

use crate::assistant::Helping;
use crate::call::Call;
use crate::pipeline::Pipeline;
use crate::text::{Streamed, TextSink};

/// Turns between a person and a model. Of each turn only the new tokens are run.
///
/// A conversation holds a clone of its pipeline, so it can be stored in a struct and moved to another thread.
///
/// ```no_run
/// use unspool::{Call, Conversation};
///
/// let mut conversation: Conversation = unspool::open("models/smollm2")?.conversation(Call::new().max_new_tokens(100));
/// let turn = conversation.say("What is the capital of France?", &mut unspool::stdout())?;
/// println!("{} tokens", turn.timing.new_tokens);
/// # Ok::<(), unspool::Error>(())
/// ```
pub struct Conversation {
    pipeline: Pipeline,
    messages: Vec<Message>,
    options: ChatOptions,
    call: Call,
    kept: Option<KeptSession>,
    /// The assistant, which keeps its cache too.
    helping: Option<Helping>,
    told: Told,
    context: Context,
    /// Messages after the system message that the model no longer reads.
    dropped: usize,
}

/// What a conversation does when it no longer fits the model's positions (or `max_length`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Context {
    /// The turn fails with [`TooLong`](crate::ErrorKind::TooLong), and the conversation stays as it was.
    #[default]
    Refuse,
    /// The oldest turns are no longer read, the system message and the latest turns are: so many are dropped that an
    /// answer of `max_new_tokens`, but at most a quarter of the positions, has room.
    KeepFirst,
}

/// The text and tokens that the model has seen or written.
#[derive(Debug, Default)]
struct Told {
    text: String,
    ids: Vec<TokenId>,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The answer's text.
    pub text: String,
    /// Why it ended.
    pub finish: FinishReason,
    /// Its tokens and what else was asked for.
    pub sequence: Sequence,
    /// Where the time went; `prompt_tokens` counts only what had to be run.
    pub timing: Timing,
    /// One line per setting that had no effect as it was combined.
    pub warnings: Vec<String>,
    /// Messages that were dropped to make room for this turn ([`Context::KeepFirst`]).
    pub dropped: usize,
    /// Whether the answer ended because the model has no position left.
    pub context_full: bool,
}

/// The settings of turns with `call`, where a conversation can have such.
fn settings(pipeline: &Pipeline, call: &Call) -> Result<(Settings, Vec<String>)> {
    let (settings, warnings) = pipeline.settings(call)?;
    if settings.num_return_sequences > 1 {
        return Err(Error::unsupported(
            "num_return_sequences above 1 is not for conversations; each turn is one answer",
        ));
    }
    if settings.token_healing {
        return Err(Error::unsupported(
            "token_healing is not for conversations: a turn ends as the chat template says",
        ));
    }
    if let Some(layers) = settings.assisted.assistant_early_exit {
        pipeline.model().early_exit(layers)?;
    }
    Ok((settings, warnings))
}

impl Pipeline {
    /// Begins a conversation with the model's chat template.
    pub fn conversation(&self, call: Call) -> Conversation {
        Conversation {
            pipeline: self.clone(),
            messages: Vec::new(),
            options: ChatOptions::default(),
            call: call.for_texts(),
            kept: None,
            helping: None,
            told: Told::default(),
            context: Context::default(),
            dropped: 0,
        }
    }
}

impl Conversation {
    /// The messages so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The settings of the turns to come.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// What the chat template is given besides the messages.
    pub fn options(&self) -> &ChatOptions {
        &self.options
    }

    /// Sets the tools, documents and template variables of the turns to come.
    pub fn set_options(&mut self, options: ChatOptions) {
        self.options = options;
    }

    /// Changes one generation field for the turns to come; a value that cannot be honoured changes nothing.
    ///
    /// # Errors
    ///
    /// When there is no such field, or its value cannot be honoured.
    pub fn set(&mut self, name: &str, value: serde_json::Value) -> Result<Vec<String>> {
        let mut call = self.call.clone();
        call.config.set(name, value)?;
        let (_, warnings) = settings(&self.pipeline, &call)?;
        self.call = call;
        self.helping = None;
        Ok(warnings)
    }

    /// The checked settings of every turn, and one line per setting that has no effect.
    ///
    /// # Errors
    ///
    /// When a setting cannot be honoured, in a conversation or at all.
    pub fn settings(&self) -> Result<(Settings, Vec<String>)> {
        settings(&self.pipeline, &self.call)
    }

    /// Sets what happens when the conversation no longer fits the model.
    pub fn set_context(&mut self, context: Context) {
        self.context = context;
    }

    /// The system message, if there is one.
    pub fn system(&self) -> Option<&str> {
        self.messages.iter().find(|message| message.role == "system").and_then(|message| message.content.as_str())
    }

    /// Begins anew with this system message, or without one.
    pub fn set_system(&mut self, text: Option<&str>) {
        self.dropped = 0;
        self.messages = text.map(|text| Message::new("system", text)).into_iter().collect();
    }

    /// Begins anew; the system message stays.
    pub fn reset(&mut self) {
        self.dropped = 0;
        self.messages.retain(|message| message.role == "system");
    }

    /// Says `text` and gives the answer, told to `sink` while it is written. A turn that fails leaves the conversation as
    /// it was.
    ///
    /// # Errors
    ///
    /// When the chat template refuses the messages, the conversation is longer than the model's positions, or the engine
    /// fails.
    pub fn say(&mut self, text: &str, sink: &mut dyn TextSink) -> Result<Turn> {
        self.messages.push(Message::new("user", text));
        let turn = self.answer(sink);
        match &turn {
            Ok(turn) => self.messages.push(Message::new("assistant", turn.text.as_str())),
            Err(_) => {
                self.messages.pop();
            }
        }
        turn
    }

    fn answer(&mut self, sink: &mut dyn TextSink) -> Result<Turn> {
        let (settings, mut warnings) = self.settings()?;
        let (text, prompt, dropped) = self.fitted(&settings)?;
        let stop_strings = settings.stop_strings.clone();
        let Call { shown, streaming, .. } = self.call;
        let mut streamed = Streamed::new(self.pipeline.tokenizer()?, &settings, shown, streaming, sink);
        let (request, _) = self.pipeline.request(vec![prompt.clone()], settings, &self.call, Some(&mut streamed));
        let request = request.attention_mask(vec![AttentionMask::Ones]);
        if self.helping.is_none() && !self.call.own.has_draft() {
            self.helping = self.pipeline.helping(&self.call)?;
        }
        let draft = self.helping.as_mut().map(Helping::draft);
        let assist = Assist { draft, always: self.call.always_draft, elapsed: None };
        let output = generate_kept(self.pipeline.model(), &mut self.kept, request.assist(assist))?;
        let sequence = output.prompts.into_iter().next().and_then(|prompt| prompt.sequences.into_iter().next());
        let sequence = sequence.ok_or_else(|| Error::engine("the generation gave no sequence"))?;
        let stops = StopHold::new(stop_strings);
        let shown = self.pipeline.text(&sequence, self.call.shown, &stops).unwrap_or_default();
        let tokenizer = self.pipeline.tokenizer()?;
        self.told = Told { text: text + &tokenizer.decode(&sequence.ids, false), ids: prompt };
        self.told.ids.extend_from_slice(&sequence.ids);
        warnings.extend(output.warnings);
        let positions = self.pipeline.model().max_positions();
        let full = positions.is_some_and(|positions| self.told.ids.len() > positions);
        let full = full && sequence.finish == FinishReason::Length;
        Ok(Turn {
            text: shown,
            finish: sequence.finish.clone(),
            sequence,
            timing: output.timing,
            warnings,
            dropped: dropped - std::mem::replace(&mut self.dropped, dropped),
            context_full: full,
        })
    }

    /// The text and tokens of the messages that the model reads, and how many it does not.
    ///
    /// # Errors
    ///
    /// When they do not fit and must not be dropped, or the last message alone does not fit.
    fn fitted(&self, settings: &Settings) -> Result<(String, Vec<TokenId>, usize)> {
        let positions = self.pipeline.model().max_positions();
        let system = self.messages.iter().take_while(|message| message.role == "system").count();
        let mut dropped = self.dropped;
        loop {
            let mut messages = self.messages.clone();
            messages.drain(system..system + dropped);
            let text = self.pipeline.render(&messages, &self.options)?;
            // The turns that stay begin with the next question, as every template expects.
            let next = messages.iter().skip(system + 1).position(|message| message.role == "user").map(|at| at + 1);
            let prompt = match (self.tokens(&text), self.context, next) {
                (Err(error), Context::KeepFirst, Some(next)) if error.kind() == ErrorKind::TooLong => {
                    dropped += next;
                    continue;
                }
                (prompt, ..) => prompt?,
            };
            let len = prompt.len();
            let longest = settings.max_length_for(len);
            let fits = longest.as_ref().is_ok_and(|longest| match (positions, self.context, next) {
                (None, ..) => true,
                (Some(positions), Context::KeepFirst, Some(_)) => {
                    len + (longest - len).min(positions.div_ceil(4)) <= positions + 1
                }
                (Some(positions), ..) => len <= positions,
            });
            match next {
                _ if fits => return Ok((text, prompt, dropped)),
                Some(next) if self.context == Context::KeepFirst => dropped += next,
                _ => {
                    longest?;
                    return Err(Error::too_long(format!(
                        "the conversation has {len} tokens and the model takes at most {} positions; start a new conversation, or drop the oldest turns",
                        positions.unwrap_or_default()
                    )));
                }
            }
        }
    }

    /// The tokens of the rendered conversation. Where it goes on from what was told before, only the rest is encoded: the
    /// answer's own tokens stay, also where the tokenizer would have split its text in another way.
    fn tokens(&self, text: &str) -> Result<Vec<TokenId>> {
        let tokenizer = self.pipeline.tokenizer()?;
        let whole = self.pipeline.tokenize(text, false)?;
        let Some(rest) = text.strip_prefix(&self.told.text).filter(|_| !self.told.text.is_empty()) else {
            return Ok(whole);
        };
        let mut ids = self.told.ids.clone();
        ids.extend(tokenizer.encode(rest, false)?);
        let held: &[TokenId] = self.kept.as_ref().map_or(&[], KeptSession::tokens);
        let shared = |ids: &[TokenId]| ids.iter().zip(held).take_while(|(a, b)| a == b).count();
        Ok(if shared(&ids) > shared(&whole) { ids } else { whole })
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation")
            .field("messages", &self.messages)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
