//! When to draft: drafts pause while they cost more than they bring.
//!
//! Every row of a generation has a small account, in steps of plain decoding. A round with drafts puts in what it wrote and
//! takes out what it cost; a plain step puts in a little. Drafts are asked for while the account is not empty, so that
//! drafts which fail cost at most that little, and are tried again once enough was saved.

use std::collections::VecDeque;

/// What a plain step puts in: the share of the time that failing drafts may take.
const ALLOWANCE: f64 = 0.03;

/// What is there at first: one round of failing drafts.
const START: f64 = 1.0;

/// The most that successes can save up, which is what drafts can lose before they pause.
const SAVED: f64 = 4.0;

/// Rounds with drafts before the first plain step is measured.
const BLIND: usize = 1;

/// The most tokens of a draft before that.
const CAREFUL: usize = 4;

/// The most that one round takes out: a hiccup of the machine does not stop drafts for long.
const WORST: f64 = 16.0;

/// Rounds with drafts after which a plain step is measured again: it gets slower as the row gets longer.
const STALE: usize = 64;

/// Plain steps of which the middle one counts.
const WINDOW: usize = 5;

/// How much of what was learned about acceptance and cost stays from round to round.
const MEMORY: f64 = 0.9;

/// Draft lengths that are weighed against each other.
const LENGTHS: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// What drafting is taken to cost where no clock may be asked: a round, beside the plain step it replaces, and each token.
const ASSUMED: (f64, f64) = (0.25, 0.1);

/// Drafting that pays for itself.
#[derive(Clone, Debug)]
struct Account(f64);

impl Account {
    fn new() -> Self {
        Account(START)
    }

    fn plain(&mut self) {
        self.0 = (self.0 + ALLOWANCE).min(SAVED);
    }

    fn drafted(&mut self, gain: f64) {
        self.0 = (self.0 + gain.max(-WORST)).min(SAVED);
    }

    fn open(&self) -> bool {
        self.0 >= 0.0
    }
}

/// A round as it is told to a [`Pace`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Rows that took part.
    pub rows: usize,
    /// Tokens drafted, over all rows.
    pub drafted: usize,
    /// Tokens written, over all rows.
    pub written: usize,
    /// Seconds from the asking to the writing.
    pub seconds: f64,
}

/// Decides before each round whether to draft.
#[derive(Debug)]
pub(super) enum Pace {
    /// In every round.
    Always,
    /// By the clock, for all rows together: where drafts cannot change what is written.
    Timed(Timed),
    /// By counts alone, for each row: where a draft takes part in the draws, and a seed must give the same tokens on every
    /// machine.
    Counted(Vec<Counted>),
}

impl Pace {
    /// By the clock.
    pub(super) fn timed() -> Self {
        Pace::Timed(Timed {
            account: Account::new(),
            plain: VecDeque::new(),
            rows: 0,
            since: 0,
            unpaid: Vec::new(),
            accepted: 0.0,
            refused: 0.0,
            token: None,
        })
    }

    /// By counts, for rows with numbers below `rows`.
    pub(super) fn counted(rows: usize) -> Self {
        Pace::Counted(vec![Counted { account: Account::new() }; rows])
    }

    /// Whether a draft for row `index` is wanted in a round of `rows` rows.
    pub(super) fn wants(&self, index: usize, rows: usize) -> bool {
        match self {
            Pace::Always => true,
            Pace::Timed(timed) => timed.wants(rows),
            Pace::Counted(counts) => counts.get(index).is_none_or(|row| row.account.open()),
        }
    }

    /// The most tokens that a draft may have to pay.
    pub(super) fn most(&self) -> usize {
        match self {
            Pace::Timed(timed) => timed.most(),
            Pace::Always | Pace::Counted(_) => usize::MAX,
        }
    }

    /// What came of a round.
    pub(super) fn round(&mut self, round: Round) {
        if let Pace::Timed(timed) = self {
            timed.round(round);
        }
    }

    /// What came of a round for row `index`.
    pub(super) fn row(&mut self, index: usize, drafted: usize, written: usize) {
        let Pace::Counted(counts) = self else { return };
        let Some(row) = counts.get_mut(index) else { return };
        if drafted == 0 {
            row.account.plain();
        } else {
            row.account.drafted(written as f64 - 1.0 - ASSUMED.0 - ASSUMED.1 * drafted as f64);
        }
    }
}

/// A row's account where only counts may decide.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    account: Account,
}

/// The account of all rows, what a plain step takes, and what drafts do.
#[derive(Debug)]
pub(super) struct Timed {
    account: Account,
    /// Seconds of the latest plain steps.
    plain: VecDeque<f64>,
    /// Rows of those steps.
    rows: usize,
    /// Rounds with drafts since then.
    since: usize,
    /// Rounds with drafts that no plain step could be held against yet.
    unpaid: Vec<Round>,
    /// Drafted tokens that were accepted, and those that were the first to be refused; older ones count less.
    accepted: f64,
    refused: f64,
    /// What a drafted token adds to a plain step, in plain steps.
    token: Option<f64>,
}

impl Timed {
    fn wants(&self, rows: usize) -> bool {
        let measured = self.rows == rows && !self.plain.is_empty();
        let blind = if measured { STALE } else { BLIND };
        self.since < blind && self.account.open()
    }

    fn round(&mut self, round: Round) {
        if round.rows == 0 {
            return;
        }
        if self.rows != round.rows {
            self.rows = round.rows;
            self.plain.clear();
            self.unpaid.clear();
            self.since = 0;
        }
        if round.drafted == 0 {
            self.account.plain();
            self.plain.push_back(round.seconds);
            if self.plain.len() > WINDOW {
                self.plain.pop_front();
            }
            self.since = 0;
        } else {
            self.since += 1;
            self.unpaid.push(round);
        }
        if let Some(step) = self.step() {
            for round in std::mem::take(&mut self.unpaid) {
                self.pay(round, step);
            }
        }
    }

