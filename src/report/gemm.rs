//! Products of quantised operands in a report.

use super::{Column, Plot, Point, Report, Table};
use crate::suite::bench::quantised::{Measured, Products};

const COLUMNS: [Column; 13] = [
    Column::new("scheme_a", "A"),
    Column::new("scheme_b", "B"),
    Column::new("data", "data"),
    Column::new("m", "m"),
    Column::new("n", "n"),
    Column::new("k", "k"),
    Column::new("median_ms", "ms"),
    Column::new("gflops", "GFLOP/s"),
    Column::new("bytes", "bytes"),
    Column::new("share", "share of roofline"),
    Column::new("rel_error", "error"),
    Column::new("kernel_error", "of the kernel"),
    Column::new("kernels", "kernels"),
];

impl Report {
    /// Adds what was measured of products: probes, rows, and plots of error against bytes and of time against size.
    pub fn products(&mut self, found: &Products) {
        self.probes(&found.probes);
        if !found.faults.is_empty() {
            self.field("faults", "could not run", found.faults.clone(), "");
        }
        let mut table = Table::new(&COLUMNS);
        for Measured { product, median_ms, gflops, bytes, share, rel_error, kernel_error, kernels } in &found.measured {
            table.row([
                product.a.to_string().into(),
                product.b.to_string().into(),
                product.data.name().into(),
                product.m.into(),
                product.n.into(),
                product.k.into(),
                (*median_ms).into(),
                (*gflops).into(),
                (*bytes).into(),
                (*share).into(),
                (*rel_error).into(),
                (*kernel_error).into(),
                (*kernels).into(),
            ]);
        }
        self.table(table);
        let point = |m: &Measured, x: f64, y: f64| Point {
            x,
            y,
            label: format!("{} x {}", m.product.a, m.product.b),
            series: m.product.data.name().to_string(),
        };
        let errors = found.measured.iter().map(|m| point(m, m.bytes as f64, m.rel_error)).collect();
        self.plot(Plot { title: "Error against bytes", x: "bytes", y: "relative error", points: errors });
        let size = |m: &Measured| (m.product.m * m.product.n * m.product.k) as f64;
        let times = found.measured.iter().map(|m| point(m, size(m), m.median_ms)).collect();
        self.plot(Plot { title: "Time against size", x: "m n k", y: "ms", points: times });
    }
}
