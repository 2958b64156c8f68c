//! What a command found, for people and for programs: the same [`Report`] is printed as text, as one JSON object and as a web page.
//!
//! JSON begins with `schema, command, adapter, driver, seed`; flat keys follow, the table is `rows`, an array of objects, and a further
//! table has a key of its own.

pub use bitset::BitsetRun;
pub use motifs::counted_from_json;
use serde_json::{Map, Value};

mod bench;
mod bitset;
mod gemm;
mod html;
mod motifs;
mod text;

/// Version of the JSON layout; a change that breaks readers raises it.
pub const SCHEMA: u32 = 1;

/// A column of a [`Table`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Key in JSON; ends with its unit where it has one.
    pub key: &'static str,
    /// Heading in text.
    pub title: &'static str,
}

impl Column {
    /// A column of that key and heading.
    pub const fn new(key: &'static str, title: &'static str) -> Self {
        Column { key, title }
    }
}

/// A table: each row has one value for each column.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
}

impl Table {
    /// An empty table.
    pub fn new(columns: &[Column]) -> Self {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. A cell that is missing or has no value is `null`.
    pub fn row<const N: usize>(&mut self, cells: [Value; N]) {
        self.push(cells.to_vec());
    }

    /// [`Table::row`] for cells whose number is not known before.
    fn push(&mut self, mut cells: Vec<Value>) {
        cells.resize(self.columns.len(), Value::Null);
        self.rows.push(cells);
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.rows.len()
    }
}

/// A line of text with a key: `label: value unit`.
#[derive(Debug, Clone, PartialEq)]
struct Field {
    key: &'static str,
    label: String,
    value: Value,
    unit: &'static str,
}

/// A point of a [`Plot`].
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Place across.
    pub x: f64,
    /// Place up.
    pub y: f64,
    /// What it is.
    pub label: String,
    /// What it is drawn like.
    pub series: String,
}

/// Points in a plane whose axes are logarithms; points that have none are left out. On web pages only: the numbers are in tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Heading.
    pub title: &'static str,
    /// What is across, with its unit.
    pub x: &'static str,
    /// What is up, with its unit.
    pub y: &'static str,
    /// The points.
    pub points: Vec<Point>,
}

/// What a command found.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    command: String,
    adapter: Option<(String, String)>,
    seed: u64,
    fields: Vec<Field>,
    tables: Vec<NamedTable>,
    plots: Vec<Plot>,
}

/// A table with its key in JSON and, past the first, its heading in text.
#[derive(Debug, Clone, PartialEq)]
struct NamedTable {
    key: &'static str,
    title: &'static str,
    table: Table,
}

impl Report {
    /// An empty report of `command`, run with `seed`.
    pub fn new(command: impl Into<String>, seed: u64) -> Self {
        Report { command: command.into(), adapter: None, seed, fields: Vec::new(), tables: Vec::new(), plots: Vec::new() }
    }

    /// Says which adapter and driver the figures come from. A report without is of work that used none.
    #[must_use]
    pub fn on(mut self, adapter: impl Into<String>, driver: impl Into<String>) -> Self {
        self.adapter = Some((adapter.into(), driver.into()));
        self
    }

    /// Adds a figure: key in JSON, label and unit in text.
    pub fn field(&mut self, key: &'static str, label: impl Into<String>, value: impl Into<Value>, unit: &'static str) {
        self.fields.push(Field { key, label: label.into(), value: value.into(), unit });
    }

    /// Adds the main table, `rows` in JSON.
    pub fn table(&mut self, table: Table) {
        self.further_table("rows", "", table);
    }

    /// Adds a table under a key of its own.
    pub fn further_table(&mut self, key: &'static str, title: &'static str, table: Table) {
        self.tables.push(NamedTable { key, title, table });
    }

    /// Adds a plot to the web page.
    pub fn plot(&mut self, plot: Plot) {
        self.plots.push(plot);
    }

    /// The report as one JSON object.
    pub fn to_json(&self) -> Value {
        let (adapter, driver) = self.adapter.clone().map_or((Value::Null, Value::Null), |(a, d)| (a.into(), d.into()));
        let mut object = Map::new();
        object.insert("schema".into(), SCHEMA.into());
        object.insert("command".into(), self.command.as_str().into());
        object.insert("adapter".into(), adapter);
        object.insert("driver".into(), driver);
        object.insert("seed".into(), self.seed.into());
        for field in &self.fields {
            object.insert(field.key.into(), field.value.clone());
        }
        for NamedTable { key, table, .. } in &self.tables {
            let keys = || table.columns.iter().map(|c| c.key.to_string());
            let rows = table.rows.iter().map(|row| Value::Object(keys().zip(row.iter().cloned()).collect()));
            object.insert((*key).into(), rows.collect());
        }
        Value::Object(object)
    }

    /// The report as text for people.
    pub fn to_text(&self) -> String {
        text::report(self)
    }

    /// The report as one web page that needs nothing else; the JSON is part of it.
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::new("bench device", 7).on("llvmpipe", "Mesa 1");
        report.field("probed_copy_gbps", "copy", 8.25, "GB/s");
        let mut table = Table::new(&[Column::new("name", "kernel"), Column::new("median_ms", "ms"), Column::new("share", "share")]);
        table.row(["copy".into(), 1.5.into()]);
        report.table(table);
        report
    }

    #[test]
    fn json_begins_with_the_head_and_ends_with_the_rows() {
        let json = report().to_json().to_string();
        let expected = r#"{"schema":1,"command":"bench device","adapter":"llvmpipe","driver":"Mesa 1","seed":7,"#.to_string()
            + r#""probed_copy_gbps":8.25,"rows":[{"name":"copy","median_ms":1.5,"share":null}]}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn text_shows_adapter_fields_and_table() {
        let text = report().to_text();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines[0], "adapter  llvmpipe (Mesa 1)");
        assert_eq!(lines[1], "copy     8.25 GB/s");
        assert!(lines.iter().any(|l| l.contains("kernel") && l.contains("ms") && l.contains("share")), "{text}");
        assert!(lines.iter().any(|l| l.contains("copy") && l.contains("1.5") && l.ends_with('-')), "{text}");
    }
}
