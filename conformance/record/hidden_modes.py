"""Records contrastive search, DoLa and returned hidden states of Python transformers.

    python record/hidden_modes.py models data/hidden_modes.json        (transformers 4.50 with torch)

transformers 5 moved contrastive search and DoLa out of the library; 4.50 still has both. Makes `models/llama-deep`, a
checkpoint of 6 layers with tied embeddings and random weights, and uses `models/llama` (2 layers, untied) beside it.

A case was taken only where no choice is near: every choice of a candidate, of a layer and of a token is decided by more
than NEAR, and no token lies nearer than that to the bound of a filter. `scores` and `logits` are those of the first steps,
null is minus infinity.
"""

import json
import random
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers.generation import utils

sys.path.insert(0, str(Path(__file__).parent / "models"))
from fixlib.weights import reinit  # noqa: E402

NEAR = 1e-3
STEPS = 2
gaps = []


def note(gap):
    gaps.append(float(gap))


def watch():
    """Notes how near every choice of the two algorithms is."""
    ranking, contrast, relative = utils._ranking_fast, utils._dola_select_contrast, utils._relative_top_filter

    def ranking_fast(context_hidden, next_hidden, next_top_k_probs, mask, alpha, beam_width):
        chosen = ranking(context_hidden, next_hidden, next_top_k_probs, mask, alpha, beam_width)
        context = context_hidden / context_hidden.norm(dim=2, keepdim=True)
        new = next_hidden / next_hidden.norm(dim=2, keepdim=True)
        penalty = torch.matmul(context, new.transpose(1, 2)).squeeze(-1).max(-1).values
        scores = ((1.0 - alpha) * next_top_k_probs.view(-1) - alpha * penalty).sort(descending=True).values
        note(scores[0] - scores[1])
        return chosen

    def select_contrast(layers, early, final):
        if len(layers) > 1:
            differs = []
            for layer in layers:
                mean = 0.5 * (final.softmax(-1) + early[layer].softmax(-1))
                parts = [mean * (mean.log() - x.log_softmax(-1)) for x in (final, early[layer])]
                differs.append(float(0.5 * sum(part.mean(-1) for part in parts).mean()))
            best = sorted(differs, reverse=True)
            note((best[0] - best[1]) * len(final[0]))
        return contrast(layers, early, final)

    def relative_top_filter(scores, baseline, *args):
        logs = scores.log_softmax(-1)
        note((logs - (logs.max() + torch.tensor(0.1).log())).abs().min())
        return relative(scores, baseline, *args)

    utils._ranking_fast = ranking_fast
    utils._dola_select_contrast = select_contrast
    utils._relative_top_filter = relative_top_filter


def deep(folder):
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=6, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        tie_word_embeddings=True, rms_norm_eps=1e-5,
    )
    model = reinit(transformers.LlamaForCausalLM(config).eval(), 77, embed=0.5)
    folder.mkdir(exist_ok=True)
    config.architectures = ["LlamaForCausalLM"]
    (folder / "config.json").write_text(config.to_json_string())
    state = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    model.generation_config = transformers.GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=0)
    (folder / "generation_config.json").write_text(model.generation_config.to_json_string())
    return model


def plain(row):
    return [None if x == float("-inf") else float(f"{x:.7g}") for x in row.tolist()]


def run(model, ids, settings):
    gaps.clear()
    inputs = torch.tensor([ids])
    base = {"eos_token_id": 2, "pad_token_id": 0, "bos_token_id": 1}
    config = transformers.GenerationConfig(
        return_dict_in_generate=True, output_scores=True, output_logits=True, **{**base, **settings}
    )
    model.generation_config = transformers.GenerationConfig(**base)
    out = model.generate(inputs, attention_mask=torch.ones_like(inputs), generation_config=config)
    for scores in out.scores:
        best = torch.topk(scores[0], 2).values
        if "penalty_alpha" not in settings:
            note(best[0] - best[1])
        else:
            # The last candidate and the first token that is none.
            best = torch.topk(scores[0].softmax(-1), settings["top_k"] + 1).values
            note((best[-2] - best[-1]) / best[-2])
    return out, min(gaps)


def cases(model, name, draw, kinds, wanted):
    for settings in kinds:
        found = 0
        for _ in range(60):
            ids = [1] + [draw.randrange(3, model.config.vocab_size) for _ in range(draw.randrange(1, 9))]
            out, gap = run(model, ids, settings)
            if gap < NEAR:
                continue
            yield {
                "model": name,
                "prompt": ids,
                "settings": settings,
                "tokens": out.sequences[0, len(ids) :].tolist(),
                "scores": [plain(scores[0]) for scores in out.scores[:STEPS]],
                "logits": [plain(logits[0]) for logits in out.logits[:STEPS]],
            }
            found += 1
            if found == wanted:
                break
        assert found == wanted, (name, settings, found)


def returned(model, name, draw, settings):
    ids = [1] + [draw.randrange(3, model.config.vocab_size) for _ in range(3)]
    out, gap = run(model, ids, {**settings, "output_hidden_states": True})
    assert gap > NEAR, gap
    states = [[[[round(x, 5) for x in at] for at in state[0].tolist()] for state in step] for step in out.hidden_states]
    return {"model": name, "prompt": ids, "settings": settings, "states": states}


CONTRASTIVE = [
    {"penalty_alpha": alpha, "top_k": k, "max_new_tokens": 12, **more}
    for alpha, k, more in [
        (0.6, 4, {}),
        (0.3, 2, {}),
        (0.9, 6, {}),
        (0.6, 4, {"low_memory": True}),
        (0.6, 3, {"repetition_penalty": 1.3, "min_new_tokens": 4}),
        (0.4, 5, {"no_repeat_ngram_size": 2, "suppress_tokens": [5, 6, 7]}),
    ]
]
DOLA = [
    {"dola_layers": layers, "max_new_tokens": 10, "do_sample": False, **more}
    for layers, more in [
        ("low", {"repetition_penalty": 1.2}),
        ("high", {"repetition_penalty": 1.2}),
        ([1], {}),
        ([0, 1, 3, 5], {"repetition_penalty": 1.3}),
        ([1, 3], {"min_new_tokens": 5}),
    ]
]


def main():
    models, out = Path(sys.argv[1]), sys.argv[2]
    watch()
    draw = random.Random(20260602)
    every = {
        "llama-deep": deep(models / "llama-deep"),
        "llama": transformers.LlamaForCausalLM.from_pretrained(models / "llama", torch_dtype=torch.float32).eval(),
    }
    recorded = {"contrastive": [], "dola": [], "returned": []}
    for name, model in every.items():
        recorded["contrastive"] += cases(model, name, draw, CONTRASTIVE, 2)
        shallow = model.config.num_hidden_layers == 2
        layers = [kind for kind in DOLA if not (shallow and isinstance(kind["dola_layers"], list) and 3 in kind["dola_layers"])]
        recorded["dola"] += cases(model, name, draw, layers, 2)
    deepest = every["llama-deep"]
    for settings in [
        {"max_new_tokens": 3},
        {"max_new_tokens": 2, "dola_layers": [1, 3]},
        {"max_new_tokens": 2, "penalty_alpha": 0.6, "top_k": 3},
    ]:
        recorded["returned"].append(returned(deepest, "llama-deep", draw, settings))
    with open(out, "w") as file:
        file.write("{" + f'"transformers": "{transformers.__version__}"')
        for key, value in recorded.items():
            file.write(f',\n"{key}": [\n' + ",\n".join(json.dumps(case) for case in value) + "\n]")
        file.write("}\n")


if __name__ == "__main__":
    main()
