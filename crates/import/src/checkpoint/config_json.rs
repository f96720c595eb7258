//! Sizes and settings from `config.json`, with the defaults of the model's transformers configuration class.

use std::path::Path;

use serde_json::{Map, Value};
use unspool_core::{Error, Result, file, json};

use super::family::unsupported;
use super::hyper::{
    Hyper, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_VOCAB, MAX_WIDTH, bounded, even_share,
};
use crate::graph::RopeScaling;

/// More than the configuration of any model, in bytes.
const MAX_CONFIG: u64 = 16_000_000;

/// A model type and what its configuration class says when the file is silent.
struct Family {
    model_type: &'static str,
    class: &'static str,
    max_positions: usize,
    /// `None`: as many as attention heads.
    kv_heads: Option<usize>,
    /// `None`: the even share of the hidden size.
    head_dim: Option<usize>,
}

const FAMILIES: [Family; 4] = [
    Family { model_type: "llama", class: "LlamaForCausalLM", max_positions: 2048, kv_heads: None, head_dim: None },
    Family {
        model_type: "mistral",
        class: "MistralForCausalLM",
        max_positions: 131_072,
        kv_heads: Some(8),
        head_dim: None,
    },
    Family {
        model_type: "qwen2",
        class: "Qwen2ForCausalLM",
        max_positions: 32_768,
        kv_heads: Some(32),
        head_dim: None,
    },
    Family {
        model_type: "qwen3",
        class: "Qwen3ForCausalLM",
        max_positions: 32_768,
        kv_heads: Some(32),
        head_dim: Some(128),
    },
];
/// Model types with an encoder whose configurations do not always say so.
const ENCODERS: [&str; 5] = ["t5", "mt5", "bart", "mbart", "whisper"];
/// The sliding window of Mistral, Qwen2 and Qwen3 when the file is silent.
const DEFAULT_WINDOW: usize = 4096;
/// The first layer with a sliding window in Qwen2 and Qwen3 when the file is silent.
const DEFAULT_WINDOW_LAYER: usize = 28;

/// A model's `config.json`, of a supported model type.
pub(super) struct Config {
    fields: Map<String, Value>,
    family: &'static Family,
}

