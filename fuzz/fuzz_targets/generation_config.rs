//! Any bytes as `generation_config.json`: a clear error or settings in force, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unspool_core::Settings;
use unspool_core::config::{GenerationConfig, Layers, ModelFacts, from_folder_json};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let facts = ModelFacts { vocab_size: 300, max_positions: Some(64) };
    for model in [from_folder_json(Some(text), None), from_folder_json(None, Some(text))].into_iter().flatten() {
        if let Ok((settings, _)) =
            Settings::resolve(&Layers::new(model.clone()).with_call(GenerationConfig::new()), &facts)
        {
            let _ = settings.max_length_for(3);
        }
        let _ = Settings::resolve(&Layers::default().with_call(model), &facts);
    }
});
