//! The time that templates may write (`strftime_now`).

use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// Where `strftime_now` takes the time from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The machine's clock in its own time zone, as Python's `datetime.now()`.
    #[default]
    System,
    /// A fixed moment, so that a prompt can be made again.
    At {
        /// Seconds since 1970-01-01 00:00 UTC.
        unix_seconds: i64,
        /// Local time minus UTC, in seconds.
        utc_offset_seconds: i32,
    },
}

impl Clock {
    /// The time in a `strftime` format; the error says what is wrong with the format or the clock.
    pub(super) fn format(self, format: &str) -> Result<String, String> {
        let now = match self {
            Clock::System => Zoned::now(),
            Clock::At { unix_seconds, utc_offset_seconds } => {
                let moment = Timestamp::from_second(unix_seconds).map_err(|error| error.to_string())?;
                let offset = Offset::from_seconds(utc_offset_seconds).map_err(|error| error.to_string())?;
                moment.to_zoned(TimeZone::fixed(offset))
            }
        };
        jiff::fmt::strtime::format(format, &now).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_dates_as_templates_ask() {
        let clock = Clock::At { unix_seconds: 1_722_074_400, utc_offset_seconds: 7200 };
        assert_eq!(clock.format("%d %b %Y").unwrap(), "27 Jul 2024");
        assert_eq!(
            clock.format("%A, %B %-d, %H:%M:%S %% %y %j %I %p").unwrap(),
            "Saturday, July 27, 12:00:00 % 24 209 12 PM"
        );
        assert!(clock.format("%").is_err());
        assert!(Clock::At { unix_seconds: i64::MAX, utc_offset_seconds: 0 }.format("%Y").is_err());
        assert_eq!(Clock::System.format("%Y").unwrap().len(), 4);
    }
}
