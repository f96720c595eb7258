//! Text while it is written, in the pieces that Python's `TextStreamer` shows.

use std::sync::LazyLock;

use regex::Regex;
use unspool_core::TokenId;

use crate::tokenizer::Tokenizer;
use crate::tokenizer::decode::Decoding;

/// A character that waits for the next space: no letter, mark, digit or space (Python's `str.isspace`).
static SYMBOL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[^\p{L}\p{M}\p{N}\p{Z}\x09-\x0d\x1c-\x1f\x{85}]").expect("the pattern is fixed and right")
});

/// The code points that count as Chinese, Japanese or Korean characters; Hiragana, Katakana and Hangul do not.
const CJK: [(char, char); 8] = [
    ('\u{4e00}', '\u{9fff}'),
    ('\u{3400}', '\u{4dbf}'),
    ('\u{20000}', '\u{2a6df}'),
    ('\u{2a700}', '\u{2b73f}'),
    ('\u{2b740}', '\u{2b81f}'),
    ('\u{2b820}', '\u{2ceaf}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{2f800}', '\u{2fa1f}'),
];

/// Cuts one row's text exactly as `TextStreamer` of transformers 5 does.
///
/// Letters, digits and spaces are given at once; a text with a symbol is given up to its last space; a line's end or a CJK
/// character gives everything. Half a character decodes to U+FFFD, a symbol, so it waits. [`Pieces`](super::Pieces) gives
/// more, and earlier; all its text is certain, while this streamer shows, as Python does, what may still change.
///
/// ```no_run
/// # fn show(tokenizer: &unspool_tasks::Tokenizer, prompt: &[u32], ids: &[u32]) {
/// let mut streamer = unspool_tasks::TextStreamer::new(tokenizer).skip_special_tokens(true);
/// print!("{}", streamer.put(prompt).unwrap_or_default());
/// for &id in ids {
///     print!("{}", streamer.put(&[id]).unwrap_or_default());
/// }
/// println!("{}", streamer.end());
/// # }
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "TextIteratorStreamer")]
pub struct TextStreamer {
    tokenizer: Tokenizer,
    skip_prompt: bool,
    skip_special_tokens: bool,
    /// The next tokens are the prompt; looked at only when it is skipped.
    prompt_next: bool,
    /// The last of the tokens that the text is made of.
    last: Option<TokenId>,
    decoding: Decoding,
    /// The text that no later token can change, without its first `dropped` characters.
    certain: String,
    dropped: usize,
    /// Characters of the whole text that were given.
    shown: usize,
}

impl TextStreamer {
    /// Python's defaults: the prompt is shown, and special tokens too.
    pub fn new(tokenizer: &Tokenizer) -> TextStreamer {
        TextStreamer {
            tokenizer: tokenizer.clone(),
            skip_prompt: false,
            skip_special_tokens: false,
            prompt_next: true,
            last: None,
            decoding: tokenizer.decoding(),
            certain: String::new(),
            dropped: 0,
            shown: 0,
        }
    }

    /// Whether the first [`put`](TextStreamer::put) of a text, the prompt, is left out.
    #[must_use]
    pub fn skip_prompt(mut self, skip: bool) -> Self {
        self.skip_prompt = skip;
        self
    }

    /// Whether special tokens are left out.
    #[must_use]
    pub fn skip_special_tokens(mut self, skip: bool) -> Self {
        self.skip_special_tokens = skip;
        self
    }

    /// Adds tokens: the prompt, then one or more at a time. What is to be shown now, often nothing; `None` for a prompt
    /// that is left out.
    pub fn put(&mut self, ids: &[TokenId]) -> Option<String> {
        if self.skip_prompt && std::mem::take(&mut self.prompt_next) {
            return None;
        }
        ids.iter().for_each(|&id| self.add(id));
        let text = self.text();
        let from = self.place(&text);
        let new = &text[from..];
        if text.ends_with('\n') {
            let given = new.to_owned();
            // The last token stays as context, so that a space at the beginning of the next line survives.
            self.begin(self.last);
            self.shown = self.text().chars().count();
            return Some(given);
        }
        let given = if text.ends_with(is_cjk) || !SYMBOL.is_match(new) {
            new
        } else {
            let end = text.rfind(' ').map_or(from, |space| (space + 1).max(from));
            &text[from..end]
        };
        self.shown += given.chars().count();
        let given = given.to_owned();
        self.drop_shown();
        Some(given)
    }

    /// Ends the text: what was not shown yet. The next [`put`](TextStreamer::put) begins another.
    pub fn end(&mut self) -> String {
        let text = self.text();
        let rest = text[self.place(&text)..].to_owned();
        self.begin(None);
        self.prompt_next = true;
        rest
    }

