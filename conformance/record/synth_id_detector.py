"""Records what Python's trained SynthID detector makes of texts.

    python record/synth_id_detector.py data/synth_id        (transformers 5.24 with torch)

Writes a detector with random weights as `save_pretrained` does (`config.json`, `model.safetensors`) and `cases.json`:
texts of token ids, the end token, and the posterior that `SynthIDTextWatermarkDetector` gives. The seed is fixed, so a
second run writes the same files. Texts are of all sorts: with and without the mark, with repeated contexts (also so far
apart that the history has forgotten them), with the end token in the middle, first or absent, and with nothing left to
judge.
"""

import argparse
import json
import random
from pathlib import Path
from types import SimpleNamespace

import torch
import transformers
from transformers import BayesianDetectorConfig, BayesianDetectorModel, SynthIDTextWatermarkDetector
from transformers import SynthIDTextWatermarkLogitsProcessor

KEYS = [654, 400, 836, 123, 340, 443, 597]
WATERMARK = {
    "ngram_len": 4,
    "keys": KEYS,
    "sampling_table_size": 1024,
    "sampling_table_seed": 3,
    "context_history_size": 16,
    "skip_first_ngram_calls": False,
    "debug_mode": False,
}
VOCAB = 50
EOS = 7

draw = random.Random(20250412)


def detector():
    torch.manual_seed(20250412)
    config = BayesianDetectorConfig(watermarking_depth=len(KEYS), base_rate=0.3)
    config.set_detector_information("tiny/model", WATERMARK)
    model = BayesianDetectorModel(config)
    with torch.no_grad():
        watermarked = model.likelihood_model_watermarked
        watermarked.beta.normal_(-0.5, 1.0)
        watermarked.delta.normal_(0.0, 0.8)
    return model.eval()


def marked(processor, length):
    """A text whose tokens are drawn from flat scores with the mark."""
    processor.state = None
    ids = torch.tensor([[draw.randrange(VOCAB) for _ in range(3)]])
    for _ in range(length):
        scores = processor(ids, torch.zeros(1, VOCAB))
        choice = draw.choices(range(VOCAB), torch.softmax(scores[0], -1).tolist())[0]
        ids = torch.cat([ids, torch.tensor([[choice]])], dim=1)
    return [token if token != EOS else EOS + 1 for token in ids[0, 3:].tolist()]


def texts(processor):
    plain = lambda length: [draw.choice([token for token in range(VOCAB) if token != EOS]) for _ in range(length)]
    yield from (marked(processor, length) for length in (4, 5, 9, 20, 40, 90))
    yield from (plain(length) for length in (4, 6, 12, 30, 70))
    for text in (marked(processor, 30), plain(30)):
        yield text[:15] + [EOS] + text[15:] + [EOS]
        yield text + text[:9]
    yield [EOS] + plain(8)
    yield plain(3) + [EOS]
    yield [0] * 12
    yield [0, 0, 0] + plain(30) + [0, 0, 0, 5]
    once = plain(3)
    yield once + plain(4) + once + plain(20) + once + plain(2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    model = detector()
    model.save_pretrained(out)
    model = BayesianDetectorModel.from_pretrained(out)
    processor = SynthIDTextWatermarkLogitsProcessor(**model.config.watermarking_config, device="cpu")
    judge = SynthIDTextWatermarkDetector(model, processor, SimpleNamespace(eos_token_id=EOS))
    cases = []
    with torch.no_grad():
        for ids in texts(processor):
            (posterior,) = judge(torch.tensor([ids]))
            cases.append({"ids": ids, "posterior": posterior.item()})
    lines = ",\n".join("    " + json.dumps(case) for case in cases)
    text = f'{{\n  "transformers": "{transformers.__version__}",\n  "eos": {EOS},\n  "cases": [\n{lines}\n  ]\n}}\n'
    (out / "cases.json").write_text(text)


main()
