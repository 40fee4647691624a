//! Numbers for people: thousands apart, bytes in binary units, times in the unit that fits.

use std::time::Duration;

/// A whole number with its thousands apart: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate or another number that need not be whole: grouped, decimals only below 100.
pub fn rounded(number: f64) -> String {
    match number {
        _ if !number.is_finite() => "-".to_owned(),
        _ if number.abs() < 10.0 => format!("{number:.2}"),
        _ if number.abs() < 100.0 => format!("{number:.1}"),
        _ if number < 0.0 => format!("-{}", grouped((-number).round() as u64)),
        _ => grouped(number.round() as u64),
    }
}

/// The same of a number that there may not be.
pub fn rounded_if_any(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), rounded)
}

/// Bytes in the largest binary unit of which there is at least one: `1.5 GiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut value = count as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{count} bytes"),
        _ if value < 10.0 => format!("{value:.1} {}", UNITS[unit]),
        _ => format!("{value:.0} {}", UNITS[unit]),
    }
}

/// Microseconds in the unit that fits: `134 us`, `2.1 ms`, `1.5 s`.
pub fn micros(value: f64) -> String {
    match value {
        _ if value < 1e3 => format!("{} us", rounded(value)),
        _ if value < 1e6 => format!("{} ms", rounded(value / 1e3)),
        _ => format!("{} s", rounded(value / 1e6)),
    }
}

/// A time of seconds to hours: `34.2 s`, `1:02:03`.
pub fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 100.0 {
        return if seconds < 1.0 { format!("{seconds:.3} s") } else { format!("{seconds:.1} s") };
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{rest:02}")
    } else {
        format!("{minutes}:{rest:02} min")
    }
}

/// Reads a number of bytes: `65536`, `64KiB`, `64 MB`, `1g`. Units are binary, however written.
///
/// # Errors
/// A sentence that says what is expected.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = (&text[..split], text[split..].trim().to_ascii_lowercase());
    let shift = match unit.as_str() {
        "" | "b" | "bytes" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(format!("{text:?} is not a size; write for example 65536, 64KiB or 2GiB")),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("{text:?} is not a size; write for example 65536, 64KiB or 2GiB"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text:?} is too large"))
}

/// Reads a whole number: `4000000`, `4_000_000`, `500k`, `48m`, `1g`. Units are decimal.
///
/// # Errors
/// A sentence that says what is expected.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let plain: String = text.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let lower = plain.to_ascii_lowercase();
    let (digits, factor) = match lower.strip_suffix(['k', 'm', 'g']) {
        Some(digits) if lower.ends_with('k') => (digits, 1_000),
        Some(digits) if lower.ends_with('m') => (digits, 1_000_000),
        Some(digits) => (digits, 1_000_000_000),
        None => (lower.as_str(), 1),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("{text:?} is not a whole number; write for example 4000000 or 4m"))?;
    number.checked_mul(factor).ok_or_else(|| format!("{text:?} is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(rounded(1234.6), "1,235");
        assert_eq!(rounded(9.876), "9.88");
        assert_eq!(rounded(98.76), "98.8");
        assert_eq!(rounded(f64::NAN), "-");
    }

    #[test]
    fn sizes_and_times_take_the_unit_that_fits() {
        assert_eq!(bytes(512), "512 bytes");
        assert_eq!(bytes(1 << 20), "1.0 MiB");
        assert_eq!(bytes(79 << 30), "79 GiB");
        assert_eq!(micros(0.1), "0.10 us");
        assert_eq!(micros(134.4), "134 us");
        assert_eq!(micros(2_100.0), "2.10 ms");
        assert_eq!(elapsed(Duration::from_millis(250)), "0.250 s");
        assert_eq!(elapsed(Duration::from_secs(85)), "85.0 s");
        assert_eq!(elapsed(Duration::from_secs(125)), "2:05 min");
        assert_eq!(elapsed(Duration::from_secs(4380)), "1:13:00");
    }

    #[test]
    fn sizes_and_counts_are_read_with_units() {
        assert_eq!(parse_bytes("65536"), Ok(65_536));
        assert_eq!(parse_bytes("60KiB"), Ok(61_440));
        assert_eq!(parse_bytes("1 g"), Ok(1 << 30));
        assert_eq!(parse_count("48m"), Ok(48_000_000));
        assert_eq!(parse_count("2_000_000"), Ok(2_000_000));
        for bad in ["", "x", "-1", "1.5", "12 furlongs"] {
            assert!(parse_bytes(bad).is_err() && parse_count(bad).is_err(), "{bad}");
        }
        assert!(parse_bytes("99999999999T").is_err());
    }
}
