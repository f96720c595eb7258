"""Assisted decoding with an early exit, as Python transformers 5.24 does it: `assistant_early_exit`.

    python early_exit.py > ../data/early_exit.json

For each small checkpoint and exit: the scores of the model that ends there after a prompt, and what `generate()` writes with
it as its own assistant, with the numbers of times that the whole model and the first layers ran.

A case that writes the pad token is left out: Python's drafts then take it for padding and hide it, and drafts differ.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM

assert transformers.__version__.startswith("5.24"), transformers.__version__
MODELS = Path(__file__).resolve().parent.parent / "models"
PROMPTS = [[1, 5, 9, 14, 22], [3, 3, 3, 3], [1, 7], [1, 90, 60, 30], [1, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51]]
SETTINGS = [
    {},
    {"repetition_penalty": 1.3},
    {"no_repeat_ngram_size": 2},
]


class Runs:
    """Counts how often the whole model and its first layers run."""

    def __init__(self, model):
        self.layers = model.config.num_hidden_layers
        self.whole = self.exit = 0
        self.hook = model.register_forward_hook(self.count)

    def count(self, model, *_):
        if model.config.num_hidden_layers == self.layers:
            self.whole += 1
        else:
            self.exit += 1

    def done(self):
        self.hook.remove()
        return {"whole": self.whole, "exit": self.exit}


def main():
    cases = []
    for name, exits in [("llama", [1]), ("llama-deep", [2, 4])]:
        for layers in exits:
            for prompt in PROMPTS:
                model = AutoModelForCausalLM.from_pretrained(MODELS / name, dtype=torch.float32).eval()
                ids = torch.tensor([prompt])
                whole = model.config.num_hidden_layers
                model.config.num_hidden_layers = layers
                with torch.no_grad():
                    scores = model(ids).logits[0, -1].tolist()
                model.config.num_hidden_layers = whole
                for settings in SETTINGS:
                    asked = dict(settings, max_new_tokens=16, do_sample=False)
                    plain = model.generate(ids, **asked)[0, len(prompt) :].tolist()
                    if model.generation_config.pad_token_id in plain:
                        continue
                    model.generation_config.num_assistant_tokens = 5
                    model.generation_config.num_assistant_tokens_schedule = "constant"
                    model.generation_config.assistant_confidence_threshold = 0.0
                    runs = Runs(model)
                    tokens = model.generate(ids, assistant_early_exit=layers, **asked)[0, len(prompt) :].tolist()
                    counted = runs.done()
                    cases.append({"model": name, "layers": layers, "prompt": prompt, "settings": asked, "scores": scores,
                                  "tokens": tokens, "runs": counted})
                    assert tokens == plain
    json.dump({"transformers": transformers.__version__, "cases": cases}, sys.stdout)
    print()


main()
