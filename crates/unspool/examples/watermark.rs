//! A text with a watermark, and the detector that finds it.
//!
//!     cargo run --example watermark -- MODEL ["Once upon a time"]

use unspool::processor::{WatermarkConfig, WatermarkDetector};
use unspool::{Call, json};

fn main() -> unspool::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().expect("usage: watermark MODEL [PROMPT]");
    let prompt = arguments.next().unwrap_or_else(|| "Once upon a time".into());

    let pipeline = unspool::open(model)?;
    let call = Call::new().max_new_tokens(100).do_sample(true).seed(3);
    let marked = call.clone().watermarking_config(json!({"bias": 4.0}));

    let config = WatermarkConfig { bias: 4.0, ..WatermarkConfig::default() };
    let detector = WatermarkDetector::new(config, pipeline.model().vocab_size())?;
    for (name, call) in [("without", call), ("with", marked)] {
        let answers = pipeline.generate(prompt.as_str(), &call)?;
        let found = detector.detect(answers.ids())?;
        println!("{name} watermark: z = {:.2}, marked: {}", found.z_score, found.is_marked(3.0));
    }
    Ok(())
}
