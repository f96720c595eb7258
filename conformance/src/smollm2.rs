//! The greedy tokens of a real model: SmolLM2-135M-Instruct as Python transformers runs its GGUF in f32.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use unspool_core::config::{GenerationConfig, Layers, ModelFacts};
use unspool_core::{Error, Model, Request, Result, Settings, TokenId, generate};

/// Where Python's best two logits are nearer than this, another order of float additions may pick the other token.
pub const NEAR: f32 = 1e-3;

/// The recording, `smollm2_greedy.json`.
#[derive(Debug, Deserialize)]
pub struct Recording {
    /// New tokens of every case.
    pub new_tokens: usize,
    /// The prompts and what Python wrote.
    pub cases: Vec<RecordedCase>,
}

/// One prompt.
#[derive(Debug, Deserialize)]
pub struct RecordedCase {
    /// The prompt, chat template applied.
    pub text: String,
    /// Its ids.
    pub prompt: Vec<TokenId>,
    /// What Python wrote; there is no end token.
    pub tokens: Vec<TokenId>,
    /// Difference of the best two logits at each step.
    pub gaps: Vec<f32>,
}

/// How a case compares.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// All tokens are Python's.
    Same,
    /// From this step on another text, where Python's own choice hung on less than [`NEAR`].
    NearTie {
        /// First step that differs.
        step: usize,
        /// Python's gap there.
        gap: f32,
    },
    /// From this step on another text, without that excuse.
    Different {
        /// First step that differs.
        step: usize,
        /// Python's gap there.
        gap: f32,
    },
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is no recording.
    pub fn load(path: &Path) -> Result<Recording> {
        let text = fs::read_to_string(path)
            .map_err(|e| Error::io("cannot read the recording").at(path.display()).because(e))?;
        serde_json::from_str(&text).map_err(|e| Error::invalid_input("not a recording").at(path.display()).because(e))
    }

    /// Writes every prompt with `model`, `batch` prompts at a time, and compares.
    ///
    /// # Errors
    ///
    /// When the model fails.
    pub fn compare(&self, model: &dyn Model, batch: usize) -> Result<Vec<Comparison>> {
        let mut call = GenerationConfig::new();
        call.set("max_new_tokens", self.new_tokens.into())?;
        let facts = ModelFacts { vocab_size: model.vocab_size(), max_positions: model.max_positions() };
        let (settings, _) = Settings::resolve(&Layers::default().with_call(call), &facts)?;
        let mut comparisons = Vec::with_capacity(self.cases.len());
        for cases in self.cases.chunks(batch.max(1)) {
            let prompts = cases.iter().map(|case| case.prompt.clone()).collect();
            let output = generate(model, Request::new(prompts, settings.clone()))?;
            for (case, prompt) in cases.iter().zip(&output.prompts) {
                let ids = prompt.sequences.first().map_or(&[][..], |sequence| &sequence.ids);
                comparisons.push(case.against(ids));
            }
        }
        Ok(comparisons)
    }
}

impl RecordedCase {
    fn against(&self, ids: &[TokenId]) -> Comparison {
        if ids == self.tokens {
            return Comparison::Same;
        }
        let step = ids.iter().zip(&self.tokens).take_while(|(got, expected)| got == expected).count();
        let gap = self.gaps.get(step).copied().unwrap_or(f32::INFINITY);
        if gap < NEAR { Comparison::NearTie { step, gap } } else { Comparison::Different { step, gap } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> RecordedCase {
        RecordedCase { text: String::new(), prompt: vec![1], tokens: vec![5, 6, 7], gaps: vec![0.5, 0.0004, 0.2] }
    }

    #[test]
    fn a_near_tie_is_told_from_a_difference() {
        assert_eq!(case().against(&[5, 6, 7]), Comparison::Same);
        assert_eq!(case().against(&[5, 9, 7]), Comparison::NearTie { step: 1, gap: 0.0004 });
        assert_eq!(case().against(&[5, 6, 9]), Comparison::Different { step: 2, gap: 0.2 });
        assert!(matches!(case().against(&[5, 6]), Comparison::Different { step: 2, .. }));
    }

    #[test]
    fn the_committed_recording_has_twenty_prompts_of_64_tokens() {
        let recording = Recording::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("smollm2_greedy.json")).unwrap();
        assert!(recording.cases.len() >= 20);
        for case in &recording.cases {
            assert_eq!((case.tokens.len(), case.gaps.len()), (64, 64), "{:?}", case.text);
        }
    }
}
