//! Settings of the ways to decode that look at hidden states.

use serde_json::Value;

use crate::config::layers::Resolved;
use crate::config::mode::GenerationMode;
use crate::config::settings::count;
use crate::error::Result;

/// Contrastive search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrastive {
    /// Candidates per step; at least 2.
    pub top_k: usize,
    /// Weight of the degeneration penalty; above 0.
    pub penalty_alpha: f64,
    /// Run one candidate at a time.
    pub low_memory: bool,
}

impl Contrastive {
    /// Contrastive search, when `mode` is it.
    pub(super) fn resolve(fields: &Resolved, mode: GenerationMode) -> Result<Option<Self>> {
        if mode != GenerationMode::ContrastiveSearch {
            return Ok(None);
        }
        let alpha = fields.float("penalty_alpha").filter(|alpha| alpha.is_finite());
        let penalty_alpha = alpha.ok_or_else(|| fields.refuse("penalty_alpha", "a finite number above 0"))?;
        let low_memory = fields.bool("low_memory") == Some(true);
        Ok(count(fields, "top_k", 2)?.map(|top_k| Contrastive { top_k, penalty_alpha, low_memory }))
    }
}

/// Layers that DoLa may contrast the last one with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DolaLayers {
    /// Every other one of the lower half.
    Low,
    /// Every other one of the upper half.
    High,
    /// These; 0 is the embeddings, and negative ones count from the end.
    Listed(Vec<i64>),
}

impl DolaLayers {
    /// The layers, when `mode` is DoLa.
    pub(super) fn resolve(fields: &Resolved, mode: GenerationMode) -> Result<Option<Self>> {
        if mode != GenerationMode::Dola {
            return Ok(None);
        }
        let layers = match fields.value("dola_layers") {
            Some(Value::String(word)) if word == "low" => Some(DolaLayers::Low),
            Some(Value::String(word)) if word == "high" => Some(DolaLayers::High),
            Some(Value::Array(items)) => {
                items.iter().map(Value::as_i64).collect::<Option<Vec<_>>>().map(DolaLayers::Listed)
            }
            _ => None,
        };
        let expected = "\"low\", \"high\" or a list of layers";
        layers.map(Some).ok_or_else(|| fields.refuse("dola_layers", expected))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{GenerationConfig, Layers, ModelFacts, Settings};
    use crate::error::Error;

    fn resolved(call: Value) -> Result<(Settings, Vec<String>)> {
        let mut all = json!({"max_new_tokens": 3});
        all.as_object_mut().unwrap().extend(call.as_object().unwrap().clone());
        let call = GenerationConfig::from_json(&all).unwrap();
        let fields = Layers::new(GenerationConfig::new()).with_call(call);
        Settings::resolve(&fields, &ModelFacts { vocab_size: 100, max_positions: None })
    }

    fn settings(call: Value) -> Settings {
        resolved(call).unwrap().0
    }

    fn warnings(call: Value) -> Vec<String> {
        resolved(call).unwrap().1
    }

    fn error(call: Value) -> Error {
        resolved(call).unwrap_err()
    }

    #[test]
    fn contrastive_search_and_dola_are_read_and_checked() {
        let got = settings(json!({"penalty_alpha": 0.6, "top_k": 4, "low_memory": true}));
        assert_eq!(got.contrastive, Some(Contrastive { top_k: 4, penalty_alpha: 0.6, low_memory: true }));
        assert_eq!(settings(json!({"penalty_alpha": 0.6})).contrastive.map(|it| it.top_k), Some(50));
        for other in [json!({"penalty_alpha": 0.6, "do_sample": true}), json!({"penalty_alpha": 0.0}), json!({})] {
            assert_eq!(settings(other).contrastive, None);
        }
        assert!(warnings(json!({"penalty_alpha": 0.6, "top_k": 4})).is_empty(), "top_k has an effect");
        for (layers, expected) in [
            (json!("low"), DolaLayers::Low),
            (json!("high"), DolaLayers::High),
            (json!([3, 1]), DolaLayers::Listed(vec![3, 1])),
        ] {
            let got = settings(json!({"dola_layers": layers, "repetition_penalty": 1.2}));
            assert_eq!(got.dola_layers, Some(expected));
        }
        let wrong = error(json!({"dola_layers": "middle"}));
        assert!(wrong.message().starts_with("dola_layers") && wrong.message().contains("middle"), "{wrong}");
        let told = warnings(json!({"dola_layers": "low"}));
        assert!(told.len() == 1 && told[0].contains("repetition_penalty"), "{told:?}");
        assert!(settings(json!({"output_hidden_states": true})).output_hidden_states);
        let beams = error(json!({"output_hidden_states": true, "num_beams": 2}));
        assert!(beams.message().contains("output_hidden_states") && beams.message().contains("beam search"), "{beams}");
    }
}
