//! A draft of one's own: a text that is probably much like one that is there already is generated in fewer runs of the model.
//!
//!     cargo run --example draft -- MODEL ["Once upon a time"]
//!
//! The model verifies drafted tokens several at a time and keeps those that it would have chosen, so nothing changes but the
//! time. Here the text that is there is the model's own answer; in an editor it is the document before the change.

use unspool::draft::{Ask, Drafted};
use unspool::{Call, Draft, Result, TokenId};

/// Proposes what follows the last tokens of the row in a text that is known.
#[derive(Clone)]
struct Known {
    ids: Vec<TokenId>,
}

/// Tokens that must agree before the text is followed.
const AGREE: usize = 2;

impl Draft for Known {
    fn draft(&mut self, ask: &Ask<'_>) -> Result<Drafted> {
        let end = &ask.row.ids[ask.row.ids.len().saturating_sub(AGREE)..];
        let place = self.ids.windows(AGREE).position(|window| window == end);
        let rest = place.map_or(&[][..], |place| &self.ids[place + AGREE..]);
        Ok(Drafted::tokens(rest[..rest.len().min(ask.most).min(8)].to_vec()))
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().expect("usage: draft MODEL [PROMPT]");
    let prompt = arguments.next().unwrap_or_else(|| "Once upon a time".into());

    let pipeline = unspool::open(model)?;
    let call = Call::new().max_new_tokens(40);
    let plain = pipeline.generate(prompt.as_str(), &call)?;

    let known = Known { ids: plain.ids().to_vec() };
    let drafted = pipeline.generate(prompt.as_str(), &call.draft(known).always_draft(true))?;
    println!("{:?}", drafted.text());
    println!("the same tokens: {}", drafted.ids() == plain.ids());
    if let Some(counts) = drafted.drafts {
        println!("{} of {} drafted tokens kept, {} runs", counts.accepted, counts.drafted, counts.target_runs);
    }
    Ok(())
}
