"""Records random blocks of every GGUF format with their values, for the tests of `src/quant`.

Made with gguf 0.19.0 and numpy 2.4.6:  python record_quants.py
Writes quants.bin: per format `[id u32][rows u32][weights u32][bytes u32]` (little endian), the raw bytes, the f32 values.
"""

import struct
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize

FORMATS = [T.F32, T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q4_K, T.Q5_K, T.Q6_K]
# Where the f16 numbers of a block stand.
HALVES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}


def main():
    random = np.random.default_rng(20250717)
    with open(Path(__file__).with_name("quants.bin"), "wb") as out:
        for kind in FORMATS:
            block, size = GGML_QUANT_SIZES[kind]
            blocks = 8 if block == 256 else 64
            raw = random.integers(0, 256, (blocks, size), dtype=np.uint8)
            for at in HALVES.get(kind, []):
                # Every finite f16 may occur: normal, subnormal, zeros of both signs.
                bits = random.integers(0, 0x7C00, blocks, dtype=np.uint16) | (random.integers(0, 2, blocks, dtype=np.uint16) << 15)
                bits[:4] = [0x0000, 0x8000, 0x0001, 0x7BFF]
                raw[:, at : at + 2] = bits[:, None].view(np.uint8).reshape(blocks, 2)
            if kind in (T.F32, T.F16, T.BF16):
                floats = random.standard_normal(blocks * block).astype(np.float32)
                floats[:4] = [0.0, -0.0, np.inf, -np.inf]
                if kind == T.F32:
                    raw = floats.view(np.uint8).reshape(blocks, size)
                elif kind == T.F16:
                    raw = floats.astype(np.float16).view(np.uint8).reshape(blocks, size)
                else:
                    raw = (floats.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(blocks, size)
            values = dequantize(raw.reshape(-1), kind).astype(np.float32).reshape(-1)
            assert values.size == blocks * block and not np.isnan(values).any()
            out.write(struct.pack("<IIII", int(kind), blocks, values.size, raw.size))
            out.write(raw.tobytes())
            out.write(values.tobytes())


if __name__ == "__main__":
    main()
