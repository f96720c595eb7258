"""Records the pieces that Python's TextStreamer gives (transformers 5.24.0).

    python text_streamer.py

writes ../data/text_streamer.json: texts and random tokens on the tokenizers of crates/tasks/tests/data/tokenizers and of
three small models. A case is [tokenizer, skip_prompt, skip_special_tokens, prompt, tokens, pieces]; the pieces are what
on_finalized_text received: one for the prompt (unless it is skipped), one for each token, one for the end.
"""

import json
import random
from pathlib import Path

import torch
from transformers import AutoTokenizer, TextStreamer

ROOT = Path(__file__).parent.parent
TOKENIZERS = {
    "gpt2": ROOT.parent / "crates/tasks/tests/data/tokenizers/gpt2",
    "llama": ROOT.parent / "crates/tasks/tests/data/tokenizers/llama",
    "t5": ROOT.parent / "crates/tasks/tests/data/tokenizers/t5",
    "bloom": ROOT / "models/bloom",
    "gemma3": ROOT / "models/gemma3",
    "opt": ROOT / "models/opt",
}
TEXTS = [
    "Hello world, the river runs to the sea! It's 3.14, or <b>not</b>...\n  next line\n\n- item (one)\n",
    "def f(x):\n    if x > 0:\n        return x**2  # square\n\treturn None",
    "你好，世界！今天天气很好。こんにちは世界 안녕하세요 🙂👍🏽 naïve Straße हिन्दी ไทยยาว e\u0301 \u00a0x\u2003y",
    " leading, and\r\ntrailing. \u2028 \x1c\x85 \u2460\u00b2\u2167 _a_ a-b \n",
]


class Kept(TextStreamer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.pieces = []

    def on_finalized_text(self, text, stream_end=False):
        self.pieces.append(text)


def main():
    rng = random.Random(5)
    cases = []
    for name, folder in TOKENIZERS.items():
        tokenizer = AutoTokenizer.from_pretrained(folder)
        size = len(tokenizer)
        runs = []
        for index, text in enumerate(TEXTS):
            ids = tokenizer(text).input_ids
            runs.append((ids[:3], ids[3:]))
            special = sorted(set(tokenizer.all_special_ids))
            at = len(ids) // 2
            runs.append((ids[:2], ids[2:at] + [special[index % len(special)]] + ids[at:]))
        for length in [1, 2, 5, 12, 25, 40]:
            runs.append(([rng.randrange(size) for _ in range(1 + length // 4)], [rng.randrange(size) for _ in range(length)]))
        for index, (prompt, ids) in enumerate(runs):
            for skip_prompt, skip_special in [(False, False), (True, True)]:
                streamer = Kept(tokenizer, skip_prompt=skip_prompt, skip_special_tokens=skip_special)
                streamer.put(torch.tensor([prompt]))
                for token in ids:
                    streamer.put(torch.tensor([token]))
                streamer.end()
                cases.append([name, skip_prompt, skip_special, prompt, ids, streamer.pieces])
    lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    (ROOT / "data/text_streamer.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
