//! The table models of the specification: the probabilities of the next token, by the last one.

/// A cycle: 0, 1, 2, 3, 0 and so on, each with 0.7.
pub const C: [[f32; 4]; 4] = [[0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1], [0.1, 0.1, 0.1, 0.7], [0.7, 0.1, 0.1, 0.1]];

/// Ids 0 pad, 1 begin, 4 end; rows 0 and 4 are even.
pub const T5: [[f32; 5]; 5] = [
    [0.2, 0.2, 0.2, 0.2, 0.2],
    [0.01, 0.01, 0.48, 0.4, 0.1],
    [0.01, 0.01, 0.38, 0.2, 0.4],
    [0.01, 0.01, 0.08, 0.2, 0.7],
    [0.2, 0.2, 0.2, 0.2, 0.2],
];

/// Like [`T5`] with a sharper choice between going on and ending.
pub const T2: [[f32; 5]; 5] = [
    [0.2, 0.2, 0.2, 0.2, 0.2],
    [0.001, 0.001, 0.6, 0.388, 0.01],
    [0.001, 0.001, 0.648, 0.05, 0.3],
    [0.03, 0.03, 0.02, 0.02, 0.9],
    [0.2, 0.2, 0.2, 0.2, 0.2],
];

/// The model of the specification's examples of assisted decoding.
pub const MAIN: [[f32; 4]; 4] =
    [[0.1, 0.2, 0.3, 0.4], [0.1, 0.1, 0.7, 0.1], [0.1, 0.1, 0.1, 0.7], [0.6, 0.2, 0.1, 0.1]];

/// The assistant of those examples, which is wrong after token 2.
pub const ASSISTANT: [[f32; 4]; 4] = [MAIN[0], MAIN[1], [0.7, 0.1, 0.1, 0.1], MAIN[3]];
