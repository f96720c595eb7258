"""Records what Python's tokenizers of the folders in `tokenizers/` give (transformers 5.24.0).

Run it in this folder with a Python that has transformers; it writes `recorded.json` into every folder: ids of texts with
and without special tokens, texts of seeded random ids with and without special tokens, and the bytes that every token
adds to a text as `StopStringCriteria` reads them.
"""

import json
import random
from pathlib import Path

import transformers
from transformers import AutoTokenizer
from transformers.generation.stopping_criteria import StopStringCriteria

TEXTS = [
    "",
    " ",
    "Hello, world!",
    "  two  spaces, a\ttab and\n\na line  ",
    "numbers 1 12 123.5 x1y22",
    "def f(x):\n    return x**2  # square",
    "Straße café русский 你好 😀👍🏽",
    "<s>special</s> <pad><unk> <|endoftext|>x",
    "e\u0301 \ufb01 \u00a0\u3000 \x00\x7f",
    "don't WE'RE it's",
]


def main():
    assert transformers.__version__ == "5.24.0", transformers.__version__
    rng = random.Random(5)
    for folder in sorted((Path(__file__).parent / "tokenizers").iterdir()):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        mode = StopStringCriteria._get_stop_string_matching_mode(tokenizer)
        texts, ids = StopStringCriteria.clean_tokenizer_vocab(tokenizer, stop_string_matching_mode=mode)
        added = {id: (text if isinstance(text, bytes) else text.encode()).hex() for text, id in zip(texts, ids)}
        size = max(added) + 3
        lists = [[rng.randrange(size) for _ in range(rng.randint(0, 16))] for _ in range(40)]
        recorded = {
            "unit": "chars" if mode is None else "bytes",
            "encode": [[t, tokenizer(t).input_ids, tokenizer(t, add_special_tokens=False).input_ids] for t in TEXTS],
            "decode": [[i, tokenizer.decode(i), tokenizer.decode(i, skip_special_tokens=True)] for i in lists],
            "continuation": dict(sorted(added.items())),
        }
        text = json.dumps(recorded, ensure_ascii=True, separators=(",", ":"))
        (folder / "recorded.json").write_text(text.replace(",[[", ",\n[[") + "\n")


if __name__ == "__main__":
    main()
