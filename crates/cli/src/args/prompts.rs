//! Arguments that say what the model is asked.

use std::path::PathBuf;

use clap::Args;
use unspool::{ChatOptions, Message, Prompt};

use super::template::{EndingArgs, TemplateArgs};
use crate::batch::chat;
use crate::batch::read::{self, Placed};
use crate::failure::Failure;

/// What the model is asked.
#[derive(Args, Clone, Debug)]
pub struct PromptArgs {
    /// A text to continue; - reads it from standard input (without its last line's end).
    #[arg(value_name = "PROMPT")]
    pub text: Vec<String>,

    /// A text to continue; repeat it for several.
    #[arg(long, value_name = "TEXT", help_heading = "Prompts", conflicts_with = "text")]
    pub prompt: Vec<String>,

    /// Token ids in place of text: [[1,2,3],[4,5]] is a batch of two prompts.
    #[arg(long, value_name = "JSON", help_heading = "Prompts", conflicts_with_all = ["text", "prompt", "prompts", "chat", "raw"])]
    pub ids: Option<String>,

    /// Prompts from a file of JSON lines: a string, {"prompt": ...}, {"ids": ...} or {"messages": ...} each.
    #[arg(long, value_name = "FILE", help_heading = "Prompts", conflicts_with_all = ["text", "prompt"])]
    pub prompts: Option<PathBuf>,

    /// Put each text into the model's chat template, as a user's message.
    #[arg(long, help_heading = "Prompts")]
    pub chat: bool,

    /// The system's message of the chat template; implies --chat.
    #[arg(long, value_name = "TEXT", help_heading = "Prompts", conflicts_with_all = ["ids", "raw"])]
    pub system: Option<String>,

    /// A text that --guidance-scale leads away from; once for all prompts, or once for each.
    #[arg(long, value_name = "TEXT", help_heading = "Prompts", conflicts_with = "negative_prompt_ids")]
    pub negative_prompt: Vec<String>,

    /// The same as token ids: one list for each prompt, or one for all.
    #[arg(long, value_name = "JSON", help_heading = "Prompts")]
    pub negative_prompt_ids: Option<String>,

    /// Take each text exactly as it is: no chat template and no special tokens around it.
    #[arg(long, help_heading = "Prompts", conflicts_with = "chat")]
    pub raw: bool,

    /// What the chat template is given besides the messages.
    #[command(flatten)]
    pub template: TemplateArgs,

    /// How the prompt of a chat ends.
    #[command(flatten)]
    pub ending: EndingArgs,
}

impl PromptArgs {
    /// The prompts, in order; keys of their lines that are not known here go through to results with the keys `own`.
    ///
    /// # Errors
    ///
    /// When there are none, or their JSON is broken.
    pub fn read(&self, own: &[&str]) -> Result<Vec<Placed>, Failure> {
        let mut prompts = if let Some(path) = &self.prompts {
            read::lines(path, own)?
        } else if let Some(json) = &self.ids {
            read::ids("--ids", json)?
        } else {
            read::counted("prompt", read::words(self.texts()?)?.into_iter().map(Prompt::Text).collect())
        };
        let shape = [("--raw", self.raw), ("--chat", self.chat), ("--system", self.system.is_some())];
        read::check_texts(&prompts, |prompt| matches!(prompt, Prompt::Text(_)), &shape)?;
        for placed in &mut prompts {
            if let Prompt::Text(text) = &mut placed.item {
                let text = std::mem::take(text);
                placed.item = self.shaped(text);
            }
        }
        let mut options = self.template.read()?;
        self.ending.apply(&mut options);
        let mut chats = 0;
        for placed in &mut prompts {
            if let Prompt::Chat(row) = &mut placed.item {
                chat::complete(&mut row.options, &options);
                chats += 1;
            }
        }
        if chats == 0 && options != ChatOptions::default() {
            return Err(Failure::usage(
                "--tools, --documents, --template-args, --chat-template, --continue-final-message and \
                 --no-add-generation-prompt are for chats; add --chat, or give rows with messages in --prompts",
            ));
        }
        Ok(prompts)
    }

    /// The texts of the command line.
    fn texts(&self) -> Result<&[String], Failure> {
        if let Some(one) = one_text(&self.text, ", and give each of several prompts with --prompt")? {
            return Ok(std::slice::from_ref(one));
        }
        if self.prompt.is_empty() {
            return Err(Failure::usage("there is no prompt; give a text, - for standard input, --ids or --prompts"));
        }
        Ok(&self.prompt)
    }

    /// The negative prompts, in order; one stands for all.
    ///
    /// # Errors
    ///
    /// When their JSON is broken.
    pub fn negative(&self) -> Result<Vec<Placed>, Failure> {
        if let Some(json) = &self.negative_prompt_ids {
            return Ok(read::ids("--negative-prompt-ids", json)?);
        }
        let text = |text: &String| if self.raw { Prompt::Raw(text.clone()) } else { Prompt::Text(text.clone()) };
        Ok(read::counted("negative prompt", self.negative_prompt.iter().map(text).collect()))
    }

    fn shaped(&self, text: String) -> Prompt {
        if self.raw {
            return Prompt::Raw(text);
        }
        if !self.chat && self.system.is_none() {
            return Prompt::Text(text);
        }
        let system = self.system.iter().map(|text| Message::new("system", text.as_str()));
        Prompt::from(system.chain([Message::new("user", text.as_str())]).collect::<Vec<_>>())
    }
}

/// The one text that `words` are; `None` without any. `several` says how to give several.
///
/// # Errors
///
/// When there are several: words of a text that should have been quoted, or of a list.
pub fn one_text<'a>(words: &'a [String], several: &str) -> Result<Option<&'a String>, Failure> {
    let [first, second, ..] = words else { return Ok(words.first()) };
    let mut message = format!("{first:?} and {second:?} are two texts; put one of several words in quotes{several}");
    if second.parse::<f64>().is_ok() {
        message += "; an option that takes a list takes it as one word, such as '[1,2]'";
    }
    Err(Failure::Usage(message))
}
