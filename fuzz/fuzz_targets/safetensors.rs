//! Any bytes as a safetensors file: a clear error or a file whose every tensor can be read, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use unspool_import::safetensors::SafetensorsFile;

fuzz_target!(|data: &[u8]| {
    let Ok(file) = SafetensorsFile::parse(data) else { return };
    let names: Vec<String> = file.names().map(str::to_owned).collect();
    for name in names {
        let _ = file.info(&name);
        let _ = file.tensor(&name);
    }
});
