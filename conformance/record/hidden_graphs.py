"""Makes graphs that give hidden states out of the exported graphs of small models.

    python record/hidden_graphs.py data/reading.json models        (onnx and onnxruntime)

An export with `output_hidden_states` has outputs `hidden_states.0`, `hidden_states.1`, ... beside the logits. The values
are in every graph: here the ones that equal the states that Python recorded (`reading.json`) become outputs of
`models/NAME-hidden/onnx/model.onnx`. One graph for each cache mode; those of in_place come from importing.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy
import onnx
import onnxruntime

# The folder with the graph, and that of the model whose states were recorded.
GRAPHS = {"llama": "llama", "opt-no-position-ids": "opt-no-position-ids", "gpt2-no-cache": "gpt2-no-cache"}
COPIED = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]


def feeds(model, ids):
    given = {}
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in weights:
            continue
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.name == "input_ids":
            given[value.name] = numpy.array([ids], numpy.int64)
        elif value.name == "attention_mask":
            given[value.name] = numpy.ones((1, len(ids)), numpy.int64)
        elif value.name == "position_ids":
            given[value.name] = numpy.arange(len(ids), dtype=numpy.int64)[None]
        else:
            given[value.name] = numpy.zeros((1, dims[1], 0, dims[3]), numpy.float32)
    return given


def promote(model, case):
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    own = {output.name for output in model.graph.output}
    names = [name for node in model.graph.node for name in node.output if name and name not in own]
    probe.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    values = dict(zip(names, session.run(names, feeds(model, case["ids"]))))
    width = len(case["states"][0][0])
    for number, state in enumerate(case["states"]):
        state = numpy.array(state, numpy.float32)[None]
        same = [
            name
            for name, value in values.items()
            if isinstance(value, numpy.ndarray)
            and value.shape == state.shape
            and value.dtype == numpy.float32
            and numpy.allclose(value, state, atol=1e-4)
        ]
        assert same, f"no value of the graph is hidden state {number}"
        output = f"hidden_states.{number}"
        model.graph.node.append(onnx.helper.make_node("Identity", [same[0]], [output], name=f"/{output}"))
        shape = ["batch_size", "sequence_length", width]
        model.graph.output.append(onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, shape))
    onnx.checker.check_model(model)


def main():
    recorded, models = json.load(open(sys.argv[1])), Path(sys.argv[2])
    for name, states in GRAPHS.items():
        case = max((case for case in recorded["hidden"] if states in case["models"]), key=lambda case: len(case["ids"]))
        model = onnx.load(models / name / "onnx" / "model.onnx")
        promote(model, case)
        out = models / f"{name}-hidden"
        (out / "onnx").mkdir(parents=True, exist_ok=True)
        for file in COPIED:
            shutil.copy(models / name / file, out / file)
        onnx.save(model, out / "onnx" / "model.onnx")


if __name__ == "__main__":
    main()
