//! A conversation in which the model may call a tool.
//!
//!     cargo run --example chat -- MODEL ["What is the weather in Paris?"]
//!
//! MODEL needs a chat template; for the tool also one that takes tools, and training in using them.

use unspool::{Call, Chat, Message, Prompt, Value, json};

/// The call in an answer, as Qwen, SmolLM and others write it.
fn tool_call(answer: &str) -> Option<Value> {
    let (_, rest) = answer.split_once("<tool_call>")?;
    let (call, _) = rest.split_once("</tool_call>")?;
    unspool::json::parse(call).ok()
}

/// The tool itself.
fn weather(city: &str) -> String {
    format!("It is sunny in {city}, 21 degrees.")
}

fn main() -> unspool::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().expect("usage: chat MODEL [QUESTION]");
    let question = arguments.next().unwrap_or_else(|| "What is the weather in Paris?".into());

    let pipeline = unspool::open(model)?;
    let call = Call::new().max_new_tokens(100);
    let mut chat = Chat::from(vec![Message::user(question.as_str())]);
    chat.options.tools = Some(vec![json!({"type": "function", "function": {
        "name": "weather",
        "description": "Tells the weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    }})]);
    println!("prompt: {:?}", pipeline.render(&chat.messages, &chat.options)?);
    let mut answer = pipeline.generate(Prompt::from(chat.clone()), &call)?.text().to_owned();
    if let Some(wanted) = tool_call(&answer) {
        let city = wanted["arguments"]["city"].as_str().unwrap_or("an unknown city");
        chat.messages.push(Message::assistant(answer));
        chat.messages.push(Message::new("tool", weather(city)));
        answer = pipeline.generate(Prompt::from(chat), &call)?.text().to_owned();
    }
    println!("answer: {answer:?}");

    // Without tools, a conversation keeps its cache: each turn runs only what is new.
    let mut conversation = pipeline.conversation(call);
    conversation.set_system(Some("Be brief."));
    for question in [question.as_str(), "Are you sure?"] {
        let turn = conversation.say(question, &mut unspool::stdout())?;
        println!("[{} prompt tokens run, {} new]", turn.timing.prompt_tokens, turn.timing.new_tokens);
    }
    Ok(())
}
