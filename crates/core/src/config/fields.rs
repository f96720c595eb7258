//! The one table of generation settings: flags, keyword arguments, request fields and documents are made from it.
//!
//! Names, types and defaults are those of `GenerationConfig` in transformers 5. A field that becomes honoured changes its
//! status here and gets its line in [`build`](crate::build).

use crate::config::field::Fill::{Bool, Float, Int, Text, Unset};
use crate::config::field::Group::{Assisted, Cache, Length, Output, Scores, SpecialTokens, Strategy};
use crate::config::field::Status::{NoEffect, NotYet, Supported};
use crate::config::field::{Field, Fill, Group, Kind, Neutral, Status};

/// Every field, by group: name, type, default, group, status, help.
#[rustfmt::skip]
pub const FIELDS: &[Field] = &[
    field("max_new_tokens", Kind::Int, Unset, Length, Supported,
        "Most tokens to write, not counting the prompt; beats max_length"),
    field("max_length", Kind::Int, Int(20), Length, Supported,
        "Most tokens in all, counting the prompt; by default 20 new tokens are written, 256 after texts"),
    field("min_new_tokens", Kind::Int, Unset, Length, Supported,
        "Tokens that must be written before an end token may come; beats min_length"),
    field("min_length", Kind::Int, Int(0), Length, Supported,
        "Tokens in all, counting the prompt, before an end token may come"),
    field("max_time", Kind::Float, Unset, Length, Supported,
        "Seconds after which writing stops"),
    field("stop_strings", Kind::Texts, Unset, Length, Supported,
        "Texts that end the answer; the token that completes one is kept"),
    field("early_stopping", Kind::BoolOrText, Bool(false), Length, Supported,
        "When beam search ends: true, false or \"never\""),
    field("do_sample", Kind::Bool, Bool(false), Strategy, Supported,
        "Draw tokens at random by their probability instead of taking the best"),
    field("num_beams", Kind::Int, Int(1), Strategy, Supported,
        "Alternatives that beam search follows; 1 means no beam search"),
    field("num_beam_groups", Kind::Int, Int(1), Strategy, Supported,
        "Groups that diverse beam search splits its beams into"),
    field("diversity_penalty", Kind::Float, Float(0.0), Strategy, Supported,
        "How much a group of beams avoids tokens of the groups before it"),
    field("length_penalty", Kind::Float, Float(1.0), Strategy, Supported,
        "Exponent of the length that beam scores are divided by"),
    field("penalty_alpha", Kind::Float, Unset, Strategy, Supported,
        "Weight of the degeneration penalty of contrastive search; needs a graph with hidden states"),
    field("low_memory", Kind::Bool, Unset, Strategy, Supported,
        "Contrastive search looks at one candidate at a time"),
    field("dola_layers", Kind::TextOrInts, Unset, Strategy, Supported,
        "Layers that DoLa contrasts with the last one: \"low\", \"high\" or a list"),
    field("constraints", Kind::List, Unset, Strategy, Supported,
        "Constraints of constrained beam search"),
    field("force_words_ids", Kind::List, Unset, Strategy, Supported,
        "Words, as token ids, that constrained beam search must use"),
    field("use_mtp", Kind::Bool, Unset, Strategy, NotYet(Neutral::False),
        "Draft with the model's own multi-token prediction heads"),
    field("temperature", Kind::Float, Float(1.0), Scores, Supported,
        "Above 1 bolder, below 1 safer draws; sampling only"),
    field("top_k", Kind::Int, Int(50), Scores, Supported,
        "Draw among the k best tokens only; 0 switches it off; sampling only"),
    field("top_p", Kind::Float, Float(1.0), Scores, Supported,
        "Draw among the best tokens that together have this probability; sampling only"),
    field("min_p", Kind::Float, Unset, Scores, Supported,
        "Draw among tokens with at least this share of the best one's probability; sampling only"),
    field("top_h", Kind::Float, Unset, Scores, Supported,
        "Share of the distribution's entropy that is kept; sampling only"),
    field("typical_p", Kind::Float, Float(1.0), Scores, Supported,
        "Mass of the most typical tokens that is kept; sampling only"),
    field("epsilon_cutoff", Kind::Float, Float(0.0), Scores, Supported,
        "Smallest probability a token may have; sampling only"),
    field("eta_cutoff", Kind::Float, Float(0.0), Scores, Supported,
        "Smallest probability, adapted to the entropy; sampling only"),
    field("repetition_penalty", Kind::Float, Float(1.0), Scores, Supported,
        "Above 1 makes tokens that occurred less likely"),
    field("encoder_repetition_penalty", Kind::Float, Float(1.0), Scores, Supported,
        "Above 1 makes tokens of the source more likely"),
    field("no_repeat_ngram_size", Kind::Int, Int(0), Scores, Supported,
        "No run of so many tokens may occur twice"),
    field("encoder_no_repeat_ngram_size", Kind::Int, Int(0), Scores, Supported,
        "No run of so many tokens of the source may occur"),
    field("bad_words_ids", Kind::IntLists, Unset, Scores, Supported,
        "Token sequences that may not be written"),
    field("sequence_bias", Kind::Biases, Unset, Scores, Supported,
        "Numbers added to the scores of token sequences"),
    field("suppress_tokens", Kind::Ints, Unset, Scores, Supported,
        "Tokens that may not be written"),
    field("begin_suppress_tokens", Kind::Ints, Unset, Scores, Supported,
        "Tokens that may not be written first"),
    field("forced_bos_token_id", Kind::Int, Unset, Scores, Supported,
        "Token written after a prompt of one token"),
    field("forced_eos_token_id", Kind::IntOrInts, Unset, Scores, Supported,
        "Token written last when the maximum length is reached"),
    field("exponential_decay_length_penalty", Kind::IntAndFloat, Unset, Scores, Supported,
        "Makes an end token likelier and likelier: [after so many new tokens, factor]"),
    field("remove_invalid_values", Kind::Bool, Bool(false), Scores, Supported,
        "Replace scores that are not numbers or infinite"),
    field("renormalize_logits", Kind::Bool, Unset, Scores, Supported,
        "Make the processed scores log-probabilities again"),
    field("guidance_scale", Kind::Float, Unset, Scores, Supported,
        "Strength of classifier-free guidance"),
    field("watermarking_config", Kind::Object, Unset, Scores, Supported,
        "Watermark written into the choice of tokens"),
    field("token_healing", Kind::Bool, Unset, Scores, Supported,
        "Choose the last token of the prompt again, among those that extend it"),
    field("use_cache", Kind::Bool, Bool(true), Cache, NoEffect,
        "Python keeps keys and values between steps; here the graph decides"),
    field("cache_implementation", Kind::Text, Unset, Cache, NoEffect,
        "Python's kind of cache; here the graph decides"),
    field("cache_config", Kind::Object, Unset, Cache, NoEffect,
        "Arguments of Python's cache"),
    field("max_cache_len", Kind::Int, Unset, Cache, NoEffect,
        "Size of Python's static caches"),
    field("prefill_chunk_size", Kind::Int, Unset, Cache, Supported,
        "Most prompt tokens in one step"),
    field("compile_config", Kind::Object, Unset, Cache, NoEffect,
        "Python's compilation of the model"),
    field("disable_compile", Kind::Bool, Unset, Cache, NoEffect,
        "Python does not compile the model"),
    field("continuous_batching_config", Kind::Object, Unset, Cache, NoEffect,
        "Python's continuous batching"),
    field("num_return_sequences", Kind::Int, Int(1), Output, Supported,
        "Answers per prompt; more than 1 needs sampling or beams"),
    field("output_scores", Kind::Bool, Bool(false), Output, Supported,
        "Return the processed scores of every step"),
    field("output_logits", Kind::Bool, Unset, Output, Supported,
        "Return the raw scores of every step"),
    field("output_attentions", Kind::Bool, Unset, Output, NotYet(Neutral::False),
        "Python returns attention weights; graphs do not have them"),
    field("output_hidden_states", Kind::Bool, Unset, Output, Supported,
        "Return the hidden states of every step; needs a graph with hidden states"),
    field("return_dict_in_generate", Kind::Bool, Bool(false), Output, NoEffect,
        "Python returns an object; here the result always is one"),
    field("pad_token_id", Kind::Int, Unset, SpecialTokens, Supported,
        "Token that fills rows which ended before the others"),
    field("bos_token_id", Kind::Int, Unset, SpecialTokens, Supported,
        "Token that stands for an empty prompt"),
    field("eos_token_id", Kind::IntOrInts, Unset, SpecialTokens, Supported,
        "Token, or tokens, that end the answer"),
    field("decoder_start_token_id", Kind::IntOrInts, Unset, SpecialTokens, NotYet(Neutral::Always),
        "First token of the decoder in encoder-decoder models"),
    field("is_assistant", Kind::Bool, Unset, Assisted, Supported,
        "The model drafts for another one: it stops where it is not sure"),
    field("num_assistant_tokens", Kind::Int, Int(20), Assisted, Supported,
        "Tokens that an assistant drafts at a time"),
    field("num_assistant_tokens_schedule", Kind::Text, Text("constant"), Assisted, Supported,
        "How that number changes: constant, heuristic or heuristic_transient"),
    field("assistant_confidence_threshold", Kind::Float, Float(0.4), Assisted, Supported,
        "Probability below which an assistant stops drafting"),
    field("prompt_lookup_num_tokens", Kind::Int, Unset, Assisted, Supported,
        "Tokens drafted from the prompt itself"),
    field("max_matching_ngram_size", Kind::Int, Unset, Assisted, Supported,
        "Longest run of tokens looked up in the prompt"),
    field("assistant_early_exit", Kind::Int, Unset, Assisted, Supported,
        "Draft with the first layers of the model itself, so many; needs an import with that early exit"),
    field("assistant_lookbehind", Kind::Int, Int(10), Assisted, Supported,
        "Tokens re-read when an assistant has another tokenizer"),
    field("target_lookbehind", Kind::Int, Int(10), Assisted, Supported,
        "Tokens re-read when an assistant has another tokenizer, on the model's side"),
    field("assistant_ensemble_weight", Kind::Float, Unset, Assisted, Supported,
        "Share of the model in a distribution mixed with the assistant's; gives up equal tokens for longer drafts"),
    field("speculation_type", Kind::Text, Unset, Assisted, NotYet(Neutral::Always),
        "Kind of drafting model"),
];

