//! Graphs as text.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;

use super::TemporalGraph;
use crate::error::{Error, Result};
use crate::files;
use crate::motifs::duration::ticks_text;

impl TemporalGraph {
    /// The graph as text: `src dst t` a line, by index, vertices by their numbers.
    pub fn to_text(&self) -> Vec<u8> {
        const LINES: usize = 1 << 16;
        let lines = |(edges, times): (&[[u32; 2]], &[i64])| -> Vec<u8> {
            let mut text = Vec::with_capacity(24 * edges.len());
            for ([u, v], &time) in edges.iter().zip(times) {
                // Writing to memory does not fail.
                let _ = match self.decimals {
                    0 => writeln!(text, "{u} {v} {time}"),
                    decimals => writeln!(text, "{u} {v} {}", ticks_text(time, decimals)),
                };
            }
            text
        };
        self.edges.par_chunks(LINES).zip(self.times.par_chunks(LINES)).map(lines).collect::<Vec<_>>().concat()
    }

    /// Writes the graph to a file as [`TemporalGraph::to_text`], packed with gzip if its name ends with `.gz`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn save_text(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, text) = (path.as_ref(), self.to_text());
        if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz")) {
            return files::write_atomic(path, &text);
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let packed = encoder.write_all(&text).and_then(|()| encoder.finish()).map_err(|e| Error::io(path, "pack", e))?;
        files::write_atomic(path, &packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motifs::graph::ReadOptions;
    use crate::progress::Work;

    #[test]
    fn text_is_read_again() {
        let edges = vec![(0, 1, -250), (1, 1, 0), (1, 2, 5), (2, 0, 1000), (0, 1, i64::MAX)];
        let graph = TemporalGraph::from_edges(edges.clone(), 3, 2).expect("builds");
        assert_eq!(graph.to_text(), b"0 1 -2.5\n1 1 0\n1 2 0.05\n2 0 10\n0 1 92233720368547758.07\n");
        let whole = TemporalGraph::from_edges(edges, 3, 0).expect("builds");
        let folder = tempfile::tempdir().expect("folder");
        for (graph, name, packed) in [(&graph, "a.txt", false), (&graph, "b.txt.gz", true), (&whole, "c", false), (&whole, "d.GZ", true)] {
            let path = folder.path().join(name);
            graph.save_text(&path).expect("written");
            assert_eq!(files::read(&path).expect("read").starts_with(&[0x1f, 0x8b]), packed);
            assert_eq!(&TemporalGraph::open(&path, &ReadOptions::default(), &Work::quiet()).expect("reads").0, graph, "{name}");
        }
    }
}
