//! Addresses of network cards: `macaddr`.

use std::fmt;

/// Bytes of one, in a row, in a key and in an array.
pub(crate) const MAC_ADDRESS_BYTES: usize = 6;

/// Six bytes, ordered as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; MAC_ADDRESS_BYTES]);

impl MacAddress {
    /// Reads twelve hexadecimal digits: all together, in two parts, in three with `.` or `-` between them, or in six
    /// of one or two digits with `:` or `-`.
    #[must_use]
    pub fn read(text: &str) -> Option<MacAddress> {
        let text = text.trim_matches(|letter: char| letter.is_ascii_whitespace());
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'-' | b'.'))
        {
            return None;
        }
        let separator = text.find([':', '-', '.']).map(|at| &text[at..=at]);
        let parts: Vec<&str> = match separator {
            Some(separator) => text.split(separator).collect(),
            None => vec![text],
        };
        let digits_each = match (parts.len(), separator) {
            (1, _) => 12,
            (2, Some(":" | "-")) => 6,
            (3, Some("." | "-")) => 4,
            (6, Some(":" | "-")) => 2,
            _ => return None,
        };
        let has_digits = |part: &&str| match digits_each {
            2 => matches!(part.len(), 1 | 2),
            count => part.len() == count,
        };
        if !parts.iter().all(has_digits) {
            return None;
        }
        let digits: String = parts.iter().map(|part| format!("{part:0>digits_each$}")).collect();
        let number = u64::from_str_radix(&digits, 16).ok()?;
        let [_, _, bytes @ ..] = number.to_be_bytes();
        Some(MacAddress(bytes))
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_address_reads_back_as_it_is_written(bytes in any::<[u8; MAC_ADDRESS_BYTES]>()) {
            let address = MacAddress(bytes);
            prop_assert_eq!(MacAddress::read(&address.to_string()), Some(address));
        }
    }

    #[test]
    fn all_ways_of_writing_one_are_read() {
        for text in [
            "08:00:2b:01:02:03",
            "08-00-2B-01-02-03",
            "8:0:2b:1:2:3",
            "08002b:010203",
            "08002b-010203",
            "0800.2b01.0203",
            "0800-2b01-0203",
            " 08002b010203 ",
        ] {
            let read = MacAddress::read(text).map(|address| address.to_string());
            assert_eq!(read.as_deref(), Some("08:00:2b:01:02:03"), "{text}");
        }
        for refused in [
            "",
            "08:00:2b:01:02",
            "0800:2b01:0203",
            "08:00:2b:01:02:0g",
            "08002b01020",
            "+8:0:2b:1:2:3",
        ] {
            assert_eq!(MacAddress::read(refused), None, "{refused}");
        }
    }
}
