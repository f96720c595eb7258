//! What `watermarking_config` may hold.

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The seeding of a green list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedingScheme {
    /// By the token before.
    LeftHash,
    /// By the tokens before and the candidate itself.
    SelfHash,
}

/// A green list: part of the vocabulary, drawn anew for each token, gets a bias. Python's `WatermarkingConfig`.
/// <https://arxiv.org/abs/2306.04634>.
#[derive(Clone, Debug, PartialEq)]
#[doc(alias = "WatermarkingConfig")]
pub struct WatermarkConfig {
    /// Share of green tokens, between 0 and 1.
    pub greenlist_ratio: f64,
    /// What is added to their scores.
    pub bias: f64,
    /// The secret.
    pub hashing_key: i64,
    /// How lists are drawn.
    pub seeding_scheme: SeedingScheme,
    /// Tokens that a list depends on.
    pub context_width: usize,
}

impl Default for WatermarkConfig {
    fn default() -> Self {
        WatermarkConfig {
            greenlist_ratio: 0.25,
            bias: 2.0,
            hashing_key: 15_485_863,
            seeding_scheme: SeedingScheme::LeftHash,
            context_width: 1,
        }
    }
}

impl WatermarkConfig {
    /// # Errors
    ///
    /// A ratio outside `0..1`, or a context of 0 tokens.
    pub(super) fn check(&self) -> Result<()> {
        if !(self.greenlist_ratio > 0.0 && self.greenlist_ratio < 1.0) {
            return Err(wrong("greenlist_ratio", &self.greenlist_ratio, "a number between 0 and 1"));
        }
        if self.context_width == 0 {
            return Err(wrong("context_width", &0, "at least 1"));
        }
        Ok(())
    }
}

/// SynthID's tournament of hashed bits. Python's `SynthIDTextWatermarkingConfig`.
/// <https://doi.org/10.1038/s41586-024-08025-4>.
#[derive(Clone, Debug, PartialEq)]
#[doc(alias = "SynthIDTextWatermarkingConfig")]
pub struct SynthIdConfig {
    /// Tokens of an n-gram; the last one is the candidate.
    pub ngram_len: usize,
    /// The secret: one layer of the tournament per key.
    pub keys: Vec<i64>,
    /// Contexts remembered; a repeated one is not marked again.
    pub context_history_size: usize,
    /// Seed of the table of bits.
    pub sampling_table_seed: u64,
    /// Bits of the table.
    pub sampling_table_size: usize,
    /// Leave the first `ngram_len - 1` tokens unmarked.
    pub skip_first_ngram_calls: bool,
    /// Mark even scores, to look at the marks alone.
    pub debug_mode: bool,
}

/// Either kind of watermark.
#[derive(Clone, Debug, PartialEq)]
pub enum WatermarkingConfig {
    /// Green lists.
    GreenList(WatermarkConfig),
    /// SynthID.
    SynthId(SynthIdConfig),
}

/// Largest table and longest history that are believed; Python's own limit of the table.
const MOST: usize = 1 << 24;

/// Longest n-gram that is believed. Each step hashes the remembered contexts, so its cost grows with the length; the
/// paper and Python's examples have 5.
const LONGEST_NGRAM: usize = 128;

/// Most layers of a tournament.
const MOST_KEYS: usize = 1024;

impl SynthIdConfig {
    /// N-grams of `ngram_len` tokens and one layer per key; the rest as Python's defaults.
    pub fn new(ngram_len: usize, keys: Vec<i64>) -> Self {
        SynthIdConfig {
            ngram_len,
            keys,
            context_history_size: 1024,
            sampling_table_seed: 0,
            sampling_table_size: 1 << 16,
            skip_first_ngram_calls: false,
            debug_mode: false,
        }
    }

    /// # Errors
    ///
    /// No key or too many, or a size outside its range; the message names the field.
    pub(super) fn check(&self) -> Result<()> {
        if self.keys.is_empty() || self.keys.len() > MOST_KEYS {
            return Err(wrong("keys", &format!("{} keys", self.keys.len()), &format!("1 to {MOST_KEYS} keys")));
        }
        for (name, size, least, most) in [
            ("ngram_len", self.ngram_len, 2, LONGEST_NGRAM),
            ("context_history_size", self.context_history_size, 1, MOST),
            ("sampling_table_size", self.sampling_table_size, 1, MOST),
        ] {
            if !(least..=most).contains(&size) {
                return Err(wrong(name, &size, &format!("an integer from {least} to {most}")));
            }
        }
        Ok(())
    }
}

