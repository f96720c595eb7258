"""Records the ids that Python gives for the vocabulary of GGUF files (transformers 5.24.0, gguf, sentencepiece).

    python record_tokenizer.py cut SMOLLM2.gguf     writes crates/import/tests/data/tokenizer/*.json
    python record_tokenizer.py whole MODEL.gguf OUT.jsonl

`cut` takes from a byte-level BPE the tokens and merges that can play a part in the texts below, so that the ids are
those of the whole vocabulary by name, and records what transformers gives for the cut under every kind of
pre-tokenizer; and it trains a tiny SentencePiece model and records the same. `whole` writes one line a text with the
ids of the whole vocabulary, by transformers and (when llama-cpp-python is installed) by llama.cpp; the ignored test
`a_whole_vocabulary_gives_the_recorded_ids` of crates/import reads it (UNSPOOL_TOKENIZER_GGUF, UNSPOOL_TOKENIZER_IDS).

Where transformers leaves out something that the family's own tokenizer.json has, it is put back before recording:
  smollm  every digit stands alone before the pattern cuts (Digits)
  qwen2   Unicode NFC
  llama-bpe, tekken  a piece that is a token is not merged (ignore_merges)
"""

import json
import random
import sys
import tempfile
from pathlib import Path

import gguf
import transformers
from tokenizers import Tokenizer
from transformers import AutoTokenizer

OUT = Path(__file__).parent.parent / "crates/import/tests/data/tokenizer"

TEXTS = [
    "",
    " ",
    "Hello, world!",
    "  leading and trailing  ",
    "The quick brown fox didn't jump; they'll say I'VE won. It's WE'RE here",
    "numbers 1 12 123 1234567 3.14159 1,000,000 v2.0 x1y22z333  42   007",
    "def f(x):\n    if x > 0:\n        return x**2  # square\n\treturn None\n\n\n",
    "tabs\t\tand\r\nwindows\r\n\r\nlines \n \n end",
    "Ünïcödé naïve café Straße ŁÓDŹ ελληνικά русский текст",
    "你好，世界！今天天气很好。こんにちは世界 안녕하세요",
    "emoji 😀👍🏽👨‍👩‍👧 ❤️ flags 🇫🇷🇩🇪",
    "עברית العربية हिन्दी ไทย",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "a<|im_start|> <|endoftext|>b<|im_end|><|im_end|>c <|im_start",
    "https://example.com/path?query=1&other=two#frag user@mail.org",
    "!!! ??? ... --- === *** ((())) [[]] {{}} <<>> \\n \\\\ // /* */",
    "CamelCase snake_case kebab-case SCREAMING_CASE mixedUP123abc",
    "½ ² Ⅷ ①  １２３ ٣٤٥ \u00a0nbsp\u2003em\u3000wide",
    "e\u0301 \u00e9 \u1e9b\u0323 \ufb01 A\u030a",
    "\x00\x01\x7f\x80 zero\u200bwidth \ufeffbom",
    "word\n\n\nword   \n\n  word \t \n",
    "'s 't 're 'S 'LL don’t “quotes” —dash–",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa                                  z",
    "{\"json\": [1, 2.5, true, null], \"text\": \"a\\nb\"}",
    "<think>why</think> <tool_call> x",
]

CORPUS = [
    "the cat sat on the mat and the dog ran to the house with a ball in the garden",
    "Hello world, this is a small text about nothing in particular. It has some words, and some other words.",
    "once there was a king who lived in a castle by the sea and had three daughters",
    "numbers like 1 2 3 10 20 30 100 are here too; so are signs: (a) [b] {c} - and + and =",
    "user assistant system question answer token model language",
    "le chat est sur la table et le chien dort dans le jardin de la maison",
]


def texts():
    """The texts above, and seeded random ones out of their characters."""
    rng = random.Random(7)
    letters = sorted(set("".join(TEXTS)))
    extra = ["".join(rng.choice(letters) for _ in range(rng.randint(1, 40))) for _ in range(30)]
    spaced = ["".join(rng.choice([" ", "  ", "1", "23", "a", "the", "\n", "'s", ".", "<|im_end|>"]) for _ in range(12)) for _ in range(20)]
    return TEXTS + extra + spaced


def fields(path):
    found = {}
    for key, field in gguf.GGUFReader(path).fields.items():
        if key.startswith("tokenizer."):
            found[key.removeprefix("tokenizer.").removeprefix("ggml.")] = field.contents()
    return found


