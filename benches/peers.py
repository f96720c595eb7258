"""Speed of SmolLM2-135M on Unspool and on its peers: the same machine, checkpoint, prompt and number of tokens.

    cargo build --release -p unspool-benches -p unspool-cli
    python benches/peers.py --gguf SmolLM2-135M-Instruct.Q4_1.gguf --keep KEEP --int4 INT4 --f32 F32 [--runs 5] [--out results.json]

KEEP, INT4 and F32 are folders made by `unspool import --weights ...` from the GGUF. Every run is a process of its own, so that its
peak memory can be read and nothing is warm but the page cache; runs of all engines take turns, so that a slow minute of the
machine falls on all of them. The table has medians.

Peers are used when they are installed: onnxruntime-genai and llama-cpp-python in this Python; rten-generate is built by cargo.
llama.cpp runs the GGUF as it is ("keep") and, with `--gguf-f32 FILE` (made by benches/gguf_f32.py), its f32 weights.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def physical_cores():
    try:
        pairs = set()
        for cpu in pathlib.Path("/sys/devices/system/cpu").glob("cpu[0-9]*"):
            topology = cpu / "topology"
            pairs.add(((topology / "physical_package_id").read_text(), (topology / "core_id").read_text()))
        return len(pairs) or os.cpu_count()
    except OSError:
        return os.cpu_count()


def plain_graph(source, target):
    """The same graph without the input that says how many logits are wanted: of the last token only, as with the builder's
    option prune_lm_head; the declared shape tells genai so. The weights are linked."""
    import onnx

    target.mkdir()
    for file in source.iterdir():
        if file.suffix != ".onnx":
            os.link(file, target / file.name)
    model = onnx.load(source / "model.onnx", load_external_data=False)
    inputs = [i for i in model.graph.input if i.name == "logits_to_keep"]
    for extra in inputs:
        model.graph.input.remove(extra)
        shape = [d.dim_value or 1 for d in extra.type.tensor_type.shape.dim]
        model.graph.initializer.append(onnx.helper.make_tensor(extra.name, extra.type.tensor_type.elem_type, shape, [1]))
    for output in model.graph.output:
        if inputs and output.name == "logits":
            output.type.tensor_type.shape.dim[1].Clear()
            output.type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(model, target / "model.onnx")


def genai(folder, ids, new_tokens, threads):
    """onnxruntime-genai on a graph of ours; its loop wants a genai_config.json beside the graph."""
    import onnxruntime_genai as og

    config = json.loads((folder / "config.json").read_text())
    heads = config["num_attention_heads"]
    session = {"log_id": "bench", "intra_op_num_threads": threads}
    described = {
        "model": {
            "type": "llama",
            "bos_token_id": config.get("bos_token_id") or 1,
            # No end token: every engine writes the same number of tokens.
            "eos_token_id": config["vocab_size"] - 1,
            "pad_token_id": 0,
            "context_length": config["max_position_embeddings"],
            "vocab_size": config["vocab_size"],
            "decoder": {
                "session_options": {**session, "provider_options": []},
                "filename": "onnx/model.onnx",
                "head_size": config.get("head_dim") or config["hidden_size"] // heads,
                "hidden_size": config["hidden_size"],
                "num_attention_heads": heads,
                "num_key_value_heads": config["num_key_value_heads"],
                "num_hidden_layers": config["num_hidden_layers"],
                "inputs": {
                    "input_ids": "input_ids",
                    "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {
            "do_sample": False,
            "max_length": len(ids) + new_tokens,
            "min_length": len(ids) + new_tokens,
            "past_present_share_buffer": True,
        },
    }
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        scratch = pathlib.Path(scratch)
        plain_graph(folder / "onnx", scratch / "onnx")
        (scratch / "genai_config.json").write_text(json.dumps(described))
        start = time.perf_counter()
        model = og.Model(str(scratch))
        load = time.perf_counter() - start
        start = time.perf_counter()
        params = og.GeneratorParams(model)
        params.set_search_options(max_length=len(ids) + new_tokens)
        generator = og.Generator(model, params)
        generator.append_tokens([ids])
        generator.generate_next_token()
        prompt = time.perf_counter() - start
        start = time.perf_counter()
        for _ in range(new_tokens - 1):
            generator.generate_next_token()
        decode = time.perf_counter() - start
        out = [int(x) for x in generator.get_sequence(0)[len(ids) :]]
    return load, prompt, decode, out


def llama_cpp(path, ids, new_tokens, threads):
    import llama_cpp

    start = time.perf_counter()
    llm = llama_cpp.Llama(
        str(path),
        n_ctx=len(ids) + new_tokens,
        n_batch=len(ids),
        n_threads=threads,
        n_threads_batch=threads,
        verbose=False,
    )
    load = time.perf_counter() - start
    # The sampler of the C library picks the token, so that no row of scores passes through Python.
    sampler = llama_cpp.llama_sampler_init_greedy()
    context = llm._ctx.ctx

    def step(tokens):
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(array, len(tokens))) != 0:
            raise RuntimeError("llama_decode failed")
        return llama_cpp.llama_sampler_sample(sampler, context, -1)

    start = time.perf_counter()
    out = [step(ids)]
    prompt = time.perf_counter() - start
    start = time.perf_counter()
    while len(out) < new_tokens:
        out.append(step(out[-1:]))
    return load, prompt, time.perf_counter() - start, out


def one(args):
    """A measurement of a Python peer, in this process."""
    ids = json.loads(pathlib.Path(args.prompt).read_text())
    peer = {"genai": genai, "llama.cpp": llama_cpp}[args.one]
    load, prompt, decode, out = peer(pathlib.Path(args.model), ids, args.new_tokens, args.threads)
    print(
        json.dumps(
            {
                "engine": args.one,
                "load_s": load,
                "prompt_s": prompt,
                "decode_s": decode,
                "prompt_tokens_per_s": len(ids) / prompt,
                "decode_tokens_per_s": (len(out) - 1) / decode,
                "ids": out,
            }
        )
    )


def run(command, environment=None):
    """Standard output, wall time and peak memory (MiB) of a fresh process."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            raise RuntimeError(err.read().decode(errors="replace").strip().splitlines()[-1:] or ["failed"])
        return out.read().decode(), wall, usage.ru_maxrss / 1024


