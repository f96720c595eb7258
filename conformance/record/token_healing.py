"""Records what token healing makes of prompts (transformers 5.24.0).

    python token_healing.py MODELS

MODELS is the folder that models/build.py wrote, with the weights. Writes ../data/token_healing.json: per model, prompts with
their tokens, the tokens after `heal_tokens`, and six tokens that generate() writes after those; or the error. `skipped` counts
prompts at which the best two scores of a choice are nearer than 1e-3.
"""

import json
import random
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

OUT = Path(__file__).parent.parent / "data/token_healing.json"
TEXTS = [
    "the river runs to the sea", "the river r", "the ri", "th", "t", "she read the old lett", " the h", "a", "x", "hello wor",
    "  lead", "the river ", "1", "old h", "in the", "where is the k", "of th", "she s", "an old hou", "rea", "ha", "s", "o", "e",
    "in t", "the w", "wa", "re", "the old e", "l", "read ", "to be o", "n", "i", "he",
]


def gap(scores):
    best = torch.stack(scores).float().topk(2, dim=-1).values
    return (best[..., 0] - best[..., 1]).min().item()


def main(models):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    recorded = {}
    for name in ["llama", "gemma3", "bloom", "opt", "gpt2"]:
        tokenizer = AutoTokenizer.from_pretrained(models / name)
        model = AutoModelForCausalLM.from_pretrained(models / name)
        plain, gaps = model.generate, []

        def measured(ids, generation_config=None, **settings):
            out = plain(ids, generation_config=generation_config, output_scores=True, return_dict_in_generate=True, **settings)
            gaps.append(gap(out.scores))
            return out.sequences

        cases, skipped = [], 0
        for text in TEXTS:
            ids = tokenizer(text, return_tensors="pt").input_ids.long()
            gaps.clear()
            model.generate = measured
            try:
                healed = model.heal_tokens(ids.clone(), tokenizer)
            except (KeyError, ValueError) as error:
                cases.append({"text": text, "ids": ids[0].tolist(), "error": type(error).__name__})
                continue
            whole = measured(healed, attention_mask=torch.ones_like(healed), max_new_tokens=6)
            model.generate = plain
            if min(gaps) < 1e-3:
                skipped += 1
                continue
            if healed.shape == ids.shape:
                # Where healing changes the length, generate() keeps the positions of the unhealed prompt, or fails.
                told = plain(ids, token_healing=True, tokenizer=tokenizer, max_new_tokens=6)
                assert torch.equal(told, whole), (name, text)
            after = whole[0, healed.shape[1] :].tolist()
            cases.append({"text": text, "ids": ids[0].tolist(), "healed": healed[0].tolist(), "after": after})
        recorded[name] = {"skipped": skipped, "cases": cases}
    text = json.dumps(recorded, ensure_ascii=False, separators=(",", ":")).replace('{"text"', '\n{"text"')
    OUT.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
