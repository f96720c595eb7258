//! No network unless a Hub id is named.

/// Tells ONNX Runtime to send nothing home. Its library looks at the environment when it is loaded; the switch of its
/// interface alone does not keep it from opening sockets.
#[expect(unsafe_code, reason = "the environment can only be changed so")]
pub fn no_telemetry() {
    // SAFETY: called first in `main`, when no other thread exists that could read the environment.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
}
