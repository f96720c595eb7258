//! Arguments that say which texts a command reads without writing on from them.

use std::path::PathBuf;

use clap::Args;

/// Which texts, and how they are read.
#[derive(Args, Clone, Debug)]
pub struct TextArgs {
    /// Texts; without any, JSON lines are read from standard input.
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,

    /// Token ids in place of text: [[1,2,3],[4,5]] is two texts.
    #[arg(long, value_name = "JSON", help_heading = "Texts", conflicts_with_all = ["text", "texts", "raw"])]
    pub ids: Option<String>,

    /// Texts from a file of JSON lines; - is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Texts", conflicts_with = "text")]
    pub texts: Option<PathBuf>,

    /// Take each text exactly as it is: no special tokens around it.
    #[arg(long, help_heading = "Texts")]
    pub raw: bool,

    /// Texts that run together at most.
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Texts", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch_size: u32,

    /// Write the lines to FILE, whole or not at all; a run that was cut goes on where it stopped.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
}
