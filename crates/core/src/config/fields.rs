//! The one table of generation settings: flags, methods of calls, request fields and documents are made from it.
//!
//! Names, types and defaults are those of `GenerationConfig` in transformers 5. A field that becomes honoured changes its
//! status here and gets its line in [`build`](crate::build).

use crate::config::field::Fill::{Bool, Float, Int, Text, Unset};
use crate::config::field::Status::{NoEffect, NotYet, Supported};
use crate::config::field::{Field, Fill, Group, Kind, Neutral, Status};

/// Calls the macro `$with` with every field, by group: name, kind, default, group, status, help.
#[doc(hidden)]
#[macro_export]
#[rustfmt::skip]
macro_rules! generation_fields {
    ($with:ident) => { $with! {
        max_new_tokens Int, Unset, Length, Supported,
            "Most tokens to write, not counting the prompt; beats max_length";
        max_length Int, Int(20), Length, Supported,
            "Most tokens in all, counting the prompt; by default 20 new tokens are written, 256 after texts";
        min_new_tokens Int, Unset, Length, Supported,
            "Tokens that must be written before an end token may come; beats min_length";
        min_length Int, Int(0), Length, Supported,
            "Tokens in all, counting the prompt, before an end token may come";
        max_time Float, Unset, Length, Supported,
            "Seconds after which writing stops";
        stop_strings Texts, Unset, Length, Supported,
            "Texts that end the answer; the token that completes one is kept";
        early_stopping BoolOrText, Bool(false), Length, Supported,
            "When beam search ends: true, false or \"never\"";
        do_sample Bool, Bool(false), Strategy, Supported,
            "Draw tokens at random by their probability instead of taking the best";
        num_beams Int, Int(1), Strategy, Supported,
            "Alternatives that beam search follows; 1 means no beam search";
        num_beam_groups Int, Int(1), Strategy, Supported,
            "Groups that diverse beam search splits its beams into";
        diversity_penalty Float, Float(0.0), Strategy, Supported,
            "How much a group of beams avoids tokens of the groups before it";
        length_penalty Float, Float(1.0), Strategy, Supported,
            "Exponent of the length that beam scores are divided by";
        penalty_alpha Float, Unset, Strategy, Supported,
            "Weight of the degeneration penalty of contrastive search; needs a graph with hidden states";
        low_memory Bool, Unset, Strategy, Supported,
            "Contrastive search looks at one candidate at a time";
        dola_layers TextOrInts, Unset, Strategy, Supported,
            "Layers that DoLa contrasts with the last one: \"low\", \"high\" or a list";
        constraints List, Unset, Strategy, Supported,
            "Constraints of constrained beam search";
        force_words_ids List, Unset, Strategy, Supported,
            "Words, as token ids, that constrained beam search must use";
        use_mtp Bool, Unset, Strategy, NotYet(Neutral::False),
            "Draft with the model's own multi-token prediction heads";
        temperature Float, Float(1.0), Scores, Supported,
            "Above 1 bolder, below 1 safer draws; sampling only";
        top_k Int, Int(50), Scores, Supported,
            "Draw among the k best tokens only; 0 switches it off; sampling only";
        top_p Float, Float(1.0), Scores, Supported,
            "Draw among the best tokens that together have this probability; sampling only";
        min_p Float, Unset, Scores, Supported,
            "Draw among tokens with at least this share of the best one's probability; sampling only";
        top_h Float, Unset, Scores, Supported,
            "Share of the distribution's entropy that is kept; sampling only";
        typical_p Float, Float(1.0), Scores, Supported,
            "Mass of the most typical tokens that is kept; sampling only";
        epsilon_cutoff Float, Float(0.0), Scores, Supported,
            "Smallest probability a token may have; sampling only";
        eta_cutoff Float, Float(0.0), Scores, Supported,
            "Smallest probability, adapted to the entropy; sampling only";
        repetition_penalty Float, Float(1.0), Scores, Supported,
            "Above 1 makes tokens that occurred less likely";
        encoder_repetition_penalty Float, Float(1.0), Scores, Supported,
            "Above 1 makes tokens of the source more likely";
        no_repeat_ngram_size Int, Int(0), Scores, Supported,
            "No run of so many tokens may occur twice";
        encoder_no_repeat_ngram_size Int, Int(0), Scores, Supported,
            "No run of so many tokens of the source may occur";
        bad_words_ids IntLists, Unset, Scores, Supported,
            "Token sequences that may not be written";
        sequence_bias Biases, Unset, Scores, Supported,
            "Numbers added to the scores of token sequences";
        suppress_tokens Ints, Unset, Scores, Supported,
            "Tokens that may not be written";
        begin_suppress_tokens Ints, Unset, Scores, Supported,
            "Tokens that may not be written first";
        forced_bos_token_id Int, Unset, Scores, Supported,
            "Token written after a prompt of one token";
        forced_eos_token_id IntOrInts, Unset, Scores, Supported,
            "Token written last when the maximum length is reached";
        exponential_decay_length_penalty IntAndFloat, Unset, Scores, Supported,
            "Makes an end token likelier and likelier: [after so many new tokens, factor]";
        remove_invalid_values Bool, Bool(false), Scores, Supported,
            "Replace scores that are not numbers or infinite";
        renormalize_logits Bool, Unset, Scores, Supported,
            "Make the processed scores log-probabilities again";
        guidance_scale Float, Unset, Scores, Supported,
            "Strength of classifier-free guidance";
        watermarking_config Object, Unset, Scores, Supported,
            "Watermark written into the choice of tokens";
        token_healing Bool, Unset, Scores, Supported,
            "Choose the last token of the prompt again, among those that extend it";
        use_cache Bool, Bool(true), Cache, NoEffect,
            "Python keeps keys and values between steps; here the graph decides";
        cache_implementation Text, Unset, Cache, NoEffect,
            "Python's kind of cache; here the graph decides";
        cache_config Object, Unset, Cache, NoEffect,
            "Arguments of Python's cache";
        max_cache_len Int, Unset, Cache, NoEffect,
            "Size of Python's static caches";
        prefill_chunk_size Int, Unset, Cache, Supported,
            "Most prompt tokens in one step";
        compile_config Object, Unset, Cache, NoEffect,
            "Python's compilation of the model";
        disable_compile Bool, Unset, Cache, NoEffect,
            "Python does not compile the model";
        continuous_batching_config Object, Unset, Cache, NoEffect,
            "Python's continuous batching";
        num_return_sequences Int, Int(1), Output, Supported,
            "Answers per prompt; more than 1 needs sampling or beams";
        output_scores Bool, Bool(false), Output, Supported,
            "Return the processed scores of every step";
        output_logits Bool, Unset, Output, Supported,
            "Return the raw scores of every step";
        output_attentions Bool, Unset, Output, NotYet(Neutral::False),
            "Python returns attention weights; graphs do not have them";
        output_hidden_states Bool, Unset, Output, Supported,
            "Return the hidden states of every step; needs a graph with hidden states";
        return_dict_in_generate Bool, Bool(false), Output, NoEffect,
            "Python returns an object; here the result always is one";
        pad_token_id Int, Unset, SpecialTokens, Supported,
            "Token that fills rows which ended before the others";
        bos_token_id Int, Unset, SpecialTokens, Supported,
            "Token that stands for an empty prompt";
        eos_token_id IntOrInts, Unset, SpecialTokens, Supported,
            "Token, or tokens, that end the answer";
        decoder_start_token_id IntOrInts, Unset, SpecialTokens, NotYet(Neutral::Always),
            "First token of the decoder in encoder-decoder models";
        is_assistant Bool, Unset, Assisted, Supported,
            "The model drafts for another one: it stops where it is not sure";
        num_assistant_tokens Int, Int(20), Assisted, Supported,
            "Tokens that an assistant drafts at a time";
        num_assistant_tokens_schedule Text, Text("constant"), Assisted, Supported,
            "How that number changes: constant, heuristic or heuristic_transient";
        assistant_confidence_threshold Float, Float(0.4), Assisted, Supported,
            "Probability below which an assistant stops drafting";
        prompt_lookup_num_tokens Int, Unset, Assisted, Supported,
            "Tokens drafted from the prompt itself";
        max_matching_ngram_size Int, Unset, Assisted, Supported,
            "Longest run of tokens looked up in the prompt";
        assistant_early_exit Int, Unset, Assisted, Supported,
            "Draft with the first layers of the model itself, so many; needs an import with that early exit";
        assistant_lookbehind Int, Int(10), Assisted, Supported,
            "Tokens re-read when an assistant has another tokenizer";
        target_lookbehind Int, Int(10), Assisted, Supported,
            "Tokens re-read when an assistant has another tokenizer, on the model's side";
        assistant_ensemble_weight Float, Unset, Assisted, Supported,
            "Share of the model in a distribution mixed with the assistant's; gives up equal tokens for longer drafts";
        speculation_type Text, Unset, Assisted, NotYet(Neutral::Always),
            "Kind of drafting model";
    } };
}

macro_rules! table {
    ($($name:ident $kind:ident, $fill:expr, $group:ident, $status:expr, $help:literal;)*) => {
        /// Every field, by group.
        pub const FIELDS: &[Field] = &[
            $(field(stringify!($name), Kind::$kind, $fill, Group::$group, $status, $help),)*
        ];
    };
}

generation_fields!(table);

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
