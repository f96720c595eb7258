"""Beam search of SmolLM2-135M: Unspool, PyTorch `transformers` and optimum-onnx on the same machine, in turns.

    cargo build --release -p unspool-cli
    python benches/beams.py --gguf SmolLM2-135M-Instruct.Q4_1.gguf --f32 F32 [--keep KEEP] [--int4 INT4] [--runs 3] [--out results.json]
    python benches/beams.py ... --optimum EXPORT --optimum-path SITE   # optimum-onnx, which needs transformers 4: installed in SITE

F32, KEEP and INT4 are folders made by `unspool import --weights ...` from the GGUF. PyTorch reads the GGUF as f32. EXPORT is a folder that
`--export EXPORT` made before (the f32 checkpoint through optimum's exporter). Every engine gets the same prompt of 256 tokens, 4 beams and 64
new tokens without an end token. Each run is a process of its own; Python's have one short generation as warm-up, Unspool's none. Times are
those of the generation, without loading; peaks are those of the process.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import peers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
WHOLE = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0, "repetition_penalty": 1.0}


def prompt(length):
    ids = json.loads((HERE / "prompt_ids.json").read_text())
    return (ids * (length // len(ids) + 1))[:length]


def measure(model, args):
    """One Python generation after a short one."""
    import torch

    ids = torch.tensor([prompt(args.prompt_tokens)])
    model.generation_config.eos_token_id = None
    settings = {**WHOLE, "num_beams": args.beams, "attention_mask": torch.ones_like(ids)}
    model.generate(ids[:, :4], **{**settings, "attention_mask": torch.ones_like(ids[:, :4])}, max_new_tokens=2)
    start = time.perf_counter()
    with torch.no_grad():
        out = model.generate(ids, max_new_tokens=args.new_tokens, **settings)
    print(json.dumps({"total_s": time.perf_counter() - start, "ids": out[0, ids.shape[1] :].tolist()}))


def torch_model(args):
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(args.threads)
    file = pathlib.Path(args.model)
    return AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)


def optimum_model(args):
    import onnxruntime
    import torch
    from optimum.onnxruntime import ORTModelForCausalLM

    torch.set_num_threads(args.threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    return ORTModelForCausalLM.from_pretrained(args.model, session_options=options)


def export(args):
    """Makes EXPORT: the checkpoint as PyTorch reads it, then optimum's own export."""
    from optimum.exporters.onnx import main_export

    source = pathlib.Path(args.export) / "checkpoint"
    torch_model(argparse.Namespace(model=args.gguf, threads=args.threads)).save_pretrained(source)
    main_export(str(source), output=args.export, task="text-generation-with-past", library_name="transformers", do_validation=False)


def contestants(args):
    """(name, weights, command, environment)."""
    common = ["--prompt-tokens", str(args.prompt_tokens), "--new-tokens", str(args.new_tokens), "--threads", str(args.threads)]
    for weights in ("keep", "int4", "f32"):
        folder = getattr(args, weights)
        for engine, name in (("ort", "Unspool, ONNX Runtime"), ("rten", "Unspool, rten")):
            for beams in (args.beams, 1):
                config = json.dumps({"eos_token_id": None, "num_beams": beams, "max_new_tokens": args.new_tokens})
                ids = json.dumps([prompt(args.prompt_tokens)])
                command = [str(args.bin / "unspool"), "generate", folder, "--ids", ids, "--json", "--engine", engine, "--config", config]
                if folder is not None:
                    yield name if beams > 1 else f"{name}, 1 beam", weights, [*command, "--threads", str(args.threads)], None
    python = [sys.executable, str(HERE / "beams.py"), "--beams", str(args.beams), *common]
    if args.gguf:
        yield "PyTorch", "f32", [*python, "--one", "torch", "--model", args.gguf], None
    if args.optimum:
        environment = {**os.environ, "PYTHONPATH": args.optimum_path or ""}
        yield "optimum-onnx", "f32", [*python, "--one", "optimum", "--model", args.optimum], environment


def read(line):
    """Seconds and tokens of one line of either kind."""
    line = json.loads(line)
    if "timing" not in line:
        return line
    timing = line["timing"]
    times = {"prompt_s": timing["prompt_s"], "total_s": timing["prompt_s"] + timing["decode_s"]}
    return {**times, "ids": line["sequences"][0]["ids"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf")
    parser.add_argument("--keep")
    parser.add_argument("--int4")
    parser.add_argument("--f32")
    parser.add_argument("--optimum")
    parser.add_argument("--optimum-path")
    parser.add_argument("--export")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target" / "release")
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--prompt-tokens", type=int, default=256)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=peers.physical_cores())
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out")
    parser.add_argument("--one", choices=["torch", "optimum"], help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.export:
        return export(args)
    if args.one:
        return measure({"torch": torch_model, "optimum": optimum_model}[args.one](args), args)

    results = {}
    for turn in range(args.runs):
        for name, weights, command, environment in contestants(args):
            runs = results.setdefault((name, weights), [])
            try:
                out, _, peak = peers.run(command, environment)
                runs.append({**read(out.strip().splitlines()[-1]), "peak_mib": peak})
            except RuntimeError as error:
                print(f"{name}, {weights}: {error}", file=sys.stderr)
            print(f"turn {turn + 1}/{args.runs}: {name}, {weights}", file=sys.stderr)

    shape = f"prompt of {args.prompt_tokens} tokens, {args.beams} beams, {args.new_tokens} new tokens, {args.threads} threads"
    print(f"\n{shape}, median of {args.runs} runs (least to most)\n")
    print("| engine | weights | seconds | of it prompt | peak MiB | same tokens as PyTorch |")
    print("|---|---|---|---|---|---|")
    reference = results.get(("PyTorch", "f32"))
    for (name, weights), runs in results.items():
        if not runs:
            continue
        totals = sorted(run["total_s"] for run in runs)
        prompts = [run["prompt_s"] for run in runs if "prompt_s" in run]
        told = f"{statistics.median(prompts):.2f}" if prompts else ""
        same = sum(a == b for a, b in zip(runs[0]["ids"], reference[0]["ids"])) if reference and "1 beam" not in name else ""
        print(
            f"| {name} | {weights} | {statistics.median(totals):.2f} ({totals[0]:.2f} to {totals[-1]:.2f}) | {told} "
            f"| {statistics.median(run['peak_mib'] for run in runs):.0f} | {same} |"
        )
    if args.out:
        listed = [{"engine": name, "weights": weights, "runs": runs} for (name, weights), runs in results.items()]
        pathlib.Path(args.out).write_text(json.dumps(listed, indent=1) + "\n")


if __name__ == "__main__":
    main()
