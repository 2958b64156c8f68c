//! Reports as one self-contained HTML page: figures, the table, and a bar chart of each column of rates as inline SVG.

use super::text::value;
use super::{Report, Table};
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left}\
td.n{text-align:right;font-variant-numeric:tabular-nums}svg text{font:13px system-ui,sans-serif}";

/// Columns that are drawn as bars: rates, of which more is better.
const DRAWN: [&str; 3] = ["gflops", "gbps", "images_per_s"];

// Height of a bar and of the space it stands in, width of the names, longest bar; in pixels.
const BAR: f64 = 14.0;
const LINE: f64 = 22.0;
const NAMES: f64 = 260.0;
const LONGEST: f64 = 420.0;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let title = escape(&format!("sublane {}", report.command));
    let mut out = format!("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>");
    let _ = write!(out, "<style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n<table>\n");
    let adapter = report.adapter.iter().map(|(adapter, driver)| ("adapter".to_string(), format!("{adapter} ({driver})")));
    let seed = [("seed".to_string(), report.seed.to_string())];
    let fields = report.fields.iter().map(|f| (f.label.clone(), format!("{} {}", value(&f.value), f.unit)));
    for (label, text) in adapter.chain(seed).chain(fields) {
        let _ = writeln!(out, "<tr><th>{}</th><td>{}</td></tr>", escape(&label), escape(text.trim_end()));
    }
    out.push_str("</table>\n");
    if let Some(table) = &report.table {
        for (at, column) in table.columns.iter().enumerate().filter(|(_, c)| DRAWN.contains(&c.key)) {
            bars(&mut out, table, at, column.title);
        }
        rows(&mut out, table);
    }
    out.push_str("</body></html>\n");
    out
}

fn rows(out: &mut String, table: &Table) {
    out.push_str("<table>\n<tr>");
    for column in &table.columns {
        let _ = write!(out, "<th>{}</th>", escape(column.title));
    }
    out.push_str("</tr>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for cell in row {
            let class = if cell.is_number() { " class=\"n\"" } else { "" };
            let _ = write!(out, "<td{class}>{}</td>", escape(&value(cell)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

/// One bar for each row that has a number in column `at`; the first column names it.
fn bars(out: &mut String, table: &Table, at: usize, title: &str) {
    let drawn: Vec<(String, f64)> = table
        .rows
        .iter()
        .filter_map(|row| Some((value(row.first()?), row.get(at)?.as_f64().filter(|x| x.is_finite() && *x >= 0.0)?)))
        .collect();
    let most = drawn.iter().map(|(_, x)| *x).fold(0.0, f64::max);
    if most == 0.0 {
        return;
    }
    let (width, height) = (NAMES + LONGEST + 80.0, LINE * drawn.len() as f64);
    let _ = writeln!(out, "<h2>{}</h2>\n<svg width=\"{width}\" height=\"{height}\" role=\"img\">", escape(title));
    for (line, (name, x)) in drawn.iter().enumerate() {
        let (y, length) = (LINE * line as f64, LONGEST * x / most);
        let base = y + BAR;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{base}\" text-anchor=\"end\">{}</text><rect x=\"{NAMES}\" y=\"{}\" width=\"{length:.1}\" height=\"{BAR}\" \
             fill=\"#4472b8\"/><text x=\"{:.1}\" y=\"{base}\">{}</text>",
            NAMES - 8.0,
            escape(name),
            y + 2.0,
            NAMES + length + 6.0,
            value(&(*x).into()),
        );
    }
    out.push_str("</svg>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
