//! Which cache mode a graph needs; decided from the graph alone.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::proto::{Graph, Node};

/// How a graph keeps keys and values between steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// GroupQueryAttention writes into one buffer that is both past and present; valid lengths come from the mask's values.
    InPlace,
    /// Positions are an input, so rows may have holes in their past that the mask hides.
    Append,
    /// Positions follow from the length of the cache, so only rows of one length share a run.
    Grow,
    /// No cache: every step runs all tokens.
    None,
}

/// The mode and the reason for it.
pub(super) fn choose(graph: &Graph, has_past: bool, has_position_ids: bool) -> (CacheMode, &'static str) {
    if !has_past {
        return (CacheMode::None, "the graph has no past inputs");
    }
    match gqa_length_source(graph) {
        Some(LengthSource::Values) => {
            (CacheMode::InPlace, "GroupQueryAttention takes each row's length from the values of attention_mask")
        }
        Some(LengthSource::Shape) => {
            (CacheMode::Grow, "GroupQueryAttention takes the length from the length of attention_mask")
        }
        None if has_position_ids => (CacheMode::Append, "the graph declares position_ids"),
        None => (CacheMode::Grow, "the graph computes positions from the length of the cache"),
    }
}

/// The `accuracy_level` of `MatMulNBits` that allows 8-bit activations.
const INT8_ACTIVATIONS: i64 = 4;

/// What the graph's GroupQueryAttention operators and quantised products say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attention {
    /// Whether there is one.
    pub grouped_query: bool,
    /// The longest window of one whose cache slides (`sliding_window_cache`), 0 without.
    pub sliding_window: usize,
    /// Whether a product with quantised weights may round its activations to 8 bits.
    pub rounds_tokens: bool,
}

impl Attention {
    /// Looks at every GroupQueryAttention of `graph`.
    pub fn of(graph: &Graph) -> Self {
        let mut found = Attention::default();
        graph.walk(&mut |_, node| {
            found.rounds_tokens |= node.op_type == "MatMulNBits" && node.int("accuracy_level", 0) >= INT8_ACTIVATIONS;
            if node.op_type == "GroupQueryAttention" {
                found.grouped_query = true;
                if node.int("sliding_window_cache", 0) == 1 {
                    let window = usize::try_from(node.int("local_window_size", -1)).unwrap_or(0);
                    found.sliding_window = found.sliding_window.max(window);
                }
            }
        });
        found
    }
}

enum LengthSource {
    Values,
    Shape,
}

/// Where the first GroupQueryAttention's `seqlens_k` comes from: a sum of the mask reads values, a shape only its length.
fn gqa_length_source(graph: &Graph) -> Option<LengthSource> {
    let mut producers: HashMap<&str, &Node> = HashMap::new();
    let mut seqlens = None;
    graph.walk(&mut |_, node| {
        for output in &node.output {
            producers.insert(output, node);
        }
        if seqlens.is_none() && node.op_type == "GroupQueryAttention" {
            seqlens = node.input.get(5).map(String::as_str);
        }
    });
    let mut todo = vec![seqlens?];
    let mut seen = HashSet::new();
    while let Some(name) = todo.pop() {
        if name.is_empty() || !seen.insert(name) {
            continue;
        }
        if let Some(node) = producers.get(name) {
            if node.op_type.starts_with("ReduceSum") {
                return Some(LengthSource::Values);
            }
            todo.extend(node.input.iter().map(String::as_str));
        }
    }
    Some(LengthSource::Shape)
}
