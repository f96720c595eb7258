#!/usr/bin/env python3
"""Hostile models, files and requests, tried on the built program.

    python fuzz/hostile.py --program target/debug/unspool [--only WORD] [--list] [--verbose]

Every case is a folder of its own with a small model that was changed, and a command line. A case passes when the program
ends by itself within ten seconds, with exit code 0, 1 or 2; without a panic, an abort or a signal; with at most 4 GiB of
address space beyond what an honest run takes; with one line `error: ...` when the code is not 0; and when no file appeared
or changed outside the folder for its output. Needs the Python package `onnx` (which brings numpy).
"""
import argparse
import copy
import json
import os
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import numpy
import onnx

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parent / "conformance" / "models"
SECONDS = 10
MEMORY = 6 << 30

CASES = []


class Case:
    """What a case is made of: `folder` is its own, `model` a copy of a small model in it, `out` where output may go."""

    def __init__(self, name, make, stdin=b""):
        self.name, self.make, self.stdin = name, make, stdin


def case(name, make, stdin=b""):
    CASES.append(Case(name, make, stdin))


# --- models to change ---------------------------------------------------------------------------------------------------


def copy_model(folder, name="llama", graph=True):
    """A copy of a small model; without its graph it is a safetensors checkpoint."""
    to = folder / "model"
    shutil.copytree(MODELS / name, to)
    (to / "golden.json").unlink(missing_ok=True)
    if not graph:
        shutil.rmtree(to / "onnx")
    elif name == "llama":
        (to / "model.safetensors").unlink(missing_ok=True)
    return to


def edit_json(path, edit):
    value = json.loads(path.read_text()) if path.exists() else {}
    changed = edit(value)
    path.write_text(json.dumps(value if changed is None else changed))


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def write_safetensors(path, header, data, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


GGUF_TYPES = {"u32": 4, "i32": 5, "f32": 6, "bool": 7, "str": 8, "u64": 10}


def gguf_string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(kind, value):
    if kind == "str":
        return gguf_string(value)
    if kind.startswith("["):
        inner = kind[1:]
        return struct.pack("<IQ", GGUF_TYPES[inner], len(value)) + b"".join(gguf_value(inner, one) for one in value)
    return struct.pack({"u32": "<I", "i32": "<i", "f32": "<f", "bool": "<?", "u64": "<Q"}[kind], value)


def gguf_parts():
    """The entries and tensors of a small llama as GGUF has them."""
    header, data = read_safetensors(MODELS / "llama" / "model.safetensors")
    config = json.loads((MODELS / "llama" / "config.json").read_text())
    vocabulary = json.loads((MODELS / "llama" / "tokenizer.json").read_text())["model"]
    ids = vocabulary["vocab"]
    tokens = [f"<unused{index}>" for index in range(config["vocab_size"])]
    for token, index in ids.items() if isinstance(ids, dict) else []:
        tokens[index] = token
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in vocabulary.get("merges", [])]
    entries = [
        ("general.architecture", "str", "llama"),
        ("llama.block_count", "u32", config["num_hidden_layers"]),
        ("llama.context_length", "u32", config["max_position_embeddings"]),
        ("llama.embedding_length", "u32", config["hidden_size"]),
        ("llama.feed_forward_length", "u32", config["intermediate_size"]),
        ("llama.attention.head_count", "u32", config["num_attention_heads"]),
        ("llama.attention.head_count_kv", "u32", config["num_key_value_heads"]),
        ("llama.attention.key_length", "u32", config["head_dim"]),
        ("llama.attention.value_length", "u32", config["head_dim"]),
        ("llama.attention.layer_norm_rms_epsilon", "f32", config["rms_norm_eps"]),
        ("llama.rope.freq_base", "f32", config["rope_theta"]),
        ("llama.rope.dimension_count", "u32", config["head_dim"]),
        ("llama.vocab_size", "u32", config["vocab_size"]),
        ("tokenizer.ggml.model", "str", "gpt2"),
        ("tokenizer.ggml.pre", "str", "gpt-2"),
        ("tokenizer.ggml.tokens", "[str", tokens),
        ("tokenizer.ggml.token_type", "[i32", [3 if index < 3 else 1 for index in range(len(tokens))]),
        ("tokenizer.ggml.merges", "[str", merges),
        ("tokenizer.ggml.bos_token_id", "u32", 1),
        ("tokenizer.ggml.eos_token_id", "u32", 2),
    ]
    names = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    parts = {
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    tensors = []
    for name, about in header.items():
        if name == "__metadata__":
            continue
        start, end = about["data_offsets"]
        short = names.get(name)
        if short is None:
            layer, part = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
            short = f"blk.{layer}.{parts[part]}.weight"
        tensors.append((short, list(reversed(about["shape"])), 0, data[start:end]))
    return entries, tensors


def write_gguf(path, entries, tensors, counts=None, version=3):
    n_tensors, n_entries = counts or (len(tensors), len(entries))
    out = b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_entries)
    for key, kind, value in entries:
        number = 9 if kind.startswith("[") else GGUF_TYPES[kind]
        out += gguf_string(key) + struct.pack("<I", number) + gguf_value(kind, value)
    offset, body = 0, b""
    for tensor in tensors:
        name, shape, kind, data = tensor[:4]
        at = tensor[4] if len(tensor) > 4 else offset
        out += gguf_string(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", size) for size in shape)
        out += struct.pack("<IQ", kind, at)
        body += data + bytes(-len(data) % 32)
        offset = len(body)
    path.write_bytes(out + bytes(-len(out) % 32) + body)


def edit_graph(model, edit, name="onnx/model.onnx"):
    path = model / name
    graph = onnx.load(str(path))
    changed = edit(graph)
    (changed or graph).SerializeToString()
    path.write_bytes((changed or graph).SerializeToString())


GENERATE = ["--max-new-tokens", "2"]


def ids(model, *more):
    return ["generate", str(model), "--ids", "[[5,6,7]]", *GENERATE, *more]


def text(model, *more):
    return ["generate", str(model), "abc", *GENERATE, *more]


# --- bytes -------------------------------------------------------------------------------------------------------------


def damaged(data, seed):
    """`data` cut, with bytes changed, repeated or taken out."""
    rng = random.Random(seed)
    data = bytearray(data)
    way = seed % 5
    if way == 0:
        return bytes(data[: rng.randrange(len(data))])
    if way == 1:
        for _ in range(rng.randrange(1, 40)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)
    if way == 2:
        at = rng.randrange(len(data))
        del data[at : at + rng.randrange(1, 64)]
        return bytes(data)
    if way == 3:
        at = rng.randrange(len(data))
        return bytes(data[:at]) + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 64))) + bytes(data[at:])
    # The beginning holds the counts and lengths.
    for _ in range(rng.randrange(1, 6)):
        data[rng.randrange(min(len(data), 256))] = rng.choice([0, 0xFF, 0x7F, 0x80, 1])
    return bytes(data)


