//! Draws on the device against draws on the processor.

use super::*;
use crate::device::{Device, DeviceOptions};
use crate::motifs::paths::{Draws, Keys, Numbered, Paths, Prune, Strata};
use crate::motifs::{Anchor, Motif, TemporalGraph, Ties};
use crate::progress::Work;
use kernels_gen::threefry::Key;
use std::time::Instant;

#[test]
#[ignore]
fn college() {
    let text = crate::files::read_maybe_gzip("/work/shared/data/graphs/CollegeMsg.txt.gz").unwrap();
    let edges: Vec<(u32, u32, i64)> = std::str::from_utf8(&text)
        .unwrap()
        .lines()
        .map(|l| {
            let w: Vec<i64> = l.split_whitespace().map(|w| w.parse().unwrap()).collect();
            (w[0] as u32, w[1] as u32, w[2])
        })
        .collect();
    let g = TemporalGraph::from_edges(edges, 2000, 0).unwrap();
    let device = Device::open(&DeviceOptions::default()).unwrap();
    let gg = GpuGraph::upload(&device, &g).unwrap();
    let work = Work::quiet();
    let part = work.part("", 0);
    let cases: Vec<String> = std::env::var("CASES").unwrap_or("M4-1 4:0,8 2419200 off,M4-1 4:0,8 2419200 rows,M4-0 1:0,2 86400 off,M3-0 4:0 604800 off,M4-3 3:0,5 86400 pairs,E1 1:0,2 86400 off".into()).split(',').fold(Vec::new(), |mut v: Vec<String>, s| { if s.len() > 8 { v.push(s.into()) } else if let Some(l) = v.last_mut() { l.push(','); l.push_str(s) }; v });
    for c in [
        "M4-1 4:0,8 2419200 off 10000000 order",
        "M4-1 4:0,8 2419200 rows 0 order",
        "M4-0 1:0,2 86400 off 3000000 order",
        "M3-0 4:0 604800 off 0 order",
        "M4-3 3:0,5 86400 pairs 3000000 order",
        "E1 1:0,2 86400 off 0 order",
        "M4-1 4:0,8 86400 off 3000000 strict",
        "M4-0 1:0,2 86400 rows 0 strict",
    ] {
        let _ = &cases;
        let w: Vec<&str> = c.split(' ').collect();
        let motif = Motif::parse(w[0]).unwrap();
        let anchor = Anchor::parse(w[1], &motif).unwrap();
        let d: i64 = w[2].parse().unwrap();
        let prune = match w[3] {
            "off" => Prune::Off,
            "pairs" => Prune::Pairs,
            _ => Prune::Rows,
        };
        let keys = Keys::new(&g, d, if w[5] == "order" { Ties::Order } else { Ties::Strict });
        let gk = GpuKeys::upload(&device, &g, &keys).unwrap();
        let p = Paths::new(&g, &keys, &motif, &anchor, prune, u64::MAX).unwrap();
        let gp = GpuPaths::upload(&gg, &gk, &p, u64::MAX).unwrap();
        let n: u64 = w[4].parse().unwrap();
        let n = if n == 0 { p.total() } else { n };
        let width = p.total().div_ceil(n).max(1);
        let r = if width == 1 { 1 } else { 4 };
        let draws: Vec<Draws> = (0..r)
            .map(|r| Draws { strata: Strata { width: p.total().div_ceil(n / 1).max(1), key: Key::new(1).stream(r) }, range: 0..n })
            .collect();
        let t = Instant::now();
        let cpu = p.tallies(&draws, &part).unwrap();
        let tc = t.elapsed().as_secs_f64();
        let _ = gp.tallies(&draws[..1], &part).unwrap();
        let t = Instant::now();
        let gpu = gp.tallies(&draws, &part).unwrap();
        let tg = t.elapsed().as_secs_f64();
        println!(
            "{c}: W {} longest {} cpu {:.1} M/s gpu {:.1} M/s equal {}",
            p.total(),
            gk.longest,
            n as f64 * r as f64 / tc / 1e6,
            n as f64 * r as f64 / tg / 1e6,
            cpu == gpu
        );
        println!("   {:?}", gp.phases(&draws, 10).unwrap());
        if cpu != gpu {
            println!("{:?}\n{:?}", cpu[0], gpu[0]);
        }
    }
}
