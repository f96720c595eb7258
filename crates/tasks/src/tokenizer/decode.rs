//! From token strings to text, one token at a time: the decoder of a `tokenizer.json` as a chain of small machines.
//!
//! Each machine gives out text only when no later token can change it, and at the end what is left; so the pieces of a
//! stream, put together, are the text of the whole exactly. A character is never split, because text is given out as
//! `str`. Every machine of the known decoders works in constant time per token. A decoder that looks at the whole text
//! in a way no known model uses (a pattern after `Fuse`, for one) holds everything until the end.

use std::sync::Arc;

use tokenizers::Decoder;
use tokenizers::decoders::DecoderWrapper;

/// The steps of a decoder in order; made once per tokenizer.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Steps over single tokens.
    steps: Vec<Step>,
    /// Steps after all tokens became one text.
    fused: Vec<FusedStep>,
}

#[derive(Debug)]
enum Step {
    /// Each token alone: `Replace`.
    Each(DecoderWrapper),
    /// Each token alone, but the first differs: `Metaspace`, `WordPiece`.
    First(DecoderWrapper),
    /// Equal neighbours are one token: `CTC`.
    Ctc(DecoderWrapper),
    /// The last token differs: `BPEDecoder`.
    Last {
        suffix: String,
    },
    Strip(Strip),
    ByteFallback,
    /// No decoder at all: tokens are put together with spaces.
    Spaces,
    /// All tokens become one text.
    Fuse,
    /// Tokens spell bytes; they become one text.
    ByteLevel,
}

#[derive(Debug)]
enum FusedStep {
    Strip(Strip),
    /// Looks at the whole text at once.
    Whole(DecoderWrapper),
}

#[derive(Clone, Copy, Debug)]
struct Strip {
    content: char,
    start: usize,
    stop: usize,
}

impl Plan {
    pub(crate) fn new(decoder: Option<&DecoderWrapper>) -> Plan {
        let mut plan = Plan { steps: Vec::new(), fused: Vec::new() };
        match decoder {
            None => plan.steps.push(Step::Spaces),
            Some(decoder) => plan.add(decoder),
        }
        plan
    }

    fn add(&mut self, decoder: &DecoderWrapper) {
        if let DecoderWrapper::Sequence(sequence) = decoder {
            sequence.get_decoders().iter().for_each(|decoder| self.add(decoder));
            return;
        }
        if matches!(self.steps.last(), Some(Step::Fuse | Step::ByteLevel)) {
            match decoder {
                DecoderWrapper::Fuse(_) => {}
                DecoderWrapper::Strip(strip) => self.fused.push(FusedStep::Strip(Strip::from(strip))),
                other => self.fused.push(FusedStep::Whole(other.clone())),
            }
            return;
        }
        self.steps.push(match decoder {
            DecoderWrapper::Metaspace(_) | DecoderWrapper::WordPiece(_) => Step::First(decoder.clone()),
            DecoderWrapper::CTC(_) => Step::Ctc(decoder.clone()),
            DecoderWrapper::BPE(bpe) => Step::Last { suffix: bpe.suffix.clone() },
            DecoderWrapper::Strip(strip) => Step::Strip(Strip::from(strip)),
            DecoderWrapper::ByteFallback(_) => Step::ByteFallback,
            DecoderWrapper::Fuse(_) => Step::Fuse,
            DecoderWrapper::ByteLevel(_) => Step::ByteLevel,
            other => Step::Each(other.clone()),
        });
    }

    /// Whether tokens `<0xHH>` stand for bytes.
    pub(crate) fn has_byte_fallback(&self) -> bool {
        self.has(|step| matches!(step, Step::ByteFallback), |whole| matches!(whole, DecoderWrapper::ByteFallback(_)))
    }

    /// Whether the characters of tokens stand for bytes.
    pub(crate) fn has_byte_level(&self) -> bool {
        self.has(|step| matches!(step, Step::ByteLevel), |whole| matches!(whole, DecoderWrapper::ByteLevel(_)))
    }

    fn has(&self, step: impl Fn(&Step) -> bool, fused: impl Fn(&DecoderWrapper) -> bool) -> bool {
        let in_whole = |step: &FusedStep| matches!(step, FusedStep::Whole(whole) if fused(whole));
        self.steps.iter().any(step) || self.fused.iter().any(in_whole)
    }
}

impl From<&tokenizers::decoders::strip::Strip> for Strip {
    fn from(strip: &tokenizers::decoders::strip::Strip) -> Strip {
        Strip { content: strip.content, start: strip.start, stop: strip.stop }
    }
}

impl Strip {
    fn whole(self, token: &str) -> String {
        let mut text = token;
        for _ in 0..self.start {
            let Some(rest) = text.strip_prefix(self.content) else { break };
            text = rest;
        }
        for _ in 0..self.stop {
            let Some(rest) = text.strip_suffix(self.content) else { break };
            text = rest;
        }
        text.to_owned()
    }
}

