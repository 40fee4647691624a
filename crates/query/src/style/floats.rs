//! Floating-point numbers with a number of digits, as C writes them by `%.*g`.

/// As many significant digits; those at the end that are zero are left out.
pub(crate) fn with_digits(value: f64, digits: usize) -> String {
    let rounded = format!("{value:.*e}", digits.saturating_sub(1));
    let (mantissa, power) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let power: i32 = power.parse().unwrap_or_default();
    let without_zeros = |number: &str| match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    };
    match usize::try_from(power) {
        Ok(above) if above < digits => without_zeros(&format!("{value:.*}", digits - 1 - above)),
        Err(_) if power >= -4 => {
            let behind = digits - 1 + usize::try_from(-power).unwrap_or_default();
            without_zeros(&format!("{value:.behind$}"))
        }
        _ => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", without_zeros(mantissa), power.abs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_c() {
        for (value, digits, written) in [
            (0.1 + 0.2, 15, "0.3"),
            (123.456, 1, "1e+02"),
            (123.456, 4, "123.5"),
            (1e20, 15, "1e+20"),
            (0.00012345, 3, "0.000123"),
            (0.000012345, 3, "1.23e-05"),
            (-0.0, 15, "-0"),
            (999.9999, 3, "1e+03"),
            (100.0, 3, "100"),
        ] {
            assert_eq!(with_digits(value, digits), written);
        }
    }
}
