//! What a decoder graph takes and gives, by role.

use serde::Serialize;
use unspool_core::{Error, Result};

use super::cache_mode::{Attention, CacheMode};
use super::hidden::Hidden;

/// Element types that inputs, outputs and caches of generation graphs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// Boolean.
    Bool,
    /// Anything else, by its ONNX number.
    #[serde(untagged)]
    Other(i32),
}

impl ElementType {
    /// From the number in `TensorProto.DataType`.
    pub fn from_onnx(number: i32) -> Self {
        match number {
            1 => ElementType::F32,
            6 => ElementType::I32,
            7 => ElementType::I64,
            9 => ElementType::Bool,
            10 => ElementType::F16,
            other => ElementType::Other(other),
        }
    }
}

/// One declared input or output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Io {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: ElementType,
    /// Its axes: a number where the graph fixes it, else a symbolic name (or `?`).
    pub shape: Vec<String>,
}

impl Io {
    /// The size of axis `axis` where the graph fixes it.
    pub fn fixed(&self, axis: usize) -> Option<usize> {
        self.shape.get(axis)?.parse().ok()
    }
}

/// One cache tensor: its input, its output and its geometry, `[rows, heads, columns, head_dim]`.
#[derive(Clone, Debug, Serialize)]
pub struct CacheSlot {
    /// Name of the past input.
    pub past: String,
    /// Name of the present output.
    pub present: String,
    /// Key or value heads.
    pub heads: usize,
    /// Size of a head.
    pub head_dim: usize,
    /// Element type of both.
    pub dtype: ElementType,
}

/// A decoder graph's inputs and outputs by role.
#[derive(Clone, Debug, Serialize)]
pub struct Signature {
    /// All declared inputs, in the graph's order.
    pub inputs: Vec<Io>,
    /// All declared outputs, in the graph's order.
    pub outputs: Vec<Io>,
    /// How many rows every run has, where the graph fixes its batch axis.
    pub fixed_batch: Option<usize>,
    /// Whether `attention_mask` is an input.
    pub attention_mask: bool,
    /// Whether `position_ids` is an input.
    pub position_ids: bool,
    /// Name of the switch between the branches of a merged decoder.
    pub use_cache_branch: bool,
    /// Name of the input that says how many last positions get logits.
    pub logits_to_keep: Option<String>,
    /// Element type of the logits.
    pub logits_dtype: ElementType,
    /// Entries of the vocabulary.
    pub vocab_size: usize,
    /// The hidden states among the outputs.
    pub hidden: Option<Hidden>,
    /// Caches, in layer order, key before value.
    pub cache: Vec<CacheSlot>,
    /// The cache mode.
    pub cache_mode: CacheMode,
    /// Why this mode.
    pub cache_reason: &'static str,
    /// Whether the graph attends through GroupQueryAttention.
    pub grouped_query: bool,
    /// Window of sliding caches, 0 without any.
    pub sliding_window: usize,
    /// Whether products with quantised weights may round their activations to 8 bits.
    pub rounds_tokens: bool,
    /// Why ONNX Runtime loads the graph and cannot run it, if that is so.
    pub refused_by_ort: Option<String>,
}

impl Signature {
    /// Whether another graph is given and returns the same.
    pub fn is_fed_like(&self, other: &Signature) -> bool {
        self.inputs == other.inputs && self.outputs == other.outputs && self.vocab_size == other.vocab_size
    }
}

/// What the graph may leave open and config.json then says.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConfigFacts {
    /// `vocab_size`.
    pub vocab_size: Option<usize>,
    /// Key and value heads.
    pub kv_heads: Option<usize>,
    /// Size of a head.
    pub head_dim: Option<usize>,
    /// Largest number of positions.
    pub max_positions: Option<usize>,
    /// Size of a hidden state.
    pub hidden_size: Option<usize>,
    /// Whether the output matrix is the embedding table.
    pub tied: bool,
}

impl Signature {
    /// Bytes of cache that one token of one row takes.
    pub fn cache_bytes_per_token(&self) -> usize {
        self.cache
            .iter()
            .map(|slot| slot.heads * slot.head_dim * if slot.dtype == ElementType::F16 { 2 } else { 4 })
            .sum()
    }

    /// Layers, as counted by the caches.
    pub fn layers(&self) -> usize {
        self.cache.len() / 2
    }
}

/// The layer number and the part of a cache name, for the spellings exporters use.
struct CacheName {
    layer: usize,
    value: bool,
}

