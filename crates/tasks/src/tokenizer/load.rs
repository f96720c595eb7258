//! The tokenizer of a model folder.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::de::IgnoredAny;
use tokenizers::models::ModelWrapper;
use unspool_core::{Error, Result, TokenId, file, json};

use super::bounds::Bounds;
use super::config::TokenizerConfig;
use super::decode::{Decoding, Plan};
use super::vocabulary::Continuations;

/// The largest tokenizers known (256 000 tokens with their merges) take 35 MB.
const MAX_TOKENIZER_BYTES: u64 = 256 << 20;

/// Text to ids and back, equal to Python's `AutoTokenizer` (the "fast" ones). Cheap to clone; clones share.
///
/// ```no_run
/// # fn main() -> unspool_core::Result<()> {
/// let tokenizer = unspool_tasks::Tokenizer::from_folder("model".as_ref())?;
/// let ids = tokenizer.encode("Hello", true)?;
/// assert_eq!(tokenizer.decode(&ids, true), "Hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[doc(alias = "AutoTokenizer")]
#[doc(alias = "PreTrainedTokenizerFast")]
pub struct Tokenizer {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) backend: tokenizers::Tokenizer,
    pub(super) plan: Arc<Plan>,
    pub(super) tokens: Tokens,
    pub(super) continuations: OnceLock<Continuations>,
    special: Vec<bool>,
    clean_up: bool,
    bounds: Bounds,
    config: TokenizerConfig,
}

impl Tokenizer {
    /// Reads `tokenizer.json`, `tokenizer_config.json` and `special_tokens_map.json` of a folder.
    ///
    /// # Errors
    /// When there is no `tokenizer.json` (the message says what to do), or a file is broken or too large.
    pub fn from_folder(folder: &Path) -> Result<Tokenizer> {
        let path = folder.join("tokenizer.json");
        let Some(json) = file::read_text(&path, MAX_TOKENIZER_BYTES)? else {
            return Err(Error::invalid_model(
                "the model folder has no tokenizer.json, so text cannot become ids; copy the file from the original \
                 model (or save it with Python: AutoTokenizer.from_pretrained(model).save_pretrained(folder)), or \
                 give token ids in place of text (--ids)",
            )
            .at(folder.display()));
        };
        Tokenizer::build(&json, TokenizerConfig::from_folder(folder)?).map_err(|error| error.at(path.display()))
    }

    /// A tokenizer from the texts of `tokenizer.json` and (optionally) `tokenizer_config.json`.
    ///
    /// # Errors
    /// When a text is not what the `tokenizers` library reads.
    pub fn from_json(tokenizer: &str, config: Option<&str>) -> Result<Tokenizer> {
        let config = match config.map(json::parse).transpose()? {
            None => TokenizerConfig::default(),
            Some(serde_json::Value::Object(map)) => TokenizerConfig::from_json(&map),
            Some(_) => return Err(Error::invalid_model("tokenizer_config.json must hold a JSON object")),
        };
        Tokenizer::build(tokenizer, config)
    }

    /// The library may panic on a file that is well-formed JSON but nonsense as a tokenizer; that is an error here.
    fn build(json: &str, config: TokenizerConfig) -> Result<Tokenizer> {
        // Bounds the depth, which the library does not.
        json::from_str::<IgnoredAny>(json)?;
        let built = catch_unwind(AssertUnwindSafe(|| Tokenizer::build_unguarded(json, config)));
        built.unwrap_or_else(|_| {
            Err(Error::invalid_model("the tokenizer.json is broken: the tokenizers library gave up on it"))
        })
    }

