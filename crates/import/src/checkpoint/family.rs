//! The refusal of models that cannot be imported.

use unspool_core::Error;

/// The error of a checkpoint of another family. `what` is how the format calls a family, `supported` are those that can be
/// imported.
pub(super) fn unsupported(what: &str, name: &str, supported: &[&str]) -> Error {
    Error::unsupported(format!(
        "{what} {name:?} is not supported, supported are {}; an ONNX export of the model (see onnx-community on the Hub) \
         may run",
        supported.join(", ")
    ))
}
