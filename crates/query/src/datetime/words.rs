//! Words in dates and times.

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// It says nothing that the others do not.
    Filler,
    Month(i64),
    Weekday,
    IsAfternoon(bool),
    IsBeforeChrist(bool),
    /// A time in ISO 8601 comes next.
    Time,
    /// What the next number is.
    Label(Label),
    /// An hour more to the east.
    SummerTime,
    Now,
    /// So many days from today.
    Day(i64),
    Epoch,
    /// The negative one, if so.
    Infinity(bool),
    /// Midnight in UTC.
    Midnight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Julian,
    Time,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The word in lower case; none of one that is no word of a date.
pub(super) fn meaning(word: &str) -> Option<Word> {
    let short = word.get(..3).unwrap_or_default();
    if let Some(month) = MONTHS.iter().position(|name| name.starts_with(short) && short.len() == 3)
        && (word == MONTHS[month] || word.len() == 3 || word == "sept")
    {
        return Some(Word::Month(month as i64 + 1));
    }
    Some(match word {
        "at" | "on" => Word::Filler,
        "sun" | "sunday" | "mon" | "monday" | "tue" | "tues" | "tuesday" | "wed" | "wednesday"
        | "weds" | "thu" | "thur" | "thurs" | "thursday" | "fri" | "friday" | "sat"
        | "saturday" => Word::Weekday,
        "am" => Word::IsAfternoon(false),
        "pm" => Word::IsAfternoon(true),
        "ad" => Word::IsBeforeChrist(false),
        "bc" => Word::IsBeforeChrist(true),
        "t" => Word::Time,
        "y" => Word::Label(Label::Year),
        "m" => Word::Label(Label::Month),
        "d" => Word::Label(Label::Day),
        "h" => Word::Label(Label::Hour),
        "mm" => Word::Label(Label::Minute),
        "s" => Word::Label(Label::Second),
        "j" | "jd" | "julian" => Word::Label(Label::Julian),
        "dst" => Word::SummerTime,
        "now" => Word::Now,
        "yesterday" => Word::Day(-1),
        "today" => Word::Day(0),
        "tomorrow" => Word::Day(1),
        "epoch" => Word::Epoch,
        "infinity" => Word::Infinity(false),
        "-infinity" => Word::Infinity(true),
        "allballs" => Word::Midnight,
        _ => return None,
    })
}

/// Whether a word is none of a time zone, also where digits follow.
pub(super) fn is_known(word: &str) -> bool {
    meaning(word).is_some() || matches!(word, "dow" | "doy" | "isodow" | "isoyear")
}
