//! Token healing: the last token of a prompt is chosen again among those that extend it; Python's `heal_tokens`.

use serde_json::{Value, json};
use unspool_core::config::{GenerationConfig, Settings};
use unspool_core::generate::{Request, generate};
use unspool_core::{AttentionMask, Error, Result, TokenId};
use unspool_tasks::HealingChoice;

use crate::pipeline::Pipeline;

impl Pipeline {
    /// The prompts with their last tokens chosen again, and one line for each that had to stay as it was. `first_prompt` is
    /// the index of the first one in the whole; `seed` matters only where the model's own settings draw.
    ///
    /// # Errors
    ///
    /// When there is no tokenizer, or it has no `pad_token`; and those of a generation.
    pub(crate) fn heal(
        &self,
        prompts: Vec<Vec<TokenId>>,
        first_prompt: usize,
        seed: u64,
    ) -> Result<(Vec<Vec<TokenId>>, Vec<String>)> {
        let tokenizer = self.tokenizer()?;
        let (mut healed, mut warnings) = (Vec::with_capacity(prompts.len()), Vec::new());
        let count = prompts.len();
        for (index, ids) in prompts.into_iter().enumerate() {
            let place = |error: Error| error.at_one_of("prompt", index, count);
            let mut healing = tokenizer.heal(&ids).map_err(place)?;
            let number = first_prompt.wrapping_add(index);
            warnings.extend(healing.warning.map(|warning| match number.max(count - 1) {
                // The only one.
                0 => warning,
                _ => format!("prompt {number}: {warning}"),
            }));
            if let (Some(choice), Some(last)) = (healing.choice, healing.ids.last_mut()) {
                *last = self.choose(choice, number, seed).map_err(place)?;
            }
            healed.push(healing.ids);
        }
        Ok((healed, warnings))
    }

    /// One token, under the model's own settings and the bias; those of the call come later, as in Python.
    fn choose(&self, choice: HealingChoice, prompt: usize, seed: u64) -> Result<TokenId> {
        let biases: Value = choice.bias.iter().map(|(id, bias)| json!([[id], bias])).collect();
        let config = GenerationConfig::from_json(&json!({
            "max_new_tokens": 1, "pad_token_id": choice.pad, "sequence_bias": biases, "num_return_sequences": 1,
            "token_healing": false
        }))?;
        let (settings, _) = Settings::resolve(&self.layers.with_call(config), &self.facts())?;
        let mut after = choice.after;
        if !settings.eos_token_id.contains(&choice.pad) && after.iter().any(|id| *id != choice.pad) {
            after.retain(|id| *id != choice.pad);
        }
        let mut request = Request::new(vec![after], settings).seed(seed).first_row(prompt);
        request.attention_mask = vec![AttentionMask::Ones];
        request.vocabulary = self.vocabulary();
        let output = generate(self.model(), request)?;
        let token = output.prompts.first().and_then(|prompt| prompt.sequences.first()?.ids.first().copied());
        token.ok_or_else(|| Error::engine("token_healing got no token from the model"))
    }
}
