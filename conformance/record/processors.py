"""Records what the logits processors of Python transformers make of random scores.

    python record/processors.py data/processors.json        (transformers 5.24 with torch)

The seed is fixed, so a second run writes the same file.

`rules` holds the cases of each rule: `ids` (the first `prompt` of them are the prompt), `scores`, the `args` of the
rule and the result: `forbidden` lists the ids that are minus infinity afterwards, `set` the `[id, score]` that changed
otherwise; all other scores stay as they were. `synth_id` has `calls` instead, one for each new token. `detector` has
texts and what was found in them. In scores and biases null is minus infinity; "inf" and "nan" are strings. Numbers are
the shortest decimals that read back as the same f32.

Left out are cases that rounding decides (a comparison of floats nearer than 1e-6 to its bound) and those that the order
of equal scores in torch.sort and torch.topk decides: neither is stable.
"""

import argparse
import itertools
import json
import math
import random
from types import SimpleNamespace

import numpy
import torch
import transformers
from transformers.generation import logits_process as rules
from transformers.generation.watermarking import WatermarkDetector

CASES = 30
NEAR = 1e-6
INF = math.inf

draw = random.Random(20240917)


def tensor(row, dtype=torch.float32):
    return torch.tensor([row], dtype=dtype)


def exact(number):
    """The double whose shortest decimal is that of the f32."""
    return float(str(numpy.float32(number)))


def written(number):
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return None if number < 0 else "inf"
    return int(number) if number == int(number) and abs(number) < 1e6 else number


def random_scores(vocab, kinds=("plain", "plain", "ties", "wide", "flat", "peak"), forbidden=0.4):
    kind = draw.choice(kinds)
    if kind == "ties":
        row = [draw.choice([-1.5, 0.0, 0.5, 1.0, 2.25]) for _ in range(vocab)]
    elif kind == "wide":
        row = [draw.uniform(-60, 60) for _ in range(vocab)]
    elif kind == "flat":
        row = [draw.choice([0.0, -3.25, 1.5])] * vocab
    else:
        row = [draw.gauss(0, 2) for _ in range(vocab)]
        if kind == "peak":
            row[draw.randrange(vocab)] += 12
    row = [exact(round(score, 2)) for score in row]
    if draw.random() < forbidden:
        for index in draw.sample(range(vocab), draw.randint(1, vocab - 1)):
            row[index] = -INF
    return row


def random_ids(vocab, alphabet=None, prompt=None, new=None):
    prompt = prompt or draw.randint(1, 6)
    new = draw.randint(0, 6) if new is None else new
    alphabet = min(alphabet or vocab, vocab)
    return {"ids": [draw.randrange(alphabet) for _ in range(prompt + new)], "prompt": prompt}


def some(vocab, most=3, beyond=0.0):
    """Ids; one may occur twice, and one may lie outside the vocabulary."""
    ids = [draw.randrange(vocab) for _ in range(draw.randint(1, most))]
    return ids + [vocab + draw.randint(0, 2)] if draw.random() < beyond else ids


def keep():
    return {"min_tokens_to_keep": draw.choice([1, 1, 2, 3])}


def difference(before, after):
    """The result as it is written, and whether anything changed."""
    forbidden = [index for index, score in enumerate(after) if score == -INF]
    same = lambda a, b: a == b or (math.isnan(a) and math.isnan(b))
    changed = [
        [index, written(new)]
        for index, (old, new) in enumerate(zip(before, after))
        if new != -INF and not same(old, new)
    ]
    started = [index for index, score in enumerate(before) if score == -INF]
    return {"forbidden": forbidden, "set": changed}, bool(changed) or forbidden != started


def run(rule, ids, row):
    return [exact(score) for score in rule(torch.tensor([ids]), tensor(row))[0].tolist()]


# Is a result clear, or decided by rounding?


def near(a, b):
    return abs(a - b) < NEAR or abs(a - b) < 10 * NEAR * max(abs(a), abs(b))


