//! Reading graphs from files.

use std::path::Path;
use std::time::Instant;

use super::columns::Columns;
use super::summary::GraphSummary;
use super::{TemporalGraph, text};
use crate::error::Result;
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
    /// Seconds of making the graph from its edges.
    pub build_seconds: f64,
}

impl TemporalGraph {
    /// Reads a graph from a file: text, one edge a line, packed with gzip or not.
    ///
    /// Columns `src dst t` are parted by commas if the first line that is no comment has one, else by blanks or tabulators; others are named
    /// by [`Columns`]. Lines that begin with `#` or `%` are comments; a first line without numbers is a header. Ids are any texts without
    /// the separator, the same text is the same vertex; vertices are numbered by first appearance. Times are decimal numbers that fit 64
    /// bits after scaling by the smallest power of ten that makes all of them whole. Lines need no order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) for a file that cannot be read, [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for a
    /// broken archive or a line that is no edge, which the message names, [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more than 2^31
    /// edges, [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions, work: &Work) -> Result<(Self, ReadSummary)> {
        let path = path.as_ref();
        let start = Instant::now();
        let bytes = files::read_maybe_gzip(path)?;
        Self::from_text(&bytes, options, work, start).map_err(|e| e.context(format_args!("`{}`", path.display())))
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
        let summary = ReadSummary {
            lines: text.lines,
            comments: text.comments,
            blank: text.blank,
            header: text.header,
            graph: graph.summary(),
            read_seconds,
            build_seconds: start.elapsed().as_secs_f64(),
        };
        Ok((graph, summary))
    }
}
