//! Reports as web pages: one file, no script, no font, nothing fetched.

use super::text::value;
use super::{NamedTable, Plot, Report, Table};
use serde_json::Value;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --bar: #3b7dd8; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: max-content auto; gap: .15rem 1.2rem; } dt { opacity: .7; } dd { margin: 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } td.long { white-space: normal; min-width: 16rem; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg .bar { fill: var(--bar); } svg .rest { fill: var(--line); }
";

/// The page of a report.
pub(super) fn page(report: &Report) -> String {
    let title = escape(&format!("sublane {}", report.command));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<dl>\n"
    );
    let adapter = report.adapter.as_ref().map(|(name, driver)| ("adapter", format!("{name} ({driver})")));
    let seed = ("seed", report.seed.to_string());
    let fields = report.fields.iter().map(|f| (f.label.as_str(), format!("{} {}", value(&f.value), f.unit)));
    for (label, text) in adapter.into_iter().chain([seed]).chain(fields) {
        out.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", escape(label), escape(text.trim_end())));
    }
    out.push_str("</dl>\n");
    for NamedTable { title, table, .. } in report.tables.iter().filter(|t| t.table.num_rows() > 0) {
        if !title.is_empty() {
            out.push_str(&format!("<h2>{}</h2>\n", escape(title)));
        }
        out.push_str(&bars(table));
        out.push_str(&cells(table));
    }
    report.plots.iter().for_each(|plot| out.push_str(&scatter(plot)));
    // A `<` in a string would end the element early.
    let json = report.to_json().to_string().replace('<', "\\u003c");
    out.push_str(&format!("<script type=\"application/json\" id=\"report\">{json}</script>\n</body>\n</html>\n"));
    out
}

fn cells(table: &Table) -> String {
    let mut out = String::from("<div class=\"wide\"><table>\n<tr>");
    for column in &table.columns {
        out.push_str(&format!("<th>{}</th>", escape(column.title)));
    }
    for row in &table.rows {
        out.push_str("</tr>\n<tr>");
        for cell in row {
            let class = match cell {
                Value::Number(_) => " class=\"number\"",
                Value::Array(_) => " class=\"long\"",
                _ => "",
            };
            out.push_str(&format!("<td{class}>{}</td>", escape(&value(cell))));
        }
    }
    out + "</tr>\n</table></div>\n"
}

/// A bar for each row with a `share`: how much of the probe, or of the run, it is. A table without shares has none.
fn bars(table: &Table) -> String {
    const LEFT: usize = 420;
    const WIDTH: usize = 400;
    const LINE: usize = 20;
    let column = |key: &str| table.columns.iter().position(|c| c.key == key);
    let Some(share) = column("share") else { return String::new() };
    let names: Vec<usize> = ["row", "name", "kernel"].into_iter().filter_map(column).collect();
    let probe = column("probe");
    let rows: Vec<(&Vec<Value>, f64)> = table.rows.iter().filter_map(|row| Some((row, row[share].as_f64()?))).collect();
    let mut out = format!("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"shares\">\n", LEFT + WIDTH + 120, rows.len() * LINE);
    for (at, (row, share)) in rows.iter().enumerate() {
        let name = names.iter().map(|&i| value(&row[i])).collect::<Vec<_>>().join(": ");
        let of = probe.and_then(|i| row[i].as_str()).map(|p| format!(" of {p}")).unwrap_or_default();
        let (top, length) = (at * LINE, share.clamp(0.0, 1.0) * WIDTH as f64);
        let (baseline, after) = (top + 14, LEFT + WIDTH + 8);
        out.push_str(&format!(
            "<text x=\"{}\" y=\"{baseline}\" text-anchor=\"end\">{}</text>\
             <rect class=\"rest\" x=\"{LEFT}\" y=\"{}\" width=\"{WIDTH}\" height=\"14\"/>\
             <rect class=\"bar\" x=\"{LEFT}\" y=\"{}\" width=\"{length:.1}\" height=\"14\"/>\
             <text x=\"{after}\" y=\"{baseline}\">{:.1} %{}</text>\n",
            LEFT - 8,
            escape(&shortened(&name)),
            top + 3,
            top + 3,
            100.0 * share,
            escape(&of)
        ));
    }
    out + "</svg>\n"
}

