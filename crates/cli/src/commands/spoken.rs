//! What a line typed in `unspool chat` asks for.

/// A line of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoken<'a> {
    /// Something to say to the model.
    Say(&'a str),
    /// `/system TEXT`; without text the message is taken away.
    System(&'a str),
    /// `/reset`.
    Reset,
    /// `/set`: list the settings.
    List,
    /// `/set NAME`: tell one setting.
    Tell(&'a str),
    /// `/set NAME VALUE`.
    Set(&'a str, &'a str),
    /// `/save FILE`.
    Save(&'a str),
    /// `/help`.
    Help,
    /// `/quit`.
    Quit,
    /// An empty line.
    Nothing,
    /// A line that begins with a slash and is none of these, or lacks what it needs.
    Unknown(&'a str),
}

/// What `/help` says.
pub const HELP: &str = "\
  /system TEXT      sets the system message (it begins the conversation anew)
  /reset            begins the conversation anew
  /set              lists the generation settings
  /set NAME VALUE   sets one, for example: /set temperature 0.7
  /save FILE        writes the messages as JSON
  /help             this list
  /quit             leaves (as does Ctrl-D); Ctrl-C stops an answer
";

/// Reads a line. A line that begins with two slashes is said with one.
pub fn read(line: &str) -> Spoken<'_> {
    let line = line.trim();
    if line.is_empty() {
        return Spoken::Nothing;
    }
    let Some(command) = line.strip_prefix('/') else { return Spoken::Say(line) };
    if command.starts_with('/') {
        return Spoken::Say(command);
    }
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    match (name, rest) {
        ("system", text) => Spoken::System(text),
        ("reset", "") => Spoken::Reset,
        ("set", "") => Spoken::List,
        ("set", rest) => match rest.split_once(char::is_whitespace) {
            Some((name, value)) => Spoken::Set(name, value.trim()),
            None => Spoken::Tell(rest),
        },
        ("save", "") => Spoken::Unknown(line),
        ("save", file) => Spoken::Save(file),
        ("help" | "?", _) => Spoken::Help,
        ("quit" | "exit", _) => Spoken::Quit,
        _ => Spoken::Unknown(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_command() {
        let cases = [
            ("hello there", Spoken::Say("hello there")),
            ("  ", Spoken::Nothing),
            ("/system Be brief.", Spoken::System("Be brief.")),
            ("/system", Spoken::System("")),
            ("/reset", Spoken::Reset),
            ("/set", Spoken::List),
            ("/set temperature", Spoken::Tell("temperature")),
            ("/set temperature  0.7 ", Spoken::Set("temperature", "0.7")),
            ("/set stop_strings [\"a b\"]", Spoken::Set("stop_strings", "[\"a b\"]")),
            ("/save a file.json", Spoken::Save("a file.json")),
            ("/save", Spoken::Unknown("/save")),
            ("/help", Spoken::Help),
            ("/quit", Spoken::Quit),
            ("/nonsense", Spoken::Unknown("/nonsense")),
            ("//usr is a folder", Spoken::Say("/usr is a folder")),
        ];
        for (line, expected) in cases {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