def size(path):
    path = pathlib.Path(path)
    files = [path] if path.is_file() else [f for f in (path / "onnx").rglob("*") if f.is_file()]
    return sum(f.stat().st_size for f in files) / 2**20


def contestants(args):
    """(name, weights, model, command)."""
    bench = [str(args.bin / "unspool-bench")]
    tail = ["--new-tokens", str(args.new_tokens), "--threads", str(args.threads)]
    python = [sys.executable, str(HERE / "peers.py"), "--prompt", args.prompt, *tail]
    for weights in ("keep", "int4", "f32"):
        folder = getattr(args, weights)
        if folder is None:
            continue
        for engine, name in (("ort", "unspool, ONNX Runtime"), ("rten", "unspool, rten")):
            yield name, weights, folder, [*bench, engine, folder, args.prompt, *tail]
        yield "rten-generate", weights, folder, [*bench, "rten-generate", folder, args.prompt, *tail]
        if importlib.util.find_spec("onnxruntime_genai"):
            yield "onnxruntime-genai", weights, folder, [*python, "--one", "genai", "--model", folder]
    if importlib.util.find_spec("llama_cpp"):
        for weights, file in (("keep", args.gguf), ("f32", args.gguf_f32)):
            if file is not None:
                yield "llama.cpp", weights, file, [*python, "--one", "llama.cpp", "--model", file]


def command_line(args, ids):
    """Cold start: the command line in a fresh process, up to its first token."""
    for weights in ("keep", "int4", "f32"):
        folder = getattr(args, weights)
        if folder is None:
            continue
        for engine in ("ort", "rten"):
            head = [str(args.bin / "unspool"), "generate", folder, "--ids", json.dumps([ids]), "--json", "--engine", engine]
            head += ["--threads", str(args.threads)]
            yield engine, weights, [*head, "--max-new-tokens", "1"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf")
    parser.add_argument("--gguf-f32")
    parser.add_argument("--keep")
    parser.add_argument("--int4")
    parser.add_argument("--f32")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target" / "release")
    parser.add_argument("--prompt", default=str(HERE / "prompt_ids.json"))
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=physical_cores())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out")
    parser.add_argument("--one", choices=["genai", "llama.cpp"], help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        return one(args)

    ids = json.loads(pathlib.Path(args.prompt).read_text())
    results = {}
    for turn in range(args.runs):
        for name, weights, model, command in contestants(args):
            entry = results.setdefault((name, weights), {"runs": [], "model_mib": size(model)})
            try:
                out, wall, peak = run(command)
                entry["runs"].append({**json.loads(out.strip().splitlines()[-1]), "wall_s": wall, "peak_mib": peak})
            except RuntimeError as error:
                entry["error"] = str(error)
            print(f"turn {turn + 1}/{args.runs}: {name}, {weights}", file=sys.stderr)
    cold = []
    for engine, weights, command in command_line(args, ids):
        try:
            walls = [run(command)[1] for _ in range(args.runs)]
            cold.append({"engine": engine, "weights": weights, "cold_start_s": statistics.median(walls)})
        except RuntimeError as error:
            cold.append({"engine": engine, "weights": weights, "error": str(error)})

    print(f"\nprompt of {len(ids)} tokens, {args.new_tokens} new, {args.threads} threads, median of {args.runs} runs\n")
    print("| engine | weights | prompt tokens/s | decode tokens/s | load s | peak MiB | weights MiB | share in the model | same tokens as unspool |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (name, weights), entry in results.items():
        if not entry["runs"]:
            print(f"| {name} | {weights} | {entry.get('error', 'failed')} | | | | | | |")
            continue
        numbers = [key for key, value in entry["runs"][0].items() if isinstance(value, float)]
        median = {key: statistics.median(r[key] for r in entry["runs"]) for key in numbers}
        share = f"{median['model_share']:.3f}" if "model_share" in median else ""
        ours = results.get(("unspool, ONNX Runtime", weights), {}).get("runs")
        same = "" if not ours else str(sum(1 for a, b in zip(entry["runs"][0]["ids"], ours[0]["ids"]) if a == b))
        print(
            f"| {name} | {weights} | {median['prompt_tokens_per_s']:.0f} | {median['decode_tokens_per_s']:.1f} "
            f"| {median['load_s']:.2f} | {median['peak_mib']:.0f} | {entry['model_mib']:.0f} | {share} | {same} |"
        )
    print("\n| command line | weights | cold start to first token, s |\n|---|---|---|")
    for entry in cold:
        told = entry.get("error") or f"{entry['cold_start_s']:.2f}"
        print(f"| {entry['engine']} | {entry['weights']} | {told} |")
    if args.out:
        listed = [{"engine": name, "weights": weights, **entry} for (name, weights), entry in results.items()]
        pathlib.Path(args.out).write_text(json.dumps({"runs": listed, "command_line": cold}, indent=1) + "\n")


if __name__ == "__main__":
    main()
