//! `{% generation %}` marks what the assistant wrote (Python makes training masks of it). The text is the same with or
//! without the mark, so it becomes a plain scope.

use std::borrow::Cow;

/// The template with `{% generation %}` and `{% endgeneration %}` as `{% with %}` and `{% endwith %}`: like the call
/// block that Python makes of it, this renders its body once in a scope of its own. Line numbers stay.
pub(super) fn without_generation(source: &str) -> Cow<'_, str> {
    if !source.contains("generation") {
        return Cow::Borrowed(source);
    }
    let mut result = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find('{') {
        let (before, tag) = rest.split_at(start);
        result.push_str(before);
        let length = match tag.as_bytes().get(1) {
            Some(b'#') => tag.find("#}").map_or(tag.len(), |end| end + 2),
            Some(b'{') => tag_length(tag, "}}"),
            Some(b'%') => {
                let length = tag_length(tag, "%}");
                let (keyword, at) = keyword(tag);
                let replacement = match keyword {
                    "generation" => Some("with"),
                    "endgeneration" => Some("endwith"),
                    _ => None,
                };
                if let (Some(replacement), Some(head), Some(tail)) =
                    (replacement, tag.get(..at), tag.get(at + keyword.len()..length))
                {
                    result.push_str(head);
                    result.push_str(replacement);
                    result.push_str(tail);
                    rest = tag.get(length..).unwrap_or_default();
                    continue;
                }
                if keyword == "raw" { raw_length(tag, length) } else { length }
            }
            _ => 1,
        };
        let (kept, after) = tag.split_at(length);
        result.push_str(kept);
        rest = after;
    }
    result.push_str(rest);
    Cow::Owned(result)
}

/// The first word of a block tag, and where it begins.
fn keyword(tag: &str) -> (&str, usize) {
    let inner = tag.get(2..).unwrap_or_default();
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner).trim_start();
    let end = inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len());
    (inner.get(..end).unwrap_or_default(), tag.len() - inner.len())
}

/// The length of a tag up to and with its closing mark, which does not count inside a string.
fn tag_length(tag: &str, close: &str) -> usize {
    let bytes = tag.as_bytes();
    let mut at = 2;
    let mut quote = None;
    while let Some(&byte) = bytes.get(at) {
        match quote {
            Some(_) if byte == b'\\' => at += 1,
            Some(mark) if byte == mark => quote = None,
            Some(_) => {}
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            None if bytes[at..].starts_with(close.as_bytes()) => return at + close.len(),
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
        if keyword(end).0 == "endraw" {
            return at + found + tag_length(end, "%}");
        }
        at += found + 2;
    }
    tag.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_a_scope_and_the_rest_stays() {
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
            ("{% generation", "{% with"),
            ("{{ 'generation", "{{ 'generation"),
            ("é{ {%é generation %}", "é{ {%é generation %}"),
        ];
        for (source, expected) in cases {
            assert_eq!(without_generation(source), expected, "{source}");
        }
    }
}
