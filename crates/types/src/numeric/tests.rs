//! What the parts of the module promise each other, and what PostgreSQL answers.

use proptest::prelude::*;

use super::*;

fn number(written: &str) -> Numeric {
    written.parse().expect("a number")
}

fn written(number: Result<Numeric, NumericFault>) -> String {
    number.expect("a number").to_string()
}

#[test]
fn text_is_read_and_written_as_postgresql_does() {
    for (text, shown) in [
        ("1.10", "1.10"),
        (" 1e5 ", "100000"),
        ("1.5e-3", "0.0015"),
        (".5", "0.5"),
        ("5.", "5"),
        ("-0.000", "0.000"),
        ("00012.50", "12.50"),
        ("+1.25e2", "125"),
        ("1e-10", "0.0000000001"),
        (" NaN ", "NaN"),
        ("-inf", "-Infinity"),
        ("Infinity", "Infinity"),
    ] {
        assert_eq!(number(text).to_string(), shown, "{text}");
    }
    for text in ["", " ", ".", "e5", "1e", "1 2", "5-", "--1", "-NaN", "1.2.3", "0x1", "infinite"] {
        assert_eq!(text.parse::<Numeric>(), Err(NumericFault::Syntax), "{text}");
    }
    for text in ["1e131072", "1e-16384", "1e999999999999", "1e1073741823"] {
        assert_eq!(text.parse::<Numeric>(), Err(NumericFault::Overflow), "{text}");
    }
    assert_eq!(number("1e131071").to_string().len(), 131_072);
}

#[test]
fn values_are_rounded_half_away_from_zero_to_what_a_column_declares() {
    for (text, precision, scale, shown) in [
        ("1.005", 5, 2, "1.01"),
        ("-1.005", 5, 2, "-1.01"),
        ("123456", 4, -3, "123000"),
        ("499", 3, -3, "0"),
        ("500", 3, -3, "1000"),
        ("0.00123", 3, 5, "0.00123"),
        ("NaN", 3, 2, "NaN"),
    ] {
        assert_eq!(written(number(text).fitted(precision, scale)), shown, "{text}");
    }
    let refused = number("0.01").fitted(3, 5).expect_err("too large");
    let detail =
        "A field with precision 3, scale 5 must round to an absolute value less than 10^-2.";
    assert_eq!(refused.detail().as_deref(), Some(detail));
    assert!(number("Infinity").fitted(3, 2).is_err());
}

#[test]
fn what_has_no_digits_is_computed_with_as_in_postgresql() {
    let (infinite, nan, two) = (Numeric::Infinity, Numeric::NaN, number("2"));
    assert_eq!(written(infinite.minus(&infinite)), "NaN");
    assert_eq!(written(two.minus(&infinite)), "-Infinity");
    assert_eq!(written(infinite.times(&Numeric::ZERO)), "NaN");
    assert_eq!(written(infinite.times(&number("-1"))), "-Infinity");
    assert_eq!(two.remainder(&infinite), Divided::Number(two.clone()));
    assert_eq!(infinite.divided(&Numeric::ZERO, 0), Ok(Divided::ByZero));
    assert_eq!(nan.divided(&Numeric::ZERO, 0), Ok(Divided::Number(Numeric::NaN)));
}

fn any_number() -> impl Strategy<Value = Numeric> {
    let small = (any::<i64>(), 0i32..25).prop_map(|(digits, scale)| Numeric::new(digits, scale));
    let few = (-30i64..30, 0i32..6).prop_map(|(digits, scale)| Numeric::new(digits, scale));
    let long = ("-?[1-9][0-9]{0,90}", 0i32..90)
        .prop_map(|(digits, scale)| Numeric::new(digits.parse::<IBig>().expect("digits"), scale));
    let other = prop_oneof![
        Just(Ok(Numeric::NaN)),
        Just(Ok(Numeric::Infinity)),
        Just(Ok(Numeric::NegativeInfinity))
    ];
    prop_oneof![4 => small, 4 => few, 4 => long, 1 => other]
        .prop_map(|made| made.expect("few digits"))
}

proptest! {
    #[test]
    fn bytes_are_read_back_and_ordered_as_the_numbers(one in any_number(), other in any_number()) {
        let (ones, others) = (one.to_bytes(), other.to_bytes());
        prop_assert_eq!(Numeric::read(&ones), Ok(one.clone()));
        prop_assert_eq!(comparable(&ones).cmp(comparable(&others)), one.compare(&other));
        prop_assert_eq!(key_length(&ones), Ok(ones.len() - 2));
        let key = Numeric::read_key(comparable(&ones), None).expect("a number");
        prop_assert_eq!(&key, &one.trimmed());
    }

    #[test]
    fn text_is_read_back(one in any_number()) {
        prop_assert_eq!(one.to_string().parse::<Numeric>(), Ok(one));
    }

    #[test]
    fn a_quotient_and_what_is_left_make_the_dividend(one in any_number(), by in any_number()) {
        if let (Ok(Divided::Number(quotient @ Numeric::Finite(..))), Divided::Number(rest), Numeric::Finite(..)) =
            (one.whole_quotient(&by), one.remainder(&by), &by)
        {
            let back = quotient.times(&by).and_then(|product| product.plus(&rest)).expect("a number");
            prop_assert_eq!(back.compare(&one), Ordering::Equal);
        }
    }

    #[test]
    fn no_bytes_are_more_than_an_error(bytes in any::<Vec<u8>>()) {
        let _ = Numeric::read(&bytes);
        let _ = Numeric::read_key(&bytes, None);
    }
}
