//! What tensors a Llama-like decoder has: their names in both formats, their shapes, and which must be there.

use super::hyper::Hyper;

/// A tensor of the model by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `model.embed_tokens.weight`, `[vocab, hidden]`.
    EmbedTokens,
    /// `model.norm.weight`, `[hidden]`.
    Norm,
    /// `lm_head.weight`, `[vocab, hidden]`; absent when the embeddings are tied.
    LmHead,
    /// A tensor of layer `0..layers`.
    Layer(usize, LayerRole),
}

/// A tensor of a layer by what it does. Matrices are `[outputs, inputs]`, biases `[outputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum LayerRole {
    InputLayernorm,
    QProj,
    KProj,
    VProj,
    OProj,
    QBias,
    KBias,
    VBias,
    OBias,
    QNorm,
    KNorm,
    PostAttentionLayernorm,
    GateProj,
    UpProj,
    DownProj,
}

use LayerRole::*;

/// Role, the name's end in Hugging Face checkpoints, the name's end in GGUF.
const LAYER: [(LayerRole, &str, &str); 15] = [
    (InputLayernorm, "input_layernorm.weight", "attn_norm.weight"),
    (QProj, "self_attn.q_proj.weight", "attn_q.weight"),
    (KProj, "self_attn.k_proj.weight", "attn_k.weight"),
    (VProj, "self_attn.v_proj.weight", "attn_v.weight"),
    (OProj, "self_attn.o_proj.weight", "attn_output.weight"),
    (QBias, "self_attn.q_proj.bias", "attn_q.bias"),
    (KBias, "self_attn.k_proj.bias", "attn_k.bias"),
    (VBias, "self_attn.v_proj.bias", "attn_v.bias"),
    (OBias, "self_attn.o_proj.bias", "attn_output.bias"),
    (QNorm, "self_attn.q_norm.weight", "attn_q_norm.weight"),
    (KNorm, "self_attn.k_norm.weight", "attn_k_norm.weight"),
    (PostAttentionLayernorm, "post_attention_layernorm.weight", "ffn_norm.weight"),
    (GateProj, "mlp.gate_proj.weight", "ffn_gate.weight"),
    (UpProj, "mlp.up_proj.weight", "ffn_up.weight"),
    (DownProj, "mlp.down_proj.weight", "ffn_down.weight"),
];

/// The same for tensors outside of layers.
const OUTER: [(Role, &str, &str); 3] = [
    (Role::EmbedTokens, "model.embed_tokens.weight", "token_embd.weight"),
    (Role::Norm, "model.norm.weight", "output_norm.weight"),
    (Role::LmHead, "lm_head.weight", "output.weight"),
];

impl Role {
    /// Every role of a model with so many layers.
    pub fn all(layers: usize) -> impl Iterator<Item = Role> {
        let inner = (0..layers).flat_map(|layer| LAYER.iter().map(move |(role, ..)| Role::Layer(layer, *role)));
        OUTER.iter().map(|(role, ..)| *role).chain(inner)
    }

    /// The name in Hugging Face checkpoints, e.g. `model.layers.0.self_attn.q_proj.weight`.
    pub fn hf_name(self) -> String {
        self.name("model.layers.", |(_, hf, _)| hf, |(_, hf, _)| hf)
    }

    /// The name in GGUF files, e.g. `blk.0.attn_q.weight`.
    pub fn gguf_name(self) -> String {
        self.name("blk.", |(_, _, gguf)| gguf, |(_, _, gguf)| gguf)
    }

    fn name(
        self,
        prefix: &str,
        outer: fn(&(Role, &'static str, &'static str)) -> &'static str,
        inner: fn(&(LayerRole, &'static str, &'static str)) -> &'static str,
    ) -> String {
        match self {
            Role::Layer(layer, role) => {
                let end = LAYER.iter().find(|line| line.0 == role).map_or("", inner);
                format!("{prefix}{layer}.{end}")
            }
            _ => OUTER.iter().find(|line| line.0 == self).map_or("", outer).to_owned(),
        }
    }

    /// The role of a Hugging Face name.
    pub fn from_hf_name(name: &str) -> Option<Role> {
        if let Some((role, ..)) = OUTER.iter().find(|(_, hf, _)| *hf == name) {
            return Some(*role);
        }
        let (layer, end) = name.strip_prefix("model.layers.")?.split_once('.')?;
        let (role, ..) = LAYER.iter().find(|(_, hf, _)| *hf == end)?;
        let role = Role::Layer(layer.parse().ok()?, *role);
        (role.hf_name() == name).then_some(role)
    }

    /// The shape that the sizes of the model ask for: `[rows, columns]`, or `[n]` of a vector.
    pub fn shape(self, hyper: &Hyper) -> Vec<usize> {
        let queries = hyper.heads.saturating_mul(hyper.head_dim);
        let keys = hyper.kv_heads.saturating_mul(hyper.head_dim);
        let (hidden, inner) = (hyper.hidden_size, hyper.intermediate_size);
        match self {
            Role::EmbedTokens | Role::LmHead => vec![hyper.vocab_size, hidden],
            Role::Norm => vec![hidden],
            Role::Layer(_, role) => match role {
                InputLayernorm | PostAttentionLayernorm | OBias => vec![hidden],
                QProj => vec![queries, hidden],
                KProj | VProj => vec![keys, hidden],
                OProj => vec![hidden, queries],
                QBias => vec![queries],
                KBias | VBias => vec![keys],
                QNorm | KNorm => vec![hyper.head_dim],
                GateProj | UpProj => vec![inner, hidden],
                DownProj => vec![hidden, inner],
            },
        }
    }

    /// Whether a model of these sizes cannot do without the tensor.
    pub fn is_required(self, hyper: &Hyper) -> bool {
        match self {
            Role::LmHead => !hyper.tied_embeddings,
            Role::Layer(_, QBias | KBias | VBias) => hyper.attention_bias,
            Role::Layer(_, OBias) => hyper.output_bias,
            Role::Layer(_, QNorm | KNorm) => hyper.qk_norm,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_roles() {
        for role in Role::all(12) {
            assert_eq!(Role::from_hf_name(&role.hf_name()), Some(role));
        }
        assert_eq!(Role::Layer(11, QBias).gguf_name(), "blk.11.attn_q.bias");
        assert_eq!(Role::LmHead.gguf_name(), "output.weight");
        for other in
            ["model.layers.01.mlp.up_proj.weight", "model.layers.x.mlp.up_proj.weight", "blk.0.attn_q.weight", ""]
        {
            assert_eq!(Role::from_hf_name(other), None, "{other}");
        }
    }
}
