//! Text to ids and back, as Python's `AutoTokenizer` does for a folder with a `tokenizer.json`.

mod bounds;
pub mod config;
pub mod decode;
pub mod load;
pub mod translate;
pub mod vocabulary;

pub use config::TokenizerConfig;
pub use load::Tokenizer;
pub use translate::TokenizerPair;