const fn field(name: &'static str, kind: Kind, fill: Fill, group: Group, status: Status, help: &'static str) -> Field {
    Field { name, kind, fill, group, status, help }
}

impl Field {
    /// The field of this name.
    pub fn named(name: &str) -> Option<&'static Field> {
        FIELDS.iter().find(|field| field.name == name)
    }

    /// The field whose name is nearest to `name`, for messages about a misspelt one.
    pub fn nearest(name: &str) -> Option<&'static Field> {
        if name.len() > 64 {
            return None;
        }
        let nearest =
            FIELDS.iter().map(|field| (distance(name, field.name), field)).min_by_key(|(distance, _)| *distance);
        nearest.filter(|(distance, _)| *distance <= 2 + name.len() / 8).map(|(_, field)| field)
    }
}

/// Edits (of one byte) between two short words.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_distinct_and_defaults_have_their_type() {
        let mut names = HashSet::new();
        for field in FIELDS {
            assert!(names.insert(field.name), "{} is listed twice", field.name);
            assert!(
                field.fill.value().is_none_or(|value| field.kind.read(&value).as_ref() == Some(&value)),
                "{}",
                field.name
            );
            assert!(!field.help.is_empty() && !field.help.ends_with('.'), "{}", field.name);
        }
    }

    #[test]
    fn a_misspelt_name_finds_its_field() {
        assert_eq!(Field::nearest("temprature").unwrap().name, "temperature");
        assert_eq!(Field::nearest("topk").unwrap().name, "top_k");
        assert!(Field::nearest("something_else_entirely").is_none());
        assert!(Field::nearest(&"x".repeat(1 << 20)).is_none());
    }
}
