//! Arguments that say which model is used and how it is run.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use unspool::{EngineChoice, GenerationConfig, OpenOptions, Weights, locate};

use crate::failure::Failure;
use crate::interrupt::{self, Mode};
use crate::print::progress;

/// Which model.
#[derive(Args, Clone, Debug)]
pub struct ModelArgs {
    /// A folder (ONNX or safetensors), a .gguf file, or a Hub id (org/name).
    #[arg(value_name = "MODEL")]
    pub model: String,

    /// Branch, tag or commit of a Hub id [default: main].
    #[arg(long, value_name = "REVISION", help_heading = "Model")]
    pub revision: Option<String>,

    /// Which graph: fp32, fp16, q4, int8, ... picks onnx/model_q4.onnx and the like.
    #[arg(long, value_name = "DTYPE", help_heading = "Model")]
    pub dtype: Option<String>,

    /// How the model is run.
    #[command(flatten)]
    pub run: RunArgs,
}

/// How a model is run.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// rten is built in, ort is ONNX Runtime, auto takes ort when it is found.
    #[arg(long, value_enum, default_value_t = Engine::Auto, help_heading = "Model")]
    pub engine: Engine,

    /// Threads of the engine [default: the physical cores].
    #[arg(long, value_name = "N", help_heading = "Model", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,

    /// How a checkpoint (.gguf, safetensors) is imported: keep leaves its own quantised values as they are.
    #[arg(long, value_enum, default_value_t = WeightsArg::Keep, help_heading = "Model")]
    pub weights: WeightsArg,

    /// Import a checkpoint so that its graph gives hidden states too: for embed, contrastive search, DoLa and
    /// --output-hidden-states.
    #[arg(long, help_heading = "Model")]
    pub hidden_states: bool,
}

/// `--engine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// ONNX Runtime when it is found, else rten.
    Auto,
    /// The built-in engine.
    Rten,
    /// ONNX Runtime.
    Ort,
}

/// `--weights`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WeightsArg {
    /// The checkpoint's own values.
    Keep,
    /// 32-bit floats.
    F32,
    /// Requantised to 8 bits.
    Int8,
    /// Requantised to 4 bits.
    Int4,
}

impl From<WeightsArg> for Weights {
    fn from(weights: WeightsArg) -> Self {
        match weights {
            WeightsArg::Keep => Weights::Keep,
            WeightsArg::F32 => Weights::F32,
            WeightsArg::Int8 => Weights::Int8,
            WeightsArg::Int4 => Weights::Int4,
        }
    }
}

/// The early exits that a checkpoint must be imported with.
pub fn early_exits(config: &GenerationConfig) -> Vec<usize> {
    let exit = config.int("assistant_early_exit").and_then(|layers| usize::try_from(layers).ok());
    // What is no number of layers is refused with the other settings.
    exit.filter(|layers| *layers > 0).into_iter().collect()
}

impl RunArgs {
    /// The options to open a model with.
    pub fn options(&self) -> OpenOptions {
        let engine = match self.engine {
            Engine::Auto => EngineChoice::Auto,
            Engine::Rten => EngineChoice::Rten,
            Engine::Ort => EngineChoice::Ort,
        };
        OpenOptions {
            engine,
            threads: self.threads.map(usize::from),
            weights: self.weights.into(),
            hidden_states: self.hidden_states,
            interrupted: Some(interrupt::pressed),
            on_download: Some(progress::downloads()),
            on_import: Some(progress::import()),
            ..OpenOptions::default()
        }
    }
}

impl ModelArgs {
    /// The options to open the model with.
    pub fn options(&self) -> OpenOptions {
        OpenOptions { dtype: self.dtype.clone(), ..self.run.options() }
    }

    /// The options to open the model with, for what `config` asks of it.
    pub fn options_for(&self, config: &GenerationConfig) -> OpenOptions {
        OpenOptions { early_exits: early_exits(config), ..self.options() }
    }

    /// Where the model is on this machine; a model of the Hub is fetched.
    ///
    /// # Errors
    ///
    /// When there is no such path, and no such model on the Hub.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        let _listening = interrupt::listen(Mode::SecondEnds);
        let options = OpenOptions { revision: self.revision.clone(), ..self.options() };
        let located = locate(Path::new(&self.model), &options);
        if interrupt::pressed() {
            return Err(Failure::Interrupted);
        }
        Ok(located?)
    }
}
