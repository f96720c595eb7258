//! Messages as one line that a terminal takes as text.

/// The most characters of a message: what comes from a file can be of any length.
const LONGEST: usize = 1500;

/// `message` as one line: white space becomes single spaces, control characters are written as escapes, so that no file or
/// server can steer the terminal, and of a very long message the middle is left out.
pub fn one_line(message: &str) -> String {
    let mut line = String::new();
    for word in message.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        for character in word.chars() {
            match character.is_control() {
                true => line.extend(character.escape_default()),
                false => line.push(character),
            }
        }
    }
    let count = line.chars().count();
    if count <= LONGEST {
        return line;
    }
    let part = LONGEST / 2;
    let start: String = line.chars().take(part).collect();
    let end: String = line.chars().skip(count - part).collect();
    format!("{start} ... ({} characters left out) ... {end}", count - 2 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_line_of_text() {
        assert_eq!(one_line(" a\n  b\tc\r\n"), "a b c");
        assert_eq!(one_line("a\u{1b}[2J\u{0}b\u{7f}"), "a\\u{1b}[2J\\u{0}b\\u{7f}");
        assert_eq!(one_line("größer"), "größer");
    }

    #[test]
    fn keeps_both_ends_of_a_long_message() {
        let line = one_line(&format!("first {} last", "x".repeat(1 << 20)));
        assert!(line.chars().count() < LONGEST + 60);
        assert!(line.starts_with("first x") && line.ends_with("x last") && line.contains("characters left out"));
    }
}
