//! Heads of sizes that ONNX Runtime's attention does not take, filled up to one that it takes.
//!
//! Rotary positions turn number `i` of a head's first half with number `i` of its second half, so each half is filled up by
//! itself. The zeros turn to zeros, and add nothing to the products of queries and keys; those of the values are cut off the
//! output again.

use unspool_core::Result;

use super::decoder::Writer;

impl Writer<'_, '_> {
    /// Flat heads `[positions, count * head_dim]` as rows `[batch_size, sequence_length, count * cached_head_dim]`.
    pub(super) fn heads_of_rows(&mut self, name: &str, input: &str, count: usize) -> Result<String> {
        let (half, filled) = self.halves();
        if half == filled {
            let width = self.width(count)?;
            return Ok(self.apart(&format!("{name}/rows"), input, width));
        }
        let halves = self.flat(&format!("{name}/halves"), input, half);
        let pads = self.graph.ints(&[0, 0, 0, (filled - half) as i64]);
        let filled_up = self.graph.op(&format!("{name}/Pad"), "Pad", &[&halves, &pads], &[]);
        Ok(self.apart(&format!("{name}/rows"), &filled_up, count * 2 * filled))
    }

    /// The rows of attention's output without what heads were filled up with.
    pub(super) fn attended_heads(&mut self, name: &str, output: String) -> Result<String> {
        let (half, filled) = self.halves();
        if half == filled {
            return Ok(output);
        }
        let halves = self.flat(&format!("{name}/halves"), &output, filled);
        let (start, end, axis) = (self.graph.ints(&[0]), self.graph.ints(&[half as i64]), self.graph.ints(&[1]));
        let cut = self.graph.op(&format!("{name}/Slice"), "Slice", &[&halves, &start, &end, &axis], &[]);
        let width = self.width(self.decoder.heads)?;
        Ok(self.apart(&format!("{name}/rows"), &cut, width))
    }

    /// Numbers of half a head, and of half a head filled up.
    fn halves(&self) -> (usize, usize) {
        (self.decoder.head_dim / 2, self.decoder.cached_head_dim() / 2)
    }
}
