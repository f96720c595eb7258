//! Arguments that say which texts a command reads without writing on from them.

use std::path::PathBuf;

use clap::Args;
use unspool::{Prompt, Result};

use crate::batch::read::{self, Placed};
use crate::batch::source::Source;

/// Which texts.
#[derive(Args, Clone, Debug)]
pub struct WhichTexts {
    /// Texts; - reads one from standard input. Without any, standard input is JSON lines, or one text.
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,

    /// Token ids in place of text: [[1,2,3],[4,5]] is two texts.
    #[arg(long, value_name = "JSON", help_heading = "Texts", conflicts_with_all = ["text", "texts"])]
    pub ids: Option<String>,

    /// Texts from a file of JSON lines: a string, {"text": ...} or {"ids": ...} each; - is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Texts", conflicts_with = "text")]
    pub texts: Option<PathBuf>,
}

impl WhichTexts {
    /// The texts: those of the command line, `--ids`, or JSON lines that `lines` reads.
    ///
    /// # Errors
    ///
    /// When there are none, or they cannot be read.
    pub fn read<T: From<Prompt>>(&self, lines: impl Fn(Source) -> Result<Vec<Placed<T>>>) -> Result<Vec<Placed<T>>> {
        if let Some(json) = &self.ids {
            let ids = read::ids("--ids", json)?;
            return ids.into_iter().map(|placed| placed.make(|prompt| Ok(prompt.into()))).collect();
        }
        if let Some(path) = &self.texts {
            return lines(Source::open(path)?);
        }
        let words = if self.text.is_empty() {
            let mut source = Source::standard_input();
            if source.begins_as_json()? {
                return lines(source);
            }
            vec![source.text()?]
        } else {
            read::words(&self.text)?
        };
        Ok(read::counted("text", words.into_iter().map(|text| Prompt::Text(text).into()).collect()))
    }
}

/// Which texts, and how they are read.
#[derive(Args, Clone, Debug)]
pub struct TextArgs {
    /// Which texts.
    #[command(flatten)]
    pub which: WhichTexts,

    /// Take each text exactly as it is: no special tokens around it.
    #[arg(long, help_heading = "Texts", conflicts_with = "ids")]
    pub raw: bool,

    /// Texts that run together at most.
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Texts", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch_size: u32,

    /// Write the lines to FILE, whole or not at all; the same command continues an interrupted run.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,

    /// Replace FILE when it is there already.
    #[arg(long, requires = "out", help_heading = "Output")]
    pub force: bool,
}