    /// Books a round with drafts.
    fn pay(&mut self, round: Round, step: f64) {
        let (rows, cost) = (round.rows as f64, round.seconds / step);
        self.account.drafted(round.written as f64 / rows - cost);
        let accepted = (round.written as f64 - rows).max(0.0);
        self.accepted = self.accepted * MEMORY + accepted;
        self.refused = self.refused * MEMORY + (round.drafted as f64 - accepted).clamp(0.0, rows);
        let token = ((cost - 1.0) * rows / round.drafted as f64).max(0.0);
        self.token = Some(self.token.map_or(token, |known| known * MEMORY + token * (1.0 - MEMORY)));
    }

    /// The length that writes most tokens in a plain step's time, if every token is accepted as often as those before.
    fn most(&self) -> usize {
        if self.plain.is_empty() {
            return CAREFUL;
        }
        let Some(token) = self.token else { return usize::MAX };
        // A few successes are no certainty.
        let share = self.accepted / (self.accepted + self.refused + 0.1);
        let worth = |length: usize| {
            let written: f64 = (0..=length).map(|place| share.powi(place as i32)).sum();
            written / (1.0 + token * length as f64)
        };
        let best = LENGTHS.iter().copied().max_by(|a, b| worth(*a).total_cmp(&worth(*b)));
        best.filter(|length| *length < LENGTHS[LENGTHS.len() - 1]).unwrap_or(usize::MAX)
    }

    /// The middle of the latest plain steps.
    fn step(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.plain.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().filter(|seconds| *seconds > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `tokens` tokens where a plain step takes 1 second and a round with drafts `cost`, of which `written` come;
    /// returns the seconds and the rounds with drafts.
    fn play(pace: &mut Pace, tokens: usize, cost: f64, written: usize) -> (f64, usize) {
        let (mut seconds, mut rounds, mut done) = (0.0, 0, 0);
        while done < tokens {
            let drafts = pace.wants(0, 1);
            let (drafted, written, took) = if drafts { (10, written, cost) } else { (0, 1, 1.0) };
            pace.round(Round { rows: 1, drafted, written, seconds: took });
            pace.row(0, drafted, written);
            seconds += took;
            rounds += usize::from(drafts);
            done += written;
        }
        (seconds, rounds)
    }

    #[test]
    fn failing_drafts_cost_a_twentieth_at_most() {
        for cost in [1.2, 2.0, 5.0] {
            let (seconds, rounds) = play(&mut Pace::timed(), 400, cost, 1);
            assert!(seconds < 400.0 / 0.95, "{cost}: {seconds}");
            assert!(rounds > 3, "{cost}: tried {rounds} times");
        }
    }

    #[test]
    fn drafts_that_pay_go_on_and_are_measured_now_and_then() {
        let (seconds, rounds) = play(&mut Pace::timed(), 4000, 2.0, 8);
        assert!(rounds > 480 && seconds < 1020.0, "{rounds} rounds, {seconds} s");
    }

    #[test]
    fn drafts_that_failed_come_back_when_they_pay_again() {
        let mut pace = Pace::timed();
        play(&mut pace, 300, 3.0, 1);
        let (seconds, _) = play(&mut pace, 1000, 2.0, 8);
        assert!(seconds < 420.0, "{seconds}");
        let (seconds, _) = play(&mut pace, 1000, 3.0, 1);
        assert!(seconds < 1000.0 / 0.95, "{seconds}");
    }

    #[test]
    fn another_number_of_rows_is_measured_anew() {
        let mut pace = Pace::timed();
        play(&mut pace, 100, 2.0, 8);
        assert!(pace.wants(0, 1));
        let slow = Round { rows: 3, drafted: 30, written: 6, seconds: 9.0 };
        pace.round(slow);
        pace.round(slow);
        assert!(!pace.wants(0, 3), "two rounds without a measure are enough");
        pace.round(Round { rows: 3, drafted: 0, written: 3, seconds: 1.5 });
        pace.round(slow);
        assert!(!pace.wants(0, 3));
    }

    #[test]
    fn drafts_are_as_long_as_pays() {
        let mut pace = Pace::timed();
        assert_eq!(pace.most(), CAREFUL);
        pace.round(Round { rows: 1, drafted: 0, written: 1, seconds: 1.0 });
        assert_eq!(pace.most(), usize::MAX);
        // Two of ten are accepted, and each drafted token costs a fifth of a step.
        for _ in 0..20 {
            pace.round(Round { rows: 1, drafted: 10, written: 3, seconds: 3.0 });
        }
        assert!((1..=3).contains(&pace.most()), "{}", pace.most());
        // All are accepted.
        for _ in 0..40 {
            pace.round(Round { rows: 1, drafted: 10, written: 11, seconds: 3.0 });
        }
        assert!(pace.most() >= 24, "{}", pace.most());
    }

    #[test]
    fn counts_decide_without_a_clock() {
        let (_, rounds) = play(&mut Pace::counted(1), 1000, 0.0, 1);
        assert!((5..40).contains(&rounds), "{rounds}");
        let (_, rounds) = play(&mut Pace::counted(1), 1000, 0.0, 5);
        assert_eq!(rounds, 200);
    }

    #[test]
    fn always_means_always() {
        assert_eq!(play(&mut Pace::Always, 50, 9.0, 1).1, 50);
    }
}