    fn build_unguarded(json: &str, mut config: TokenizerConfig) -> Result<Tokenizer> {
        let mut backend = tokenizers::Tokenizer::from_bytes(json)
            .map_err(|error| Error::invalid_model("the tokenizer.json cannot be read").because(error))?;
        // Python's call neither truncates nor pads unless asked to, whatever the file says.
        let untruncated = backend.with_truncation(None).map(|_| ());
        untruncated.map_err(|error| Error::invalid_model("the tokenizer.json cannot be read").because(error))?;
        if let Some(padding) = backend.get_padding() {
            let pad = padding.pad_token.clone();
            config.special_tokens.entry("pad_token".to_owned()).or_insert(pad);
        }
        backend.with_padding(None);
        backend.set_encode_special_tokens(config.split_special_tokens);
        let added = config.added.values().cloned().collect::<Vec<_>>();
        let special = config.named.values().chain(&config.extra).cloned().collect::<Vec<_>>();
        let extended = backend.add_tokens(added).and_then(|_| backend.add_special_tokens(special));
        extended.map_err(|error| Error::invalid_model("the added tokens cannot be read").because(error))?;

        let (tokens, special) = token_table(&backend)?;
        let clean_up = config.clean_up_tokenization_spaces
            && (config.clean_up_even_for_bpe || !matches!(backend.get_model(), ModelWrapper::BPE(_)));
        let longest = tokens.iter().flatten().map(|token| token.len()).max().unwrap_or(0);
        let bounds = Bounds::of(&backend, longest)?;
        let plan = Arc::new(Plan::new(backend.get_decoder()));
        let continuations = OnceLock::new();
        Ok(Tokenizer {
            inner: Arc::new(Inner { backend, plan, tokens, special, clean_up, continuations, bounds, config }),
        })
    }

    /// The ids of a text, as Python's `tokenizer(text, add_special_tokens=...).input_ids`.
    ///
    /// # Errors
    /// When the tokenizer cannot encode the text (no unknown token, or a pattern that gives up), or would make it very much
    /// longer first.
    pub fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Vec<TokenId>> {
        self.inner.bounds.check(text)?;
        let encoded = catch_unwind(AssertUnwindSafe(|| self.inner.backend.encode_fast(text, add_special_tokens)));
        match encoded {
            Ok(Ok(encoding)) => Ok(encoding.get_ids().to_vec()),
            Ok(Err(error)) => Err(Error::invalid_input("the tokenizer cannot encode the text").because(error)),
            Err(_) => Err(Error::invalid_model("the tokenizers library gave up on the text; the tokenizer is broken")),
        }
    }

    /// The most bytes that a text of at most `positions` tokens can have, and never more than 64 MiB. A longer text need not be
    /// encoded to know that it is too long. Where the tokenizer drops parts of a text (spaces, accents), this is at least
    /// 16 MiB.
    pub fn max_bytes(&self, positions: Option<usize>) -> usize {
        self.inner.bounds.max_bytes(positions)
    }

    /// The text of ids, as Python's `tokenizer.decode(ids, skip_special_tokens=...)`. Ids that name no token add
    /// nothing.
    pub fn decode(&self, ids: &[TokenId], skip_special_tokens: bool) -> String {
        let mut decoding = self.decoding();
        let mut text = String::new();
        for &id in ids {
            if let Some(token) = self.shown_token(id, skip_special_tokens) {
                decoding.push(token, &mut text);
            }
        }
        decoding.finish(&mut text);
        text
    }

    /// The token's own string in the vocabulary (`Ġhello`, `<0x0A>`), Python's `convert_ids_to_tokens`.
    #[doc(alias = "convert_ids_to_tokens")]
    pub fn token(&self, id: TokenId) -> Option<&str> {
        self.inner.tokens.get(id as usize)?.as_deref()
    }

    /// Every id that names a token, and the token's own string; Python's `get_vocab`.
    #[doc(alias = "get_vocab")]
    pub fn tokens(&self) -> impl Iterator<Item = (TokenId, &str)> {
        let tokens = (0..).zip(&self.inner.tokens);
        tokens.filter_map(|(id, token)| token.as_deref().map(|token| (id, token)))
    }

    /// The id of a token's own string, Python's `convert_tokens_to_ids`.
    #[doc(alias = "convert_tokens_to_ids")]
    pub fn id(&self, token: &str) -> Option<TokenId> {
        self.inner.backend.token_to_id(token)
    }

    /// Whether decoding with `skip_special_tokens` leaves the id out.
    pub fn is_special(&self, id: TokenId) -> bool {
        self.inner.special.get(id as usize).copied().unwrap_or(false)
    }

    /// The special token of a Python name (`bos_token`, `eos_token`, `pad_token`, `unk_token`, ...).
    pub fn special_token(&self, name: &str) -> Option<&str> {
        self.inner.config.special_tokens.get(name).map(String::as_str)
    }

    /// The id of the special token of a Python name: `special_token_id("eos_token")` is Python's `eos_token_id`.
    #[doc(alias = "eos_token_id")]
    #[doc(alias = "pad_token_id")]
    #[doc(alias = "bos_token_id")]
    pub fn special_token_id(&self, name: &str) -> Option<TokenId> {
        self.special_token(name).and_then(|token| self.id(token))
    }

