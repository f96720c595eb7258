//! Text while it is generated: printed, cut short by a sink, and as events of a generation on another thread.
//!
//!     cargo run --example stream -- MODEL ["The sea is"]

use unspool::{Call, Flow, TextEvent};

/// Characters after which the second stream stops.
const ENOUGH: usize = 20;

fn main() -> unspool::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().expect("usage: stream MODEL [PROMPT]");
    let prompt = arguments.next().unwrap_or_else(|| "The sea is".into());

    let pipeline = unspool::open(model)?;
    let call = Call::new().min_new_tokens(30).max_new_tokens(40);

    // `unspool::stdout()` prints each piece at once.
    pipeline.stream(prompt.as_str(), &call, &mut unspool::stdout())?;

    // A closure is a sink too, and its answer may end the row.
    let mut seen = 0;
    let answers = pipeline.stream(prompt.as_str(), &call, &mut |_row: usize, piece: &str| {
        seen += piece.chars().count();
        if seen < ENOUGH { Flow::Continue } else { Flow::Stop }
    })?;
    println!("stopped after {seen} characters: {:?}", answers[0].output.sequences[0].finish);

    // Several prompts at once; each event names its prompt.
    for event in pipeline.text_events([prompt.as_str(), "Once upon a time"], &call)? {
        match event? {
            TextEvent::Text { prompt, text, .. } => println!("prompt {prompt}: {text:?}"),
            TextEvent::End { prompt, reason, .. } => println!("prompt {prompt} ended: {}", reason.as_str()),
        }
    }
    Ok(())
}