    fn add(&mut self, id: TokenId) {
        self.last = Some(id);
        if let Some(token) = self.tokenizer.shown_token(id, self.skip_special_tokens) {
            self.decoding.push(token, &mut self.certain);
        }
    }

    /// Forgets the text; a new one begins with `first`.
    fn begin(&mut self, first: Option<TokenId>) {
        self.decoding = self.tokenizer.decoding();
        self.certain.clear();
        (self.last, self.dropped, self.shown) = (None, 0, 0);
        first.into_iter().for_each(|id| self.add(id));
    }

    /// The text of all tokens, without its first `dropped` characters.
    fn text(&self) -> String {
        let mut text = self.certain.clone();
        self.decoding.clone().finish(&mut text);
        text
    }

    /// Where in `text` that begins which was not shown.
    fn place(&self, text: &str) -> usize {
        text.char_indices().nth(self.shown - self.dropped).map_or(text.len(), |(at, _)| at)
    }

    /// Forgets text that was shown, but for its last character: the end of the whole text is looked at.
    fn drop_shown(&mut self) {
        let shown = (self.shown - self.dropped).min(self.certain.chars().count());
        let count = shown.saturating_sub(1);
        let at = self.certain.char_indices().nth(count).map_or(0, |(at, _)| at);
        self.certain.drain(..at);
        self.dropped += count;
    }
}

fn is_cjk(c: char) -> bool {
    CJK.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Tokens that are texts put together, as in the specification's table.
    fn tokenizer(tokens: &[&str]) -> Tokenizer {
        let mut vocab = serde_json::Map::new();
        for token in tokens.iter().chain(&["<e>"]) {
            let id = vocab.len();
            vocab.entry(token.to_string()).or_insert(json!(id));
        }
        let end = vocab["<e>"].clone();
        let json = json!({"version": "1.0", "decoder": {"type": "Fuse"},
            "added_tokens": [{"id": end, "content": "<e>", "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true}],
            "model": {"type": "BPE", "vocab": vocab, "merges": []}});
        Tokenizer::from_json(&json.to_string(), None).unwrap()
    }

    fn run(tokens: &[&str]) -> Vec<String> {
        let tokenizer = tokenizer(tokens);
        let mut streamer = TextStreamer::new(&tokenizer);
        let mut given: Vec<_> =
            tokens.iter().map(|token| streamer.put(&[tokenizer.id(token).unwrap()]).unwrap()).collect();
        given.push(streamer.end());
        given
    }

    #[test]
    fn gives_the_pieces_of_the_table() {
        let cases: [(&[&str], &[&str]); 8] = [
            (&["Hello", " wor", "ld", " foo"], &["Hello", " wor", "ld", " foo", ""]),
            (&["Hello", ",", " wor", "ld", "!"], &["Hello", "", ", ", "world", "", "!"]),
            (&["a b", "\n", "c", " d", "\n"], &["a b", "\n", "c", " d", "\n", ""]),
            (&["你", "好", "世"], &["你", "好", "世", ""]),
            (&["こ", "ん", "に"], &["こ", "ん", "に", ""]),
            (&["a ", "\u{fffd}", "b"], &["a ", "", "", "\u{fffd}b"]),
            (&["12", "3", " 4"], &["12", "3", " 4", ""]),
            (&["😀", " a"], &["", "😀 ", "a"]),
        ];
        for (tokens, expected) in cases {
            assert_eq!(run(tokens), expected, "{tokens:?}");
        }
    }

    #[test]
    fn the_prompt_and_special_tokens_are_shown_or_left_out() {
        let tokenizer = tokenizer(&["a", " b"]);
        let ids = |tokens: &[&str]| tokens.iter().map(|token| tokenizer.id(token).unwrap()).collect::<Vec<_>>();
        let mut streamer = TextStreamer::new(&tokenizer).skip_prompt(true).skip_special_tokens(true);
        for _ in 0..2 {
            assert_eq!(streamer.put(&ids(&["<e>", "a"])), None, "the prompt of every text");
            assert_eq!(streamer.put(&ids(&[" b"])).as_deref(), Some(" b"));
            assert_eq!(streamer.put(&ids(&["<e>"])).as_deref(), Some(""));
            assert_eq!(streamer.end(), "");
        }
        let mut streamer = TextStreamer::new(&tokenizer);
        assert_eq!(streamer.put(&ids(&["a", "a"])).as_deref(), Some("aa"));
        assert_eq!(streamer.put(&ids(&["<e>"])).as_deref(), Some(""), "a symbol waits");
        assert_eq!(streamer.end(), "<e>");
    }
}
