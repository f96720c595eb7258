"""Records what Python's loader makes of the settings of small tokenizers (transformers 5.24.0, tokenizers 0.23).

    python tokenizer_variants.py

It writes `crates/tasks/tests/data/tokenizer_variants.json`: for each variant the files of the folder and what
`AutoTokenizer.from_pretrained` encodes, decodes and calls its special tokens.
"""

import copy
import json
import tempfile
from pathlib import Path

import transformers
from transformers import AutoTokenizer

DATA = Path(__file__).resolve().parents[2] / "crates/tasks/tests/data/tokenizer_variants.json"
TEXTS = ["a b ab", "a<s>b</s>", " <x>a <x> b", "<pad>ab", "A, b. ab !", "<y>a<z>", "q<m> a", ""]


def token(id, content, special=True, **flags):
    own = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return {"id": id, "content": content, **own, **flags}


def byte_level():
    letters = ["a", "b", "x", "y", "z", "s", "p", "d", "m", "<", ">", "/", "A", ",", ".", "!", "\u0120", "q"]
    vocab = {t: i for i, t in enumerate(["<s>", "</s>", "<pad>", *letters, "ab", "\u0120a", "\u0120b"])}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [token(0, "<s>"), token(1, "</s>"), token(2, "<pad>")],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab,
                  "merges": ["a b", "\u0120 a", "\u0120 b"]},
    }


def words():
    vocab = {t: i for i, t in enumerate(["<unk>", "a", "b", "ab", "A", ",", ".", "!", "<", ">", "s", "/", "q"])}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [token(0, "<unk>")],
        "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
    }


NAMES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
}


def variants():
    def one(name, config, base=byte_level, change=None, **files):
        tokenizer = base()
        if change:
            change(tokenizer)
        config = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
        return name, {"tokenizer.json": tokenizer, "tokenizer_config.json": config,
                      **{key + ".json": value for key, value in files.items()}}

    def template(tokenizer):
        tokenizer["post_processor"] = copy.deepcopy(TEMPLATE)

    def padded(tokenizer):
        tokenizer["padding"] = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": 8, "pad_id": 2,
                                "pad_type_id": 0, "pad_token": "<pad>"}

    def truncated(tokenizer):
        tokenizer["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}

    def plain_pad(tokenizer):
        tokenizer["added_tokens"][2]["special"] = False

    yield one("names", NAMES)
    yield one("no names", {})
    yield one("split special tokens", {**NAMES, "split_special_tokens": True})
    yield one("split special tokens, added", {**NAMES, "split_special_tokens": True,
                                              "added_tokens_decoder": {"24": {"content": "<x>", "special": False}}})
    yield one("add bos", {**NAMES, "add_bos_token": True})
    yield one("add eos", {**NAMES, "add_eos_token": True})
    yield one("add both", {**NAMES, "add_bos_token": True, "add_eos_token": True})
    yield one("add bos without a name", {"add_bos_token": True})
    yield one("template", NAMES, change=template)
    yield one("template, add no bos", {**NAMES, "add_bos_token": False}, change=template)
    yield one("template, add eos", {**NAMES, "add_eos_token": True}, change=template)
    yield one("template, add neither is null", {**NAMES, "add_bos_token": None}, change=template)
    yield one("padding", {"bos_token": "<s>"}, change=padded)
    yield one("truncation", NAMES, change=truncated)
    yield one("a name that is not special", NAMES, change=plain_pad)
    yield one("names as objects", {"bos_token": {"content": "<s>", "lstrip": True, "__type": "AddedToken"},
                                   "eos_token": {"content": "<x>", "lstrip": True, "rstrip": True, "__type": "AddedToken"}})
    yield one("extra special tokens", {**NAMES, "extra_special_tokens": ["<x>", "<y>"]})
    yield one("extra special tokens by name", {**NAMES, "extra_special_tokens": {"image_token": "<x>"}})
    yield one("additional special tokens", {**NAMES, "additional_special_tokens": ["<x>", "<y>"]})
    yield one("a token of another name", {**NAMES, "image_token": "<x>"})
    yield one("added tokens", {**NAMES, "added_tokens_decoder": {
        "0": token(0, "<s>"), "24": token(24, "<x>", lstrip=True, rstrip=True), "25": token(25, "<y>", special=False),
        "26": token(26, "q", special=False, single_word=True)}})
    yield one("added tokens without flags", {**NAMES, "added_tokens_decoder": {"24": {"content": "<x>"}}})
    yield one("special tokens map", {"eos_token": "<x>"}, special_tokens_map={"eos_token": "</s>", "pad_token": "<pad>"})
    yield one("special tokens map beside added tokens", {"eos_token": "<x>", "added_tokens_decoder": {}},
              special_tokens_map={"eos_token": "</s>", "pad_token": "<pad>"})
    yield one("added_tokens.json", NAMES, added_tokens={"<x>": 24})
    yield one("clean up", {**NAMES, "clean_up_tokenization_spaces": True})
    yield one("clean up of words", {"unk_token": "<unk>", "clean_up_tokenization_spaces": True}, base=words)
    yield one("clean up of words, not", {"unk_token": "<unk>", "clean_up_tokenization_spaces": False}, base=words)
    yield one("clean up even though it corrupts", {
        **NAMES, "clean_up_tokenization_spaces": True,
        "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": True})
    yield one("prefix space", {**NAMES, "add_prefix_space": True})
    yield one("model max length", {**NAMES, "model_max_length": 2})
    yield one("legacy", {**NAMES, "legacy": True, "use_default_system_prompt": False, "sp_model_kwargs": {}})
    yield one("words, new names", {"unk_token": "<unk>", "bos_token": "<s>", "mask_token": {"content": "<m>", "lstrip": True, "__type": "AddedToken"}},
              base=words)
    yield one("lower-case flags", {**NAMES, "do_lower_case": True, "strip_accents": True})


def main():
    assert transformers.__version__ == "5.24.0", transformers.__version__
    out = []
    for name, files in variants():
        with tempfile.TemporaryDirectory() as folder:
            for file, value in files.items():
                (Path(folder) / file).write_text(json.dumps(value), "utf-8")
            tokenizer = AutoTokenizer.from_pretrained(folder)
            texts = []
            for text in TEXTS:
                ids = tokenizer(text, add_special_tokens=True).input_ids
                texts.append([text, ids, tokenizer(text, add_special_tokens=False).input_ids,
                              tokenizer.decode(ids), tokenizer.decode(ids, skip_special_tokens=True)])
            special = {key: getattr(tokenizer, key) for key in ["bos_token", "eos_token", "pad_token", "unk_token"]}
            out.append({"name": name, "files": files, "texts": texts, "special": special})
    lines = ",\n".join(json.dumps(variant, ensure_ascii=False) for variant in out)
    DATA.write_text(f"[\n{lines}\n]\n", "utf-8")
    print(f"{len(out)} variants")


if __name__ == "__main__":
    main()
