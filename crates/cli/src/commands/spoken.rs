//! What a line typed in `unspool chat` asks for.

/// A line of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoken<'a> {
    /// Something to say to the model.
    Say(&'a str),
    /// `/system`: show the system message.
    ShowSystem,
    /// `/system TEXT`; `None` for `/system -`, which removes the message.
    System(Option<&'a str>),
    /// `/reset`.
    Reset,
    /// `/set`: list the settings.
    List,
    /// `/set NAME`: tell one setting.
    Tell(&'a str),
    /// `/set NAME VALUE`.
    Set(&'a str, &'a str),
    /// `/save FILE`, or `/save! FILE`, which replaces a file.
    Save {
        /// Where to.
        file: &'a str,
        /// Whether a file that is there is replaced.
        replace: bool,
    },
    /// `/help`.
    Help,
    /// `/quit`.
    Quit,
    /// An empty line.
    Nothing,
    /// A line that begins with a slash and is none of these, or lacks what it needs; what to do instead.
    Wrong(String),
}

/// What `/help` says.
pub const HELP: &str = "\
  /system           shows the system message
  /system TEXT      sets it and starts a new conversation; /system - removes it
  /reset            starts a new conversation with the same system message
  /set              lists the generation settings
  /set NAME         shows one, and what it does
  /set NAME VALUE   sets one, for example: /set temperature 0.7
  /save FILE        writes the messages as JSON to a new file; /save! FILE replaces a file
  /help             this list
  /quit             leaves (as does Ctrl-D); Ctrl-C stops an answer
  //TEXT            sends a text that starts with a slash
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
    if rest.contains('\n') && name != "system" {
        return Spoken::Wrong(format!(
            "/{name} takes one line; start a message with // to send a text that starts with a slash"
        ));
    }
    match (name, rest) {
        ("system", "") => Spoken::ShowSystem,
        ("system", "-") => Spoken::System(None),
        ("system", text) => Spoken::System(Some(text)),
        ("reset", "") => Spoken::Reset,
        ("set", "") => Spoken::List,
        ("set", rest) => match rest.split_once(char::is_whitespace) {
            Some((name, value)) => Spoken::Set(name, value.trim()),
            None => Spoken::Tell(rest),
        },
        ("save" | "save!", "") => Spoken::Wrong(format!("/{name} needs a file name, for example: /{name} talk.json")),
        ("save" | "save!", file) => Spoken::Save { file, replace: name == "save!" },
        ("help" | "?", "") => Spoken::Help,
        ("quit" | "exit", "") => Spoken::Quit,
        ("reset" | "help" | "?" | "quit" | "exit", _) => Spoken::Wrong(format!(
            "/{name} takes nothing after it; start a message with // to send a text that starts with a slash"
        )),
        _ => Spoken::Wrong(format!(
            "there is no command /{name}; /help lists them; start a message with // to send a text that starts with a slash"
        )),
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
            ("/system Be brief.", Spoken::System(Some("Be brief."))),
            ("/system Be brief.\nSay yes.", Spoken::System(Some("Be brief.\nSay yes."))),
            ("/system", Spoken::ShowSystem),
            ("/system -", Spoken::System(None)),
            ("/reset", Spoken::Reset),
            ("/set", Spoken::List),
            ("/set temperature", Spoken::Tell("temperature")),
            ("/set temperature  0.7 ", Spoken::Set("temperature", "0.7")),
            ("/set stop_strings [\"a b\"]", Spoken::Set("stop_strings", "[\"a b\"]")),
            ("/save a file.json", Spoken::Save { file: "a file.json", replace: false }),
            ("/save! talk.json", Spoken::Save { file: "talk.json", replace: true }),
            ("/help", Spoken::Help),
            ("/quit", Spoken::Quit),
            ("//usr is a folder", Spoken::Say("/usr is a folder")),
        ];
        for (line, expected) in cases {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn says_what_a_wrong_command_lacks() {
        for (line, expected) in [
            ("/save", "/save needs a file name"),
            ("/save!", "/save! needs a file name"),
            ("/nonsense x", "there is no command /nonsense"),
            ("/reset now", "/reset takes nothing after it"),
            ("/save a\nb", "/save takes one line"),
        ] {
            let Spoken::Wrong(message) = read(line) else { panic!("{line}") };
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