def close(a, b):
    """As `near`, for probabilities that may be far below 1e-6."""
    return abs(a - b) < 10 * NEAR * max(abs(a), abs(b))


def probabilities(row):
    return torch.softmax(tensor(row, torch.float64), -1)[0].tolist()


def surprise(row):
    logs = torch.log_softmax(tensor(row, torch.float64), -1)[0]
    return (-logs).tolist(), -(logs * logs.exp()).nansum().item()


def splits_a_tie(row, after):
    kept = {score for score, new in zip(row, after) if new > -INF}
    return any(score in kept for score, new in zip(row, after) if -INF == new < score)


def best(row, count):
    return sorted(row, reverse=True)[min(count, len(row)) - 1]


def clear_top_p(row, args, after):
    if splits_a_tie(row, after):
        return False
    order = sorted(range(len(row)), key=row.__getitem__)
    weights = probabilities(row)
    sums = itertools.accumulate(weights[id] for id in order[: len(row) - args["min_tokens_to_keep"]])
    return not any(near(total, 1 - args["top_p"]) for id, total in zip(order, sums) if row[id] > -INF)


def clear_top_h(row, args, after):
    top = sorted(row, reverse=True)[:100]
    terms = [-p * math.log(p) if p > 0 else 0.0 for p in probabilities(top)]
    bound = sum(terms) * args["top_h"]
    sums = list(itertools.accumulate(terms))
    undecided = any(near(total, bound) for score, total in list(zip(top, sums))[1:] if score > -INF)
    return not undecided and not splits_a_tie(row, after)


def clear_min_p(row, args, after):
    weights = probabilities(row)
    top = max(weights)
    undecided = args["min_p"] > 0 and any(close(p, args["min_p"] * top) for p in weights if 0 < p < top)
    return not undecided and not splits_a_tie(row, after) and best(weights, args["min_tokens_to_keep"]) > 1e-30


def clear_typical(row, args, after):
    logs, entropy = surprise(row)
    finite = sorted((abs(log - entropy), score) for log, score in zip(logs, row) if score > -INF)
    if splits_a_tie(row, after) or any(near(a[0], b[0]) and a[1] != b[1] for a, b in itertools.pairwise(finite)):
        return False
    mass = dict(zip(row, probabilities(row)))
    sums = itertools.accumulate(mass[score] for _, score in finite)
    return not any(near(total, args["mass"]) for total in sums)


def clear_epsilon(row, args, after):
    return not any(close(p, args["epsilon"]) for p in probabilities(row))


def clear_eta(row, args, after):
    _, entropy = surprise(row)
    bound = min(args["epsilon"], math.sqrt(args["epsilon"]) * math.exp(-entropy))
    return not any(close(p, bound) for p in probabilities(row))


# The rules: what a case draws, and how Python's rule is made of it.


def filtered(make, arguments, clear=None, vocab=None, forbidden=0.4):
    """A rule for which the ids do not matter."""

    def one():
        size = vocab() if vocab else draw.randint(6, 24)
        args = arguments(size)
        return random_ids(size, new=draw.randint(0, 2)), random_scores(size, forbidden=forbidden), args, make(args)

    return one, clear, lambda args, row: make(args)


def of_row(make, arguments, alphabet=None, beyond=False, prompt=None, new=None):
    """A rule that looks at the ids."""

    def one():
        size = draw.randint(6, 24)
        row = random_ids(size, alphabet, prompt and prompt(), new and new())
        if beyond and draw.random() < 0.1:
            row["ids"].append(size + 1)
        args = arguments(size, row)
        return row, random_scores(size), args, make(args, row)

    return one, None, make


