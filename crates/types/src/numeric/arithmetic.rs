//! What is computed exactly, and what is rounded, half away from zero.

use std::cmp::Ordering;

use dashu_int::IBig;

use super::{NUMERIC_SCALE_MAX, Numeric, NumericFault, power_of_ten};

/// What a division comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Divided {
    /// A number.
    Number(Numeric),
    /// The divisor is zero.
    ByZero,
}

type Made = Result<Numeric, NumericFault>;

/// `of` by `by`, rounded half away from zero.
fn rounded_quotient(of: &IBig, by: &IBig) -> IBig {
    let (of, by) = match *by < IBig::ZERO {
        true => (-of.clone(), -by.clone()),
        false => (of.clone(), by.clone()),
    };
    // Half of the divisor more, and cut off towards zero.
    let twice = &of * IBig::from(2);
    let moved = if of < IBig::ZERO { twice - &by } else { twice + &by };
    moved / (by * IBig::from(2))
}

impl Numeric {
    /// With so many digits after the point; fewer than none make zeros in front of it.
    #[must_use]
    pub fn rounded(&self, scale: i32) -> Numeric {
        self.with_scale(scale, rounded_quotient)
    }

    /// With so many digits after the point, others cut off.
    #[must_use]
    pub fn cut(&self, scale: i32) -> Numeric {
        self.with_scale(scale, |of, by| of.clone() / by)
    }

    fn with_scale(&self, scale: i32, quotient: fn(&IBig, &IBig) -> IBig) -> Numeric {
        let Numeric::Finite(digits, own) = self else { return self.clone() };
        let (own, scale) = (i32::from(*own), scale.min(NUMERIC_SCALE_MAX));
        let shown = u16::try_from(scale.max(0)).unwrap_or(0);
        match scale.cmp(&own) {
            Ordering::Equal => self.clone(),
            Ordering::Greater => Numeric::Finite(digits.clone() * power_of_ten(scale - own), shown),
            // All digits go.
            Ordering::Less if super::digits_of(digits) < own - scale => {
                Numeric::Finite(IBig::ZERO, shown)
            }
            Ordering::Less => {
                let kept = quotient(digits, &power_of_ten(own - scale));
                Numeric::Finite(kept * power_of_ten((-scale).max(0)), shown)
            }
        }
    }

    /// Without zeros at the end.
    #[must_use]
    pub fn trimmed(&self) -> Numeric {
        match self {
            Numeric::Finite(..) => self.cut(i32::from(self.least_scale().unwrap_or(0))),
            _ => self.clone(),
        }
    }

    /// Digits after the point that are needed.
    #[must_use]
    pub fn least_scale(&self) -> Option<u16> {
        let Numeric::Finite(digits, scale) = self else { return None };
        if *digits == IBig::ZERO {
            return Some(0);
        }
        let written = digits.to_string();
        let zeros = written.len() - written.trim_end_matches('0').len();
        Some(u16::try_from(usize::from(*scale).saturating_sub(zeros)).unwrap_or(*scale))
    }

    /// As a column with so many digits keeps it.
    ///
    /// # Errors
    /// Digits in front of the point that it has no space for.
    pub fn fitted(&self, precision: u16, scale: i16) -> Made {
        let fault = |is_infinite| NumericFault::Field { precision, scale, is_infinite };
        let Numeric::Finite(..) = self else {
            return if *self == Numeric::NaN { Ok(Numeric::NaN) } else { Err(fault(true)) };
        };
        let rounded = self.rounded(i32::from(scale));
        let Numeric::Finite(digits, shown) = &rounded else { return Err(fault(false)) };
        let in_front = super::digits_of(digits) - i32::from(*shown);
        match *digits == IBig::ZERO || in_front <= i32::from(precision) - i32::from(scale) {
            true => Ok(rounded),
            false => Err(fault(false)),
        }
    }

    /// The other sign.
    #[must_use]
    pub fn negated(&self) -> Numeric {
        match self {
            Numeric::NegativeInfinity => Numeric::Infinity,
            Numeric::Finite(digits, scale) => Numeric::Finite(-digits.clone(), *scale),
            Numeric::Infinity => Numeric::NegativeInfinity,
            Numeric::NaN => Numeric::NaN,
        }
    }

    /// Without its sign.
    #[must_use]
    pub fn size(&self) -> Numeric {
        match self.sign() {
            Some(Ordering::Less) => self.negated(),
            _ => self.clone(),
        }
    }

    /// Both numbers with the digits after the point that either has.
    pub(super) fn aligned(&self, other: &Numeric) -> Option<(IBig, IBig, u16)> {
        let (Numeric::Finite(own, scale), Numeric::Finite(others, others_scale)) = (self, other)
        else {
            return None;
        };
        let shown = *scale.max(others_scale);
        let moved = |digits: &IBig, scale: u16| match shown - scale {
            0 => digits.clone(),
            places => digits * power_of_ten(i32::from(places)),
        };
        Some((moved(own, *scale), moved(others, *others_scale), shown))
    }

