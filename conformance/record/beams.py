"""Records what the beam searches of Python transformers find on small models whose scores are a formula.

    python record/beams.py search data/beams.json         (transformers 5.24 with torch)
    python record/beams.py groups data/beams.json         (transformers 4.50.3, the last ones with these loops built in)
    python record/beams.py constrained data/beams.json    (the same)

Each replaces its own part of the file. The seeds are fixed, so a second run writes the same file.

A case has a `model` (see `scores_after`), the `settings` as given to generate(), `prompts` and, per prompt, the returned
sequences, best first: `[new tokens, sequences_scores, beam_indices, transition scores]`. Null is minus infinity, or what
Python does not tell: 4.50.3 has no transition scores there and loses beam_indices (those of groups are of another group).

Left out are cases in which rounding decides: log_softmax is also computed in double precision and with an error of about
one unit in the last place of every row, all must find the same, and torch.topk must never see two scores that are nearly
equal; scores that are exactly equal it may see. Left out too are cases with a NaN, and batches that change what a prompt
finds alone: Python goes on with a prompt that is done, and may swap its equal sequences.
The Hamming rule comes last, as where Python 5 applies it, and constrained search sorts stably: torch.sort no longer does.
"""

import json
import math
import random
import sys

import torch
import transformers
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

CASES = {"search": 320, "groups": 110, "constrained": 130}
VERSIONS = {"search": "5.24.0", "groups": "4.50.3", "constrained": "4.50.3"}
INF = math.inf
BITS = 2**64 - 1

topk = torch.topk
torch.set_num_threads(1)
transformers.logging.set_verbosity_error()


def scramble(bits):
    bits = ((bits ^ (bits >> 33)) * 0xFF51AFD7ED558CCD) & BITS
    bits = ((bits ^ (bits >> 33)) * 0xC4CEB9FE1A85EC53) & BITS
    return bits ^ (bits >> 33)


def scores_after(model, ids):
    """Scores of the next token, from the last `order` tokens; each is exactly an f32.

    With `levels` a score is one of 0, -`step`, -2 `step`...; else one of 2^24 numbers in [-`step`, `step`). `forbidden` of
    16 scores are minus infinity, but at least one is not.
    """
    vocab, row = model["vocab"], model["seed"]
    for token in ids[-model["order"] :]:
        row = scramble(row ^ (token + 1))
    scores = []
    for token in range(vocab):
        bits = scramble(row ^ ((token + 1) << 32))
        if bits % 16 < model["forbidden"] and token != row % vocab:
            scores.append(-INF)
        elif model["levels"]:
            scores.append(-((bits >> 8) % model["levels"]) * model["step"])
        else:
            scores.append(((bits >> 40) / 2**23 - 1) * model["step"])
    return scores


class Formula(PreTrainedModel, GenerationMixin):
    config_class = PretrainedConfig
    main_input_name = "input_ids"

    def __init__(self, model):
        super().__init__(PretrainedConfig(vocab_size=model["vocab"]))
        self.model = model
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **_):
        return {"input_ids": input_ids}

    def forward(self, input_ids, attention_mask=None, return_dict=True, **_):
        rows = [scores_after(self.model, row) for row in input_ids.tolist()]
        return CausalLMOutput(logits=torch.tensor(rows, dtype=torch.float32)[:, None])

    def _get_logits_processor(self, *args, **kwargs):
        rules = super()._get_logits_processor(*args, **kwargs)
        rules.sort(key=lambda rule: type(rule).__name__ == "HammingDiversityLogitsProcessor")
        return rules


def as_ever(logits, dim):
    return torch.log_softmax(logits, dim=dim)


def exactly_rounded(logits, dim):
    return torch.log_softmax(logits.double(), dim=dim).float()


def with_an_error(logits, dim):
    found = exactly_rounded(logits, dim)
    for row, logit in zip(found, logits.tolist()):
        row *= 1 + (hash(tuple(logit)) % 5 - 2) * 2.0**-23
    return found


class RoundingDecides(ValueError):
    pass