def sequences(vocab, row):
    """Token sequences, most of which the row begins."""
    ids = row["ids"]
    for _ in range(draw.randint(1, 5)):
        before = draw.randint(0, min(4, len(ids)))
        start = ids[len(ids) - before :]
        if draw.random() < 0.25:
            start = [draw.randrange(vocab) for _ in range(draw.randint(1, 3))]
        yield [*start, draw.randrange(min(vocab, 5))]


def biases(vocab, row):
    bias = lambda: draw.choice([-INF, INF, 0.0, 1.5, -10.0, *(round(draw.gauss(0, 4), 3) for _ in range(8))])
    return {"sequence_bias": [[ids, bias()] for ids in sequences(vocab, row)]}


def sequence_bias(args, row):
    rule = rules.SequenceBiasLogitsProcessor(args["sequence_bias"])
    args["sequence_bias"] = [[ids, written(bias)] for ids, bias in args["sequence_bias"]]
    return rule


def any_scores():
    size = draw.randint(6, 24)
    row = random_scores(size)
    for index in draw.sample(range(size), draw.randint(1, size)):
        row[index] = draw.choice([math.nan, INF, -INF, 3.4e38, -3.4e38, 0.0])
    return random_ids(size), [exact(score) for score in row], {}, rules.InfNanRemoveLogitsProcessor()


def begin(args, row):
    # As generate() decides where the first new token is.
    length = row["prompt"]
    first = length if length > 1 or not args["forced_bos"] else length + 1
    return rules.SuppressTokensAtBeginLogitsProcessor(args["ids"], first)


KEYS = [15485863, 15485863, 35, 1, 0, -7, 2**40 + 3, 2**61 + 1, -(2**62) + 5]


def green_list(scheme):
    vocab = lambda: draw.randint(6, 24) if scheme == "lefthash" else draw.choice([40, 60, 200])

    def one():
        size = vocab()
        row = random_ids(size)
        args = {
            "greenlist_ratio": draw.choice([0.25, 0.5, 0.1, 0.9, 0.33]),
            "bias": draw.choice([2.0, 0.5, -1.25, 50.0, 2.7]),
            "hashing_key": draw.choice(KEYS),
            "seeding_scheme": scheme,
            "context_width": draw.randint(1, 4),
        }
        # Equal scores at the 40th place are ordered by nobody.
        kinds = ("plain", "ties") if scheme == "lefthash" else ("wide",)
        return row, random_scores(size, kinds), args, rules.WatermarkLogitsProcessor(size, "cpu", **args)

    def clear(row, args, after):
        order = sorted(row, reverse=True)
        return scheme == "lefthash" or len(row) == 40 or order[39] > order[40] or order[39] == -INF

    return one, clear, None


