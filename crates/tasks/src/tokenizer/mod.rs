//! Text to ids and back, as Python's `AutoTokenizer` does for a folder with a `tokenizer.json`.

pub mod config;
pub mod decode;
mod file;
pub mod load;
pub mod translate;
pub mod vocabulary;

pub use config::TokenizerConfig;
pub(crate) use file::{read_json, read_text};
pub use load::Tokenizer;
pub use translate::TokenizerPair;