const PAST_PREFIXES: [&str; 2] = ["past_key_values.", "past_key_values_"];

fn parse_past(name: &str) -> Option<CacheName> {
    let rest = PAST_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let layer = rest.get(..digits)?.parse().ok()?;
    let value = match rest.get(digits + 1..)? {
        "key" | "decoder.key" => false,
        "value" | "decoder.value" => true,
        _ => return None,
    };
    Some(CacheName { layer, value })
}

/// Gives each declared input and output its role.
pub(super) fn assign(
    inputs: Vec<Io>,
    outputs: Vec<Io>,
    facts: &ConfigFacts,
    choose_mode: impl FnOnce(bool, bool) -> (CacheMode, &'static str),
    attention: Attention,
) -> Result<Signature> {
    let (mut attention_mask, mut position_ids, mut use_cache_branch, mut input_ids) = (false, false, false, false);
    let mut logits_to_keep = None;
    let mut cache = Vec::new();
    for input in &inputs {
        match input.name.as_str() {
            "input_ids" => input_ids = true,
            "attention_mask" => attention_mask = true,
            "position_ids" => position_ids = true,
            "use_cache_branch" => use_cache_branch = true,
            "logits_to_keep" | "num_logits_to_keep" => logits_to_keep = Some(input.name.clone()),
            name => match parse_past(name) {
                Some(part) => cache.push((part.layer, part.value, slot(input, &outputs, facts)?)),
                None => {
                    if let Some(error) = other_architecture(name) {
                        return Err(error);
                    }
                    return Err(Error::unsupported(format!(
                        "graph input '{name}' ({:?} {:?}) is not one of a decoder-only text model (input_ids, \
                         attention_mask, position_ids, use_cache_branch, logits_to_keep, past_key_values.N.key/value)",
                        input.dtype, input.shape
                    )));
                }
            },
        }
    }
    if !input_ids {
        return Err(Error::unsupported(
            "the graph has no input 'input_ids'; only decoder-only text graphs are supported yet",
        ));
    }
    let fixed_batch = fixed_axes(&inputs, attention.grouped_query)?;
    cache.sort_by_key(|&(layer, value, _)| (layer, value));
    let logits = outputs.iter().find(|o| o.name == "logits").ok_or_else(|| {
        let names: Vec<_> = outputs.iter().take(6).map(|o| o.name.as_str()).collect();
        Error::unsupported(format!(
            "the graph has no output 'logits' (it has {}); export it for text generation",
            names.join(", ")
        ))
    })?;
    if !matches!(logits.dtype, ElementType::F32 | ElementType::F16) {
        return Err(Error::unsupported(format!("logits of type {:?}; expected f32 or f16", logits.dtype)));
    }
    let vocab_size = logits.fixed(2).or(facts.vocab_size).filter(|&v| v > 0 && v < 1 << 28).ok_or_else(|| {
        Error::invalid_model(
            "the size of the vocabulary is neither in the graph's logits nor a usable 'vocab_size' in config.json",
        )
    })?;
    let hidden = Hidden::among(&outputs, facts)?;
    let (cache_mode, cache_reason) = choose_mode(!cache.is_empty(), position_ids);
    Ok(Signature {
        hidden,
        fixed_batch,
        attention_mask,
        position_ids,
        use_cache_branch,
        logits_to_keep,
        logits_dtype: logits.dtype,
        vocab_size,
        cache: cache.into_iter().map(|(_, _, slot)| slot).collect(),
        cache_mode,
        cache_reason,
        grouped_query: attention.grouped_query,
        sliding_window: attention.sliding_window,
        rounds_tokens: attention.rounds_tokens,
        refused_by_ort: None,
        inputs,
        outputs,
    })
}

/// The refusal of a graph that is known to be of another kind, by the name of an input.
fn other_architecture(input: &str) -> Option<Error> {
    if input.starts_with("encoder_") || input.contains(".encoder.") {
        return Some(Error::unsupported(format!(
            "this is the decoder of an encoder-decoder model (input '{input}'); encoder-decoder models such as T5, BART or \
             Whisper are not supported yet, use a decoder-only model"
        )));
    }
    (input == "inputs_embeds").then(|| {
        Error::unsupported(
            "this graph reads embeddings (input 'inputs_embeds'), not ids, as those of models with images or sound do; such \
             models are not supported yet, use a decoder-only text model with an input 'input_ids'",
        )
    })
}

/// The most rows that a graph may want in every run.
const MAX_FIXED_BATCH: usize = 256;

/// The batch of `input_ids` where the graph fixes it.
///
/// # Errors
///
/// When it fixes the number of tokens, or a batch that cannot be filled up.
fn fixed_axes(inputs: &[Io], grouped_query: bool) -> Result<Option<usize>> {
    let Some(ids) = inputs.iter().find(|input| input.name == "input_ids") else { return Ok(None) };
    if let Some(tokens) = ids.fixed(1) {
        return Err(Error::unsupported(format!(
            "axis 1 (the tokens) of input 'input_ids' is fixed at {tokens}, and prompts have any number; export the graph \
             with a dynamic sequence axis"
        )));
    }
    match ids.fixed(0) {
        Some(rows) if rows == 0 || rows > MAX_FIXED_BATCH || (rows > 1 && grouped_query) => {
            Err(Error::unsupported(format!(
                "axis 0 (the batch) of input 'input_ids' is fixed at {rows}; export the graph with a dynamic batch axis"
            )))
        }
        rows => Ok(rows),
    }
}

/// The signature of a graph that applies the output matrix alone: `hidden_states [batch, sequence, width]` to `logits`.
///
/// # Errors
///
/// When it has other inputs, or its logits are not f32 of `vocab_size` entries.
pub(super) fn assign_head(inputs: Vec<Io>, outputs: Vec<Io>, vocab_size: usize) -> Result<Signature> {
    let logits = outputs.iter().find(|output| output.name == "logits");
    let fits = logits.is_some_and(|logits| logits.dtype == ElementType::F32 && logits.fixed(2) == Some(vocab_size));
    if !fits || inputs.len() != 1 || inputs.iter().any(|input| input.name != HEAD_INPUT) {
        return Err(Error::invalid_model(format!(
            "this is no graph of an output matrix: expected an input '{HEAD_INPUT}' and f32 logits of {vocab_size} entries; \
             import the checkpoint again"
        )));
    }
    Ok(Signature {
        inputs,
        outputs,
        fixed_batch: None,
        attention_mask: false,
        position_ids: false,
        use_cache_branch: false,
        logits_to_keep: None,
        logits_dtype: ElementType::F32,
        vocab_size,
        hidden: None,
        cache: Vec::new(),
        cache_mode: CacheMode::None,
        cache_reason: "the graph has no past inputs",
        grouped_query: false,
        sliding_window: 0,
        rounds_tokens: false,
        refused_by_ort: None,
    })
}

/// The input of a graph that applies the output matrix alone.
pub(crate) const HEAD_INPUT: &str = "hidden_states";

fn slot(input: &Io, outputs: &[Io], facts: &ConfigFacts) -> Result<CacheSlot> {
    let place = || format!("cache input '{}'", input.name);
    if input.shape.len() != 4 {
        return Err(Error::unsupported(format!(
            "it has {} axes {:?}; expected [batch, heads, past, head_dim]",
            input.shape.len(),
            input.shape
        ))
        .at(place()));
    }
    if !matches!(input.dtype, ElementType::F32 | ElementType::F16) {
        return Err(Error::unsupported(format!("it is {:?}; expected f32 or f16", input.dtype)).at(place()));
    }
    let size = |axis: usize, fallback: Option<usize>, key: &str| {
        input.fixed(axis).or(fallback).filter(|&n| n > 0 && n <= 1 << 16).ok_or_else(|| {
            Error::invalid_model(format!(
                "axis {axis} is symbolic ('{}') and config.json gives no usable {key}",
                input.shape[axis]
            ))
            .at(place())
        })
    };
    let heads = size(1, facts.kv_heads, "num_key_value_heads")?;
    let head_dim = size(3, facts.head_dim, "head_dim")?;
    let present = ["present", "present_key_values"]
        .iter()
        .find_map(|word| {
            let name = input.name.replacen("past_key_values", word, 1);
            outputs.iter().find(|o| o.name == name)
        })
        .ok_or_else(|| Error::invalid_model("the graph has no matching 'present' output").at(place()))?;
    if present.dtype != input.dtype {
        return Err(
            Error::invalid_model(format!("its output is {:?}, the input {:?}", present.dtype, input.dtype)).at(place())
        );
    }
    Ok(CacheSlot { past: input.name.clone(), present: present.name.clone(), heads, head_dim, dtype: input.dtype })
}