/// One text in the making.
#[derive(Clone, Debug)]
pub(crate) struct Decoding {
    plan: Arc<Plan>,
    states: Vec<State>,
    fused: Vec<FusedState>,
    clean_up: Option<CleanUp>,
}

/// What a step remembers between tokens.
#[derive(Clone, Debug, Default)]
struct State {
    started: bool,
    held: Option<String>,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct FusedState {
    stripped: usize,
    begun: bool,
    held: String,
}

impl Decoding {
    pub(crate) fn new(plan: Arc<Plan>, clean_up: bool) -> Decoding {
        let (steps, fused) = (plan.steps.len(), plan.fused.len());
        Decoding {
            plan,
            states: vec![State::default(); steps],
            fused: vec![FusedState::default(); fused],
            clean_up: clean_up.then(CleanUp::default),
        }
    }

    /// Adds a token; what became certain is appended to `out`.
    pub(crate) fn push(&mut self, token: &str, out: &mut String) {
        let plan = Arc::clone(&self.plan);
        let mut text = String::new();
        self.feed(&plan, 0, token.to_owned(), &mut text);
        self.give(text, out);
    }

    /// The end: what was held is appended to `out`.
    pub(crate) fn finish(&mut self, out: &mut String) {
        let plan = Arc::clone(&self.plan);
        let mut text = String::new();
        for index in 0..plan.steps.len() {
            self.flush(&plan, index, &mut text);
        }
        for index in 0..plan.fused.len() {
            let rest = self.flush_fused(&plan, index);
            self.feed_fused(&plan, index + 1, rest, &mut text);
        }
        self.give(text, out);
        if let Some(clean_up) = &mut self.clean_up {
            clean_up.finish(out);
        }
    }

    fn give(&mut self, text: String, out: &mut String) {
        match &mut self.clean_up {
            Some(clean_up) => clean_up.push(&text, out),
            None => out.push_str(&text),
        }
    }

    fn feed(&mut self, plan: &Plan, index: usize, token: String, out: &mut String) {
        let (Some(step), Some(state)) = (plan.steps.get(index), self.states.get_mut(index)) else {
            out.push_str(&token);
            return;
        };
        match step {
            Step::Each(decoder) => {
                // A pattern that gives up leaves the token as it is.
                let tokens = decoder.decode_chain(vec![token.clone()]).unwrap_or_else(|_| vec![token]);
                for token in tokens {
                    self.feed(plan, index + 1, token, out);
                }
            }
            Step::First(decoder) => {
                let first = !std::mem::replace(&mut state.started, true);
                let chain = if first { vec![token] } else { vec![String::new(), token] };
                let decoded = decoder.decode_chain(chain).unwrap_or_default();
                self.feed(plan, index + 1, decoded.into_iter().next_back().unwrap_or_default(), out);
            }
            Step::Ctc(decoder) => {
                if state.held.as_ref() == Some(&token) {
                    return;
                }
                state.held = Some(token.clone());
                for token in decoder.decode_chain(vec![token]).unwrap_or_default() {
                    self.feed(plan, index + 1, token, out);
                }
            }
            Step::Last { suffix } => {
                if let Some(held) = state.held.replace(token) {
                    let held = replace(&held, suffix, " ");
                    self.feed(plan, index + 1, held, out);
                }
            }
            Step::Strip(strip) => self.feed(plan, index + 1, strip.whole(&token), out),
            Step::ByteFallback => match fallback_byte(&token) {
                Some(byte) => state.bytes.push(byte),
                None => {
                    self.flush(plan, index, out);
                    self.feed(plan, index + 1, token, out);
                }
            },
            Step::Spaces => {
                let first = !std::mem::replace(&mut state.started, true);
                self.feed(plan, index + 1, if first { token } else { format!(" {token}") }, out);
            }
            Step::Fuse => self.feed_fused(plan, 0, token, out),
            Step::ByteLevel => {
                match byte_level(&token) {
                    Some(bytes) => state.bytes.extend(bytes),
                    None => state.bytes.extend(token.into_bytes()),
                }
                let text = take_text(&mut state.bytes, false);
                self.feed_fused(plan, 0, text, out);
            }
        }
    }

    /// The step at `index` gives what it held to the next.
    fn flush(&mut self, plan: &Plan, index: usize, out: &mut String) {
        let (Some(step), Some(state)) = (plan.steps.get(index), self.states.get_mut(index)) else { return };
        match step {
            Step::Last { suffix } => {
                if let Some(held) = state.held.take() {
                    let held = replace(&held, suffix, "");
                    self.feed(plan, index + 1, held, out);
                }
            }
            Step::ByteFallback => match String::from_utf8(std::mem::take(&mut state.bytes)) {
                Ok(text) if text.is_empty() => {}
                Ok(text) => self.feed(plan, index + 1, text, out),
                // A run of bytes is a text as a whole or not at all.
                Err(error) => {
                    for _ in error.as_bytes() {
                        self.feed(plan, index + 1, '\u{fffd}'.to_string(), out);
                    }
                }
            },
            Step::ByteLevel => {
                let text = take_text(&mut state.bytes, true);
                self.feed_fused(plan, 0, text, out);
            }
            _ => {}
        }
    }

