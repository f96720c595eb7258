"""Makes the f16 twins of two small models: weights, caches and logits in 16 bits, everything else as it is.

    python half.py MODEL_FOLDER OUT_FOLDER        (onnx 1.22, numpy)

conformance/models/llama-f16 and llama-genai-f16 were made of llama and llama-genai.
"""

import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper


def half(tensor):
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))


source, out = sys.argv[1:]
model = onnx.load(os.path.join(source, "onnx", "model.onnx"))
graph = model.graph
for tensor in graph.initializer:
    half(tensor)
for node in graph.node:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR:
            half(attribute.t)
        if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.FLOAT16
for value in [*graph.input, *graph.output, *graph.value_info]:
    if value.type.tensor_type.elem_type == TensorProto.FLOAT:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
os.makedirs(os.path.join(out, "onnx"), exist_ok=True)
onnx.save(model, os.path.join(out, "onnx", "model.onnx"))
for name in ["config.json", "generation_config.json", "genai_config.json"]:
    if os.path.exists(os.path.join(source, name)):
        shutil.copy(os.path.join(source, name), os.path.join(out, name))
