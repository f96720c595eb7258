//! Aligned text for people.

/// Columns of a line: what every terminal has.
const LINE: usize = 80;

/// Lines of `rows`, the first column padded to one width, the second wrapped between words.
pub fn two_columns(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(left, _)| left.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (left, right) in rows {
        let pad = " ".repeat(width - left.chars().count());
        let mut line = format!("  {left}{pad} ");
        let (indent, mut begun) = (width + 3, false);
        for word in right.split_inclusive(' ') {
            if begun && line.chars().count() + 1 + word.trim_end().chars().count() > LINE {
                text.push_str(line.trim_end());
                text.push('\n');
                line = " ".repeat(indent);
            }
            if line.chars().count() == indent {
                line.push(' ');
            }
            line.push_str(word);
            begun = true;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A number with its thousands apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes as people say it.
pub fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{count} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_bytes_in_a_fitting_unit() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(90_000_000), "85.8 MiB");
    }

    #[test]
    fn groups_thousands() {
        for (number, expected) in [(7, "7"), (999, "999"), (1000, "1,000"), (134_515_008, "134,515,008")] {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn wraps_the_second_column_between_words() {
        let text = two_columns(&[("mode".to_string(), "word ".repeat(30)), ("x".to_string(), "y".repeat(100))]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[0].starts_with("  mode  word word") && lines[1].starts_with("        word word"), "{text}");
        assert!(lines[..3].iter().all(|line| line.len() <= 80 && !line.ends_with(' ')), "{text}");
        assert_eq!(lines[3], format!("  x     {}", "y".repeat(100)), "what has no space stays whole");
    }

    #[test]
    fn aligns_the_second_column() {
        let rows = [("a".to_string(), "1".to_string()), ("long".to_string(), "2".to_string())];
        assert_eq!(two_columns(&rows), "  a     1\n  long  2\n");
    }
}
