"""Prompt lookup beside plain greedy decoding with Python transformers: the same prompts as `unspool-assisted`.

    python benches/assisted.py CHECKPOINT [--new-tokens 128] [--turns 3] [--lookup 10] [--threads N]

CHECKPOINT is a folder that AutoModelForCausalLM reads (benches/gguf_f32.py makes one of a GGUF file). Prints one JSON line a
prompt. A token's rate counts everything after the prompt's own run, which is measured by a call for a single token.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def once(model, ids, new_tokens, **settings):
    begin = time.perf_counter()
    out = model.generate(ids, max_new_tokens=new_tokens, do_sample=False, **settings)
    return time.perf_counter() - begin, out[0, ids.shape[1] :].tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--lookup", type=int, default=10)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    tokenizer = AutoTokenizer.from_pretrained(arguments.checkpoint)
    model = AutoModelForCausalLM.from_pretrained(arguments.checkpoint, dtype=torch.float32).eval()
    prompts = json.loads((Path(__file__).parent / "assisted_prompts.json").read_text())
    for prompt in prompts:
        ids = tokenizer(prompt["text"], add_special_tokens=False, return_tensors="pt").input_ids
        rates = {"plain": [], "lookup": []}
        same = True
        for _ in range(arguments.turns):
            first, _ = once(model, ids, 1)
            plain, plain_ids = once(model, ids, arguments.new_tokens)
            lookup, lookup_ids = once(model, ids, arguments.new_tokens, prompt_lookup_num_tokens=arguments.lookup)
            rates["plain"].append((len(plain_ids) - 1) / max(plain - first, 1e-9))
            rates["lookup"].append((len(lookup_ids) - 1) / max(lookup - first, 1e-9))
            same &= plain_ids == lookup_ids
        plain, lookup = (statistics.median(rates[name]) for name in ("plain", "lookup"))
        line = {"prompt": prompt["name"], "kind": prompt["kind"], "prompt_tokens": ids.shape[1], "new_tokens": len(plain_ids)}
        line |= {"plain": plain, "lookup": lookup, "ratio": lookup / plain, "same_tokens": same}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
