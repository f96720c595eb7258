//! Any bytes as a GGUF file: a clear error or a file whose every tensor lies inside it, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unspool_import::gguf::Gguf;

fuzz_target!(|data: &[u8]| {
    let Ok(file) = Gguf::parse(data) else { return };
    for (key, _) in file.entries() {
        let _ = (
            file.str(key),
            file.u32(key),
            file.f32(key),
            file.bool(key),
            file.strings(key),
            file.f32s(key),
            file.i32s(key),
        );
    }
    for tensor in file.tensors() {
        let _ = file.tensor(&tensor.name);
    }
});
