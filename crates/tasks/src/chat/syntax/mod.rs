//! The source of a template in the dialect of the engine: what Jinja2 reads and the engine does not is written in another
//! way. Lines stay where they are.

mod expression;
mod loops;
mod tags;

use std::borrow::Cow;

use tags::Piece;

/// The template as the engine takes it.
pub(super) fn adapted(source: &str) -> Cow<'_, str> {
    // As in Jinja2 every line end is one character, inside of literals too.
    let source: Cow<'_, str> = match source.contains('\r') {
        true => source.replace("\r\n", "\n").replace('\r', "\n").into(),
        false => source.into(),
    };
    let mut pieces = tags::pieces(&source);
    for piece in &mut pieces {
        if let Piece::Tag(tag) = piece {
            tags::without_generation(tag);
            if let Some(body) = expression::adapted(&tag.body) {
                tag.body = body;
            }
        }
    }
    loops::adapt(&mut pieces);
    tags::written(&pieces).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_engine_lacks_is_changed() {
        let same = [
            "{{ a - b * c }}\n{%- if x -%} {# % + #} {% raw %}{{ a % b }}{% endraw %} % {% endif %}",
            "{{ '%s' ~ \"a \\\" % b\" }}",
            "{",
            "{{ 'a",
            "{% if a",
            "{{ a - b }}{{ -a }}{{ a ** b }}",
        ];
        for source in same {
            assert_eq!(adapted(source), source);
        }
        let changed = [
            ("a\r\nb\rc{{ '\r\n' }}", "a\nb\nc{{ '\n' }}"),
            ("{{ a + b * c }}", "{{ (a)|__sum__(b * c) }}"),
            ("{{ '%s' % a.b[0]|upper + c }}", "{{ (('%s')|__remainder__(a.b[0]|upper))|__sum__(c) }}"),
            ("{{ a + b * c % d == 2 }}", "{{ (a)|__sum__((b * c)|__remainder__(d)) == 2 }}"),
            ("{% if loop.index0 % 2 == 0 %}", "{% if (loop.index0)|__remainder__(2) == 0 %}"),
            ("{{ a % b % c }}", "{{ ((a)|__remainder__(b))|__remainder__(c) }}"),
            ("{{ f(a % 2, x=[b % 3]) }}", "{{ f((a)|__remainder__(2), x=[(b)|__remainder__(3)]) }}"),
            ("{{ +5 + +a }}", "{{  (5)|__sum__( a) }}"),
            ("{{ a|safe + '<' }}", "{{ (a|safe)|__sum__('<') }}"),
            ("{% set a = b|safe %}{{ a + '<' + c }}", "{% set a = b|safe %}{{ ((a)|__sum__('<'))|__sum__(c) }}"),
            ("{{ '\\U0001F600\\\nx' }}", "{{ '😀x' }}"),
            ("{% for a in b %}", "{% for a in (b)|__iterated__ %}"),
            ("{%- for a, b in c|d(1) recursive -%}", "{%- for a, b in (c|d(1))|__iterated__ recursive -%}"),
            ("{% for a in b if a %}{% endfor %}", "{% for a in (b)|__iterated__ if a %}{% endfor %}"),
            (
                "{%- for a in b if not n.f -%}x{% set n.f = true %}{%- endfor -%}",
                "{%- for a in (b)|__iterated__ %}{% if not n.f -%}x{% set n.f = true %}{%- endif %}{% endfor -%}",
            ),
            (
                "{% for a in b if not n.f %}{{ loop.index }}{% set n.f = true %}{% endfor %}",
                "{% for a in (b)|__iterated__ if not n.f %}{{ loop.index }}{% set n.f = true %}{% endfor %}",
            ),
        ];
        for (source, expected) in changed {
            assert_eq!(adapted(source), expected, "{source}");
        }
    }
}
