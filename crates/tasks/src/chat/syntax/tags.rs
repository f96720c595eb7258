//! A template in pieces: texts and tags.

/// A part of a template.
#[derive(Debug)]
pub(super) enum Piece<'s> {
    /// Text, comments and raw blocks, which stay as they are.
    Text(&'s str),
    /// A block or an expression.
    Tag(Tag<'s>),
}

/// What stands between two marks.
#[derive(Debug)]
pub(super) struct Tag<'s> {
    /// `{%`, `{%-`, `{%+` or `{{`, `{{-`.
    pub(super) open: &'s str,
    pub(super) body: String,
    /// `%}`, `-%}`, `+%}` or `}}`, `-}}`.
    pub(super) close: &'s str,
}

/// Parts a template.
pub(super) fn pieces(source: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut text, mut at) = (0, 0);
    while let Some(start) = source[at..].find('{').map(|found| at + found) {
        let tag = &source[start..];
        at = start
            + match tag.as_bytes().get(1) {
                Some(b'#') => tag.find("#}").map_or(tag.len(), |end| end + 2),
                Some(b'%' | b'{') => {
                    let mark = if tag.starts_with("{%") { "%}" } else { "}}" };
                    let length = tag_length(tag, mark);
                    let Some(tag) = parted(&tag[..length], mark) else { break };
                    match keyword(&tag) {
                        "raw" => raw_length(&source[start..], length),
                        _ => {
                            pieces.extend([Piece::Text(&source[text..start]), Piece::Tag(tag)]);
                            text = start + length;
                            length
                        }
                    }
                }
                _ => 1,
            };
    }
    pieces.push(Piece::Text(&source[text..]));
    pieces
}

/// The template of the pieces.
pub(super) fn written(pieces: &[Piece<'_>]) -> String {
    let mut source = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => source.push_str(text),
            Piece::Tag(tag) => source.extend([tag.open, &tag.body, tag.close]),
        }
    }
    source
}

/// The parts of a whole tag; `None` when it does not end.
fn parted<'s>(tag: &'s str, mark: &str) -> Option<Tag<'s>> {
    let inner = tag.get(2..)?.strip_suffix(mark)?;
    let open = 2 + usize::from(inner.starts_with(['-', '+']) && mark == "%}" || inner.starts_with('-'));
    let close = tag.len() - 2;
    // A sign at the end is the tag's own only when something stands before it.
    let signed = tag.get(open..close)?.ends_with(['-', '+']) && (mark == "%}" || tag.get(open..close)?.ends_with('-'));
    let close = close - usize::from(signed);
    Some(Tag { open: tag.get(..open)?, body: tag.get(open..close)?.to_owned(), close: tag.get(close..)? })
}

/// The first word of a block; empty for an expression.
pub(super) fn keyword<'t>(tag: &'t Tag<'_>) -> &'t str {
    if !tag.open.starts_with("{%") {
        return "";
    }
    let inner = tag.body.trim_start();
    let end = inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len());
    &inner[..end]
}

/// `{% generation %}` marks what the assistant wrote (Python makes training masks of it). It becomes `{% with %}`: like the
/// call block that Python makes of it, this renders its body once in a scope of its own.
pub(super) fn without_generation(tag: &mut Tag<'_>) {
    let word = match keyword(tag) {
        "generation" => "with",
        "endgeneration" => "endwith",
        _ => return,
    };
    tag.body = tag.body.replacen(keyword(tag).to_owned().as_str(), word, 1);
}

/// The length of a tag up to and with its closing mark, which does not count inside a string or inside brackets.
fn tag_length(tag: &str, close: &str) -> usize {
    let bytes = tag.as_bytes();
    let mut at = 2;
    let mut quote = None;
    let mut braces = 0usize;
    while let Some(&byte) = bytes.get(at) {
        match quote {
            Some(_) if byte == b'\\' => at += 1,
            Some(mark) if byte == mark => quote = None,
            Some(_) => {}
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            None if braces == 0 && bytes[at..].starts_with(close.as_bytes()) => return at + close.len(),
            None if byte == b'{' => braces += 1,
            None if byte == b'}' => braces = braces.saturating_sub(1),
            None => {}
        }
        at += 1;
    }
    tag.len()
}

/// The length of a raw block with its end tag.
fn raw_length(tag: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(found) = tag.get(at..).and_then(|rest| rest.find("{%")) {
        let end = &tag[at + found..];
        let length = tag_length(end, "%}");
        if parted(&end[..length], "%}").is_some_and(|tag| keyword(&tag) == "endraw") {
            return at + found + length;
        }
        at += found + 2;
    }
    tag.len()
}

#[cfg(test)]
mod tests {
    use super::super::adapted;

    #[test]
    fn generation_becomes_a_scope_and_the_rest_stays() {
        let cases = [
            ("a{% generation %}b{% endgeneration %}c", "a{% with %}b{% endwith %}c"),
            (
                "{%- generation -%}\n{{ 'x %} {% generation %}' }}{%-\nendgeneration+%}",
                "{%- with -%}\n{{ 'x %} {% generation %}' }}{%-\nendwith+%}",
            ),
            (
                "{# {% generation %} #}{% if add_generation_prompt %}",
                "{# {% generation %} #}{% if add_generation_prompt %}",
            ),
            (
                "{% raw %}{% generation %}{% endraw %}{% generation %}",
                "{% raw %}{% generation %}{% endraw %}{% with %}",
            ),
            ("{% set generation = \"{% generation %}\" %}", "{% set generation = \"{% generation %}\" %}"),
            ("{", "{"),
            ("{{ 'generation", "{{ 'generation"),
            ("é{ {%é generation %}", "é{ {%é generation %}"),
        ];
        for (source, expected) in cases {
            assert_eq!(adapted(source), expected, "{source}");
        }
    }
}
