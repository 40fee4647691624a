//! A CREATE TABLE statement from a sample of rows: the narrowest type that all values of a column
//! have, and as defaults the values of the row whose size is in the middle.

use onrush_types::{DataType, text};

/// Types a column may turn out to have, the narrowest first.
const CANDIDATES: &[DataType] = &[
    DataType::Boolean,
    DataType::Int64,
    DataType::Float64,
    DataType::Date,
    DataType::Time,
    DataType::Timestamp,
    DataType::TimestampTz,
    DataType::Uuid,
];
/// Texts longer than this are of type text.
const VARCHAR_BYTES_MAX: usize = 4000;

/// The statement for a table `name` with these columns; the first is the key. Rows are texts as
/// they stand in a CSV file; an empty one is NULL.
///
/// # Errors
/// Nothing to go by, in a sentence.
pub fn statement(name: &str, header: &[String], rows: &[Vec<String>]) -> Result<String, String> {
    let Some(first) = header.first() else {
        return Err("the sample has no header; its first line must name the columns".into());
    };
    if rows.is_empty() {
        return Err("the sample has no rows; give a few dozen, as they are inserted".into());
    }
    if let Some(row) = rows.iter().position(|row| row.len() != header.len()) {
        let (found, wanted) = (rows[row].len(), header.len());
        return Err(format!("row {} has {found} columns, the header {wanted}", row + 1));
    }
    let typical = typical_row(rows);
    let columns: Vec<String> = header
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let values: Vec<&str> = rows.iter().map(|row| row[index].as_str()).collect();
            let sql_type = type_of(&values, column == first);
            let default = match typical[index].as_str() {
                _ if column == first => " PRIMARY KEY".to_owned(),
                "" => String::new(),
                value => format!(" DEFAULT '{}'", value.replace('\'', "''")),
            };
            let not_null =
                if values.iter().any(|value| value.is_empty()) { "" } else { " NOT NULL" };
            format!("    {} {sql_type}{not_null}{default}", quoted(column))
        })
        .collect();
    Ok(format!("CREATE TABLE {} (\n{}\n);\n", quoted(name), columns.join(",\n")))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', ""))
}

fn typical_row(rows: &[Vec<String>]) -> &Vec<String> {
    let bytes = |row: &&Vec<String>| row.iter().map(String::len).sum::<usize>();
    let mut by_size: Vec<&Vec<String>> = rows.iter().collect();
    by_size.sort_by_key(bytes);
    by_size[by_size.len() / 2]
}

/// A key of another type than a number or a UUID is replaced by one that can be made.
fn type_of(values: &[&str], is_key: bool) -> String {
    let some: Vec<&&str> = values.iter().filter(|value| !value.is_empty()).collect();
    let fits =
        |data_type: &&DataType| some.iter().all(|value| text::parse(**data_type, value).is_ok());
    let found = CANDIDATES.iter().filter(|_| !some.is_empty()).find(fits);
    match found {
        Some(DataType::Uuid) => "uuid".into(),
        _ if is_key => "bigint".into(),
        // 0 and 1 are read as true and false, but are rather numbers.
        Some(DataType::Boolean) if some.iter().all(|value| value.parse::<i64>().is_ok()) => {
            "bigint".into()
        }
        Some(data_type) => data_type.to_string(),
        None => {
            let longest = some.iter().map(|value| value.len()).max().unwrap_or(0);
            match longest {
                0..=VARCHAR_BYTES_MAX => {
                    format!("varchar({})", (longest.max(1)).next_power_of_two())
                }
                _ => "text".into(),
            }
        }
    }
}