def damaged_bytes():
    def graph(seed):
        def make(folder):
            model = copy_model(folder, ["llama", "gpt2", "llama-genai", "bloom"][seed % 4])
            path = model / "onnx" / "model.onnx"
            path.write_bytes(damaged(path.read_bytes(), seed))
            return ids(model, "--engine", ["rten", "ort"][seed // 4 % 2])

        return make

    def checkpoint(seed):
        def make(folder):
            model = copy_model(folder, graph=False)
            path = model / "model.safetensors"
            path.write_bytes(damaged(path.read_bytes(), seed))
            return ids(model)

        return make

    def gguf(seed):
        def make(folder):
            path = folder / "model.gguf"
            write_gguf(path, *gguf_parts())
            path.write_bytes(damaged(path.read_bytes(), seed))
            return ids(path)

        return make

    def json_file(name, seed):
        def make(folder):
            model = copy_model(folder)
            path = model / name
            path.write_bytes(damaged(path.read_bytes(), seed))
            return text(model)

        return make

    for seed in range(40):
        case(f"bytes-graph-{seed}", graph(seed))
    for seed in range(20):
        case(f"bytes-safetensors-{seed}", checkpoint(seed))
    for seed in range(30):
        case(f"bytes-gguf-{seed}", gguf(seed))
    for name in ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]:
        for seed in range(8):
            case(f"bytes-{name}-{seed}", json_file(name, seed))


# --- JSON files of a model ----------------------------------------------------------------------------------------------

HUGE = [0, -1, 1, 2**31, 2**53, 2**63, 2**64, 10**30, 1.5, 1e308, "x", None, [], {}, True, [1] * 1000, "9" * 400]


def json_values():
    def field(file, key, value, graph):
        def make(folder):
            model = copy_model(folder, graph=graph)
            edit_json(model / file, lambda settings: settings.__setitem__(key, value))
            return text(model) if file.startswith("tokenizer") or file.startswith("generation") else ids(model)

        return make

    for number, key in enumerate(
        ["hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
         "intermediate_size", "max_position_embeddings", "rope_theta", "rms_norm_eps", "rope_scaling", "architectures",
         "model_type", "tie_word_embeddings"]
    ):
        for value in HUGE[number % 3 :: 3]:
            case(f"config-checkpoint-{key}-{json.dumps(value)[:24]}", field("config.json", key, value, False))
    for key in ["num_attention_heads", "head_dim", "vocab_size", "max_position_embeddings", "num_hidden_layers"]:
        for value in HUGE[::4]:
            case(f"config-graph-{key}-{json.dumps(value)[:24]}", field("config.json", key, value, True))
    for number, key in enumerate(
        ["max_new_tokens", "max_length", "eos_token_id", "pad_token_id", "bos_token_id", "temperature", "top_k", "num_beams",
         "num_return_sequences", "stop_strings", "bad_words_ids", "sequence_bias", "watermarking_config", "guidance_scale",
         "penalty_alpha", "prompt_lookup_num_tokens", "suppress_tokens", "cache_implementation"]
    ):
        for value in HUGE[number % 4 :: 4]:
            case(f"generation-{key}-{json.dumps(value)[:24]}", field("generation_config.json", key, value, True))
    for number, key in enumerate(["added_tokens_decoder", "bos_token", "eos_token", "chat_template", "model_max_length", "add_bos_token", "tokenizer_class", "extra_special_tokens"]):
        for value in HUGE[number % 4 :: 4]:
            case(f"tokenizer_config-{key}-{json.dumps(value)[:24]}", field("tokenizer_config.json", key, value, True))

    def whole(file, content):
        def make(folder):
            model = copy_model(folder)
            (model / file).write_bytes(content)
            return text(model)

        return make

    for file in ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"]:
        for name, content in [
            ("empty", b""), ("null", b"null"), ("list", b"[]"), ("deep", b"[" * 200_000), ("nan", b'{"x": NaN}'),
            ("utf16", "{}".encode("utf-16")), ("pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
            ("html", b"<!doctype html><html>log in</html>"), ("zeros", bytes(1 << 20)),
        ]:
            case(f"whole-{file}-{name}", whole(file, content))

    def tokenizer(edit):
        def make(folder):
            model = copy_model(folder)
            edit_json(model / "tokenizer.json", edit)
            return text(model)

        return make

    def bomb(value):
        value["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}] * 12}

    def prepend(value):
        value["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "a" * (1 << 20)}] * 64}

    def backtracks(value):
        value["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "(a|a|aa)+$|((a+)+)+b"}, "behavior": "Isolated", "invert": False}

    def bad_regex(value):
        value["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "(("}, "behavior": "Isolated", "invert": False}

    def huge_regex(value):
        value["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "(a{1000}){1000}{1000}"}, "behavior": "Isolated", "invert": False}

    def far_token(value):
        value["added_tokens"].append({"id": 2**32 - 1, "content": "<far>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True})

    def far_vocabulary(value):
        value["model"]["vocab"]["zz"] = 2**32 - 2

    def no_vocabulary(value):
        value["model"]["vocab"] = {}

    def wrong_merges(value):
        value["model"]["merges"] = [["q" * 9, "z" * 9]]

    def template_tokens(value):
        value["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}] * 1000, "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [2**32 - 1] * 1000, "tokens": ["<s>"] * 1000}}}

    def nested(value):
        inner = {"type": "NFC"}
        for _ in range(60):
            inner = {"type": "Sequence", "normalizers": [inner, inner]} if _ < 20 else {"type": "Sequence", "normalizers": [inner]}
        value["normalizer"] = inner

    for edit in [bomb, prepend, backtracks, bad_regex, huge_regex, far_token, far_vocabulary, no_vocabulary, wrong_merges, template_tokens]:
        case(f"tokenizer-{edit.__name__}", tokenizer(edit))


# --- chat templates -----------------------------------------------------------------------------------------------------


def templates():
    hostile = {
        "loop": "{% for i in range(10**12) %}x{% endfor %}",
        "nested-loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% for k in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
        "string": "{{ 'a' * 10**12 }}",
        "doubling": "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
        "list": "{{ [0] * 10**12 }}",
        "list-doubling": "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x|length }}",
        "recursion": "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
        "include": "{% include '/etc/passwd' %}",
        "extends": "{% extends '../../x' %}",
        "import": "{% import 'x' as y %}",
        "attributes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "format": "{{ '%999999999999d' % 1 }}",
        "format-method": "{{ '{:>99999999999}'.format(1) }}",
        "center": "{{ 'a'.center(10**12) }}",
        "ljust": "{{ 'a'.ljust(10**12) }}{{ 'a'.zfill(10**12) }}",
        "replace": "{% set ns = namespace(x='a') %}{% for i in range(20) %}{% set ns.x = ns.x.replace('a', 'a' * 1000) %}{% endfor %}{{ ns.x }}",
        "join": "{{ range(100000)|join('x' * 1000000) }}",
        "power": "{{ 10 ** 10 ** 10 }}",
        "overflow": "{{ 9223372036854775807 + 1 }}{{ -9223372036854775808 // -1 }}{{ 1 // 0 }}",
        "modulo": "{{ 1 % 0 }}",
        "slice": "{{ 'abc'[::0] }}{{ 'abc'[9999999999999999999:] }}",
        "indent": "{{ 'a\nb'|indent(10**12) }}",
        "tojson": "{{ messages|tojson(indent=10**12) }}",
        "batch": "{{ range(10)|batch(10**12, 'x')|list }}",
        "syntax": "{% if %}",
        "unclosed": "{% for x in messages %}",
        "big": "{# " + "x" * (2 << 20) + " #}",
        "deep": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "deep-if": "{% if 1 %}" * 2000 + "{% endif %}" * 2000,
        "deep-lists": "{{ " + "[" * 5000 + "]" * 5000 + " }}",
        "many-filters": "{{ 'a'" + "|upper" * 20000 + " }}",
        "raise": "{{ raise_exception('no') }}",
        "raise-many": "{{ raise_exception('no\n' * 100000) }}",
        "strftime": "{{ strftime_now('%' * 100000) }}",
        "strftime-wide": "{{ strftime_now('%999999999Y') }}",
        "nothing": "",
        "control": "{{ '\x1b[2J\x00\x07' }}",
        "self-list": "{% set x = [] %}{% set _ = x.append(x) %}{{ x }}",
        "wordwrap": "{{ ('a ' * 100000)|wordwrap(1) }}",
        "sort": "{{ range(100000)|sort(reverse=true)|first }}",
        "dict": "{{ dict(a=1, **{'b': 2}) }}",
        "split": "{{ ('a' * 1000000).split('')|length }}",
        "urlize": "{{ ('http://a ' * 10000)|urlize }}",
        "generator": "{{ (messages|map('x') for y in z) }}",
    }

    def make(template):
        def inner(folder):
            model = copy_model(folder)
            (model / "chat_template.jinja").write_text(template)
            return text(model, "--chat")

        return inner

    for name, template in hostile.items():
        case(f"template-{name}", make(template))


# --- safetensors and GGUF ----------------------------------------------------------------------------------------------


def checkpoints():
    def safetensors(edit):
        def make(folder):
            model = copy_model(folder, graph=False)
            path = model / "model.safetensors"
            header, data = read_safetensors(path)
            result = edit(header, data, model)
            if result is not None:
                write_safetensors(path, *result)
            return ids(model)

        return make

    def first(header):
        return next(name for name in header if name != "__metadata__")

    def set_about(**about):
        def edit(header, data, _):
            header[first(header)].update(about)
            return header, data

        return edit

    edits = {
        "overlap": lambda h, d, m: ([h[name].__setitem__("data_offsets", [0, 4]) for name in h if name != "__metadata__"], (h, d))[1],
        "beyond": set_about(data_offsets=[0, 2**62]),
        "backwards": set_about(data_offsets=[100, 0]),
        "negative": set_about(data_offsets=[-4, 0]),
        "shape-huge": set_about(shape=[2**32, 2**32]),
        "shape-overflow": set_about(shape=[2**63, 4]),
        "shape-zero": set_about(shape=[0, 64]),
        "shape-deep": set_about(shape=[1] * 10000),
        "shape-negative": set_about(shape=[-1, 64]),
        "dtype-unknown": set_about(dtype="Q9"),
        "dtype-other": set_about(dtype="I64"),
        "dtype-f8": set_about(dtype="F8_E4M3"),
        "length-huge": lambda h, d, m: (h, d, 2**63),
        "length-beyond": lambda h, d, m: (h, d, 10**9),
        "length-zero": lambda h, d, m: (h, d, 0),
        "header-list": lambda h, d, m: (b"[]", d),
        "header-deep": lambda h, d, m: (b"[" * 100000, d),
        "header-many": lambda h, d, m: ({f"x{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(200000)}, d),
        "name-long": lambda h, d, m: ({**h, "x" * (4 << 20): {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}, d),
        "name-control": lambda h, d, m: ({**h, "model.\x1b[2J\n.weight": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}, d),
        "nothing": lambda h, d, m: ({}, b""),
        "nan": lambda h, d, m: (h, struct.pack("<f", float("nan")) * (len(d) // 4)),
        "infinite": lambda h, d, m: (h, struct.pack("<f", float("inf")) * (len(d) // 4)),
        "cut": lambda h, d, m: (h, d[: len(d) // 2]),
    }
    for name, edit in edits.items():
        case(f"safetensors-{name}", safetensors(edit))

    def index(weight_map, rename=None):
        def edit(header, data, model):
            name = rename or "model-00001-of-00001.safetensors"
            (model / "model.safetensors").rename(model / name) if rename != "" else (model / "model.safetensors").unlink()
            value = weight_map(header) if callable(weight_map) else weight_map
            (model / "model.safetensors.index.json").write_text(json.dumps(value) if not isinstance(value, str) else value)

        return edit

    one = "model-00001-of-00001.safetensors"
    for name, weight_map in {
        "climbs": lambda h: {"weight_map": {key: "../outside.safetensors" for key in h}},
        "absolute": lambda h: {"weight_map": {key: "/etc/passwd" for key in h}},
        "device": lambda h: {"weight_map": {key: "/dev/zero" for key in h}},
        "missing": lambda h: {"weight_map": {key: "nothing.safetensors" for key in h}},
        "list": [],
        "map-list": {"weight_map": []},
        "values": {"weight_map": {"a": 1}},
        "broken": "{",
        "many": lambda h: {"weight_map": {f"x{i}": f"y{i}.safetensors" for i in range(50000)}},
        "itself": lambda h: {"weight_map": {key: "model.safetensors.index.json" for key in h}},
        "empty": {"weight_map": {}},
        "control": lambda h: {"weight_map": {key: "a\x00b\n" for key in h}},
        "folder": lambda h: {"weight_map": {key: "." for key in h}},
        "part": lambda h: {"weight_map": {first(h): one}},
    }.items():
        case(f"index-{name}", safetensors(index(weight_map)))

    def gguf(edit):
        def make(folder):
            entries, tensors = gguf_parts()
            path = folder / "model.gguf"
            more = edit(entries, tensors) or {}
            write_gguf(path, entries, tensors, **more)
            return text(path)

        return make

    def put(key, kind, value):
        def edit(entries, tensors):
            entries[:] = [entry for entry in entries if entry[0] != key] + [(key, kind, value)]

        return edit

    def drop(key):
        def edit(entries, tensors):
            entries[:] = [entry for entry in entries if entry[0] != key]

        return edit

    def first_tensor(**about):
        def edit(entries, tensors):
            name, shape, kind, data = tensors[0]
            tensors[0] = (about.get("name", name), about.get("shape", shape), about.get("kind", kind), data, about.get("at", 0))

        return edit

    def tokens(function):
        def edit(entries, tensors):
            entries[:] = [(k, t, function(v)) if k == "tokenizer.ggml.tokens" else (k, t, v) for k, t, v in entries]

        return edit

    edits = {
        "plain": lambda e, t: None,
        "counts-tensors": lambda e, t: {"counts": (2**60, len(e))},
        "counts-entries": lambda e, t: {"counts": (len(t), 2**60)},
        "version-0": lambda e, t: {"version": 0},
        "version-huge": lambda e, t: {"version": 2**32 - 1},
        "architecture-unknown": put("general.architecture", "str", "nothing"),
        "architecture-gemma": put("general.architecture", "str", "gemma3"),
        "architecture-bert": put("general.architecture", "str", "bert"),
        "architecture-number": put("general.architecture", "u32", 3),
        "architecture-long": put("general.architecture", "str", "x" * (1 << 20)),
        "architecture-control": put("general.architecture", "str", "\x1b[2J\nllama"),
        "layers-huge": put("llama.block_count", "u32", 2**32 - 1),
        "layers-zero": put("llama.block_count", "u32", 0),
        "heads-zero": put("llama.attention.head_count", "u32", 0),
        "heads-kv-zero": put("llama.attention.head_count_kv", "u32", 0),
        "heads-odd": put("llama.attention.head_count_kv", "u32", 3),
        "width-huge": put("llama.embedding_length", "u32", 2**32 - 1),
        "key-length-odd": put("llama.attention.key_length", "u32", 7),
        "context-zero": put("llama.context_length", "u32", 0),
        "context-huge": put("llama.context_length", "u32", 2**32 - 1),
        "rope-nan": put("llama.rope.freq_base", "f32", float("nan")),
        "rope-zero": put("llama.rope.freq_base", "f32", 0.0),
        "epsilon-negative": put("llama.attention.layer_norm_rms_epsilon", "f32", -1.0),
        "alignment-0": put("general.alignment", "u32", 0),
        "alignment-odd": put("general.alignment", "u32", 7),
        "alignment-huge": put("general.alignment", "u32", 2**31),
        "no-tokens": drop("tokenizer.ggml.tokens"),
        "no-merges": drop("tokenizer.ggml.merges"),
        "no-types": drop("tokenizer.ggml.token_type"),
        "few-types": put("tokenizer.ggml.token_type", "[i32", [1]),
        "bos-far": put("tokenizer.ggml.bos_token_id", "u32", 2**32 - 1),
        "eos-far": put("tokenizer.ggml.eos_token_id", "u32", 10**6),
        "model-unknown": put("tokenizer.ggml.model", "str", "nothing"),
        "model-bert": put("tokenizer.ggml.model", "str", "bert"),
        "model-t5": put("tokenizer.ggml.model", "str", "t5"),
        "model-spm": put("tokenizer.ggml.model", "str", "llama"),
        "pre-unknown": put("tokenizer.ggml.pre", "str", "nothing"),
        "tokens-equal": tokens(lambda all: ["a"] * len(all)),
        "tokens-empty": tokens(lambda all: [""] * len(all)),
        "tokens-few": tokens(lambda all: all[:3]),
        "tokens-many": tokens(lambda all: all + [f"x{i}" for i in range(100000)]),
        "tokens-long": tokens(lambda all: ["x" * 100000 + str(i) for i, _ in enumerate(all)]),
        "tokens-bytes": tokens(lambda all: [b"\xff\xfe" + str(i).encode() for i, _ in enumerate(all)]),
        "merges-wrong": put("tokenizer.ggml.merges", "[str", ["", " ", "a", "a b c", "  "] * 100),
        "template": put("tokenizer.chat_template", "str", "{% for i in range(10**9) %}{% endfor %}"),
        "tensor-twice": lambda e, t: t.append(t[0]),
        "tensor-missing": lambda e, t: t.pop() and None,
        "tensor-shape": first_tensor(shape=[2**40, 2**40]),
        "tensor-shape-0": first_tensor(shape=[0, 0]),
        "tensor-dims": first_tensor(shape=[1] * 4000),
        "tensor-kind": first_tensor(kind=99),
        "tensor-kind-iq": first_tensor(kind=16),
        "tensor-offset": first_tensor(at=2**63),
        "tensor-offset-odd": first_tensor(at=3),
        "tensor-name": first_tensor(name="x" * (1 << 20)),
        "tensor-name-empty": first_tensor(name=""),
    }
    for name, edit in edits.items():
        case(f"gguf-{name}", gguf(edit))


# --- graphs ------------------------------------------------------------------------------------------------------------


def graphs():
    helper, T = onnx.helper, onnx.TensorProto

    def graph(edit, name="llama"):
        def make(folder, engine):
            model = copy_model(folder, name)
            (folder / "outside.bin").write_bytes(bytes(1 << 16))
            edit_graph(model, edit)
            return ids(model, "--engine", engine)

        return make

    def each(name, edit, base="llama"):
        make = graph(edit, base)
        for engine in ["rten", "ort"]:
            case(f"graph-{name}-{engine}", lambda folder, make=make, engine=engine: make(folder, engine))

    def external(location, **more):
        def edit(model):
            tensor = model.graph.initializer[0]
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
            tensor.data_location = T.EXTERNAL
            del tensor.external_data[:]
            for key, value in {"location": location, **more}.items():
                entry = tensor.external_data.add()
                entry.key, entry.value = key, str(value)

        return edit

    each("external-climbs", external("../../outside.bin"))
    each("external-absolute", external("/etc/passwd"))
    each("external-device", external("/dev/zero"))
    each("external-missing", external("nothing.bin"))
    each("external-empty", external(""))
    each("external-folder", external("."))
    each("external-itself", external("model.onnx", offset=0, length=2**62))
    each("external-offset", external("model.onnx", offset=2**63))
    each("external-negative", external("model.onnx", offset=-1, length=-1))
    each("external-long", external("x" * 100000))
    each("external-control", external("a\x00b"))

    def dims(value):
        def edit(model):
            del model.graph.initializer[0].dims[:]
            model.graph.initializer[0].dims.extend(value)

        return edit

    each("dims-huge", dims([2**40, 2**40]))
    each("dims-negative", dims([-1, 4]))
    each("dims-zero", dims([0]))
    each("dims-many", dims([1] * 5000))

    def prefix(nodes, initializers=()):
        """Nodes that run before all others."""

        def edit(model):
            rest = list(model.graph.node)
            del model.graph.node[:]
            model.graph.node.extend(list(nodes) + rest)
            model.graph.initializer.extend(initializers)
            # Their last result is an output, so that no engine leaves them out.
            model.graph.output.append(helper.make_tensor_value_info(nodes[-1].output[0], T.FLOAT, None))

        return edit

    def shape(name, values):
        return helper.make_tensor(name, T.INT64, [len(values)], values)

    each("constant-of-terabytes", prefix([helper.make_node("ConstantOfShape", ["h_shape"], ["h_out"])], [shape("h_shape", [2**20, 2**20])]))
    each("constant-negative", prefix([helper.make_node("ConstantOfShape", ["h_shape"], ["h_out"])], [shape("h_shape", [-5, 5])]))
    each("expand", prefix([helper.make_node("Expand", ["h_one", "h_shape"], ["h_out"])], [helper.make_tensor("h_one", T.FLOAT, [1], [1.0]), shape("h_shape", [2**20, 2**20])]))
    each("tile", prefix([helper.make_node("Tile", ["h_one", "h_shape"], ["h_out"])], [helper.make_tensor("h_one", T.FLOAT, [1], [1.0]), shape("h_shape", [2**40])]))
    each("range", prefix([helper.make_node("Range", ["h_a", "h_b", "h_c"], ["h_mid"]), helper.make_node("Cast", ["h_mid"], ["h_out"], to=T.FLOAT)], [helper.make_tensor("h_a", T.INT64, [], [0]), helper.make_tensor("h_b", T.INT64, [], [2**50]), helper.make_tensor("h_c", T.INT64, [], [1])]))
    each("pad", prefix([helper.make_node("Pad", ["h_one", "h_shape"], ["h_out"])], [helper.make_tensor("h_one", T.FLOAT, [1], [1.0]), shape("h_shape", [2**40, 2**40])]))
    each("reshape", prefix([helper.make_node("Reshape", ["h_one", "h_shape"], ["h_out"])], [helper.make_tensor("h_one", T.FLOAT, [1], [1.0]), shape("h_shape", [2**40, -1, 0])]))
    each("onehot", prefix([helper.make_node("OneHot", ["h_i", "h_depth", "h_v"], ["h_out"])], [shape("h_i", [1]), helper.make_tensor("h_depth", T.INT64, [], [2**45]), helper.make_tensor("h_v", T.FLOAT, [2], [0.0, 1.0])]))
    each("split-zero", prefix([helper.make_node("Split", ["h_one"], ["h_out"], num_outputs=1000000)], [helper.make_tensor("h_one", T.FLOAT, [1], [1.0])]))
    each("unknown-operator", prefix([helper.make_node("NoSuchOperator", ["h_one"], ["h_out"])], [helper.make_tensor("h_one", T.FLOAT, [1], [1.0])]))
    each("unknown-domain", prefix([helper.make_node("Add", ["h_one", "h_one"], ["h_out"], domain="nobody")], [helper.make_tensor("h_one", T.FLOAT, [1], [1.0])]))
    each("cycle", prefix([helper.make_node("Add", ["h_b", "h_b"], ["h_a"]), helper.make_node("Add", ["h_a", "h_a"], ["h_b"])]))
    each("missing-input", prefix([helper.make_node("Add", ["h_nobody", "h_nobody"], ["h_out"])]))

    def many_adds(model):
        doubling = [helper.make_tensor("h_0", T.FLOAT, [1], [1.0])]
        nodes = [helper.make_node("Concat", [f"h_{i}", f"h_{i}"], [f"h_{i + 1}"], axis=0) for i in range(45)]
        return prefix(nodes, doubling)(model)

    each("doubling", many_adds)

    def endless(model):
        body = helper.make_graph(
            [helper.make_node("Identity", ["keep_in"], ["keep_out"]), helper.make_node("Identity", ["x_in"], ["x_out"])],
            "body",
            [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("keep_in", T.BOOL, []), helper.make_tensor_value_info("x_in", T.FLOAT, [1])],
            [helper.make_tensor_value_info("keep_out", T.BOOL, []), helper.make_tensor_value_info("x_out", T.FLOAT, [1])],
        )
        node = helper.make_node("Loop", ["h_trips", "h_true", "h_one"], ["h_out"], body=body)
        return prefix([node], [helper.make_tensor("h_trips", T.INT64, [], [2**62]), helper.make_tensor("h_true", T.BOOL, [], [True]), helper.make_tensor("h_one", T.FLOAT, [1], [1.0])])(model)

    each("endless-loop", endless)

    def many_nodes(model):
        nodes = [helper.make_node("Identity", ["h_one" if i == 0 else f"h_{i - 1}"], [f"h_{i}"]) for i in range(100000)]
        return prefix(nodes, [helper.make_tensor("h_one", T.FLOAT, [1], [1.0])])(model)

    each("100000-nodes", many_nodes)

    def chain(model):
        nodes = [helper.make_node("Identity", ["h_one" if i == 0 else f"h_{i - 1}"], [f"h_{i}"]) for i in range(32000)]
        return prefix(nodes, [helper.make_tensor("h_one", T.FLOAT, [1], [1.0])])(model)

    each("32000-nodes", chain)

    def deep_graphs(model):
        inner = helper.make_graph([helper.make_node("Identity", ["h_one"], ["d0"])], "g", [], [helper.make_tensor_value_info("d0", T.FLOAT, [1])])
        for depth in range(1, 28):
            node = helper.make_node("If", ["h_true"], [f"d{depth}"], then_branch=inner, else_branch=inner if depth < 8 else helper.make_graph([helper.make_node("Identity", ["h_one"], [f"e{depth}"])], "g", [], [helper.make_tensor_value_info(f"e{depth}", T.FLOAT, [1])]))
            inner = helper.make_graph([node], "g", [], [helper.make_tensor_value_info(f"d{depth}", T.FLOAT, [1])])
        return prefix(list(inner.node), [helper.make_tensor("h_true", T.BOOL, [], [True]), helper.make_tensor("h_one", T.FLOAT, [1], [1.0])])(model)

    each("deep-branches", deep_graphs)

    def names(model, change):
        for value in list(model.graph.input) + list(model.graph.output):
            change(value)

    def no_inputs(model):
        del model.graph.input[:]

    def no_outputs(model):
        del model.graph.output[:]

    def no_logits(model):
        kept = [value for value in model.graph.output if value.name != "logits"]
        del model.graph.output[:]
        model.graph.output.extend(kept)

    def twice(model):
        model.graph.input.append(model.graph.input[0])

    def extra_input(model):
        model.graph.input.append(helper.make_tensor_value_info("something_else", T.FLOAT, [3, 3]))

    def wrong_type(model):
        for value in model.graph.input:
            value.type.tensor_type.elem_type = T.STRING

    def no_shapes(model):
        names(model, lambda value: value.type.tensor_type.ClearField("shape"))

    def huge_shapes(model):
        def change(value):
            for axis in value.type.tensor_type.shape.dim:
                axis.dim_value = 2**62

        names(model, change)

    def negative_shapes(model):
        def change(value):
            for axis in value.type.tensor_type.shape.dim:
                axis.dim_value = -7

        names(model, change)

    def one_layer_missing(model):
        kept = [value for value in model.graph.output if not value.name.startswith("present.1")]
        del model.graph.output[:]
        model.graph.output.extend(kept)

    def many_layers(model):
        for layer in range(2000):
            model.graph.input.append(helper.make_tensor_value_info(f"past_key_values.{layer}.key", T.FLOAT, ["b", 2, "p", 16]))

    def far_layer(model):
        model.graph.input.append(helper.make_tensor_value_info(f"past_key_values.{2**63}.key", T.FLOAT, ["b", 2, "p", 16]))

    def nan_weights(model):
        for tensor in model.graph.initializer:
            if tensor.data_type == T.FLOAT and tensor.raw_data:
                tensor.raw_data = struct.pack("<f", float("nan")) * (len(tensor.raw_data) // 4)

    def gather_far(model):
        for tensor in model.graph.initializer:
            if "embed" in tensor.name and tensor.data_type == T.FLOAT:
                values = onnx.numpy_helper.to_array(tensor)[:4]
                tensor.CopyFrom(onnx.numpy_helper.from_array(numpy.ascontiguousarray(values), tensor.name))

    for edit in [no_inputs, no_outputs, no_logits, twice, extra_input, wrong_type, no_shapes, huge_shapes, negative_shapes, one_layer_missing, many_layers, far_layer, nan_weights, gather_far]:
        each(edit.__name__, edit)

    def opset(model):
        model.opset_import[0].version = 2**31

    def no_opset(model):
        del model.opset_import[:]

    def ir(model):
        model.ir_version = 2**31

    for edit in [opset, no_opset, ir]:
        each(edit.__name__, edit)


# --- requests ----------------------------------------------------------------------------------------------------------


def requests():
    def plain(*arguments, model="llama"):
        return lambda folder: [argument.replace("MODEL", str(MODELS / model)).replace("FOLDER", str(folder)).replace("OUT", str(folder / "out")) for argument in arguments]

    for name, value in {
        "empty": "", "list": "[]", "lists": "[[]]", "far": "[[300]]", "negative": "[[-1]]", "huge": "[[18446744073709551616]]", "float": "[[1.5]]",
        "string": '[["a"]]', "null": "[[null]]", "deep": "[" * 10000, "object": "{}", "broken": "[[1,", "nan": "[[NaN]]", "many": json.dumps([[5] * 100000]),
        "rows": json.dumps([[5]] * 3000), "true": "[[true]]",
    }.items():
        case(f"ids-{name}", plain("generate", "MODEL", "--ids", value, *GENERATE))
    flags = {
        "max-new-tokens": ["0", "-1", "1e9", "4294967296", "18446744073709551615", "x", ""],
        "temperature": ["0", "-1", "nan", "inf", "1e400", "1e-300", "x"],
        "top-k": ["0", "-1", "18446744073709551615", "1.5"],
        "top-p": ["-0.1", "0", "2", "nan"],
        "num-beams": ["0", "1000000", "18446744073709551615"],
        "num-return-sequences": ["0", "1048576", "18446744073709551615"],
        "seed": ["-1", "18446744073709551616", "x"],
        "stop-strings": ["", '["", "a"]', json.dumps(["x" * 100000] * 50)],
        "bad-words-ids": ["[[]]", "[[99999999]]", json.dumps([[i % 300, i % 299] for i in range(100000)])],
        "sequence-bias": ["{}", "[[[5],1e400]]", "[[[], 1.0]]"],
        "prompt-lookup-num-tokens": ["0", "-5", "18446744073709551615"],
        "no-repeat-ngram-size": ["-1", "18446744073709551615"],
        "watermarking-config": ["{}", '{"ngram_len": 1000000000000, "keys": []}', '{"greenlist_ratio": 1e300}', '{"context_width": 18446744073709551615}'],
        "threads": ["0", "100000", "-1"],
        "batch-size": ["0", "65537"],
        "config": ["{", "[]", "@/dev/zero", "@/", "@nothing.json", "@", '{"x": ' + "[" * 5000],
        "max-time": ["-1", "nan", "1e308", "0"],
        "length-penalty": ["nan", "1e308"],
        "force-words-ids": ["[[]]", "[[[]]]", json.dumps([[5] * 5000])],
        "eos-token-id": ["-1", "[]", "999999", json.dumps(list(range(300)))],
        "engine": ["nothing", ""],
        "dtype": ["../../x", "nothing", "q4/../..", ""],
        "prefill-chunk-size": ["0", "18446744073709551615"],
        "negative-prompt": ["", "x" * 100000],
        "assistant": ["FOLDER/nothing", "/dev/zero", "MODEL/config.json"],
        "assistant-early-exit": ["0", "1000000"],
        "guidance-scale": ["nan", "1e308", "0"],
        "penalty-alpha": ["0.6", "-1", "nan"],
        "dola-layers": ["high", "[99999]", "nothing"],
        "max-length": ["0", "18446744073709551615"],
        "min-length": ["18446744073709551615"],
        "suppress-tokens": [json.dumps(list(range(300)))],
        "exponential-decay-length-penalty": ["[1]", "[-1, 1e308]", "[0, 1e300]"],
    }
    for flag, values in flags.items():
        for number, value in enumerate(values):
            more = ["--num-beams", "2"] if flag == "force-words-ids" else []
            case(f"flag-{flag}-{number}", plain("generate", "MODEL", "abc", *([] if flag in ["max-new-tokens"] else GENERATE), f"--{flag}={value}", *more))
    for number, arguments in enumerate([
        ["--do-sample", "--num-return-sequences", "100000", "--max-new-tokens", "200"],
        ["--num-beams", "5000", "--max-new-tokens", "200"],
        ["--output-scores", "--json", "--num-return-sequences", "100", "--do-sample", "--max-new-tokens", "50"],
        ["--max-new-tokens", "18446744073709551615", "--json", "--max-time", "1"],
        ["--do-sample", "true", "--max-new-tokens", "2"],
        ["--do-sample=maybe"],
        ["two", "prompts"],
    ]):
        case(f"request-{number}", plain("generate", "MODEL", "abc", *arguments))

    line_kinds = {
        "blank": b"\n\n\n", "nothing": b"", "broken": b"{\n", "number": b"5\n", "null": b"null\n", "list": b"[1]\n", "unknown-key": b'{"prompt": "a", "nobody": 1}\n',
        "two-kinds": b'{"prompt": "a", "ids": [1]}\n', "no-kind": b"{}\n", "utf8": b'"\xff\xfe"\n', "surrogate": b'"\\ud800"\n', "nul": b'"a\\u0000b"\n',
        "bom": b'\xef\xbb\xbf"a"\n', "crlf": b'"a"\r\n"b"\r\n', "deep": b"[" * 100000 + b"\n", "long": b'"' + b"a" * 5_000_000 + b'"\n', "far": b'{"ids": [99999]}\n',
        "messages": b'{"messages": 5}\n', "role": b'{"messages": [{"role": 5, "content": "a"}]}\n', "content": b'{"messages": [{"role": "user", "content": {"a": 1}}]}\n',
        "images": b'{"prompt": "a", "images": ["x.png"]}\n', "many": b'"a"\n' * 2000, "zeros": bytes(1 << 20), "id": b'{"prompt": "a", "id": {"x": [1, 2]}}\n',
    }
    for name, content in line_kinds.items():
        def make(folder, content=content):
            (folder / "in.jsonl").write_bytes(content)
            return ["generate", str(MODELS / "llama"), "--prompts", str(folder / "in.jsonl"), "--max-new-tokens", "1", "--out", str(folder / "out" / "o.jsonl")]

        case(f"prompts-{name}", make)
        case(f"stdin-{name}", plain("generate", "MODEL", "-", "--max-new-tokens", "1"), content)
        if name in ["nothing", "utf8", "blank", "long", "deep", "zeros", "broken", "far", "bom"]:
            case(f"score-{name}", plain("score", "MODEL", "--texts", "-"), content)
            case(f"embed-{name}", plain("embed", "MODEL", "--texts", "-", model="llama-hidden"), content)
            case(f"chat-{name}", plain("chat", "MODEL"), content)
            case(f"detect-{name}", plain("detect", "MODEL", "--texts", "-", "--watermarking-config", "{}"), content)
    case("stdin-60-MB", plain("generate", "MODEL", "-", "--max-new-tokens", "1"), b"abc " * 15_000_000)
    case("prompts-200-MB-line", lambda folder: ((folder / "in.jsonl").write_bytes(b'"' + b"abc " * 50_000_000 + b'"\n'), ["generate", str(MODELS / "llama"), "--prompts", str(folder / "in.jsonl"), "--max-new-tokens", "1"])[1])
    for option, command in [("--prompts", "generate"), ("--texts", "score"), ("--texts", "embed"), ("--texts", "detect"), ("--ids", "generate")]:
        for path in ["/dev/zero", "/", "/nothing", "FOLDER/pipe"]:
            def make(folder, option=option, command=command, path=path):
                os.mkfifo(folder / "pipe")
                return [command, str(MODELS / "llama"), option, path.replace("FOLDER", str(folder))]

            case(f"path-{command}{option}-{path.replace('/', '_')}", make)
    for path in ["/dev/zero", "/dev/null", "/", "/nothing", "FOLDER/pipe", "FOLDER/pipe.gguf", "FOLDER/loop", "FOLDER/link.gguf", "FOLDER/empty", "FOLDER/empty.gguf", "FOLDER/empty.onnx", "FOLDER/zeros.safetensors", "", ".", "a/b/c", "../x", "\x01"]:
        for command in ["generate", "inspect", "import"]:
            def make(folder, path=path, command=command):
                for name in ["pipe", "pipe.gguf"]:
                    os.mkfifo(folder / name)
                (folder / "loop").symlink_to(folder / "loop")
                (folder / "link.gguf").symlink_to("/dev/zero")
                (folder / "empty").mkdir()
                (folder / "empty.gguf").write_bytes(b"")
                (folder / "empty.onnx").write_bytes(b"")
                (folder / "zeros.safetensors").write_bytes(bytes(1 << 20))
                path = path.replace("FOLDER", str(folder))
                return {"generate": ["generate", path, "a"], "inspect": ["inspect", path], "import": ["import", path, str(folder / "out" / "imported")]}[command]

            case(f"model-{command}-{path.replace('/', '_')}", make)
    for path in ["/dev/full", "/dev/null", "/", "/nothing/x", "FOLDER/pipe", "FOLDER/dangling", "FOLDER/locked/x", "FOLDER/there.jsonl", ""]:
        for command in ["generate", "score", "embed"]:
            def make(folder, path=path, command=command):
                os.mkfifo(folder / "pipe")
                (folder / "dangling").symlink_to("/nothing/at/all")
                (folder / "there.jsonl").write_text("mine\n")
                return [command, str(MODELS / ("llama-hidden" if command == "embed" else "llama")), "abc", "--out", path.replace("FOLDER", str(folder)), *(GENERATE if command == "generate" else [])]

            case(f"out-{command}-{path.replace('/', '_')}", make)
    for number, lines in enumerate([b"/save /dev/full\n", b"/save /\n", b"/set x y\n", b"/set temperature nan\n", b"/" + b"a" * 100000 + b"\n", b"/system " + b"a" * 100000 + b"\nhi\n", b"\x00\x01\x1b[2J\n", b"hi\n" * 3, b"/reset\n/system\n/save\n/help\n/nothing\n/set\n"]):
        def make(folder):
            model = copy_model(folder)
            (model / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
            return ["chat", str(model), "--max-new-tokens", "2"]

        case(f"chat-line-{number}", make, lines)


# --- running -----------------------------------------------------------------------------------------------------------


def seen(folder):
    """Every path below `folder` with its size and content hash."""
    result = {}
    for path in sorted(folder.rglob("*")):
        if (folder / "out") in path.parents or path == folder / "out" or (folder / "cache") in path.parents:
            continue
        if path.is_symlink() or not path.is_file():
            result[str(path)] = "special"
        else:
            result[str(path)] = (path.stat().st_size, hash(path.read_bytes()) if path.stat().st_size < 1 << 24 else 0)
    return result


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(program, one, verbose):
    """What is wrong with the run of `one`, or None."""
    with tempfile.TemporaryDirectory(prefix="unspool-hostile-") as name:
        folder = pathlib.Path(name)
        arguments = one.make(folder)
        (folder / "out").mkdir(exist_ok=True)
        (folder / "cache").mkdir()
        (folder / "work").mkdir()
        before = seen(folder)
        environment = {**os.environ, "UNSPOOL_CACHE": str(folder / "cache"), "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1", "RUST_BACKTRACE": "0"}
        if "\0" in "".join(arguments):
            return None
        start = time.monotonic()
        try:
            done = subprocess.run([program, *arguments], input=one.stdin, capture_output=True, timeout=SECONDS, env=environment, cwd=folder / "work", preexec_fn=limit)
        except subprocess.TimeoutExpired:
            return f"no end within {SECONDS} s"
        except OSError as error:
            return None if error.errno == 7 else f"could not be started: {error}"
        seconds = time.monotonic() - start
        told = done.stderr.decode(errors="replace")
        errors = [line for line in told.splitlines() if line.startswith("error: ")]
        if verbose:
            print(f"    {done.returncode} {seconds:.1f} s {(errors or [done.stdout.decode(errors='replace')[:100].strip()])[0][:300]}")
        if done.returncode not in (0, 1, 2):
            return f"exit code {done.returncode}: {told[-400:]}"
        if "panicked" in told:
            return f"a panic: {told[-400:]}"
        if done.returncode != 0 and len(errors) != 1:
            # A conversation goes on after an error, so it may tell several.
            if not (arguments[0] == "chat" and errors):
                return f"{len(errors)} lines of errors: {told[-400:]}"
        if errors and len(errors[-1]) > 2000:
            return f"an error of {len(errors[-1])} characters"
        if any(ord(c) < 32 and c not in "\t" for c in "".join(errors)):
            return f"control characters in the error {errors!r:.200}"
        after = seen(folder)
        if after != before:
            changed = sorted(set(before.items()) ^ set(after.items()), key=str)
            return f"files outside the output changed: {[path for path, _ in changed][:5]}"
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(HERE.parent / "target" / "debug" / "unspool"))
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    for collect in [damaged_bytes, json_values, templates, checkpoints, graphs, requests]:
        collect()
    chosen = [one for one in CASES if given.only in one.name]
    if given.list:
        print("\n".join(one.name for one in chosen))
        return 0
    program = str(pathlib.Path(given.program).resolve())
    failed = []
    for one in chosen:
        if given.verbose:
            print(one.name, flush=True)
        try:
            wrong = run(program, one, given.verbose)
        except Exception as error:  # a case that cannot be made is a fault of this script
            wrong = f"the case could not be made: {error!r}"
        if wrong:
            failed.append(one.name)
            print(f"FAILED {one.name}: {wrong}", flush=True)
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
