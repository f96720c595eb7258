//! A model with everything around it: prompts in, texts out.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use unspool_core::config::{GenerationConfig, Layers, ModelFacts, Resolved, Settings, from_folder_json};
use unspool_core::generate::{Request, generate};
use unspool_core::hidden::HiddenAsk;
use unspool_core::stop::FinishReason;
use unspool_core::stream::TokenSink;
use unspool_core::{Assist, AttentionMask, Error, Keep, Model, Result, Sequence, TokenId, Vocabulary, check_ids};
use unspool_onnx::folder::root_of;
use unspool_onnx::{Description, EngineSupport, GraphWeights, OnnxModel, OnnxOptions};
use unspool_tasks::{ChatOptions, ChatTemplate, Message, Shown, StopHold, Tokenizer};

use crate::answers::{Answer, Answers};
use crate::assistant::{self, Helper, Helping};
use crate::call::{Call, random_seed};
use crate::open::{Loadable, OpenOptions, loadable};
use crate::prompt::{Prompt, Prompts};
use crate::text::{Streamed, TextSink};

/// The largest JSON file of settings that is read, in bytes.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// A model, its tokenizer, its chat template and its generation settings.
///
/// Cheap to share between threads; every call opens its own session.
#[derive(Clone)]
pub struct Pipeline {
    model: Arc<dyn Model>,
    tokenizer: std::result::Result<Tokenizer, String>,
    template: std::result::Result<ChatTemplate, String>,
    pub(crate) layers: Layers,
    graph: Option<OnnxModel>,
    helper: Option<Arc<Helper>>,
}