def watched_topk(scores, k, **options):
    """Nearly equal scores matter among the best, and anywhere if others are equal: they lead the algorithm another way."""
    for row in scores.tolist():
        row = sorted((score for score in row if score > -1e8), reverse=True)
        if len(set(row)) == len(row):
            row = row[: k + 1]
        if any(0 < a - b <= 2e-6 * max(1.0, abs(a)) for a, b in zip(row, row[1:])):
            raise RoundingDecides
    return topk(scores, k, **options)


def patch_old_python():
    """Constrained search sorts stably, and beams that fulfil nothing have an empty path, with which Python gets on."""
    from transformers.generation import beam_search

    add, sort = beam_search.BeamHypotheses.add, torch.Tensor.sort

    def add_any(self, hyp, sum_logprobs, beam_indices=None, generated_len=None):
        add(self, hyp, sum_logprobs, beam_indices=beam_indices or (), generated_len=generated_len)

    beam_search.BeamHypotheses.add = add_any
    torch.Tensor.sort = lambda self, dim=-1, descending=False: sort(self, dim=dim, descending=descending, stable=True)


def number(value):
    return None if value == -INF else float(f"{value:.8g}")


def run(part, case):
    torch.manual_seed(0)
    model = Formula(case["model"]).eval()
    asked = dict(case["settings"])
    out = model.generate(
        torch.tensor(case["prompts"]),
        attention_mask=torch.ones(len(case["prompts"]), len(case["prompts"][0]), dtype=torch.long),
        use_cache=False,
        return_dict_in_generate=True,
        output_scores=True,
        **asked,
    )
    if any(step.isnan().any() for step in out.scores):
        raise ValueError("the rules made a NaN")
    eos = asked.get("eos_token_id") or []
    begin, count = len(case["prompts"][0]), asked["num_return_sequences"]
    transitions = model.compute_transition_scores(out.sequences, out.scores, out.beam_indices) if part == "search" else None
    rows = []
    for index, row in enumerate(out.sequences.tolist()):
        new, path, logprobs = row[begin:], None, None
        if part == "groups":
            ends = [at + 1 for at, token in enumerate(new) if token in eos]
            new = new[: min(ends, default=len(new))]
        else:
            path = [lane for lane in out.beam_indices[index].tolist() if lane >= 0]
            if part == "search":
                new = new[: len(path)]
                logprobs = [number(value) for value in transitions[index].tolist()[: len(path)]]
            elif path:
                new = new[: len(path)]
            else:
                path = None
        rows.append([new, number(out.sequences_scores[index].item()), path, logprobs])
    return [rows[at : at + count] for at in range(0, len(rows), count)]


def found(part, case):
    """What Python finds; None when rounding decides, Python refuses, or prompts change each other's answers."""
    alone = [{**case, "prompts": [prompt]} for prompt in case["prompts"]]
    answers = []
    try:
        for way, watch in ((as_ever, watched_topk), (exactly_rounded, watched_topk), (with_an_error, topk)):
            torch.nn.functional.log_softmax = torch.Tensor.log_softmax = way
            torch.topk = watch
            answers.append(run(part, case))
        if len(alone) > 1:
            torch.nn.functional.log_softmax = torch.Tensor.log_softmax = as_ever
            answers.append([run(part, one)[0] for one in alone])
    except (ValueError, RuntimeError, IndexError):
        return None
    finally:
        torch.topk = topk
    ids = [[[row[0] for row in prompt] for prompt in answer] for answer in answers]
    paths = [[[row[2] for row in prompt] for prompt in answer] for answer in answers[:3]]
    same = all(one == ids[0] for one in ids) and all(one == paths[0] for one in paths)
    return answers[0] if same else None


def some(draw, vocab, most):
    return draw.sample(range(vocab), min(vocab, draw.randint(1, most)))


def words(draw, vocab, eos, most):
    word = lambda: [draw.choice([id for id in range(vocab) if id not in eos]) for _ in range(draw.choice([1, 1, 2, 2, 3]))]
    return [word() for _ in range(draw.randint(1, most))]


