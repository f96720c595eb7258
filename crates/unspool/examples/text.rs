//! Text in, text out: a prompt is continued.
//!
//!     cargo run --example text -- MODEL ["Once upon a time"]

use unspool::Call;

fn main() -> unspool::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().expect("usage: text MODEL [PROMPT]");
    let prompt = arguments.next().unwrap_or_else(|| "Once upon a time".into());

    let pipeline = unspool::open(model)?;
    let call = Call::new().max_new_tokens(40).do_sample(true).temperature(0.8).seed(7);
    let answers = pipeline.generate(prompt.as_str(), &call)?;
    println!("{prompt}{answers}");
    Ok(())
}