impl Pipeline {
    /// Opens a model folder, or a checkpoint that is imported first.
    ///
    /// # Errors
    ///
    /// When there is no model at `path`, or it cannot be read, imported or loaded.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        Pipeline::open_telling(path.as_ref(), options, &mut |_| {})
    }

    /// As [`open`](Pipeline::open); `tell` hears one line about each slow or surprising step.
    ///
    /// # Errors
    ///
    /// As [`open`](Pipeline::open).
    pub fn open_telling(path: &Path, options: &OpenOptions, tell: &mut dyn FnMut(&str)) -> Result<Self> {
        let Loadable { graph, dtype } = loadable(path, options, tell)?;
        let folder = if graph.is_dir() { graph.clone() } else { root_of(&graph) };
        let generation_config = read_text(&folder.join("generation_config.json"))?;
        let config = read_text(&folder.join("config.json"))?;
        let defaults = from_folder_json(generation_config.as_deref(), config.as_deref())
            .map_err(|error| error.at(folder.display()))?;
        let tokenizer = Tokenizer::from_folder(&folder);
        let tokenizer = match tokenizer {
            Ok(tokenizer) => Ok(tokenizer),
            // Ids can be generated from without a tokenizer; a broken one is an error at once.
            Err(error) if !folder.join("tokenizer.json").exists() => Err(error.to_string()),
            Err(error) => return Err(error),
        };
        // A model without a chat template, or with a broken one, still goes on from texts and ids.
        let template = ChatTemplate::from_folder(&folder).map_err(|error| error.to_string());
        let model = OnnxModel::open(&graph, &OnnxOptions { engine: options.engine, threads: options.threads, dtype })?;
        if options.hidden_states && model.hidden().is_none() {
            return Err(HiddenAsk { states: &[], keep: Keep::Last }.refused(None).at(folder.display()));
        }
        Ok(Pipeline {
            model: Arc::new(model.clone()),
            tokenizer,
            template,
            layers: Layers::new(defaults),
            graph: Some(model),
            helper: None,
        })
    }

    /// A pipeline over any model, for instance a scripted one.
    pub fn from_parts(model: Arc<dyn Model>, tokenizer: Option<Tokenizer>, defaults: GenerationConfig) -> Self {
        Pipeline {
            model,
            tokenizer: tokenizer.ok_or_else(|| "the pipeline was made without a tokenizer; give token ids".to_string()),
            template: Err("the pipeline was made without a chat template; generate from plain text instead".to_string()),
            layers: Layers::new(defaults),
            graph: None,
            helper: None,
        }
    }

    /// The same pipeline with another chat template.
    #[must_use]
    pub fn with_chat_template(mut self, template: ChatTemplate) -> Self {
        self.template = Ok(template);
        self
    }

    /// The same pipeline with a smaller model that drafts what this one verifies; Python's `assistant_model`.
    ///
    /// What is written stays the same: greedy tokens are equal, drawn ones have the same distribution. `num_assistant_tokens`
    /// and the other fields about assistants are read from the assistant's own settings, unless a call sets them. An
    /// assistant with another tokenizer is translated.
    ///
    /// ```no_run
    /// # fn main() -> unspool::Result<()> {
    /// let pipeline = unspool::open("models/large")?.with_assistant(&unspool::open("models/small")?)?;
    /// let answers = pipeline.generate("The sea is", &unspool::Call::new())?;
    /// println!("{}: {:?}", answers.text(), answers.drafts);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the vocabularies differ and one of the two has no tokenizer.
    #[doc(alias = "assistant_model")]
    pub fn with_assistant(mut self, assistant: &Pipeline) -> Result<Self> {
        let both = self.tokenizer.clone().ok().zip(assistant.tokenizer.clone().ok());
        let helper = Helper::new(assistant.model.clone(), assistant.layers.clone(), self.model.vocab_size(), both)?;
        self.helper = Some(Arc::new(helper));
        Ok(self)
    }

    /// A draft of the assistant's for calls like this one; `None` without an assistant.
    ///
    /// # Errors
    ///
    /// When the call asks for what cannot be assisted, or a setting of the assistant is wrong.
    pub(crate) fn helping(&self, call: &Call) -> Result<Option<Helping>> {
        let Some(helper) = &self.helper else { return Ok(None) };
        let fields = self.resolve(call);
        if let Some(beams) = fields.int("num_beams").filter(|beams| *beams > 1) {
            return Err(Error::unsupported(format!(
                "num_beams={beams} does not work with an assistant: drafts serve greedy decoding and sampling; leave one of \
                 the two out"
            )));
        }
        helper.draft(&call.config).map(Some)
    }

    /// The model itself.
    pub fn model(&self) -> &dyn Model {
        &*self.model
    }

    /// What the graph declares and how it is run; `None` for a pipeline made of parts.
    pub fn description(&self) -> Option<&Description> {
        self.graph.as_ref().map(OnnxModel::description)
    }

    /// Which engines load the graph; this takes as long as opening it. Empty for a pipeline made of parts.
    pub fn engine_support(&self) -> Vec<EngineSupport> {
        self.graph.as_ref().map(OnnxModel::engine_support).unwrap_or_default()
    }

    /// How many parameters the graph has, and how they are stored; `None` for a pipeline made of parts.
    ///
    /// # Errors
    ///
    /// When the graph's file can no longer be read.
    pub fn weights(&self) -> Result<Option<GraphWeights>> {
        self.graph.as_ref().map(OnnxModel::weights).transpose()
    }

    /// The tokenizer.
    ///
    /// # Errors
    ///
    /// When the model has none; the message says what to do.
    pub fn tokenizer(&self) -> Result<&Tokenizer> {
        self.tokenizer.as_ref().map_err(|why| Error::invalid_input(why.clone()))
    }

    /// The chat template.
    ///
    /// # Errors
    ///
    /// When the model has none.
    pub fn chat_template(&self) -> Result<&ChatTemplate> {
        self.template.as_ref().map_err(|why| Error::invalid_input(why.clone()))
    }

    /// The tokens of a prompt.
    ///
    /// # Errors
    ///
    /// When text or messages cannot be encoded.
    pub fn encode(&self, prompt: &Prompt) -> Result<Vec<TokenId>> {
        match prompt {
            Prompt::Ids(ids) => Ok(ids.clone()),
            Prompt::Text(text) => self.tokenize(text, true),
            Prompt::Raw(text) => self.tokenize(text, false),
            Prompt::Chat(chat) => self.tokenize(&self.render(&chat.messages, &chat.options)?, false),
        }
    }

    /// The tokens of a prompt that the model reads when nothing is generated: those of [`encode`](Pipeline::encode), of ids
    /// without padding.
    ///
    /// # Errors
    ///
    /// As [`encode`](Pipeline::encode); and when the model's settings cannot be honoured.
    pub fn tokens_read(&self, prompt: &Prompt) -> Result<Vec<TokenId>> {
        match prompt {
            Prompt::Ids(ids) => Ok(AttentionMask::Inferred.read(ids, &self.settings(&Call::new())?.0).into_owned()),
            other => self.encode(other),
        }
    }

    /// A warning when the ids of `prompt` hold padding, which the model does not read.
    ///
    /// # Errors
    ///
    /// When the model's settings cannot be honoured.
    pub fn padding_warning(&self, prompt: &Prompt) -> Result<Option<String>> {
        match prompt {
            Prompt::Ids(ids) => Ok(AttentionMask::Inferred.warning(ids, &self.settings(&Call::new())?.0)),
            _ => Ok(None),
        }
    }

    /// The tokens of a text. One that has more bytes than any text of the model's positions is refused without reading it.
    pub(crate) fn tokenize(&self, text: &str, add_special_tokens: bool) -> Result<Vec<TokenId>> {
        let tokenizer = self.tokenizer()?;
        let positions = self.model.max_positions();
        let limit = tokenizer.max_bytes(positions);
        if text.len() > limit {
            let most = match positions {
                Some(positions) => format!("the model takes at most {positions} positions, which hold at most {limit}"),
                None => format!("at most {limit} are read"),
            };
            return Err(Error::too_long(format!("the prompt has {} bytes and {most}; shorten the prompt", text.len())));
        }
        tokenizer.encode(text, add_special_tokens)
    }

    /// The text of a conversation: ready for the assistant's answer, or for the rest of one.
    ///
    /// # Errors
    ///
    /// When there is no chat template, it refuses the messages, or the last message cannot be continued.
    #[doc(alias = "apply_chat_template")]
    pub fn render(&self, messages: &[Message], options: &ChatOptions) -> Result<String> {
        match (&self.template, &self.tokenizer, &options.chat_template) {
            // A model without a template of its own can be given one.
            (Err(_), Ok(tokenizer), Some(text)) if ChatTemplate::is_source(text) => {
                let special_tokens = tokenizer.config().special_tokens.clone();
                ChatTemplate::with_special_tokens(text, special_tokens)?.render(messages, options)
            }
            _ => self.chat_template()?.render(messages, options),
        }
    }

    /// Every generation field in force for `call`, and where it came from.
    pub fn resolve(&self, call: &Call) -> Resolved {
        self.layers.with_defaults(call.default_length.defaults()).with_call(call.config.clone())
    }

    /// The checked settings of `call`, and one line per setting that has no effect.
    ///
    /// # Errors
    ///
    /// When a setting cannot be honoured.
    pub fn settings(&self, call: &Call) -> Result<(Settings, Vec<String>)> {
        match &call.refused {
            Some(refused) => Err(Error::invalid_config(refused.clone())),
            None => Settings::resolve(&self.resolve(call), &self.facts()),
        }
    }

    pub(crate) fn facts(&self) -> ModelFacts {
        ModelFacts { vocab_size: self.model.vocab_size(), max_positions: self.model.max_positions() }
    }

    pub(crate) fn vocabulary(&self) -> Option<Arc<dyn Vocabulary>> {
        self.tokenizer.as_ref().ok().map(|tokenizer| Arc::new(tokenizer.clone()) as Arc<dyn Vocabulary>)
    }

    /// Writes on from one or many prompts; Python's `pipeline("text-generation")`: 256 new tokens unless the call or the
    /// model's file says a length.
    ///
    /// # Errors
    ///
    /// When a setting or a prompt is not usable, or the engine fails.
    pub fn generate(&self, prompts: impl Prompts, call: &Call) -> Result<Answers> {
        let (ids, call) = self.prepare(&prompts.into_prompts(), call)?;
        self.generate_ids(ids, &call, None)
    }

    /// As [`generate`](Pipeline::generate); `sink` is told the text while it is written.
    ///
    /// # Errors
    ///
    /// As [`generate`](Pipeline::generate); and when the model has no tokenizer.
    pub fn stream(&self, prompts: impl Prompts, call: &Call, sink: &mut dyn TextSink) -> Result<Answers> {
        let (ids, call) = self.prepare(&prompts.into_prompts(), call)?;
        self.stream_ids(ids, &call, sink)
    }

    /// The tokens of prompts, and the call that knows of which kind they are.
    pub(crate) fn prepare(&self, prompts: &[Prompt], call: &Call) -> Result<(Vec<Vec<TokenId>>, Call)> {
        let masks = prompts.iter().map(Prompt::attention_mask).collect();
        Ok((self.encode_all(prompts)?, call.clone().for_texts().attention_mask(masks)))
    }

    /// The tokens of every prompt.
    ///
    /// # Errors
    ///
    /// When one cannot be encoded; of several, the place is the prompt's index.
    pub fn encode_all(&self, prompts: &[Prompt]) -> Result<Vec<Vec<TokenId>>> {
        let numbered = prompts.iter().enumerate();
        numbered
            .map(|(index, prompt)| self.encode(prompt).map_err(|error| error.at_one_of("prompt", index, prompts.len())))
            .collect()
    }

    /// Checks a prompt before anything runs, and gives an empty one the model's own first token.
    ///
    /// # Errors
    ///
    /// An empty prompt without such a token, an id outside the vocabulary, a prompt longer than the model's positions or
    /// without room for a new token.
    pub fn check(&self, ids: Vec<TokenId>, settings: &Settings) -> Result<Vec<TokenId>> {
        let ids = begun(ids, settings);
        if ids.is_empty() {
            return Err(Error::invalid_input(
                "the prompt is empty and the model names no bos_token_id to begin with; give at least one token",
            ));
        }
        check_ids(&ids, self.model.vocab_size())?;
        // Padding takes no position; that a text has none to leave out is checked when it runs.
        let read = AttentionMask::Inferred.read(&ids, settings).len();
        if let Some(positions) = self.model.max_positions().filter(|positions| read > *positions) {
            return Err(Error::too_long(format!(
                "the prompt has {read} tokens and the model takes at most {positions} positions; shorten the prompt"
            )));
        }
        settings.max_length_for(ids.len())?;
        Ok(ids)
    }

    /// As [`stream`](Pipeline::stream), from token ids; 20 new tokens unless a length is set, as `generate()`.
    ///
    /// # Errors
    ///
    /// As [`stream`](Pipeline::stream).
    pub fn stream_ids(&self, ids: Vec<Vec<TokenId>>, call: &Call, sink: &mut dyn TextSink) -> Result<Answers> {
        let (settings, _) = self.settings(call)?;
        let mut streamed = Streamed::new(self.tokenizer()?, &settings, call.shown, call.streaming, sink);
        self.generate_ids(ids, call, Some(&mut streamed))
    }

    /// Generates from token ids, as Python's `generate()`; `sink` receives the tokens as they are generated. 20 new tokens
    /// unless a length is set ([`Call::for_texts`] makes it 256).
    ///
    /// # Errors
    ///
    /// As [`generate`](Pipeline::generate).
    pub fn generate_ids(
        &self,
        ids: Vec<Vec<TokenId>>,
        call: &Call,
        sink: Option<&mut dyn TokenSink>,
    ) -> Result<Answers> {
        let (mut settings, mut warnings) = self.settings(call)?;
        let mut helping = if call.own.has_draft() { None } else { self.helping(call)? };
        let assistant = call.own.has_draft() || self.helper.is_some();
        warnings.extend(assistant::without_effect(call, &settings, assistant));
        let draft = helping.as_mut().map(Helping::draft);
        let sink = sink.map(|sink| sink as &mut dyn TokenSink);
        let mut prompts: Vec<Vec<TokenId>> = ids.into_iter().map(|ids| begun(ids, &settings)).collect();
        // What healing draws must be drawn again with the seed that is told.
        let seed = call.seed.or_else(|| settings.do_sample.then(random_seed));
        let mut call = Call { seed, ..call.clone() };
        if std::mem::take(&mut settings.token_healing) {
            let (healed, told) = self.heal(prompts, call.first_prompt, seed.unwrap_or(0))?;
            prompts = healed.into_iter().map(|ids| begun(ids, &settings)).collect();
            // Healing puts the padding token before the first one, and Python's mask is older than that.
            call.attention_mask = vec![AttentionMask::Ones; prompts.len()];
            warnings.extend(told);
        }
        let stops = StopHold::new(settings.stop_strings.clone());
        let (request, seed) = self.request(prompts.clone(), settings, &call, sink);
        let assist = Assist { draft, always: call.always_draft, elapsed: None };
        let output = generate(&*self.model, request.assist(assist))?;
        let drafts = output.drafts();
        warnings.extend(output.warnings);
        if let (Some(helper), Some(helping)) = (&self.helper, &helping) {
            helper.used(helping, &call.config);
        }
        let answers = prompts.into_iter().zip(output.prompts).map(|(prompt_ids, output)| Answer {
            texts: output.sequences.iter().filter_map(|sequence| self.text(sequence, call.shown, &stops)).collect(),
            prompt_ids,
            output,
        });
        Ok(Answers { answers: answers.collect(), timing: output.timing, drafts, seed, warnings })
    }

    /// A request of the core, and the seed it draws with.
    pub(crate) fn request<'a>(
        &self,
        prompts: Vec<Vec<TokenId>>,
        settings: Settings,
        call: &Call,
        sink: Option<&'a mut dyn TokenSink>,
    ) -> (Request<'a>, Option<u64>) {
        let seed = settings.do_sample.then(|| call.seed.unwrap_or_else(random_seed));
        let mut request = Request::new(prompts, settings);
        request.seed = seed.unwrap_or(0);
        request.first_row = call.first_prompt;
        request.logprobs = call.logprobs;
        request.attention_mask.clone_from(&call.attention_mask);
        request.negative_prompts.clone_from(&call.negative_prompts);
        request.own.clone_from(&call.own);
        request.vocabulary = self.vocabulary();
        request.sink = sink;
        (request, seed)
    }

    /// The text of a sequence; `None` without a tokenizer.
    pub(crate) fn text(&self, sequence: &Sequence, shown: Shown, stops: &StopHold) -> Option<String> {
        // The token that ended an answer is no part of its text, also where the tokenizer does not call it special.
        let ids = match (&sequence.finish, sequence.ids.as_slice()) {
            (FinishReason::Eos, [ids @ .., _]) => ids,
            (_, ids) => ids,
        };
        let text = self.tokenizer.as_ref().ok()?.decode(ids, true);
        let cut = shown == Shown::Cut && sequence.finish == FinishReason::StopString;
        Some(if cut { stops.cut(&text).to_string() } else { text })
    }
}

/// An empty prompt begins with the model's own first token, when it names one.
fn begun(ids: Vec<TokenId>, settings: &Settings) -> Vec<TokenId> {
    if ids.is_empty() { settings.bos_token_id.into_iter().collect() } else { ids }
}

/// A small text file; `None` when it is not there.
fn read_text(path: &Path) -> Result<Option<String>> {
    let failed = |error| Error::io("this file could not be read").at(path.display()).because(error);
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
        Ok(metadata) if metadata.len() > MAX_CONFIG_BYTES => Err(Error::invalid_model(format!(
            "this file has {} bytes, expected at most {MAX_CONFIG_BYTES}",
            metadata.len()
        ))
        .at(path.display())),
        Ok(_) => fs::read_to_string(path).map(Some).map_err(failed),
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline").field("description", &self.description()).finish_non_exhaustive()
    }
}