impl WatermarkingConfig {
    /// Reads the object of a configuration: SynthID when it has `ngram_len` or `keys`, else a green list.
    ///
    /// # Errors
    ///
    /// An unknown key, a wrong type, or a value outside its range; the message names the key.
    pub fn from_json(object: &Map<String, Value>) -> Result<Self> {
        if object.contains_key("ngram_len") || object.contains_key("keys") {
            synth_id(&Reader(object)).map(WatermarkingConfig::SynthId)
        } else {
            green_list(&Reader(object)).map(WatermarkingConfig::GreenList)
        }
    }
}

fn green_list(reader: &Reader<'_>) -> Result<WatermarkConfig> {
    reader.only(&["greenlist_ratio", "bias", "hashing_key", "seeding_scheme", "context_width"])?;
    let default = WatermarkConfig::default();
    let greenlist_ratio = reader.read("greenlist_ratio", Value::as_f64, "a number")?;
    let scheme = reader.read("seeding_scheme", |value| value.as_str().map(str::to_owned), "a text")?;
    let seeding_scheme = match scheme.as_deref() {
        None | Some("lefthash") => SeedingScheme::LeftHash,
        Some("selfhash") => SeedingScheme::SelfHash,
        Some(other) => return Err(wrong("seeding_scheme", &other, "\"lefthash\" or \"selfhash\"")),
    };
    let bias = reader.read("bias", Value::as_f64, "a number")?.unwrap_or(default.bias);
    let config = WatermarkConfig {
        greenlist_ratio: greenlist_ratio.unwrap_or(default.greenlist_ratio),
        bias,
        hashing_key: reader.read("hashing_key", Value::as_i64, "an integer")?.unwrap_or(default.hashing_key),
        seeding_scheme,
        context_width: reader.size("context_width")?.unwrap_or(default.context_width),
    };
    config.check().map(|()| config)
}

fn synth_id(reader: &Reader<'_>) -> Result<SynthIdConfig> {
    reader.only(&[
        "ngram_len",
        "keys",
        "context_history_size",
        "sampling_table_seed",
        "sampling_table_size",
        "skip_first_ngram_calls",
        "debug_mode",
    ])?;
    let all = |value: &Value| value.as_array()?.iter().map(Value::as_i64).collect::<Option<Vec<_>>>();
    let missing = |key: &str| Error::invalid_config(format!("watermarking_config has no {key}; SynthID needs it"));
    let keys = reader.read("keys", all, "a list of integers")?.ok_or_else(|| missing("keys"))?;
    let ngram_len = reader.size("ngram_len")?.ok_or_else(|| missing("ngram_len"))?;
    let default = SynthIdConfig::new(ngram_len, keys);
    let seed = reader.read("sampling_table_seed", Value::as_u64, "an integer of at least 0")?;
    let skip = reader.read("skip_first_ngram_calls", Value::as_bool, "true or false")?;
    let debug = reader.read("debug_mode", Value::as_bool, "true or false")?;
    let config = SynthIdConfig {
        context_history_size: reader.size("context_history_size")?.unwrap_or(default.context_history_size),
        sampling_table_seed: seed.unwrap_or(default.sampling_table_seed),
        sampling_table_size: reader.size("sampling_table_size")?.unwrap_or(default.sampling_table_size),
        skip_first_ngram_calls: skip.unwrap_or(default.skip_first_ngram_calls),
        debug_mode: debug.unwrap_or(default.debug_mode),
        ..default
    };
    config.check().map(|()| config)
}

struct Reader<'a>(&'a Map<String, Value>);

impl Reader<'_> {
    fn only(&self, names: &[&str]) -> Result<()> {
        match self.0.keys().find(|key| !names.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(Error::invalid_config(format!(
                "watermarking_config has an unknown {key:?}, expected {}",
                names.join(", ")
            ))),
        }
    }

    fn read<T>(&self, key: &str, read: impl Fn(&Value) -> Option<T>, expected: &str) -> Result<Option<T>> {
        match self.0.get(key).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| wrong(key, value, expected)),
        }
    }

    /// A size; its range is the configuration's own check.
    fn size(&self, key: &str) -> Result<Option<usize>> {
        let read = |value: &Value| value.as_u64().and_then(|value| usize::try_from(value).ok());
        self.read(key, read, "an integer above 0")
    }
}

fn wrong(key: &str, got: &dyn std::fmt::Display, expected: &str) -> Error {
    Error::invalid_config(format!("watermarking_config.{key} is {got}, expected {expected}"))
}