RULES = {
    "min_length": of_row(
        lambda args, row: rules.MinLengthLogitsProcessor(args["min_length"], args["eos"]),
        lambda vocab, row: {"min_length": max(0, len(row["ids"]) + draw.randint(-1, 2)), "eos": some(vocab, 3, 0.2)},
    ),
    "min_new_tokens": of_row(
        lambda args, row: rules.MinNewTokensLengthLogitsProcessor(row["prompt"], args["min_new_tokens"], args["eos"]),
        lambda vocab, row: {
            "min_new_tokens": max(0, len(row["ids"]) - row["prompt"] + draw.randint(-1, 2)),
            "eos": some(vocab, 3, 0.2),
        },
    ),
    "top_h": filtered(
        lambda args: rules.TopHLogitsWarper(**args),
        lambda vocab: {"top_h": draw.choice([1.0, 0.01, 0.9, 0.4, round(draw.uniform(0.05, 0.99), 3)])},
        clear_top_h,
        lambda: draw.choice([8, 12, 16, 24, 200]),
    ),
    "top_k": filtered(
        lambda args: rules.TopKLogitsWarper(**args),
        lambda vocab: {"top_k": draw.choice([1, 2, 3, 5, vocab // 2, vocab - 1, vocab, vocab + 3]), **keep()},
    ),
    "top_p": filtered(
        lambda args: rules.TopPLogitsWarper(**args),
        lambda vocab: {"top_p": draw.choice([0.0, 1.0, 0.9, 0.5, round(draw.uniform(0.01, 0.999), 3)]), **keep()},
        clear_top_p,
    ),
    "min_p": filtered(
        lambda args: rules.MinPLogitsWarper(**args),
        lambda vocab: {"min_p": draw.choice([0.0, 1.0, 0.05, 0.3, round(draw.uniform(0.001, 0.9), 3)]), **keep()},
        clear_min_p,
    ),
    "typical": filtered(
        lambda args: rules.TypicalLogitsWarper(**args),
        lambda vocab: {"mass": draw.choice([0.01, 0.999, 0.9, 0.2, round(draw.uniform(0.05, 0.95), 3)]), **keep()},
        clear_typical,
    ),
    "epsilon": filtered(
        lambda args: rules.EpsilonLogitsWarper(**args),
        lambda vocab: {"epsilon": draw.choice([1e-6, 3e-4, 0.02, 0.1, 0.5, 0.999]), **keep()},
        clear_epsilon,
    ),
    "eta": filtered(
        lambda args: rules.EtaLogitsWarper(**args),
        lambda vocab: {"epsilon": draw.choice([1e-6, 3e-4, 0.02, 0.1, 0.5, 0.999]), **keep()},
        clear_eta,
    ),
    "temperature": filtered(
        lambda args: rules.TemperatureLogitsWarper(**args),
        lambda vocab: {"temperature": draw.choice([0.001, 0.5, 0.7, 1.0, 1.3, 2.0, 100.0, 1e-38])},
    ),
    "repetition_penalty": of_row(
        lambda args, row: rules.RepetitionPenaltyLogitsProcessor(**args),
        lambda vocab, row: {"penalty": draw.choice([0.01, 0.5, 1.0, 1.1, 1.7, 2.0, 10.0])},
        beyond=True,
    ),
    "encoder_repetition_penalty": of_row(
        lambda args, row: rules.EncoderRepetitionPenaltyLogitsProcessor(
            args["penalty"], torch.tensor([row["ids"][: row["prompt"]]])
        ),
        lambda vocab, row: {"penalty": draw.choice([0.01, 0.5, 1.0, 1.1, 1.7, 2.0, 10.0])},
    ),
    "no_repeat_ngram": of_row(
        lambda args, row: rules.NoRepeatNGramLogitsProcessor(**args),
        lambda vocab, row: {"ngram_size": draw.choice([1, 2, 2, 3, 3, 4, 13])},
        alphabet=2,
        beyond=True,
    ),
    "encoder_no_repeat_ngram": of_row(
        lambda args, row: rules.EncoderNoRepeatNGramLogitsProcessor(
            args["ngram_size"], torch.tensor([row["ids"][: row["prompt"]]])
        ),
        lambda vocab, row: {"ngram_size": draw.choice([1, 2, 2, 3, 3, 4, 7])},
        alphabet=2,
    ),
    "sequence_bias": of_row(sequence_bias, biases, alphabet=5),
    "no_bad_words": of_row(
        lambda args, row: rules.NoBadWordsLogitsProcessor(args["bad_words_ids"], args["eos"]),
        lambda vocab, row: {"bad_words_ids": list(sequences(vocab, row)), "eos": some(5)},
        alphabet=5,
    ),
    "prefix_constrained": of_row(
        lambda args, row: rules.PrefixConstrainedLogitsProcessor(lambda batch, ids: args["allowed"], 1),
        lambda vocab, row: {"allowed": some(vocab, 4)},
    ),
    "forced_bos": of_row(
        lambda args, row: rules.ForcedBOSTokenLogitsProcessor(**args),
        lambda vocab, row: {"bos_token_id": draw.randrange(vocab)},
        prompt=lambda: draw.choice([1, 1, 1, 2]),
        new=lambda: draw.choice([0, 0, 0, 1]),
    ),
    "forced_eos": of_row(
        lambda args, row: rules.ForcedEOSTokenLogitsProcessor(**args),
        lambda vocab, row: {"max_length": len(row["ids"]) + draw.choice([0, 1, 1, 2]), "eos_token_id": some(vocab)},
    ),
    "inf_nan_remove": (any_scores, None, None),
    "exponential_decay": of_row(
        lambda args, row: rules.ExponentialDecayLengthPenalty(
            (args["start"], args["factor"]), args["eos"], row["prompt"]
        ),
        lambda vocab, row: {
            "start": len(row["ids"]) - row["prompt"] - draw.randint(-1, 4),
            "factor": draw.choice([1.01, 1.5, 2.0, 1.0, 0.5, 0.0, -1.5, 10.0]),
            "eos": some(vocab),
        },
    ),
    "suppress_tokens": of_row(
        lambda args, row: rules.SuppressTokensLogitsProcessor(args["ids"]),
        lambda vocab, row: {"ids": some(vocab, 5, 0.2)},
    ),
    "suppress_tokens_at_begin": of_row(
        begin,
        lambda vocab, row: {"ids": some(vocab, 5, 0.2), "forced_bos": draw.random() < 0.5},
        prompt=lambda: draw.choice([1, 1, 2, 3]),
        new=lambda: draw.choice([0, 0, 1, 1, 2]),
    ),
    "logit_normalization": filtered(lambda args: rules.LogitNormalization(), lambda vocab: {}),
    "left_hash": green_list("lefthash"),
    "self_hash": green_list("selfhash"),
}

KEEP = {"min_tokens_to_keep": 1}
ODD = [[1.0, math.nan, 0.0, -1.0, 2.0], [1.0, INF, 0.0, -INF, 2.0], [-INF] * 5]

# What chance does not come by; all after the ids 0, 1 of which the first is the prompt.
EDGES = {
    "top_k": [({"top_k": 2, **KEEP}, row) for row in ODD],
    "top_p": [({"top_p": 0.5, **KEEP}, row) for row in ODD],
    "min_p": [({"min_p": 0.5, **KEEP}, row) for row in ODD],
    "typical": [({"mass": 0.5, **KEEP}, row) for row in ODD],
    "epsilon": [({"epsilon": 0.3, **KEEP}, row) for row in ODD],
    "logit_normalization": [({}, row) for row in ODD],
    "temperature": [({"temperature": 0.5}, row) for row in ODD],
    "repetition_penalty": [({"penalty": 2.0}, row) for row in ODD],
    "top_h": [({"top_h": 0.4}, [0.0, -200.0, -INF, -300.0])],
    "exponential_decay": [
        *(({"start": 0, "factor": factor, "eos": [1]}, row) for factor in [0.5, 2.0] for row in ODD),
        ({"start": 0, "factor": 2.0, "eos": [1, 1]}, [0.0, 1.0, 3.0]),
    ],
    "sequence_bias": [({"sequence_bias": [[[0], 1.0], [[1, 0], -2.5], [[0], 3.0]]}, [0.5, 0.5])],
    "no_bad_words": [({"bad_words_ids": [[2]], "eos": [2]}, [0.5, 1.0, 2.0])],
}


def edges(name, make):
    for args, scores in EDGES.get(name, []):
        row = {"ids": [0, 1], "prompt": 1}
        after = run(make(args, row), row["ids"], scores)
        yield {**row, "args": args, "scores": [written(score) for score in scores], **difference(scores, after)[0]}


def cases(name, one, clear, make, count=CASES):
    found = list(edges(name, make))
    count += len(found)
    while len(found) < count:
        row, scores, args, rule = one()
        try:
            after = run(rule, row["ids"], scores)
        except (IndexError, ValueError):
            continue  # nothing that could be compared
        result, changed = difference(scores, after)
        if clear is not None and not clear(scores, args, after):
            continue
        if not changed and draw.random() < 0.7:
            continue
        found.append({**row, "args": args, "scores": [written(score) for score in scores], **result})
    return found


def synth_id():
    """One row over several calls. Where the sums of f32 lose too much, the case is left out."""
    key = lambda: draw.choice([draw.randrange(1000), draw.randrange(-(2**62), 2**62)])
    args = {
        "ngram_len": draw.randint(2, 5),
        "keys": [key() for _ in range(draw.randint(1, 6))],
        "sampling_table_size": draw.choice([1, 2, 64, 1000, 65536]),
        "sampling_table_seed": draw.choice([0, 0, 42, 2**32 + 1, 2**64 - 1]),
        "context_history_size": draw.choice([1, 2, 3, 1024]),
        "skip_first_ngram_calls": draw.random() < 0.3,
        "debug_mode": draw.random() < 0.15,
    }
    vocab = draw.randint(6, 12)
    row = random_ids(vocab, alphabet=draw.choice([1, 2, 3, vocab]), prompt=draw.randint(1, 3), new=draw.randint(3, 6))
    make = lambda: rules.SynthIDTextWatermarkLogitsProcessor(**args, device="cpu")
    single, double = make(), make()
    calls = []
    for length in range(row["prompt"], len(row["ids"]) + 1):
        scores = random_scores(vocab, ("plain", "ties"), 0.3)
        ids = row["ids"][:length]
        after = run(single, ids, scores)
        control = double(torch.tensor([ids]), tensor(scores, torch.float64))[0].tolist()
        for got, expected in zip(after, control):
            if max(got, expected) > -1e30 and abs(got - expected) > 2e-5 * max(1, abs(expected)):
                return None
        result, _ = difference(scores, after)
        calls.append({"scores": [written(score) for score in scores], **result})
    return {**row, "args": args, "calls": calls}


def detection():
    scheme = draw.choice(["lefthash", "selfhash"])
    vocab = draw.randint(40, 60)
    width = draw.randint(1, 4)
    args = {
        "greenlist_ratio": draw.choice([0.25, 0.5, 0.1, 0.9]),
        "bias": 2.0,
        "hashing_key": draw.choice(KEYS),
        "seeding_scheme": scheme,
        "context_width": width,
    }
    ids = [draw.randrange(draw.choice([3, vocab])) for _ in range(draw.randint(width + 2, 30))]
    bos = draw.choice([ids[0], 1, None])
    unique = draw.random() < 0.5
    model = SimpleNamespace(bos_token_id=-1 if bos is None else bos, is_encoder_decoder=False, vocab_size=vocab)
    detect = WatermarkDetector(model, "cpu", args, ignore_repeated_ngrams=unique)
    found = detect(torch.tensor([ids]), return_dict=True)
    return {
        "ids": ids,
        "vocab": vocab,
        "args": args,
        "bos": bos,
        "unique": unique,
        "scored": int(found.num_tokens_scored[0]),
        "green": int(found.num_green_tokens[0]),
        "z_score": float(found.z_score[0]),
        "p_value": float(found.p_value[0]),
    }


def several(one, count=CASES):
    return list(itertools.islice(filter(None, iter(one, 0)), count))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    recorded = {name: cases(name, *rule) for name, rule in RULES.items()}
    compact = lambda value: json.dumps(value, separators=(",", ":"), allow_nan=False)
    lines = lambda items: "[\n" + ",\n".join(map(compact, items)) + "\n]"
    with open(out, "w", encoding="utf-8") as file:
        file.write(f'{{"transformers":{compact(transformers.__version__)},\n"rules":{{\n')
        file.write(",\n".join(f"{compact(name)}:{lines(items)}" for name, items in recorded.items()))
        file.write(f'\n}},\n"synth_id":{lines(several(synth_id))},\n"detector":{lines(several(detection))}}}\n')


main()
