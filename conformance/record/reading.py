"""Records what Python transformers makes of texts that are there already: scores of tokens, hidden states, embeddings.

    python record/reading.py FIXTURES data/reading.json        (transformers 5.24 with torch)

FIXTURES is the output folder of `record/models/build.py`. `scores` holds, for token ids of which the first `given` are
given, the log_softmax of the logits at the position before each other token, and whether the token is the argmax there;
`pairs` the ids of a prompt and its continuation as EleutherAI's evaluation harness splits them (`_encode_pair`).
`hidden` holds `output_hidden_states=True` for some ids, `[layer][position][width]`, rounded to 6 digits; `embeddings`
the mean and the last position of the last one, normalised by torch.nn.functional.normalize where it says so.
"""

import json
import random
import sys

import torch
import transformers

MODELS = {"llama": ["llama", "llama-genai"], "gpt2": ["gpt2", "gpt2-no-cache"], "opt": ["opt", "opt-no-position-ids"]}
PAIRS = [
    ("the river runs", " to the sea"),
    ("the old house ", "was empty"),
    ("she read", "y"),
    ("", "the river"),
]


def rounded(tensor):
    return [float(f"{x:.7g}") for x in tensor.tolist()]


def scores(model, names, draw, vocab):
    for length, given in [(2, 1), (7, 1), (40, 1), (12, 5), (30, 29)]:
        ids = [draw.randrange(3, vocab) for _ in range(length)]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].float()
        # A text that greedy decoding would have written itself, in part.
        for place in range(given, length, 3):
            ids[place] = int(logits[place - 1].argmax())
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0].float()
        logprobs = torch.log_softmax(logits, -1)[given - 1 : -1]
        best = logits[given - 1 : -1].argmax(-1)
        chosen = torch.tensor(ids[given:])
        yield {
            "models": names,
            "ids": ids,
            "given": given,
            "logprobs": rounded(logprobs.gather(1, chosen[:, None])[:, 0]),
            "greedy": (best == chosen).tolist(),
        }


def encode_pair(tokenizer, context, continuation):
    spaces = len(context) - len(context.rstrip())
    if spaces > 0:
        continuation = context[-spaces:] + continuation
        context = context[:-spaces]
    whole = tokenizer(context + continuation)["input_ids"]
    given = tokenizer(context)["input_ids"]
    return given, whole[len(given) :]


def pairs(tokenizer, model):
    for prompt, continuation in PAIRS:
        given, rest = encode_pair(tokenizer, prompt, continuation)
        if not given:
            # The harness gives its prefix token, the model's bos or else eos.
            given = [tokenizer.bos_token_id or tokenizer.eos_token_id]
        yield {"model": model, "prompt": prompt, "continuation": continuation, "prompt_ids": given, "ids": rest}


def hidden(model, names, draw, vocab):
    for length in (1, 9):
        ids = [draw.randrange(3, vocab) for _ in range(length)]
        with torch.no_grad():
            out = model(torch.tensor([ids]), output_hidden_states=True)
        states = [[[round(x, 6) for x in row] for row in state[0].tolist()] for state in out.hidden_states]
        last = out.hidden_states[-1][0].float()
        vectors = {"last": last[-1], "mean": last.mean(0)}
        embeddings = {}
        for pooling, vector in vectors.items():
            embeddings[pooling] = rounded(vector)
            embeddings[f"{pooling}_normalized"] = rounded(torch.nn.functional.normalize(vector, dim=0))
        yield {"models": names, "ids": ids, "states": states, "embeddings": embeddings}


def main():
    fixtures, out = sys.argv[1:]
    draw = random.Random(20260601)
    recorded = {"transformers": transformers.__version__, "scores": [], "pairs": [], "hidden": []}
    for name, names in MODELS.items():
        model = transformers.AutoModelForCausalLM.from_pretrained(f"{fixtures}/{name}", dtype=torch.float32).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(f"{fixtures}/{name}")
        vocab = model.config.vocab_size
        recorded["scores"] += scores(model, names, draw, vocab)
        recorded["pairs"] += pairs(tokenizer, name)
        recorded["hidden"] += hidden(model, names, draw, vocab)
    with open(out, "w") as file:
        head = {key: value for key, value in recorded.items() if not isinstance(value, list)}
        file.write(json.dumps(head)[:-1])
        for key, value in recorded.items():
            if isinstance(value, list):
                file.write(f',\n"{key}": [\n' + ",\n".join(json.dumps(case, ensure_ascii=False) for case in value) + "\n]")
        file.write("}\n")


if __name__ == "__main__":
    main()