    fn feed_fused(&mut self, plan: &Plan, index: usize, text: String, out: &mut String) {
        let (Some(step), Some(state)) = (plan.fused.get(index), self.fused.get_mut(index)) else {
            out.push_str(&text);
            return;
        };
        state.held.push_str(&text);
        if let FusedStep::Strip(strip) = step {
            while !state.begun && !state.held.is_empty() {
                if state.stripped < strip.start && state.held.starts_with(strip.content) {
                    state.held.drain(..strip.content.len_utf8());
                    state.stripped += 1;
                } else {
                    state.begun = true;
                }
            }
            // What may be stripped at the end: up to `stop` of the characters that end the text so far.
            let ending = state.held.chars().rev().take(strip.stop).take_while(|&c| c == strip.content).count();
            let keep = state.held.len() - ending * strip.content.len_utf8();
            let rest = state.held.split_off(keep);
            let certain = std::mem::replace(&mut state.held, rest);
            self.feed_fused(plan, index + 1, certain, out);
        }
    }

    /// What is left of a step over the whole text.
    fn flush_fused(&mut self, plan: &Plan, index: usize) -> String {
        let (Some(step), Some(state)) = (plan.fused.get(index), self.fused.get_mut(index)) else {
            return String::new();
        };
        let held = std::mem::take(&mut state.held);
        match step {
            FusedStep::Strip(_) => String::new(),
            FusedStep::Whole(decoder) => decoder.decode_chain(vec![held]).unwrap_or_default().concat(),
        }
    }
}

/// `clean_up_tokenization_spaces`: Python's list of replacements over the whole text, done up to the last space that
/// no replacement can reach over.
#[derive(Clone, Debug, Default)]
struct CleanUp {
    held: String,
}

impl CleanUp {
    const RULES: [(&'static str, &'static str); 10] = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];

    fn push(&mut self, text: &str, out: &mut String) {
        self.held.push_str(text);
        // Every rule starts with a space, and only `" ' "` has a second one: so a space beside no quote is a border. Beside
        // a quote, `" ' "` may take spaces away and make a match of a later rule that reaches over it.
        let before_quote = |at: usize| self.held[at + 1..].chars().next().is_none_or(|next| next == '\'');
        let border = |&at: &usize| at > 0 && !self.held[..at].ends_with('\'') && !before_quote(at);
        if let Some(at) = self.held.rmatch_indices(' ').map(|(at, _)| at).find(border) {
            let rest = self.held.split_off(at);
            out.push_str(&clean_up(&std::mem::replace(&mut self.held, rest)));
        }
    }

    fn finish(&mut self, out: &mut String) {
        out.push_str(&clean_up(&std::mem::take(&mut self.held)));
    }
}

fn clean_up(text: &str) -> String {
    CleanUp::RULES.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// `str.replace`, except that an empty pattern changes nothing.
fn replace(text: &str, from: &str, to: &str) -> String {
    if from.is_empty() { text.to_owned() } else { text.replace(from, to) }
}

/// Takes the text that the bytes spell; an unfinished character stays, unless it is the end. Invalid bytes become
/// U+FFFD by the rule of `String::from_utf8_lossy`.
fn take_text(bytes: &mut Vec<u8>, end: bool) -> String {
    let mut text = String::new();
    let mut rest = bytes.as_slice();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                rest = &[];
            }
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                rest = after;
                match error.error_len() {
                    Some(length) => {
                        text.push('\u{fffd}');
                        rest = rest.get(length..).unwrap_or_default();
                        continue;
                    }
                    None if end => {
                        text.push('\u{fffd}');
                        rest = &[];
                    }
                    None => {}
                }
            }
        }
        break;
    }
    let left = rest.len();
    bytes.drain(..bytes.len() - left);
    text
}

/// The byte of a token `<0xHH>` as the decoder reads it.
fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// The byte of a token `<0xHH>`, two hexadecimal digits.
pub(super) fn byte_fallback(token: &str) -> Option<u8> {
    fallback_byte(token).filter(|_| !token.contains('+'))
}

/// The bytes that the characters of a byte-level token stand for; `None` when one of them stands for none.
pub(super) fn byte_level(token: &str) -> Option<Vec<u8>> {
    token.chars().map(byte_of).collect()
}

/// GPT-2's table read backwards: printable Latin-1 characters stand for themselves, the other 68 bytes follow from
/// U+0100 on in their order.
fn byte_of(character: char) -> Option<u8> {
    let is_printable = |code: u32| matches!(code, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let code = character as u32;
    match code {
        _ if is_printable(code) => u8::try_from(code).ok(),
        0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
