//! CSV after RFC 4180: fields between commas, text with commas, quotes or line ends in double
//! quotes, a quote inside doubled. The first line names the columns.
//!
//! An empty field is NULL, an empty text is `""`; written and read the same way.

pub mod reader;
pub mod rows;
pub mod writer;

/// How fields are separated, and what NULL looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// Between two fields; one ASCII character, not a quote or line end.
    pub delimiter: u8,
    /// What stands for NULL when it is not in quotes.
    pub null: String,
    /// Whether the first line names the columns. Else they come in the order of the table.
    pub header: bool,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions { delimiter: b',', null: String::new(), header: true }
    }
}
