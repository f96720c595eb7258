//! How each family of byte-level BPE cuts text before it merges: the kinds of `tokenizer.ggml.pre`.

use serde_json::{Value, json};
use unspool_core::{Error, Result};

/// The names of `tokenizer.ggml.pre` that are supported.
pub const SUPPORTED_PRE_TOKENIZERS: [&str; 15] = [
    "default",
    "gpt-2",
    "smollm",
    "starcoder",
    "refact",
    "llama-bpe",
    "llama3",
    "llama-v3",
    "falcon3",
    "pixtral",
    "smaug-bpe",
    "qwen2",
    "deepseek-r1-qwen",
    "megrez",
    "tekken",
];

/// What a family's own `tokenizer.json` says besides vocabulary and merges.
pub(super) struct Family {
    pub(super) normalizer: Value,
    pub(super) pre_tokenizer: Value,
    /// A piece that is a token as a whole is taken without merging.
    pub(super) ignore_merges: bool,
    /// Whether encoding begins with bos when the file does not say.
    pub(super) add_bos: bool,
}

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The family of a name; a file without one is read as GPT-2's.
pub(super) fn family(pre: Option<&str>) -> Result<Family> {
    let plain = |pre_tokenizer| Family { normalizer: Value::Null, pre_tokenizer, ignore_merges: false, add_bos: false };
    Ok(match pre.unwrap_or("default") {
        "default" | "gpt-2" => plain(byte_level(true)),
        // Every digit stands alone, and only then GPT-2's pattern cuts.
        "smollm" | "starcoder" | "refact" => {
            plain(sequence(&[json!({"type": "Digits", "individual_digits": true}), byte_level(true)]))
        }
        "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "pixtral" => {
            Family { ignore_merges: true, add_bos: true, ..plain(split(LLAMA3)) }
        }
        "smaug-bpe" => plain(split(LLAMA3)),
        "qwen2" | "megrez" => Family { normalizer: json!({"type": "NFC"}), ..plain(split(QWEN2)) },
        "deepseek-r1-qwen" => Family { add_bos: true, ..plain(split(QWEN2)) },
        "tekken" => Family { ignore_merges: true, add_bos: true, ..plain(split(TEKKEN)) },
        other => {
            return Err(Error::unsupported(format!(
                "the pre-tokenizer {other:?} (tokenizer.ggml.pre) is not supported; supported are {}",
                SUPPORTED_PRE_TOKENIZERS.join(", ")
            )));
        }
    })
}

/// The bytes of a text as characters, cut by GPT-2's pattern or not.
pub(super) fn byte_level(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex})
}

fn split(pattern: &str) -> Value {
    let split = json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    sequence(&[split, byte_level(false)])
}

fn sequence(parts: &[Value]) -> Value {
    json!({"type": "Sequence", "pretokenizers": parts})
}