    /// What `tokenizer_config.json` and `special_tokens_map.json` said.
    pub fn config(&self) -> &TokenizerConfig {
        &self.inner.config
    }

    pub(crate) fn decoding(&self) -> Decoding {
        Decoding::new(Arc::clone(&self.inner.plan), self.inner.clean_up)
    }

    /// The token of an id that takes part in the text.
    pub(crate) fn shown_token(&self, id: TokenId, skip_special_tokens: bool) -> Option<&str> {
        if skip_special_tokens && self.is_special(id) { None } else { self.token(id) }
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").field("tokens", &self.inner.tokens.len()).finish_non_exhaustive()
    }
}

/// The token of every id, where there is one.
type Tokens = Vec<Option<Box<str>>>;

/// Every id's token and whether it is special. Special is a property of the string: as in Python, a token of the
/// model that spells a special token is skipped too.
fn token_table(backend: &tokenizers::Tokenizer) -> Result<(Tokens, Vec<bool>)> {
    let vocabulary = backend.get_vocab(true);
    let size = vocabulary.values().max().map_or(0, |&id| id as usize + 1);
    // A hostile file can give one token the id 4 294 967 295.
    let limit = vocabulary.len().saturating_mul(4).saturating_add(1 << 20);
    if size > limit {
        return Err(Error::invalid_model(format!(
            "the tokenizer.json names the token id {} although it has only {} tokens",
            size - 1,
            vocabulary.len()
        )));
    }
    let added = backend.get_added_vocabulary();
    let mut tokens = vec![None; size];
    let mut special = vec![false; size];
    for id in vocabulary.into_values() {
        if let Some(token) = backend.id_to_token(id) {
            special[id as usize] = added.is_special_token(&token);
            tokens[id as usize] = Some(token.into_boxed_str());
        }
    }
    Ok((tokens, special))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let error = Tokenizer::from_folder(folder.path()).unwrap_err().to_string();
        assert!(error.contains("tokenizer.json") && error.contains("--ids"), "{error}");
    }

    #[test]
    fn broken_files_are_errors() {
        let hostile = [
            "",
            "{}",
            "[1]",
            r#"{"model": {"type": "BPE", "vocab": {"a": 4294967295}, "merges": []}}"#,
            r#"{"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 4294967295}, "unk_token": "a"}}"#,
            r#"{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}"#,
            r#"{"version": "1.0", "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(("}, "behavior": "Removed",
                "invert": false}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}"#,
            r#"{"version": "1.0", "model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 7}}"#,
            r#"{"version": "1.0", "decoder": {"type": 5}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}"#,
            r#"{"version": "1.0", "decoder": {"type": "Strip"}, "model": {"type": "BPE", "vocab": {}, "merges": []}}"#,
        ];
        for json in hostile {
            let error = Tokenizer::from_json(json, None).expect_err(json);
            assert_eq!(error.kind(), unspool_core::ErrorKind::InvalidModel, "{json}");
        }
    }

    #[test]
    fn a_pattern_that_never_ends_is_an_error() {
        let json = r#"{"version": "1.0", "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(x+x+)+(?!x)y"},
            "behavior": "Isolated", "invert": false}, "model": {"type": "BPE", "vocab": {"x": 0}, "merges": []}}"#;
        let tokenizer = Tokenizer::from_json(json, None).unwrap();
        let started = std::time::Instant::now();
        let _ = tokenizer.encode(&"x".repeat(10_000), true);
        assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    }

    #[test]
    fn tokens_named_in_the_config_are_special_and_truncation_of_the_file_is_ignored() {
        let json = r#"{"version": "1.0", "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst",
            "stride": 0}, "padding": null, "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
            "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "<end>": 2}, "unk_token": "a"}}"#;
        let plain = Tokenizer::from_json(json, None).unwrap();
        assert_eq!(plain.encode("a b a b", true).unwrap(), [0, 1, 0, 1]);
        assert_eq!(plain.decode(&[1, 2], true), "b <end>");
        let named = Tokenizer::from_json(json, Some(r#"{"eos_token": "<end>", "pad_token": "<pad>"}"#)).unwrap();
        assert_eq!(named.encode("b<end>", true).unwrap(), [1, 2]);
        assert_eq!(named.decode(&[1, 2], true), "b");
        assert_eq!(named.special_token_id("eos_token"), Some(2));
        assert_eq!(named.special_token_id("pad_token"), Some(3), "an unknown special token gets a new id");
        assert_eq!(named.special_token_id("bos_token"), None);
    }
}
