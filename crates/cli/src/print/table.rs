//! Aligned text for people.

/// Lines of `rows`, the first column padded to one width.
pub fn two_columns(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(left, _)| left.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (left, right) in rows {
        let pad = width - left.chars().count();
        text.push_str(&format!("  {left}{}  {right}\n", " ".repeat(pad)));
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
    fn aligns_the_second_column() {
        let rows = [("a".to_string(), "1".to_string()), ("long".to_string(), "2".to_string())];
        assert_eq!(two_columns(&rows), "  a     1\n  long  2\n");
    }
}