def random_case(part, draw):
    vocab = draw.choice([4, 4, 5, 5, 6, 7, 8, 10, 13, 20, 40])
    levels = draw.choice([0, 0, 0, 1, 2, 2, 3])
    case = {
        "model": {
            "vocab": vocab,
            "seed": draw.randrange(2**32),
            "order": draw.choice([1, 1, 2]),
            "levels": levels,
            "step": draw.choice([0.5, 1.0, 2.0]) if levels else draw.choice([1.0, 2.0, 4.0]),
            "forbidden": draw.choice([0, 0, 0, 3, 8]),
        }
    }
    beams = draw.randint(2, 6)
    asked = {"num_beams": beams, "max_new_tokens": draw.randint(1, 8), "num_return_sequences": draw.randint(1, beams)}
    eos = draw.sample(range(vocab), draw.choice([0, 1, 1, 1, 2, 3]) if vocab > 4 else draw.choice([0, 1, 1, 2]))
    if eos:
        asked["eos_token_id"] = eos
    maybe = lambda chance: draw.random() < chance
    if maybe(0.6):
        asked["length_penalty"] = draw.choice([-1.0, 0.0, 0.5, 2.0])
    if maybe(0.6):
        asked["early_stopping"] = draw.choice([True, "never"])
    if maybe(0.2):
        asked["repetition_penalty"] = draw.choice([0.8, 1.3, 2.0])
    if maybe(0.2):
        asked["no_repeat_ngram_size"] = draw.randint(1, 3)
    if maybe(0.15):
        asked["bad_words_ids"] = words(draw, vocab, [], 3)
    if maybe(0.15):
        asked["suppress_tokens"] = some(draw, vocab, 2)
    if maybe(0.1):
        asked["begin_suppress_tokens"] = some(draw, vocab, 2)
    if maybe(0.1):
        asked["forced_bos_token_id"] = draw.choice([id for id in range(vocab) if id not in asked.get("suppress_tokens", [])])
    if maybe(0.1):
        asked["forced_eos_token_id"] = draw.choice(eos) if eos else draw.randrange(vocab)
    if eos and maybe(0.2):
        asked["min_new_tokens"] = draw.randint(1, 5)
    if eos and maybe(0.15):
        asked["exponential_decay_length_penalty"] = [draw.randint(1, 3), draw.choice([1.2, 1.8])]
    if maybe(0.15):
        asked["renormalize_logits"] = True
    if part == "groups":
        groups = draw.choice([2, 2, 3])
        asked["num_beams"] = beams = groups * draw.randint(1, 2)
        asked["num_return_sequences"] = draw.randint(1, beams)
        asked["num_beam_groups"] = groups
        asked["diversity_penalty"] = draw.choice([0.25, 0.5, 1.0, 3.0])
    if part == "constrained":
        ways = words(draw, vocab, eos if maybe(0.9) else [], 2)
        if maybe(0.5):
            ways = [words(draw, vocab, eos, 3) if maybe(0.7) else [word] for word in ways]
            if maybe(0.5):
                ways = [[[way[0][0], *word] for word in way] for way in ways]
        asked["force_words_ids"] = ways
    if maybe(0.3):
        asked["pad_token_id"] = draw.randrange(vocab)
    length = draw.randint(1, 5)
    prompts = [[draw.randrange(vocab) for _ in range(length)] for _ in range(draw.choice([1, 1, 1, 2, 3]) if part == "search" else 1)]
    return {**case, "settings": asked, "prompts": prompts}


def main(part, file):
    if transformers.__version__ != VERSIONS[part]:
        sys.exit(f"{part} is recorded with transformers {VERSIONS[part]}, not {transformers.__version__}")
    if part != "search":
        patch_old_python()
    draw = random.Random(f"beams {part}")
    cases, tries = [], 0
    while len(cases) < CASES[part]:
        tries += 1
        assert tries <= 20 * CASES[part], "nearly every case is left out"
        case = random_case(part, draw)
        answer = found(part, case)
        if answer is not None:
            cases.append({**case, "expected": answer})
    try:
        with open(file) as opened:
            recorded = json.load(opened)
    except FileNotFoundError:
        recorded = {}
    recorded[part] = cases
    with open(file, "w") as opened:
        lines = (json.dumps(name) + ":[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in recorded[name]) + "\n]" for name in sorted(recorded))
        opened.write("{" + ",\n".join(lines) + "}\n")
    print(f"{part}: {len(cases)} of {tries} cases")


if __name__ == "__main__":
    with torch.no_grad():
        main(sys.argv[1], sys.argv[2])
