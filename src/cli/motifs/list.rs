//! `sublane motifs list`.

use super::super::options::Options;
use super::super::output::{self, Outcome};
use sublane::Result;
use sublane::motifs::Motif;
use sublane::report::{Column, Report, Table};

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let mut table = Table::new(&[
        Column::new("name", "motif"),
        Column::new("num_vertices", "vertices"),
        Column::new("num_edges", "edges"),
        Column::new("edges", "edges in temporal order"),
    ]);
    for motif in Motif::all_named() {
        table.row([motif.name().into(), motif.num_vertices().into(), motif.num_edges().into(), motif.to_string().into()]);
    }
    let mut report = Report::new("motifs list", options.seed);
    report.table(table);
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}
