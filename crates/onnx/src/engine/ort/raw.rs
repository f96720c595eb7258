//! One call of ONNX Runtime's `Run` over memory that the caller owns.
//!
//! `ort` 2.0.0-rc.15 cannot bind a borrowed output, nor one buffer as both an input and an output, without copies; this
//! module calls the C API for exactly that. It is the only unsafe code of the ONNX Runtime engine.

use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;
use std::ptr;

use ort::AsPointer;
use ort::session::Session;
use ort::sys;
use unspool_core::{Error, Result};

use crate::graph::ElementType;

/// A tensor that `Run` reads from or writes to, borrowed for `'a`.
pub(super) struct Binding<'a> {
    name: &'a CStr,
    data: *mut c_void,
    bytes: usize,
    shape: Vec<i64>,
    dtype: sys::ONNXTensorElementDataType,
    memory: PhantomData<&'a mut [u8]>,
}

/// Elements that tensors are made of.
pub(super) trait Element: Copy {
    /// The element type in the C API.
    const TYPE: sys::ONNXTensorElementDataType;
}

impl Element for f32 {
    const TYPE: sys::ONNXTensorElementDataType = sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}
impl Element for u16 {
    const TYPE: sys::ONNXTensorElementDataType = sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
}
impl Element for i64 {
    const TYPE: sys::ONNXTensorElementDataType = sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
}
impl Element for i32 {
    const TYPE: sys::ONNXTensorElementDataType = sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
}
impl Element for bool {
    const TYPE: sys::ONNXTensorElementDataType = sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
}

/// Whether a declared element type is `T`.
pub(super) fn is<T: Element>(dtype: ElementType) -> bool {
    let number = match dtype {
        ElementType::F32 => 1,
        ElementType::I32 => 6,
        ElementType::I64 => 7,
        ElementType::Bool => 9,
        ElementType::F16 => 10,
        ElementType::Other(n) => n,
    };
    T::TYPE as i32 == number
}

impl<'a> Binding<'a> {
    /// Binds `data` as a tensor of `shape` under `name`.
    ///
    /// # Errors
    ///
    /// When `shape` does not have as many elements as `data`.
    pub fn new<T: Element>(name: &'a CStr, data: &'a mut [T], shape: &[usize]) -> Result<Self> {
        let elements = shape.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis));
        if elements != Some(data.len()) {
            return Err(Error::engine(format!("{name:?}: {} elements for shape {shape:?}", data.len())));
        }
        Ok(Binding {
            name,
            data: data.as_mut_ptr().cast(),
            bytes: size_of_val(data),
            shape: shape.iter().map(|&axis| axis as i64).collect(),
            dtype: T::TYPE,
            memory: PhantomData,
        })
    }

    /// The same memory under another name, to be read as past and written as present.
    pub fn alias(&self, name: &'a CStr) -> Self {
        Binding {
            name,
            data: self.data,
            bytes: self.bytes,
            shape: self.shape.clone(),
            dtype: self.dtype,
            memory: PhantomData,
        }
    }
}

/// A C value that is released when dropped.
struct Value(*mut sys::OrtValue);

impl Drop for Value {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the pointer came from `CreateTensorWithDataAsOrtValue` and is released once.
            unsafe { (ort::api().ReleaseValue)(self.0) };
        }
    }
}

/// Describes CPU memory to ONNX Runtime.
pub(super) struct CpuMemory(*mut sys::OrtMemoryInfo);

// SAFETY: a memory description is immutable after creation and the C API reads it from any thread.
unsafe impl Send for CpuMemory {}
// SAFETY: as above.
unsafe impl Sync for CpuMemory {}

impl CpuMemory {
    /// The description of ordinary memory.
    ///
    /// # Errors
    ///
    /// When ONNX Runtime refuses.
    pub fn new() -> Result<Self> {
        let mut info = ptr::null_mut();
        // SAFETY: `info` is a valid place for the new pointer.
        check(unsafe {
            (ort::api().CreateCpuMemoryInfo)(
                sys::OrtAllocatorType::OrtDeviceAllocator,
                sys::OrtMemType::OrtMemTypeDefault,
                &mut info,
            )
        })?;
        Ok(CpuMemory(info))
    }
}

impl Drop for CpuMemory {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `CreateCpuMemoryInfo` and is released once.
        unsafe { (ort::api().ReleaseMemoryInfo)(self.0) };
    }
}

/// Runs `session` once: reads `inputs`, writes `outputs`. Both stay owned by the caller.
///
/// An output may [`alias`](Binding::alias) an input: that is for operators documented to update a past in place
/// (GroupQueryAttention), which read what they need before they overwrite it.
///
/// # Errors
///
/// What ONNX Runtime reports, e.g. an output whose shape is not the bound one.
pub(super) fn run(
    session: &Session,
    memory: &CpuMemory,
    inputs: &[Binding<'_>],
    outputs: &[Binding<'_>],
) -> Result<()> {
    let input_values = inputs.iter().map(|b| value(memory, b)).collect::<Result<Vec<_>>>()?;
    let output_values = outputs.iter().map(|b| value(memory, b)).collect::<Result<Vec<_>>>()?;
    let input_names: Vec<_> = inputs.iter().map(|b| b.name.as_ptr()).collect();
    let output_names: Vec<_> = outputs.iter().map(|b| b.name.as_ptr()).collect();
    let input_pointers: Vec<_> = input_values.iter().map(|v| v.0.cast_const()).collect();
    let mut output_pointers: Vec<_> = output_values.iter().map(|v| v.0).collect();
    // SAFETY: names are NUL-terminated and live in the bindings; every value wraps memory that its binding borrows for
    // longer than this call, of the size its shape and type say (checked in `Binding::new`); the outputs are given, so
    // ONNX Runtime writes into them and never replaces them; the session is used through a shared pointer, which `Run`
    // allows from any thread.
    check(unsafe {
        (ort::api().Run)(
            session.ptr().cast_mut(),
            ptr::null(),
            input_names.as_ptr(),
            input_pointers.as_ptr(),
            input_pointers.len(),
            output_names.as_ptr(),
            output_names.len(),
            output_pointers.as_mut_ptr(),
        )
    })
}

fn value(memory: &CpuMemory, binding: &Binding<'_>) -> Result<Value> {
    let mut value = ptr::null_mut();
    // SAFETY: `data` points to `bytes` bytes that the binding borrows mutably for longer than the value lives, and
    // `shape` outlives the call.
    check(unsafe {
        (ort::api().CreateTensorWithDataAsOrtValue)(
            memory.0,
            binding.data,
            binding.bytes,
            binding.shape.as_ptr(),
            binding.shape.len(),
            binding.dtype,
            &mut value,
        )
    })?;
    Ok(Value(value))
}

/// Turns a status into a result and releases it.
fn check(status: sys::OrtStatusPtr) -> Result<()> {
    if status.0.is_null() {
        return Ok(());
    }
    // SAFETY: a non-null status holds a NUL-terminated message until it is released, which happens once, here.
    let message = unsafe {
        let message = CStr::from_ptr((ort::api().GetErrorMessage)(status.0)).to_string_lossy().into_owned();
        (ort::api().ReleaseStatus)(status.0);
        message
    };
    Err(Error::engine(format!("ONNX Runtime could not run the graph: {message}")))
}

/// A name for the C API.
///
/// # Errors
///
/// When the graph's name holds a NUL.
pub(super) fn c_name(name: &str) -> Result<CString> {
    CString::new(name).map_err(|e| Error::invalid_model(format!("name {name:?} holds a NUL")).because(e))
}