/// Points in a plane with logarithmic axes, a colour for each series; pointing at one says what it is.
fn scatter(plot: &Plot) -> String {
    const WIDTH: f64 = 860.0;
    const HEIGHT: f64 = 420.0;
    const MARGIN: f64 = 70.0;
    const COLOURS: [&str; 6] = ["#3b7dd8", "#d8743b", "#3ba55d", "#a03bd8", "#b8a23b", "#d83b6a"];
    let shown: Vec<_> = plot.points.iter().filter(|p| [p.x, p.y].iter().all(|v| v.is_finite() && *v > 0.0)).collect();
    if shown.is_empty() {
        return String::new();
    }
    let range = |of: fn(&super::Point) -> f64| {
        let (low, high) = shown.iter().fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(of(p).log10()), high.max(of(p).log10())));
        let around = ((high - low) * 0.05).max(0.05);
        (low - around, high + around)
    };
    let ((x0, x1), (y0, y1)) = (range(|p| p.x), range(|p| p.y));
    let across = |x: f64| MARGIN + (x.log10() - x0) / (x1 - x0) * (WIDTH - 2.0 * MARGIN);
    let up = |y: f64| HEIGHT - MARGIN - (y.log10() - y0) / (y1 - y0) * (HEIGHT - 2.0 * MARGIN);
    let mut series: Vec<&str> = Vec::new();
    shown.iter().for_each(|p| {
        if !series.contains(&p.series.as_str()) {
            series.push(&p.series);
        }
    });
    let colour = |name: &str| COLOURS[series.iter().position(|s| *s == name).unwrap_or(0) % COLOURS.len()];
    let mut out = format!(
        "<h2>{}</h2>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n<rect class=\"rest\" fill-opacity=\"0.3\" \
         x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{}\" height=\"{}\"/>\n",
        escape(plot.title),
        escape(plot.title),
        WIDTH - 2.0 * MARGIN,
        HEIGHT - 2.0 * MARGIN
    );
    // The ends of both axes in numbers.
    for (value, x, y, anchor) in [
        (10f64.powf(x0), MARGIN, HEIGHT - MARGIN + 18.0, "start"),
        (10f64.powf(x1), WIDTH - MARGIN, HEIGHT - MARGIN + 18.0, "end"),
        (10f64.powf(y0), MARGIN - 6.0, HEIGHT - MARGIN, "end"),
        (10f64.powf(y1), MARGIN - 6.0, MARGIN + 8.0, "end"),
    ] {
        out.push_str(&format!("<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{value:.1e}</text>\n"));
    }
    out.push_str(&format!(
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{} (logarithmic)</text>\n<text x=\"{MARGIN}\" y=\"{:.0}\">{} \
         (logarithmic)</text>\n",
        WIDTH / 2.0,
        HEIGHT - MARGIN + 40.0,
        escape(plot.x),
        MARGIN - 12.0,
        escape(plot.y)
    ));
    for (i, name) in series.iter().enumerate() {
        let y = MARGIN + 14.0 + 18.0 * i as f64;
        let x = WIDTH - MARGIN + 6.0;
        out.push_str(&format!("<text x=\"{x:.0}\" y=\"{y:.0}\" style=\"fill:{}\">{}</text>\n", colour(name), escape(name)));
    }
    for point in shown {
        let (x, y) = (across(point.x), up(point.y));
        out.push_str(&format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{}\"><title>{}: {:.3e}, {:.3e}</title></circle>\n",
            colour(&point.series),
            escape(&format!("{}, {}", point.label, point.series)),
            point.x,
            point.y
        ));
    }
    out + "</svg>\n"
}

/// The end of a name that is too long for its place: ends tell kernels apart.
fn shortened(name: &str) -> String {
    const MOST: usize = 64;
    match name.chars().count() {
        n if n > MOST => format!("…{}", name.chars().skip(n - MOST + 1).collect::<String>()),
        _ => name.to_string(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Column;

    #[test]
    fn a_page_has_adapter_bars_and_the_json_and_fetches_nothing() {
        let mut report = Report::new("bench all", 7).on("llvm<pipe>", "Mesa 1");
        let columns = [Column::new("name", "name"), Column::new("share", "share"), Column::new("probe", "of probe")];
        let mut table = Table::new(&columns);
        table.row(["add".into(), 0.5.into(), "2r1w".into()]);
        table.row(["no share".into()]);
        report.table(table);
        let mut kernels = Table::new(&[Column::new("row", "row"), Column::new("kernel", "kernel"), Column::new("share", "share")]);
        kernels.row(["add".into(), "map_add_f32".into(), 1.0.into()]);
        report.further_table("kernel_times", "Kernels", kernels);
        let page = report.to_html();
        for part in ["llvm&lt;pipe&gt; (Mesa 1)", "width=\"200.0\"", "50.0 % of 2r1w", "add: map_add_f32", "<h2>Kernels</h2>", "no share"] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert_eq!(page.matches("class=\"bar\"").count(), 2);
        assert!(!page.contains("llvm<pipe>") && !page.contains("http") && !page.contains("src="));
        let json = page.split("id=\"report\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("embedded");
        assert_eq!(serde_json::from_str::<Value>(json).expect("JSON"), report.to_json());
    }

    #[test]
    fn long_names_keep_their_ends() {
        let name = format!("{}end", "x".repeat(100));
        assert!(shortened(&name).ends_with("xend") && shortened(&name).chars().count() == 64);
        assert_eq!(shortened("short"), "short");
    }
}