    /// The sum.
    ///
    /// # Errors
    /// More digits than there may be.
    pub fn plus(&self, other: &Numeric) -> Made {
        if let Some((own, others, scale)) = self.aligned(other) {
            return Numeric::new(own + others, i32::from(scale));
        }
        Ok(match (self, other) {
            (Numeric::NaN, _)
            | (_, Numeric::NaN)
            | (Numeric::Infinity, Numeric::NegativeInfinity)
            | (Numeric::NegativeInfinity, Numeric::Infinity) => Numeric::NaN,
            (Numeric::Finite(..), infinite) | (infinite, _) => infinite.clone(),
        })
    }

    /// The difference.
    ///
    /// # Errors
    /// More digits than there may be.
    pub fn minus(&self, other: &Numeric) -> Made {
        self.plus(&other.negated())
    }

    /// The product.
    ///
    /// # Errors
    /// More digits than there may be.
    pub fn times(&self, other: &Numeric) -> Made {
        if let (Numeric::Finite(own, scale), Numeric::Finite(others, others_scale)) = (self, other)
        {
            let scale = i32::from(*scale) + i32::from(*others_scale);
            let digits = own * others;
            return match scale > NUMERIC_SCALE_MAX {
                true => {
                    let dropped = power_of_ten(scale - NUMERIC_SCALE_MAX);
                    Numeric::new(rounded_quotient(&digits, &dropped), NUMERIC_SCALE_MAX)
                }
                false => Numeric::new(digits, scale),
            };
        }
        Ok(match (self.sign(), other.sign()) {
            (Some(Ordering::Equal), _) | (_, Some(Ordering::Equal)) => Numeric::NaN,
            (Some(own), Some(others)) if own == others => Numeric::Infinity,
            (Some(_), Some(_)) => Numeric::NegativeInfinity,
            _ => Numeric::NaN,
        })
    }

    /// The quotient with so many digits after the point.
    ///
    /// # Errors
    /// More digits than there may be.
    pub fn divided(&self, by: &Numeric, scale: i32) -> Result<Divided, NumericFault> {
        self.divided_by(by, scale, rounded_quotient)
    }

    /// The whole part of the quotient.
    ///
    /// # Errors
    /// More digits than there may be.
    pub fn whole_quotient(&self, by: &Numeric) -> Result<Divided, NumericFault> {
        self.divided_by(by, 0, |of, by| of / by)
    }

    fn divided_by(
        &self,
        by: &Numeric,
        scale: i32,
        quotient: fn(&IBig, &IBig) -> IBig,
    ) -> Result<Divided, NumericFault> {
        if *self == Numeric::NaN || *by == Numeric::NaN {
            return Ok(Divided::Number(Numeric::NaN));
        }
        if by.is_zero() {
            return Ok(Divided::ByZero);
        }
        let (Numeric::Finite(own, own_scale), Numeric::Finite(others, others_scale)) = (self, by)
        else {
            return Ok(Divided::Number(match (self, by) {
                (Numeric::Finite(..), _) => Numeric::ZERO,
                (infinite, Numeric::Finite(..)) => match by.sign() {
                    Some(Ordering::Less) => infinite.negated(),
                    _ => infinite.clone(),
                },
                _ => Numeric::NaN,
            }));
        };
        let shift = scale + i32::from(*others_scale) - i32::from(*own_scale);
        let digits = match shift < 0 {
            false => quotient(&(own * power_of_ten(shift)), others),
            true => quotient(own, &(others * power_of_ten(-shift))),
        };
        Numeric::new(digits, scale).map(Divided::Number)
    }

    /// What is left of a division, with the sign of the dividend.
    #[must_use]
    pub fn remainder(&self, by: &Numeric) -> Divided {
        if *self == Numeric::NaN || *by == Numeric::NaN {
            return Divided::Number(Numeric::NaN);
        }
        if by.is_zero() {
            return Divided::ByZero;
        }
        Divided::Number(match self.aligned(by) {
            Some((own, others, scale)) => Numeric::Finite(own % others, scale),
            None if matches!(self, Numeric::Finite(..)) => self.clone(),
            None => Numeric::NaN,
        })
    }

    /// The greatest whole number that is not above it, or the least one that is not below it.
    ///
    /// # Errors
    /// More digits than there may be.
    pub fn whole(&self, is_upwards: bool) -> Made {
        let cut = self.cut(0);
        let missed = if is_upwards { Ordering::Less } else { Ordering::Greater };
        match (cut.compare(self) == missed, is_upwards) {
            (false, _) => Ok(cut),
            (true, true) => cut.plus(&Numeric::from(1i64)),
            (true, false) => cut.minus(&Numeric::from(1i64)),
        }
    }
}