impl Config {
    /// Reads the file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let missing = || Error::io("there is no config.json beside the weights; download it too").at(path.display());
        let text = file::read_text(path, MAX_CONFIG)?.ok_or_else(missing)?;
        Self::parse(&text).map_err(|error| error.at(path.display()))
    }

    /// Reads the file's text.
    fn parse(text: &str) -> Result<Self> {
        let fields: Map<String, Value> = json::from_str(text)
            .map_err(|error| Error::invalid_model("not a JSON object of settings").because(error))?;
        let model_type = fields
            .get("model_type")
            .and_then(Value::as_str)
            .ok_or_else(|| Error::invalid_model("has no \"model_type\" that names the architecture"))?;
        let family = FAMILIES.iter().find(|family| family.model_type == model_type).ok_or_else(|| {
            if fields.get("is_encoder_decoder").and_then(json::flag) == Some(true) || ENCODERS.contains(&model_type) {
                return Error::unsupported(format!(
                    "model type {model_type:?} has an encoder and a decoder; only decoders are imported (model types {})",
                    FAMILIES.map(|family| family.model_type).join(", ")
                ));
            }
            unsupported("model type", model_type, &FAMILIES.map(|family| family.model_type))
        })?;
        let config = Config { family, fields };
        config.refuse_unbuilt()?;
        Ok(config)
    }

    /// The model type.
    pub(super) fn model_type(&self) -> &'static str {
        self.family.model_type
    }

    fn refuse_unbuilt(&self) -> Result<()> {
        if let Some(class) = self.value("architectures").and_then(|classes| classes.get(0)).and_then(Value::as_str)
            && class != self.family.class
            && class != self.family.class.replace("ForCausalLM", "Model")
        {
            return Err(Error::unsupported(format!(
                "architecture {class:?} of model type {:?} is not supported, expected {:?}",
                self.model_type(),
                self.family.class
            )));
        }
        if self.value("quantization_config").is_some() {
            return Err(Error::unsupported(
                "\"quantization_config\": quantised safetensors are not supported; take the float checkpoint or a GGUF",
            ));
        }
        if let Some(act) = self.value("hidden_act")
            && act != "silu"
        {
            return Err(Error::unsupported(format!("\"hidden_act\" {act} is not supported, expected \"silu\"")));
        }
        if self.flag("mlp_bias")? {
            return Err(Error::unsupported("\"mlp_bias\": biases in the feed-forward network are not supported"));
        }
        Ok(())
    }

    /// A field that is there and not null.
    fn value(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn flag(&self, name: &str) -> Result<bool> {
        match self.value(name) {
            None => Ok(false),
            Some(value) => json::flag(value)
                .ok_or_else(|| Error::invalid_model(format!("{name:?} is {}, expected true or false", brief(value)))),
        }
    }

    fn optional_size(&self, name: &str, max: usize) -> Result<Option<usize>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match unsigned(value) {
            Some(size) => bounded(name, size, max).map(Some),
            None => Err(Error::invalid_model(format!("{name:?} is {}, expected 1 to {max}", brief(value)))),
        }
    }

    fn size(&self, name: &str, max: usize) -> Result<usize> {
        self.optional_size(name, max)?
            .ok_or_else(|| Error::invalid_model(format!("has no {name:?}, expected a size from 1 to {max}")))
    }

    /// Sizes and settings, all but those that follow from the presence of tensors.
    pub(super) fn hyper(&self) -> Result<Hyper> {
        let layers = self.size("num_hidden_layers", MAX_LAYERS)?;
        let hidden_size = self.size("hidden_size", MAX_WIDTH)?;
        let heads = self.size("num_attention_heads", MAX_HEADS)?;
        let kv_heads = match self.optional_size("num_key_value_heads", MAX_HEADS)? {
            Some(given) => given,
            // A null means one for each attention head; only silence means the class's own default.
            None if self.fields.contains_key("num_key_value_heads") => heads,
            None => self.family.kv_heads.unwrap_or(heads),
        };
        let head_dim = match self.optional_size("head_dim", MAX_HEAD_DIM)?.or(self.family.head_dim) {
            Some(size) => size,
            None => bounded("the head size", even_share(hidden_size, heads)? as u64, MAX_HEAD_DIM)?,
        };
        let bias = self.flag("attention_bias")?;
        let max_positions = self.optional_size("max_position_embeddings", MAX_POSITIONS)?;
        let max_position_embeddings = max_positions.unwrap_or(self.family.max_positions);
        let (rope_theta, rope_scaling) = self.rope(max_position_embeddings)?;
        Ok(Hyper {
            hidden_size,
            intermediate_size: self.size("intermediate_size", MAX_WIDTH)?,
            layers,
            heads,
            kv_heads,
            head_dim,
            vocab_size: self.size("vocab_size", MAX_VOCAB)?,
            max_position_embeddings,
            rms_norm_eps: number(&self.fields, "rms_norm_eps")?.unwrap_or(1e-6) as f32,
            rope_theta,
            rope_scaling,
            attention_bias: match self.model_type() {
                "qwen2" => true,
                "mistral" => false,
                _ => bias,
            },
            output_bias: bias && matches!(self.model_type(), "llama" | "qwen3"),
            qk_norm: self.model_type() == "qwen3",
            tied_embeddings: self.flag("tie_word_embeddings")?,
            sliding_windows: self.sliding_windows(layers)?,
        })
    }

    /// Rotary base and scaling, from `rope_parameters` (5.x) or `rope_theta` and `rope_scaling` (before).
    fn rope(&self, max_positions: usize) -> Result<(f64, RopeScaling)> {
        let empty = Map::new();
        let field = ["rope_scaling", "rope_parameters"].into_iter().find_map(|name| {
            let value = self.value(name)?;
            value.as_object().is_none_or(|fields| !fields.is_empty()).then_some((name, value))
        });
        let rope = match field {
            None => &empty,
            Some((name, value)) => value
                .as_object()
                .ok_or_else(|| Error::invalid_model(format!("{name:?} is {}, expected an object", brief(value))))?,
        };
        let theta = match number(rope, "rope_theta")? {
            Some(theta) => theta,
            None => number(&self.fields, "rope_theta")?.unwrap_or(10_000.0),
        };
        for fields in [rope, &self.fields] {
            if let Some(share) = number(fields, "partial_rotary_factor")?
                && share != 1.0
            {
                return Err(Error::unsupported(format!("\"partial_rotary_factor\" {share} is not supported")));
            }
        }
        let kind = match rope.get("rope_type").or_else(|| rope.get("type")) {
            None | Some(Value::Null) => "default",
            Some(kind) => kind
                .as_str()
                .ok_or_else(|| Error::invalid_model(format!("\"rope_type\" is {}, expected a text", brief(kind))))?,
        };
        let wanted = |name: &str| {
            number(rope, name)?.ok_or_else(|| {
                Error::invalid_model(format!("rope scaling {kind:?} has no {name:?}, expected a number"))
            })
        };
        let scaling = match kind {
            "default" => RopeScaling::None,
            "linear" => RopeScaling::Linear { factor: wanted("factor")? },
            "llama3" => RopeScaling::Llama3 {
                factor: wanted("factor")?,
                low_freq_factor: wanted("low_freq_factor")?,
                high_freq_factor: wanted("high_freq_factor")?,
                original_positions: match (
                    self.optional_size("original_max_position_embeddings", MAX_POSITIONS)?,
                    rope.get("original_max_position_embeddings"),
                ) {
                    (Some(outer), _) => outer,
                    (None, None) => max_positions,
                    (None, Some(value)) => {
                        let name = "original_max_position_embeddings";
                        let Some(size) = unsigned(value) else {
                            return Err(Error::invalid_model(format!("{name:?} is {}, expected a size", brief(value))));
                        };
                        bounded(name, size, MAX_POSITIONS)?
                    }
                },
            },
            other => {
                return Err(Error::unsupported(format!(
                    "rope scaling {other:?} is not supported, supported are default, linear and llama3"
                )));
            }
        };
        Ok((theta, scaling))
    }

    /// One entry per layer, or none when no layer has a window.
    fn sliding_windows(&self, layers: usize) -> Result<Vec<Option<usize>>> {
        let name = "sliding_window";
        let window = match self.model_type() {
            "llama" => None,
            "mistral" => self.window(name)?,
            _ if self.flag("use_sliding_window")? => self.window(name)?,
            _ => None,
        };
        let Some(window) = window else { return Ok(Vec::new()) };
        if self.model_type() == "mistral" {
            return Ok(vec![Some(window); layers]);
        }
        if let Some(kinds) = self.value("layer_types") {
            return layer_types(kinds, layers, window);
        }
        let first = match self.value("max_window_layers") {
            None => DEFAULT_WINDOW_LAYER,
            Some(value) => unsigned(value).and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
                Error::invalid_model(format!("\"max_window_layers\" is {}, expected a count", brief(value)))
            })?,
        };
        Ok((0..layers).map(|layer| (layer >= first).then_some(window)).collect())
    }

    /// The window's size: the class's own when the file is silent, none when it says null.
    fn window(&self, name: &str) -> Result<Option<usize>> {
        match self.fields.contains_key(name) {
            true => self.optional_size(name, MAX_POSITIONS),
            false => Ok(Some(DEFAULT_WINDOW)),
        }
    }
}

fn layer_types(kinds: &Value, layers: usize, window: usize) -> Result<Vec<Option<usize>>> {
    let kinds = kinds
        .as_array()
        .filter(|kinds| kinds.len() == layers)
        .ok_or_else(|| Error::invalid_model(format!("\"layer_types\" is {}, expected {layers} texts", brief(kinds))))?;
    kinds
        .iter()
        .map(|kind| match kind.as_str() {
            Some("full_attention") => Ok(None),
            Some("sliding_attention") => Ok(Some(window)),
            _ => Err(Error::unsupported(format!(
                "layer type {} is not supported, supported are full_attention and sliding_attention",
                brief(kind)
            ))),
        })
        .collect()
}

/// A count, also written as a float.
fn unsigned(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| json::int(value).and_then(|int| u64::try_from(int).ok()))
}

fn number(fields: &Map<String, Value>, name: &str) -> Result<Option<f64>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_f64()
            .map(Some)
            .ok_or_else(|| Error::invalid_model(format!("{name:?} is {}, expected a number", brief(value)))),
    }
}

/// A value for a message, cut when long.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
