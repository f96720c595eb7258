//! Which loop the settings choose.

use crate::config::layers::Resolved;

/// A way of generating; Python's `GenerationMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GenerationMode {
    /// The best token every time.
    Greedy,
    /// Draws.
    Sample,
    /// Greedy or draws, with tokens drafted by something cheaper.
    Assisted,
    /// Contrastive search.
    ContrastiveSearch,
    /// Contrasting layers of the model.
    Dola,
    /// Beam search.
    BeamSearch,
    /// Beam search that draws its candidates.
    BeamSample,
    /// Diverse beam search.
    GroupBeamSearch,
    /// Beam search with required words.
    ConstrainedBeamSearch,
}

impl GenerationMode {
    /// The mode that `fields` choose, and warnings about settings that the mode ignores. `assistant` tells whether the
    /// call brings an assistant model.
    pub fn of(fields: &Resolved, assistant: bool) -> (GenerationMode, Vec<String>) {
        let mut warnings = Vec::new();
        let sampling = fields.bool("do_sample") == Some(true);
        let one_beam = matches!(fields.int("num_beams"), None | Some(1));
        let mut mode = if fields.value("constraints").or(fields.value("force_words_ids")).is_some() {
            GenerationMode::ConstrainedBeamSearch
        } else if one_beam && sampling {
            GenerationMode::Sample
        } else if one_beam && fields.int("top_k") > Some(1) && fields.float("penalty_alpha") > Some(0.0) {
            GenerationMode::ContrastiveSearch
        } else if one_beam {
            GenerationMode::Greedy
        } else if fields.int("num_beam_groups") > Some(1) {
            GenerationMode::GroupBeamSearch
        } else if sampling {
            GenerationMode::BeamSample
        } else {
            GenerationMode::BeamSearch
        };
        let drafts = assistant
            || fields.bool("use_mtp") == Some(true)
            || fields.value("prompt_lookup_num_tokens").or(fields.value("assistant_early_exit")).is_some();
        let upgrades =
            [(drafts, GenerationMode::Assisted), (fields.value("dola_layers").is_some(), GenerationMode::Dola)];
        for (wanted, upgrade) in upgrades {
            if wanted && matches!(mode, GenerationMode::Greedy | GenerationMode::Sample) {
                mode = upgrade;
            } else if wanted {
                warnings.push(format!("{} is not used together with {}", upgrade.as_str(), mode.as_str()));
            }
        }
        (mode, warnings)
    }

    /// What the mode is called.
    pub fn as_str(self) -> &'static str {
        match self {
            GenerationMode::Greedy => "greedy decoding",
            GenerationMode::Sample => "sampling",
            GenerationMode::Assisted => "assisted decoding",
            GenerationMode::ContrastiveSearch => "contrastive search",
            GenerationMode::Dola => "DoLa decoding",
            GenerationMode::BeamSearch => "beam search",
            GenerationMode::BeamSample => "beam search with sampling",
            GenerationMode::GroupBeamSearch => "group beam search",
            GenerationMode::ConstrainedBeamSearch => "constrained beam search",
        }
    }

    /// The fields that choose the mode, the telling one first.
    pub(crate) fn chosen_by(self) -> &'static [&'static str] {
        match self {
            GenerationMode::Greedy | GenerationMode::Sample => &["do_sample"],
            GenerationMode::Assisted => &["prompt_lookup_num_tokens", "assistant_early_exit", "use_mtp"],
            GenerationMode::ContrastiveSearch => &["penalty_alpha"],
            GenerationMode::Dola => &["dola_layers"],
            GenerationMode::BeamSearch | GenerationMode::BeamSample => &["num_beams"],
            GenerationMode::GroupBeamSearch => &["num_beam_groups"],
            GenerationMode::ConstrainedBeamSearch => &["constraints", "force_words_ids"],
        }
    }
}
