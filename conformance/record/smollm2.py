"""Records the greedy tokens of Python transformers for a SmolLM2 checkpoint in GGUF form.

    python record/smollm2.py PATH/TO/SmolLM2-135M-Instruct.Q4_1.gguf smollm2_greedy.json

Needs transformers 5.24 with torch and gguf; the weights are dequantised to float32 and run on the CPU. Every case is
64 new tokens without an end token, so that all steps are compared. `gaps` of a case holds the difference between the
best two logits of each step: where it is small, another order of float additions may pick the other token.
"""

import argparse
import hashlib
import json
import os

import torch
import transformers

RAW = [
    "Once upon a time, in a small village by the sea,",
    "The capital of France is",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "fn main() {\n    let numbers = vec![1, 2, 3];\n",
    "1, 2, 3, 5, 8, 13,",
    "Shopping list:\n- apples\n- bread\n-",
    "La tour Eiffel est située à",
    "Der schnelle braune Fuchs springt über",
    "日本の首都は",
    "In 1969, humans first landed on the Moon. In 1989,",
    "The three laws of motion are:\n1.",
    "Q: What is 12 times 12?\nA:",
    "<html>\n<body>\n<h1>",
    "Dear Sir or Madam,\n\nI am writing to",
    "emoji test 😀 🚀 means",
]

CHAT = [
    "What is the capital of France?",
    "Write a haiku about autumn.",
    "List five healthy breakfast ideas.",
    "Explain photosynthesis to a child in two sentences.",
    "Write a Python function that reverses a string.",
    "¿Cuál es la capital de España?",
    "What is 17 + 25? Show your steps.",
    "Translate 'good morning' into French, German and Italian.",
    "Summarise the story of Romeo and Juliet in one paragraph.",
]

NEW_TOKENS = 64


def prompts(tokenizer):
    for text in RAW:
        yield {"kind": "raw", "text": text, "prompt": tokenizer(text)["input_ids"]}
    for question in CHAT:
        messages = [{"role": "user", "content": question}]
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        yield {"kind": "chat", "question": question, "text": text, "prompt": ids}


def record(model, case):
    ids = torch.tensor([case["prompt"]])
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        generation_config=transformers.GenerationConfig(
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            return_dict_in_generate=True,
            output_logits=True,
        ),
    )
    tokens = out.sequences[0, ids.shape[1] :].tolist()
    assert len(tokens) == NEW_TOKENS, len(tokens)
    gaps = []
    for step in out.logits:
        best = torch.topk(step[0].double(), 2).values
        gaps.append(round(float(best[0] - best[1]), 6))
    least = min(range(len(gaps)), key=gaps.__getitem__)
    return tokens, gaps, least


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("out")
    args = parser.parse_args()
    folder, name = os.path.split(os.path.abspath(args.gguf))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    # Nothing of the checkpoint's own generation settings: no end token, no default rules.
    model.generation_config = transformers.GenerationConfig()
    model.config.eos_token_id = model.config.bos_token_id = model.config.pad_token_id = None

    cases = []
    for case in prompts(tokenizer):
        tokens, gaps, least = record(model, case)
        case.update(tokens=tokens, gaps=gaps, min_gap=gaps[least], min_gap_step=least)
        case["answer"] = tokenizer.decode(tokens)
        cases.append(case)
        print(f"{case['kind']:4} {gaps[least]:.6f} at {least:2}  {case['text'][-40:]!r} -> {case['answer'][:60]!r}", flush=True)

    with open(args.gguf, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with open(args.out, "w") as file:
        file.write("{\n")
        head = {
            "format": 1,
            "model": name,
            "sha256": digest,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "new_tokens": NEW_TOKENS,
        }
        for key, value in head.items():
            file.write(f"{json.dumps(key)}: {json.dumps(value)},\n")
        file.write('"cases": [\n')
        file.write(",\n".join(json.dumps(case, ensure_ascii=False) for case in cases))
        file.write("\n]\n}\n")


if __name__ == "__main__":
    main()
