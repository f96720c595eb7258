//! What a graph asks of an engine that loads it and then cannot run it.

use super::proto::Graph;
use super::signature::CacheSlot;

/// Why ONNX Runtime would refuse the first run of a graph that it loads: its GroupQueryAttention takes head sizes that are
/// multiples of 8, with rotary embeddings (`do_rotary`) of 16. `None` when nothing speaks against it.
pub(super) fn refused_by_ort(graph: &Graph, cache: &[CacheSlot]) -> Option<String> {
    let mut why = None;
    graph.walk(&mut |_, node| {
        let past = node.input.get(PAST_KEY).filter(|_| why.is_none() && node.op_type == "GroupQueryAttention");
        let Some(slot) = past.and_then(|past| cache.iter().find(|slot| slot.past == *past)) else { return };
        let rotary = node.int("do_rotary", 0) != 0;
        let multiple = if rotary { 16 } else { 8 };
        if !slot.head_dim.is_multiple_of(multiple) {
            let with = if rotary { " with do_rotary=1" } else { "" };
            why = Some(format!(
                "GroupQueryAttention{with} has a head size of {}, and ONNX Runtime takes multiples of {multiple}",
                slot.head_dim
            ));
        }
    });
    why
}

/// The place of `past_key` among the inputs of GroupQueryAttention.
const PAST_KEY: usize = 3;

#[cfg(test)]
mod tests {
    use super::super::proto::{Attribute, Node};
    use super::super::signature::ElementType;
    use super::*;

    #[test]
    fn head_sizes_that_onnx_runtime_does_not_take() {
        let why = |head_dim: usize, rotary: i64| {
            let input = ["q", "k", "v", "past"].map(str::to_owned).to_vec();
            let attribute = vec![Attribute { name: "do_rotary".to_owned(), i: rotary, ..Attribute::default() }];
            let node = Node { op_type: "GroupQueryAttention".to_owned(), input, attribute, ..Node::default() };
            let graph = Graph { node: vec![node], ..Graph::default() };
            let (past, present) = ("past".to_owned(), "present".to_owned());
            refused_by_ort(&graph, &[CacheSlot { past, present, heads: 1, head_dim, dtype: ElementType::F32 }])
        };
        for (head_dim, rotary, refused) in [
            (6, 1, true),
            (8, 1, true),
            (12, 0, true),
            (100, 0, true),
            (120, 1, true),
            (8, 0, false),
            (80, 1, false),
            (128, 1, false),
        ] {
            assert_eq!(why(head_dim, rotary).is_some(), refused, "{head_dim} {rotary}");
        }
        let why = why(24, 1).unwrap();
        assert!(
            why.contains("do_rotary=1") && why.contains("head size of 24") && why.contains("multiples of 16"),
            "{why}"
        );
    }
}
