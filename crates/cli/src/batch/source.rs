//! Text of files and of standard input, never more bytes than allowed.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use unspool::{Error, ErrorKind, Result, file};

/// Most bytes of one text or line: far more than any model has positions for.
const MAX_TEXT: usize = 16 << 20;
/// Most bytes of all lines of a file together.
const MAX_FILE: usize = 256 << 20;
/// Most lines of a file that hold something.
pub const MAX_LINES: usize = 1 << 20;

/// Text that is read a line at a time or whole, with the name of where it is from.
pub struct Source {
    name: String,
    reader: Box<dyn BufRead>,
    lines: usize,
    bytes: usize,
}

impl Source {
    /// Opens a regular file, or standard input for `-`.
    ///
    /// # Errors
    ///
    /// When there is no such file, it is something else than a regular file, or it cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Source::standard_input());
        }
        let open = file::open(path).map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => {
                Error::invalid_input(format!("{}, or - for standard input", error.message())).at(path.display())
            }
            _ => error,
        });
        match open? {
            Some(file) => Ok(Source::new(path.display().to_string(), BufReader::new(file))),
            None => Err(Error::io("there is no such file").at(path.display())),
        }
    }

    /// Standard input.
    pub fn standard_input() -> Self {
        Source::new("standard input".to_owned(), BufReader::new(std::io::stdin()))
    }

    fn new(name: String, reader: impl BufRead + 'static) -> Self {
        Source { name, reader: Box::new(reader), lines: 0, bytes: 0 }
    }

    /// What it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it begins as lines of JSON do, and not as plain text. Nothing at all counts as JSON.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn begins_as_json(&mut self) -> Result<bool> {
        let name = &self.name;
        let start = self.reader.fill_buf().map_err(|error| unreadable(name, error))?;
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        Ok(matches!(start.first(), None | Some(b'"' | b'{' | b'[')))
    }

    /// The next line, without its end; `None` behind the last one.
    ///
    /// # Errors
    ///
    /// When it cannot be read, is not UTF-8, or is too long, by itself or together with those before it.
    pub fn line(&mut self) -> Result<Option<String>> {
        let mut bytes = self.read(|reader, bytes| reader.read_until(b'\n', bytes))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.lines += 1;
        if bytes.len() > MAX_TEXT {
            return Err(too_long("this line", MAX_TEXT).at(self.place()));
        }
        self.bytes += bytes.len();
        if self.bytes > MAX_FILE {
            return Err(too_long("all lines together are", MAX_FILE).at(&self.name));
        }
        drop_line_end(&mut bytes);
        self.utf8(bytes).map(Some)
    }

    /// Where the last line is.
    pub fn place(&self) -> String {
        format!("{}, line {}", self.name, self.lines)
    }

    /// All of it as one text, without the end of its last line.
    ///
    /// # Errors
    ///
    /// When it cannot be read, is not UTF-8, is blank, or is too long.
    pub fn text(mut self) -> Result<String> {
        let mut bytes = self.read(|reader, bytes| reader.read_to_end(bytes))?;
        if bytes.len() > MAX_TEXT {
            return Err(too_long("this text", MAX_TEXT).at(&self.name));
        }
        self.lines = 1;
        drop_line_end(&mut bytes);
        let text = self.utf8(bytes)?;
        if text.trim().is_empty() {
            return Err(Error::invalid_input("there is no text; expected some").at(&self.name));
        }
        Ok(text)
    }

    /// What `read` reads, one byte more than [`MAX_TEXT`] at most.
    fn read(
        &mut self,
        read: impl FnOnce(&mut std::io::Take<&mut Box<dyn BufRead>>, &mut Vec<u8>) -> std::io::Result<usize>,
    ) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(MAX_TEXT).unwrap_or(u64::MAX).saturating_add(1);
        read(&mut (&mut self.reader).take(limit), &mut bytes).map_err(|error| unreadable(&self.name, error))?;
        Ok(bytes)
    }

    /// `bytes`, which begin in the current line, as text; without the mark of the encoding with which some editors begin
    /// a file.
    fn utf8(&self, bytes: Vec<u8>) -> Result<String> {
        let mut text = String::from_utf8(bytes).map_err(|error| {
            let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            let line = self.lines + good.iter().filter(|byte| **byte == b'\n').count();
            let byte = good.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
            Error::invalid_input(format!("byte {byte} of this line is not UTF-8; save the text in that encoding"))
                .at(format!("{}, line {line}", self.name))
        })?;
        if self.lines == 1 && text.starts_with('\u{feff}') {
            text.remove(0);
        }
        Ok(text)
    }
}

fn drop_line_end(bytes: &mut Vec<u8>) {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
}

fn unreadable(name: &str, error: std::io::Error) -> Error {
    Error::io("this cannot be read").at(name).because(error)
}

fn too_long(what: &str, most: usize) -> Error {
    Error::invalid_input(format!("{what} has more than {} MiB, the most that is read; split it", most >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(bytes: impl AsRef<[u8]> + Send + 'static) -> Source {
        Source::new("standard input".to_owned(), std::io::Cursor::new(bytes))
    }

    #[test]
    fn lines_are_read_with_any_end_and_without_a_mark() {
        let mut source = source("\u{feff}one\r\n\r\n  two \nthree\u{feff}");
        let mut lines = Vec::new();
        while let Some(line) = source.line().unwrap() {
            lines.push((line, source.place()));
        }
        let read: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
        assert_eq!(read, ["one", "", "  two ", "three\u{feff}"]);
        assert_eq!(lines[3].1, "standard input, line 4");
    }

    #[test]
    fn a_text_is_whole_but_for_its_last_line_end() {
        for (bytes, text) in [("a\nb\n\n", "a\nb\n"), ("\u{feff} a\r\n", " a"), ("a", "a")] {
            assert_eq!(source(bytes).text().unwrap(), text);
        }
        for bytes in ["", "\u{feff}", "\n", " \r\n\t\n"] {
            let error = source(bytes).text().unwrap_err().to_string();
            assert_eq!(error, "standard input: there is no text; expected some", "{bytes:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_named() {
        let error = source(b"a\nbc\xff\n".as_slice()).text().unwrap_err().to_string();
        assert!(error.starts_with("standard input, line 2: byte 3 of this line is not UTF-8"), "{error}");
        let mut lines = source(b"a\n\xffb\n".as_slice());
        lines.line().unwrap();
        let error = lines.line().unwrap_err().to_string();
        assert!(error.starts_with("standard input, line 2: byte 1 of this line is not UTF-8"), "{error}");
    }

    #[test]
    fn what_has_no_end_is_not_read_to_it() {
        let endless = |byte| Source::new("standard input".to_owned(), BufReader::new(std::io::repeat(byte)));
        for error in [endless(0).text().map(drop), endless(b'\n').text().map(drop), endless(0).line().map(drop)] {
            assert!(error.unwrap_err().to_string().contains("has more than 16 MiB"));
        }
        let mut source = endless(b'\n');
        source.bytes = MAX_FILE - 2;
        assert_eq!(source.line().unwrap().as_deref(), Some(""));
        source.line().unwrap();
        let error = source.line().unwrap_err().to_string();
        assert!(error.contains("more than 256 MiB"), "{error}");
        assert!(Source::open(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn lines_of_json_are_told_from_plain_text() {
        for (bytes, json) in [
            ("\u{feff}\n \"a\"", true),
            ("{\"text\":1}", true),
            ("[", true),
            ("", true),
            ("the river", false),
            ("7", false),
        ] {
            assert_eq!(source(bytes).begins_as_json().unwrap(), json, "{bytes}");
        }
    }
}
