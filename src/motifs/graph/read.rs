//! Reading graphs from files.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::time::Instant;

use super::columns::Columns;
use super::summary::GraphSummary;
use super::{TemporalGraph, binary, text};
use crate::error::{Error, Result};
use crate::files;
use crate::progress::Work;

/// How a file is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Columns of a text; `None` for `src dst t`.
    pub columns: Option<Columns>,
}

/// What was found in a file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReadSummary {
    /// Whether the file was in the binary form; it has no lines then.
    pub binary: bool,
    /// Lines of a text, those that hold no edge included; the last may lack its end.
    pub lines: u64,
    /// Lines that begin with `#` or `%`.
    pub comments: u64,
    /// Lines of blanks only.
    pub blank: u64,
    /// Whether the first line that is neither names the columns.
    pub header: bool,
    /// What the graph holds.
    pub graph: GraphSummary,
    /// Seconds of reading the file and its numbers.
    pub read_seconds: f64,
    /// Seconds of making the graph from its edges; 0 for the binary form.
    pub build_seconds: f64,
}

impl TemporalGraph {
    /// Reads a graph from a file: the binary form of [`TemporalGraph::save`], or text, one edge a line; either packed with gzip or not.
    ///
    /// Columns `src dst t` of a text are parted by commas if the first line that is no comment has one, else by blanks or tabulators;
    /// others are named by [`Columns`]. Lines that begin with `#` or `%` are comments; a first line without numbers is a header. Ids are
    /// any texts without the separator, the same text is the same vertex; vertices are numbered by first appearance. Times are decimal
    /// numbers that fit 64 bits after scaling by the smallest power of ten that makes all of them whole. Lines need no order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) for a file that cannot be read, [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for a
    /// broken archive, a damaged binary form or a line that is no edge, which the message names,
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for columns of a binary form,
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more than 2^31 edges, [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions, work: &Work) -> Result<(Self, ReadSummary)> {
        let path = path.as_ref();
        let start = Instant::now();
        let read = match open_binary(path)? {
            Some((file, len_bytes)) => Self::from_binary(file, len_bytes, options, work, start),
            None => match files::read_maybe_gzip(path)? {
                bytes if bytes.starts_with(&binary::MAGIC) => Self::from_binary(&bytes[..], bytes.len() as u64, options, work, start),
                bytes => Self::from_text(&bytes, options, work, start),
            },
        };
        read.map_err(|e| e.context(format_args!("`{}`", path.display())))
    }

    /// Reads a graph from text as [`TemporalGraph::open`] does.
    ///
    /// # Errors
    ///
    /// As [`TemporalGraph::open`].
    pub fn parse(text: &[u8], options: &ReadOptions, work: &Work) -> Result<(Self, ReadSummary)> {
        Self::from_text(text, options, work, Instant::now())
    }

    fn from_text(bytes: &[u8], options: &ReadOptions, work: &Work, start: Instant) -> Result<(Self, ReadSummary)> {
        let text = text::parse(bytes, options.columns.as_ref(), work)?;
        let read_seconds = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let graph = TemporalGraph::from_edges(text.edges, text.num_vertices, text.decimals)?;
        let build_seconds = start.elapsed().as_secs_f64();
        let summary = ReadSummary {
            binary: false,
            lines: text.lines,
            comments: text.comments,
            blank: text.blank,
            header: text.header,
            graph: graph.summary(),
            read_seconds,
            build_seconds,
        };
        Ok((graph, summary))
    }

    fn from_binary(reader: impl Read, len_bytes: u64, options: &ReadOptions, work: &Work, start: Instant) -> Result<(Self, ReadSummary)> {
        if let Some(columns) = &options.columns {
            return Err(Error::invalid(format!("a graph in the binary form has no columns `{columns}`; leave them out")));
        }
        let graph = binary::read(reader, len_bytes, work)?;
        let read_seconds = start.elapsed().as_secs_f64();
        let (lines, comments, blank, header) = (0, 0, 0, false);
        let graph_summary = graph.summary();
        let summary = ReadSummary { binary: true, lines, comments, blank, header, graph: graph_summary, read_seconds, build_seconds: 0.0 };
        Ok((graph, summary))
    }
}

/// The file and its length, if it is a regular one that begins as the binary form does. Pipes can be read but once and are left alone.
fn open_binary(path: &Path) -> Result<Option<(File, u64)>> {
    let fail = |e| Error::io(path, "read", e);
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        return Ok(None);
    }
    let mut file = File::open(path).map_err(fail)?;
    let mut begin = Vec::new();
    file.by_ref().take(binary::MAGIC.len() as u64).read_to_end(&mut begin).map_err(fail)?;
    if begin != binary::MAGIC {
        return Ok(None);
    }
    file.rewind().map_err(fail)?;
    let len_bytes = file.metadata().map_err(fail)?.len();
    Ok(Some((file, len_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("packed");
        encoder.finish().expect("packed")
    }

    #[test]
    fn text_and_binary_form_are_known_by_their_bytes_packed_or_not() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("graph");
        let text = b"a b 2.5\nb a 1\n";
        let (expected, found) = TemporalGraph::parse(text, &ReadOptions::default(), &Work::quiet()).expect("reads");
        assert_eq!((found.lines, found.binary, expected.decimals()), (2, false, 1));
        let binary = expected.to_bytes();
        for (bytes, is_binary) in [(text.to_vec(), false), (packed(text), false), (binary.clone(), true), (packed(&binary), true)] {
            files::write_atomic(&path, &bytes).expect("written");
            let (graph, found) = TemporalGraph::open(&path, &ReadOptions::default(), &Work::quiet()).expect("reads");
            assert_eq!((&graph, found.binary, found.graph.edges), (&expected, is_binary, 2));
        }
        let options = ReadOptions { columns: Some(Columns::default()) };
        let error = TemporalGraph::open(&path, &options, &Work::quiet()).expect_err("columns of a binary form");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);

        let mut archive = packed(text);
        archive.truncate(archive.len() - 9);
        for (bytes, part) in [(archive, "gzip"), (binary[..binary.len() - 1].to_vec(), "damaged"), (b"1 2 3\n1 2\n".to_vec(), "line 2")] {
            files::write_atomic(&path, &bytes).expect("written");
            let error = TemporalGraph::open(&path, &ReadOptions::default(), &Work::quiet()).expect_err("broken");
            assert_eq!(error.kind(), ErrorKind::Malformed);
            assert!(error.to_string().contains(part) && error.to_string().contains("graph`"), "{error}");
        }
        for wrong in [folder.path().join("none"), folder.path().to_path_buf()] {
            let error = TemporalGraph::open(&wrong, &ReadOptions::default(), &Work::quiet()).expect_err("no file");
            assert_eq!(error.kind(), ErrorKind::Io);
        }
    }
}
