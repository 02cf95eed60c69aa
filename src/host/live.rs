//! The running system, or a folder that holds one. This is the one place that knows more than one operating system:
//! elsewhere than on Linux there is nothing to ask, and every answer is `Unasked`.

#[cfg(target_os = "linux")]
mod errno;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod log;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
pub use linux::{Live, Root};

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Live, Root};

use std::time::{SystemTime, UNIX_EPOCH};

/// The time as RFC 3339 in UTC, to the second. None: before 1970 or after the year 9999.
pub fn rfc3339(time: SystemTime) -> Option<String> {
    let seconds = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    (year <= 9999)
        .then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

/// Year, month and day of a day counted from 1970-01-01. Counts in years that begin in March, so that the leap day is the
/// last day of one.
fn civil_date(day_since_1970: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let day = day_since_1970 + DAYS_TO_1970_FROM_MARCH_OF_YEAR_0;
    let era = day / DAYS_IN_400_YEARS;
    let day_of_era = day % DAYS_IN_400_YEARS;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> Option<String> {
        rfc3339(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_796_040_000, "2026-11-30T12:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(at(seconds).as_deref(), Some(text), "{seconds}");
        }
        assert_eq!(at(253_402_300_800), None);
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), None);
    }

    #[test]
    fn days_follow_one_another() {
        let mut before = civil_date(0);
        for day in 1..400 * 366 {
            let now = civil_date(day);
            let (year, month, date) = before;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let expected = if date < length {
                (year, month, date + 1)
            } else if month < 12 {
                (year, month + 1, 1)
            } else {
                (year + 1, 1, 1)
            };
            assert_eq!(now, expected);
            before = now;
        }
    }
}