def write(folder, data):
    """A GGUF file with the vocabulary and no tensor."""
    path = Path(folder) / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(8)
    writer.add_block_count(1)
    writer.add_feed_forward_length(8)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(data["tokens"]))
    writer.add_tokenizer_model(data["model"])
    if data.get("pre"):
        writer.add_tokenizer_pre(data["pre"])
    writer.add_token_list(data["tokens"])
    if data.get("scores"):
        writer.add_token_scores(data["scores"])
    writer.add_token_types(data["token_types"])
    if data.get("merges"):
        writer.add_token_merges(data["merges"])
    for name, add in [
        ("bos_token_id", writer.add_bos_token_id),
        ("eos_token_id", writer.add_eos_token_id),
        ("unk_token_id", writer.add_unk_token_id),
        ("pad_token_id", writer.add_pad_token_id),
        ("add_bos_token", writer.add_add_bos_token),
        ("add_eos_token", writer.add_add_eos_token),
    ]:
        if data.get(name) is not None:
            add(data[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def load(path, pre):
    """transformers' tokenizer of the file, with what it leaves out put back (see above)."""
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    if pre == "smollm":
        digits = {"type": "Digits", "individual_digits": True}
        state["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, state["pre_tokenizer"]]}
    if pre == "qwen2":
        state["normalizer"] = {"type": "NFC"}
    if pre in ("llama-bpe", "tekken"):
        state["model"]["ignore_merges"] = True
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(state))
    return tokenizer


def record(data, pre):
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = load(write(folder, {**data, "pre": pre}), pre)
        cases = []
        for text in texts():
            ids = tokenizer(text).input_ids
            cases.append({
                "text": text,
                "ids": ids,
                "decoded": tokenizer.decode(ids),
                "skipped": tokenizer.decode(ids, skip_special_tokens=True),
            })
        return cases


def cut(path):
    data = fields(path)
    spelling = transformers.convert_slow_tokenizer.bytes_to_unicode()
    everything = "\n".join(texts())
    spelled = "".join(spelling[byte] for byte in everything.encode())
    # NFC makes other bytes of the same text.
    spelled += "".join(spelling[byte] for byte in __import__("unicodedata").normalize("NFC", everything).encode())
    merges = [m for m in data["merges"] if m.replace(" ", "", 1) in spelled]
    needed = set(spelling.values()) | {t for m in merges for t in (*m.split(" "), m.replace(" ", "", 1))}
    kept = [i for i, t in enumerate(data["tokens"]) if t in needed or data["token_type"][i] != 1]
    tokens = [data["tokens"][i] for i in kept]
    types = [data["token_type"][i] for i in kept]
    # One user-defined token, to see that it is found whole and not skipped.
    tokens.append("<think>")
    types.append(4)
    place = {old: new for new, old in enumerate(kept)}
    vocabulary = {
        "model": "gpt2",
        "tokens": tokens,
        "token_types": types,
        "merges": merges,
        "bos_token_id": place[data["bos_token_id"]],
        "eos_token_id": place[data["eos_token_id"]],
        "unk_token_id": place[data["unknown_token_id"]],
        "pad_token_id": place[data["padding_token_id"]],
        "add_bos_token": False,
    }
    kinds = {pre: record(vocabulary, pre) for pre in ("smollm", "gpt-2", "llama-bpe", "qwen2", "tekken")}
    with_bos = record({**vocabulary, "add_bos_token": True, "add_eos_token": True}, "smollm")
    save("byte_level.json", {"vocabulary": vocabulary, "kinds": kinds, "with_bos_and_eos": with_bos[:8]})


def train():
    """A tiny SentencePiece BPE with byte fallback, as a GGUF vocabulary."""
    import sentencepiece

    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.txt"
        corpus.write_text("\n".join(CORPUS * 3))
        sentencepiece.SentencePieceTrainer.train(
            input=str(corpus), model_prefix=f"{folder}/tiny", model_type="bpe", vocab_size=480, byte_fallback=True,
            split_digits=True, normalization_rule_name="identity", remove_extra_whitespaces=False, max_sentence_length=10000,
            character_coverage=1.0, minloglevel=2,
        )
        model = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/tiny.model")
        kind = lambda i: 2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 1
        size = model.get_piece_size()
        return {
            "model": "llama",
            "tokens": [model.id_to_piece(i) for i in range(size)] + ["<|im_start|>", "<|im_end|>", "<think>"],
            "scores": [model.get_score(i) for i in range(size)] + [-1000.0] * 3,
            "token_types": [kind(i) for i in range(size)] + [3, 3, 4],
            "bos_token_id": 1,
            "eos_token_id": 2,
            "unk_token_id": 0,
        }


def save(name, value):
    OUT.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    (OUT / name).write_text(text.replace('{"text"', '\n{"text"') + "\n")


def whole(path, out):
    path = Path(path)
    tokenizer = load(path, fields(path).get("pre"))
    try:
        import llama_cpp

        llama = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    except ImportError:
        llama = None
    with open(out, "w") as file:
        for text in texts():
            line = {"text": text, "ids": tokenizer(text, add_special_tokens=False).input_ids}
            if llama is not None:
                line["llama_cpp"] = llama.tokenize(text.encode(), add_bos=False, special=True)
            file.write(json.dumps(line) + "\n")


def main():
    assert transformers.__version__ == "5.24.0", transformers.__version__
    if sys.argv[1] == "whole":
        whole(sys.argv[2], sys.argv[3])
    else:
        cut(sys.argv[2])
        vocabulary = train()
        save("sentencepiece.json", {"vocabulary": vocabulary, "cases": record(vocabulary, None)})


if __name__ == "__main__":
    main()
