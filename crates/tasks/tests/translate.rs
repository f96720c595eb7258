//! Ids of one tokenizer become ids of another.

use std::path::Path;

use unspool_core::draft::Translation;
use unspool_tasks::{Tokenizer, TokenizerPair};

fn tokenizer(name: &str) -> Tokenizer {
    Tokenizer::from_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tokenizers").join(name)).unwrap()
}

#[test]
fn texts_survive_the_way_there_and_back() {
    let (gpt2, llama) = (tokenizer("gpt2"), tokenizer("llama"));
    let pair = TokenizerPair::new(gpt2.clone(), llama.clone());
    for text in ["the river", "And the river said: wait, wait.", "x"] {
        let own = gpt2.encode(text, true).unwrap();
        let theirs = pair.to_assistant(&own, true).unwrap();
        assert_eq!(theirs, llama.encode(text, true).unwrap());
        assert_eq!(gpt2.decode(&pair.to_target(&theirs).unwrap(), true).trim(), text);
    }
    assert!(
        pair.to_assistant(&gpt2.encode("a", false).unwrap(), true).unwrap().len()
            > pair.to_assistant(&gpt2.encode("a", false).unwrap(), false).unwrap().len()
    );
}

#[test]
fn tokens_of_one_text_are_partners_whatever_the_sign_of_a_space() {
    let (gpt2, llama) = (tokenizer("gpt2"), tokenizer("llama"));
    let pair = TokenizerPair::new(gpt2.clone(), llama.clone());
    assert!(!pair.is_same());
    let mut with_space = 0;
    for (id, partner) in pair.partners().iter().enumerate() {
        let Some(partner) = partner else { continue };
        let (theirs, own) = (llama.token(id as u32).unwrap(), gpt2.token(*partner).unwrap());
        assert_eq!(theirs.replacen('▁', "Ġ", 1), own);
        with_space += usize::from(theirs.starts_with('▁'));
    }
    assert!(with_space > 0 && pair.partners().iter().any(Option::is_none));
    assert!(TokenizerPair::new(gpt2.clone(), gpt2).is_same());
}
