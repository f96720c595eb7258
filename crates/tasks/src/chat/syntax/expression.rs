//! Operators and literals of expressions.

use crate::chat::format::{REMAINDER, SUM};

/// The most operators of one tag that are written in another way; each costs a walk through the tag.
const MAX_CHANGES: usize = 256;

/// A token of a tag's body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token<'s> {
    pub(super) text: &'s str,
    pub(super) at: usize,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.at + self.text.len()
    }

    fn is_literal(&self) -> bool {
        self.text.starts_with(['"', '\''])
    }
}

/// Words that end an operand.
const KEYWORDS: [&str; 9] = ["and", "or", "not", "in", "is", "if", "else", "elif", "recursive"];

/// Operators of more than one character.
const LONG: [&str; 6] = ["**", "//", "==", "!=", "<=", ">="];

/// The tokens of a tag's body; `None` where a string does not end.
pub(super) fn tokens(body: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = body.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = &body[at..];
        let length = match c {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '"' | '\'' => literal_length(rest, c)?,
            c if c.is_alphanumeric() || c == '_' => {
                // A number takes its fraction along.
                let number = c.is_ascii_digit();
                let inside = |c: char| c.is_alphanumeric() || c == '_';
                let word = rest.find(|c| !inside(c)).unwrap_or(rest.len());
                let fraction = rest.get(word..).and_then(|rest| rest.strip_prefix('.'));
                let fraction = fraction.filter(|rest| number && rest.starts_with(|c: char| c.is_ascii_digit()));
                word + fraction.map_or(0, |rest| 1 + rest.find(|c| !inside(c)).unwrap_or(rest.len()))
            }
            c => LONG.iter().find(|long| rest.starts_with(**long)).map_or(c.len_utf8(), |long| long.len()),
        };
        tokens.push(Token { text: &rest[..length], at });
        at += length;
    }
    Some(tokens)
}

fn literal_length(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The body with everything the engine knows; `None` when it knows all. `+` becomes a filter too: the engine adds lists
/// without looking at what that costs, and texts without looking at what is marked as safe.
pub(super) fn adapted(body: &str) -> Option<String> {
    let suspicious = |c: char| matches!(c, '%' | '+' | '\\');
    if !body.contains(suspicious) {
        return None;
    }
    let mut changed: Option<String> = None;
    for _ in 0..MAX_CHANGES {
        let current = changed.as_deref().unwrap_or(body);
        match step(current) {
            Some(next) => changed = Some(next),
            None => break,
        }
    }
    changed
}

/// One change.
fn step(body: &str) -> Option<String> {
    let tokens = tokens(body)?;
    for (index, token) in tokens.iter().enumerate() {
        if token.is_literal() {
            if let Some(text) = literal(token.text) {
                return Some(format!("{}{text}{}", &body[..token.at], &body[token.end()..]));
            }
            continue;
        }
        let is_binary = index > 0 && ends_operand(&tokens, index - 1);
        let name = match token.text {
            "+" if !is_binary => return Some(format!("{} {}", &body[..token.at], &body[token.end()..])),
            "%" if is_binary => REMAINDER,
            "+" if is_binary => SUM,
            _ => continue,
        };
        let level = precedence(token.text);
        let first = tokens.get(operand_start(&tokens, index, level))?.at;
        let (left, right) = (&body[first..token.at], &tokens[index + 1..operand_end(&tokens, index, level)]);
        let (start, end) = (right.first()?.at, right.last()?.end());
        let right = &body[start..end];
        return Some(format!("{}({})|{name}({right}){}", &body[..first], left.trim_end(), &body[end..]));
    }
    None
}

/// How strongly an operator binds; the higher, the more strongly.
fn precedence(operator: &str) -> u8 {
    match operator {
        "**" => 5,
        "*" | "/" | "//" | "%" => 4,
        "~" => 3,
        "+" | "-" => 2,
        "==" | "!=" | "<" | ">" | "<=" | ">=" => 1,
        _ => 0,
    }
}

fn ends_operand(tokens: &[Token<'_>], index: usize) -> bool {
    let text = tokens[index].text;
    let is_word = text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '\''));
    matches!(text, ")" | "]" | "}") || (is_word && !is_keyword(tokens, index))
}

/// Whether a token is a word of the language; after a dot or a bar it is a name.
fn is_keyword(tokens: &[Token<'_>], index: usize) -> bool {
    let is_name = index > 0 && matches!(tokens[index - 1].text, "." | "|");
    // The first word of a block says what the block is, and stands where an operand cannot: before another one.
    let is_statement = index == 0
        && tokens.get(1).is_some_and(|next| {
            next.is_literal()
                || next.text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '(' | '[' | '{'))
        })
        && ["if", "elif", "for", "set", "with", "call", "filter", "macro"].contains(&tokens[0].text);
    !is_name && (is_statement || KEYWORDS.contains(&tokens[index].text))
}

/// Whether the token ends the operands of an operator of `level`, outside of brackets.
fn parts(tokens: &[Token<'_>], index: usize, level: u8) -> bool {
    let text = tokens[index].text;
    match text {
        "," | ":" | "=" => true,
        "==" | "!=" | "<" | ">" | "<=" | ">=" | "~" | "*" | "/" | "//" | "%" | "**" => precedence(text) < level,
        "+" | "-" => precedence(text) < level && index > 0 && ends_operand(tokens, index - 1),
        _ => is_keyword(tokens, index),
    }
}

/// The first token of the left operand.
fn operand_start(tokens: &[Token<'_>], operator: usize, level: u8) -> usize {
    let mut depth = 0usize;
    let mut start = operator;
    while start > 0 {
        match tokens[start - 1].text {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" if depth == 0 => break,
            "(" | "[" | "{" => depth -= 1,
            _ if depth == 0 && parts(tokens, start - 1, level) => break,
            _ => {}
        }
        start -= 1;
    }
    start
}

/// One behind the last token of the right operand.
fn operand_end(tokens: &[Token<'_>], operator: usize, level: u8) -> usize {
    let mut depth = 0usize;
    let mut end = operator + 1;
    while end < tokens.len() {
        match tokens[end].text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => break,
            ")" | "]" | "}" => depth -= 1,
            _ if depth == 0 && end > operator + 1 && parts(tokens, end, level + 1) => break,
            _ => {}
        }
        end += 1;
    }
    end
}

/// A string literal whose escapes the engine does not know, with the characters themselves.
fn literal(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at..];
        let (length, character) = match escape.as_bytes().get(1) {
            Some(b'\n') => (2, Some(None)),
            Some(b'a') => (2, Some(Some('\u{7}'))),
            Some(b'v') => (2, Some(Some('\u{b}'))),
            Some(b'U') => {
                let code = escape.get(2..10).and_then(|digits| u32::from_str_radix(digits, 16).ok());
                code.and_then(char::from_u32).map_or((2, None), |c| (10, Some(Some(c))))
            }
            Some(b'0'..=b'7') => {
                let digits = escape[1..].bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let code = u32::from_str_radix(&escape[1..=digits], 8).ok();
                (1 + digits, code.and_then(char::from_u32).map(Some))
            }
            _ => (1 + escape.chars().nth(1).map_or(0, char::len_utf8), None),
        };
        match character {
            Some(character) => {
                changed = true;
                out.extend(character);
            }
            None => out.push_str(&escape[..length]),
        }
        rest = &escape[length..];
    }
    out.push_str(rest);
    changed.then_some(out)
}
