//! Reports as text.

use super::{Report, Table};
use comfy_table::{CellAlignment, presets};
use serde_json::Value;

/// The whole report; ends with a line feed.
pub(super) fn report(report: &Report) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    if let Some((adapter, driver)) = &report.adapter {
        lines.push(("adapter".into(), format!("{adapter} ({driver})")));
    }
    lines.extend(report.fields.iter().map(|f| (f.label.clone(), format!("{} {}", value(&f.value), f.unit))));
    let width = lines.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (label, text) in &lines {
        out.push_str(&format!("{label:width$}  {}\n", text.trim_end()));
    }
    for named in report.tables.iter().filter(|t| t.table.num_rows() > 0) {
        if !out.is_empty() {
            out.push('\n');
        }
        if !named.title.is_empty() {
            out.push_str(&format!("{}\n", named.title));
        }
        out.push_str(&table(&named.table));
    }
    out
}

fn table(table: &Table) -> String {
    let mut out = comfy_table::Table::new();
    out.load_style(presets::NOTHING);
    out.set_header(table.columns.iter().map(|c| c.title));
    for row in &table.rows {
        out.add_row(row.iter().map(value));
    }
    for (index, column) in out.column_iter_mut().enumerate() {
        let numeric = table.rows.iter().all(|row| row[index].is_number() || row[index].is_null());
        column.set_padding((0, 2));
        column.set_cell_alignment(if numeric { CellAlignment::Right } else { CellAlignment::Left });
    }
    let lines = out.lines().map(|line| line.trim_end().to_string() + "\n");
    lines.collect()
}

/// A value as people read it: floats with four significant digits, nothing as `-`.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        Value::Bool(truth) => if *truth { "yes" } else { "no" }.into(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(x) => float(x),
            None => number.to_string(),
        },
        Value::Array(values) => values.iter().map(self::value).collect::<Vec<_>>().join(", "),
        Value::Object(_) => value.to_string(),
    }
}

fn float(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let magnitude = x.abs().log10().floor();
    if !(-4.0..9.0).contains(&magnitude) {
        return format!("{x:.2e}");
    }
    let text = format!("{x:.*}", (3.0 - magnitude).max(0.0) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_keep_four_digits() {
        for (x, text) in
            [(0.0, "0"), (1.0, "1"), (1234.56, "1235"), (0.012345, "0.01235"), (9.0e12, "9.00e12"), (3.0e-7, "3.00e-7"), (-2.5, "-2.5")]
        {
            assert_eq!(float(x), text);
        }
    }
}
