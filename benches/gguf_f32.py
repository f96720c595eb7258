"""Writes a GGUF with the same values as another one, as 32-bit floats: what llama.cpp runs beside `--weights f32`.

    python benches/gguf_f32.py IN.gguf OUT.gguf
"""

import sys

import gguf
from gguf.quants import dequantize


def main():
    source, target = sys.argv[1:]
    reader = gguf.GGUFReader(source)
    architecture = reader.get_field("general.architecture").contents()
    writer = gguf.GGUFWriter(target, architecture)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=sub)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, dequantize(tensor.data, tensor.tensor_type).reshape(tuple(reversed(tensor.shape.tolist()))))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
