//! Edges as text: one a line, in parallel.

use rayon::prelude::*;

use super::columns::{Columns, ROLES};
use super::ids::{Id, Ids};
use super::number::{self, TimeFault};
use crate::error::{Error, Result};
use crate::progress::Work;

/// What a text holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Text {
    /// (source, destination, time), in the order of the lines.
    pub edges: Vec<(u32, u32, i64)>,
    pub num_vertices: u32,
    /// 10^`decimals` ticks of the times are one unit.
    pub decimals: u32,
    pub lines: u64,
    pub comments: u64,
    pub blank: u64,
    pub header: bool,
}

/// First bytes of files that are packed otherwise than with gzip, or are not in an encoding that extends ASCII.
const FOREIGN: [(&[u8], &str, &str); 6] = [
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"\xfd7zXZ\0", "packed with xz", "unpack it first"),
    (b"BZh", "packed with bzip2", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "unpack it first"),
    (b"\xff\xfe", "in UTF-16", "convert it to UTF-8 first"),
    (b"\xfe\xff", "in UTF-16", "convert it to UTF-8 first"),
];
/// Least bytes of a piece that one thread reads.
const PIECE_BYTES: usize = 1 << 20;

/// Reads edges, one a line, `columns` as given or else `src dst t`.
pub(super) fn parse(text: &[u8], columns: Option<&Columns>, work: &Work) -> Result<Text> {
    // Pieces are in proportion to the text, for each has a table of ids of its own.
    parse_pieces(text, columns, (text.len() / (8 * rayon::current_num_threads())).max(PIECE_BYTES), work)
}

/// [`parse`] in pieces of about `piece_bytes`; the result does not depend on them.
fn parse_pieces(text: &[u8], columns: Option<&Columns>, piece_bytes: usize, work: &Work) -> Result<Text> {
    if let Some((_, what, then)) = FOREIGN.iter().find(|(magic, ..)| text.starts_with(magic)) {
        return Err(Error::malformed(format!("the file is {what}, not text or gzip; {then}")));
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let usual = Columns::default();
    let mut format = Format { columns: columns.unwrap_or(&usual), given: columns.is_some(), commas: false };
    let mut out = Text::default();
    let body = format.start(text, &mut out)?;

    let part = work.part("reading edges", body.len() as u64);
    let read = |piece| {
        let read = format.piece(piece);
        part.advance(piece.len() as u64).map(|()| read)
    };
    let pieces: Vec<Piece> = cut(body, piece_bytes).into_par_iter().map(read).collect::<Result<_>>()?;
    let mut vertices = Ids::new(text.len());
    let mut tables: Vec<Vec<u32>> = Vec::with_capacity(pieces.len());
    for piece in &pieces {
        if let Some((fault, line)) = &piece.fault {
            return Err(format.refuse(out.lines + piece.lines, line, fault));
        }
        out.lines += piece.lines;
        out.comments += piece.comments;
        out.blank += piece.blank;
        out.decimals = out.decimals.max(piece.decimals.iter().copied().max().unwrap_or(0).into());
        tables.push(piece.ids.iter().map(|&id| vertices.number(id)).collect());
        if vertices.names.len() >= u32::MAX as usize {
            return Err(Error::limit("the file names more than 2^32 - 2 vertices; split the graph"));
        }
    }
    out.num_vertices = vertices.names.len() as u32;

    out.edges = vec![(0, 0, 0); pieces.iter().map(|piece| piece.ends.len()).sum()];
    let mut targets = Vec::with_capacity(pieces.len());
    let mut rest = out.edges.as_mut_slice();
    for piece in &pieces {
        let (target, after) = rest.split_at_mut(piece.ends.len());
        targets.push(target);
        rest = after;
    }
    let decimals = out.decimals;
    let numbered = pieces.par_iter().zip(&tables).zip(targets);
    let overflows: Vec<Option<usize>> = numbered.map(|((piece, table), target)| piece.number(table, decimals, target)).collect();
    if let Some((piece, at)) = overflows.iter().enumerate().find_map(|(piece, at)| Some((piece, (*at)?))) {
        let before = out.lines - pieces[piece..].iter().map(|p| p.lines).sum::<u64>();
        let (line, text) = nth_edge(pieces[piece].text, at);
        return Err(format.refuse(before + line, text, &Fault::Scale(decimals)));
    }
    Ok(out)
}

/// Cuts a text after ends of lines into pieces of about `piece_bytes`.
fn cut(mut text: &[u8], piece_bytes: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let least = piece_bytes.clamp(1, text.len());
        let end = text[least - 1..].iter().position(|&b| b == b'\n').map_or(text.len(), |at| least + at);
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
    }
    pieces
}

/// What stands on a line.
enum Line<'a> {
    Blank,
    Comment,
    Edge(&'a [u8]),
}

fn classify(line: &[u8]) -> Line<'_> {
    match line.trim_ascii() {
        [] => Line::Blank,
        [b'#' | b'%', ..] => Line::Comment,
        line => Line::Edge(line),
    }
}

/// The first line of a text, without its end, and the rest.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|&b| b == b'\n') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[]),
    }
}

/// Number, from 1, and text of the line of edge number `at`, from 0.
fn nth_edge(mut text: &[u8], at: usize) -> (u64, &[u8]) {
    let (mut lines, mut edges) = (0, 0);
    loop {
        let (line, rest) = split_line(text);
        lines += 1;
        if let Line::Edge(line) = classify(line) {
            if edges == at || rest.is_empty() {
                return (lines, line);
            }
            edges += 1;
        }
        text = rest;
    }
}

/// Some lines of the text.
struct Piece<'a> {
    text: &'a [u8],
    /// Source and destination of each edge, as numbers of `ids`.
    ends: Vec<[u32; 2]>,
    times: Vec<i64>,
    /// Decimals of each time; empty where none has any.
    decimals: Vec<u8>,
    ids: Vec<Id<'a>>,
    /// Lines read; with a fault, its line is the last.
    lines: u64,
    comments: u64,
    blank: u64,
    fault: Option<(Fault, &'a [u8])>,
}

impl Piece<'_> {
    /// Writes the edges with the numbers that `table` has for its ids and with times of so many decimals. Returns the first edge whose time
    /// does not fit.
    fn number(&self, table: &[u32], decimals: u32, edges: &mut [(u32, u32, i64)]) -> Option<usize> {
        for (at, edge) in edges.iter_mut().enumerate() {
            let ([from, to], own) = (self.ends[at], self.decimals.get(at).map_or(0, |&d| u32::from(d)));
            let Some(time) = self.times[at].checked_mul(10i64.pow(decimals - own)) else { return Some(at) };
            *edge = (table[from as usize], table[to as usize], time);
        }
        None
    }
}

/// Why a line is no edge.
enum Fault {
    /// That many columns.
    Columns(usize),
    /// Nothing in the column of that role.
    Empty(usize),
    /// A field begins with a quotation mark and does not end with one.
    Quotes,
    /// The text at the place of a time, shortened.
    Time(TimeFault, String),
    /// The time does not fit with that many decimals.
    Scale(u32),
    /// The header says that the columns are others.
    Header(String),
}

/// How lines are cut into columns.
struct Format<'c> {
    columns: &'c Columns,
    given: bool,
    /// Commas part columns, else blanks and tabulators do.
    commas: bool,
}

impl Format<'_> {
    /// Finds out what parts columns from the first line that is no comment, and passes over it if it is a header. Returns what is left of
    /// the text, lines counted up to there.
    fn start<'a>(&mut self, text: &'a [u8], out: &mut Text) -> Result<&'a [u8]> {
        let mut rest = text;
        while !rest.is_empty() {
            let (line, after) = split_line(rest);
            match classify(line) {
                Line::Blank => out.blank += 1,
                Line::Comment => out.comments += 1,
                Line::Edge(line) => {
                    self.commas = line.contains(&b',');
                    out.header = self.is_header(line).map_err(|fault| self.refuse(out.lines + 1, line, &fault))?;
                    if !out.header {
                        return Ok(rest);
                    }
                    out.lines += 1;
                    return Ok(after);
                }
            }
            out.lines += 1;
            rest = after;
        }
        Ok(rest)
    }

    /// Whether a line names columns: none of the three that count begins like a number.
    fn is_header(&self, line: &[u8]) -> Result<bool, Fault> {
        // A line that is neither is refused when it is read as an edge.
        let Ok(fields) = self.fields(line) else { return Ok(false) };
        let like_number = |field: &[u8]| field.first().is_none_or(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.'));
        if fields.iter().any(|field| like_number(field)) {
            return Ok(false);
        }
        let names = fields.map(|field| String::from_utf8_lossy(field).to_ascii_lowercase());
        let is_time = |name: &String| ["t", "time", "timestamp", "ts", "date", "unixtime", "unixts"].contains(&name.as_str());
        let is_end = |name: &String| ["src", "source", "from", "dst", "dest", "destination", "target", "to"].contains(&name.as_str());
        if !self.given && (names[..2].iter().any(is_time) || is_end(&names[2])) {
            return Err(Fault::Header(names.join(",")));
        }
        Ok(true)
    }

    /// Source, destination and time of a line.
    #[inline]
    fn fields<'a>(&self, line: &'a [u8]) -> Result<[&'a [u8]; 3], Fault> {
        let mut fields: [&[u8]; 4] = [&[]; 4];
        let (roles, mut count) = (self.columns.roles(), 0);
        if self.commas {
            for field in line.split(|&b| b == b',') {
                if let Some(&role) = roles.get(count) {
                    fields[usize::from(role)] = unquoted(field.trim_ascii())?;
                }
                count += 1;
            }
        } else {
            let mut rest = line;
            while !rest.is_empty() {
                let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                if let Some(&role) = roles.get(count) {
                    fields[usize::from(role)] = &rest[..end];
                }
                count += 1;
                let blanks = rest[end..].iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(rest.len() - end);
                rest = &rest[end + blanks..];
            }
        }
        if !self.columns.allow(count) {
            return Err(Fault::Columns(count));
        }
        let [from, to, time, _] = fields;
        match [from, to, time].iter().position(|field| field.is_empty()) {
            Some(role) => Err(Fault::Empty(role)),
            None => Ok([from, to, time]),
        }
    }

    /// Reads lines up to the end or the first fault.
    fn piece<'a>(&self, text: &'a [u8]) -> Piece<'a> {
        let edges = text.len() / 16;
        let mut piece = Piece {
            text,
            ends: Vec::with_capacity(edges),
            times: Vec::with_capacity(edges),
            decimals: Vec::new(),
            ids: Vec::new(),
            lines: 0,
            comments: 0,
            blank: 0,
            fault: None,
        };
        let mut ids = Ids::new(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let (line, after) = split_line(rest);
            rest = after;
            piece.lines += 1;
            let line = match classify(line) {
                Line::Blank => {
                    piece.blank += 1;
                    continue;
                }
                Line::Comment => {
                    piece.comments += 1;
                    continue;
                }
                Line::Edge(line) => line,
            };
            let read = self.fields(line).and_then(|[from, to, time]| {
                let number = number::time(time).map_err(|fault| Fault::Time(fault, shown(time)))?;
                Ok((from, to, number))
            });
            match read {
                Ok((from, to, (time, decimals))) => {
                    let id = |text| number::id(text).map_or(Id::Text(text), Id::Number);
                    let from = ids.number(id(from));
                    piece.ends.push([from, ids.number(id(to))]);
                    if decimals > 0 || !piece.decimals.is_empty() {
                        piece.decimals.resize(piece.times.len(), 0);
                        piece.decimals.push(decimals as u8);
                    }
                    piece.times.push(time);
                }
                Err(fault) => {
                    piece.fault = Some((fault, line));
                    break;
                }
            }
        }
        piece.ids = ids.names;
        piece
    }

    /// The error of a line.
    fn refuse(&self, number: u64, line: &[u8], fault: &Fault) -> Error {
        let named = |count: usize| format!("{count} column{}", if count == 1 { "" } else { "s" });
        let parts = if self.commas { "commas" } else { "blanks" };
        let why = match fault {
            Fault::Columns(count) if self.given => {
                let columns = named(*count);
                format!("{columns} parted by {parts}, but --columns {} is given; `...` at its end allows more", self.columns)
            }
            Fault::Columns(count @ 0..3) => format!("{} parted by {parts}; an edge is `src dst t`", named(*count)),
            Fault::Columns(count) => format!(
                "{} parted by {parts}, and which are source, destination and time is not said; say it, such as --columns src,dst,_,t",
                named(*count)
            ),
            Fault::Empty(role) => format!("the column `{}` is empty", ROLES[*role]),
            Fault::Quotes => {
                "a quotation mark opens and does not close within its column; commas within quotation marks are not read".into()
            }
            Fault::Time(TimeFault::NotNumber, text) => format!("the time `{text}` is no number"),
            Fault::Time(TimeFault::TooLarge, text) => format!("the time `{text}` does not fit 64 bits"),
            Fault::Time(TimeFault::TooFine, text) => format!("the time `{text}` has more than 18 decimals"),
            Fault::Scale(decimals) => format!(
                "the time does not fit 64 bits in ticks of 10^-{decimals}, which other lines need; take a constant off all times or round them"
            ),
            Fault::Header(names) => format!("the header names the columns {names}; say which is which, such as --columns t,src,dst"),
        };
        Error::malformed(format!("line {number}, `{}`: {why}", shown(line)))
    }
}

/// A field without the quotation marks around it.
fn unquoted(field: &[u8]) -> Result<&[u8], Fault> {
    match field {
        [b'"', inner @ .., b'"'] => Ok(inner),
        [b'"', ..] => Err(Fault::Quotes),
        _ => Ok(field),
    }
}

/// Text for a message: its beginning, without control characters.
fn shown(text: &[u8]) -> String {
    const MOST: usize = 60;
    let beginning = String::from_utf8_lossy(&text[..text.len().min(4 * MOST)]);
    let mut shown: String = beginning.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if beginning.chars().count() > MOST {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::progress::Cancel;

    fn parse_with(text: &str, columns: &str) -> Result<Text> {
        let columns = Columns::parse(columns).expect("columns");
        parse(text.as_bytes(), Some(&columns), &Work::quiet())
    }

    fn parsed(text: &str) -> Text {
        parse(text.as_bytes(), None, &Work::quiet()).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn refused(text: &str) -> String {
        let error = parse(text.as_bytes(), None, &Work::quiet()).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Malformed);
        error.to_string()
    }

    #[test]
    fn every_usual_form_reads_alike() {
        let expected = vec![(0, 1, 5), (1, 0, -3), (2, 2, 5)];
        for text in [
            "7 9 5\n9 7 -3\n1 1 5\n",
            "7 9 5\n9 7 -3\n1 1 5",
            "\u{feff}7\t9\t5\r\n9\t7\t-3\r\n1\t1\t5\r\n",
            "# a comment\n\n% another\n  7   9 5 \n9 7 -3\n\n1 1 5\n#end",
            "7,9,5\n9, 7, -3\n1 ,1,5.00",
            "source,target,time\n7,9,5\n9,7,-3\n1,1,5\n",
            "src dst t\n7 9 5e0\n9 7 -3\n1 1 +5\n",
            "\"from\",\"to\",\"timestamp\"\n\"a b\",\"9\",\"5\"\n9,a b,-3\nx,x,5",
            "18446744073709551615 0 5\n0 18446744073709551615 -3\n-1 -1 5",
            "alice bob 5\nbob alice -3\n007 007 5",
        ] {
            let read = parsed(text);
            assert_eq!((&read.edges, read.num_vertices, read.decimals), (&expected, 3, 0), "{text}");
            assert_eq!(read.lines, read.comments + read.blank + u64::from(read.header) + 3, "{text}");
            assert_eq!(read.lines, text.lines().count() as u64, "{text}");
        }
        let read = parsed("# c\n\n%\nsrc dst t\n1 2 3\n");
        assert_eq!((read.lines, read.comments, read.blank, read.header), (5, 2, 1, true));
        for empty in ["", "\n\n", "# nothing\n", "src,dst,t\n"] {
            let read = parsed(empty);
            assert_eq!((read.edges.len(), read.num_vertices), (0, 0), "{empty}");
        }
    }

    #[test]
    fn columns_are_used_as_they_are_given() {
        let read = parse_with("6,2,4,1289241911.72836\n6,5,-2,1289241941.5\n", "src,dst,_,t").expect("reads");
        assert_eq!((read.edges, read.decimals), (vec![(0, 1, 128_924_191_172_836), (0, 2, 128_924_194_150_000)], 5));
        assert_eq!(parse_with("time,src,dst\n5,1,2\n", "t,src,dst").expect("reads").edges, [(0, 1, 5)]);
        assert_eq!(parse_with("1 2 3 and more\n1 9 3\n", "dst,src,t,...").expect("reads").edges, [(0, 1, 3), (2, 1, 3)]);
        let error = parse_with("1 2 3 4\n1 2 3\n", "src,dst,_,t").expect_err("short").to_string();
        assert!(error.contains("line 2, `1 2 3`: 3 columns") && error.contains("src,dst,_,t"), "{error}");
    }

    #[test]
    fn wrong_lines_are_refused_by_number_and_text() {
        for (text, part) in [
            ("1 2 3\n# x\n1 2\n", "line 3, `1 2`: 2 columns parted by blanks"),
            ("1,2,3\n1 2 3\n", "line 2, `1 2 3`: 1 column parted by commas"),
            ("1 2 3 4\n", "line 1, `1 2 3 4`: 4 columns parted by blanks, and which are"),
            ("source,target,rating,time\n1,2,3,4\n", "line 1, `source,target,rating,time`: 4 columns"),
            ("1 2 3 4\n", "--columns src,dst,_,t"),
            ("1 2 x\n", "line 1, `1 2 x`: the time `x` is no number"),
            ("a b 3\na b 3,5\n", "line 2, `a b 3,5`: the time `3,5` is no number"),
            ("1 2 3\n1 2 nan\n", "line 2, `1 2 nan`: the time `nan`"),
            ("1 2 3\n1 2 9223372036854775808\n", "line 2, `1 2 9223372036854775808`: the time `9223372036854775808` does not fit"),
            ("1 2 3\n1 2 1e-19\n", "more than 18 decimals"),
            (
                "1 2 3\n\n1 2 9223372036854775807\n1 2 0.25\n",
                "line 3, `1 2 9223372036854775807`: the time does not fit 64 bits in ticks of 10^-2",
            ),
            ("1,2,3\n1,,3\n", "line 2, `1,,3`: the column `dst` is empty"),
            ("\"a,b\",2,3\n", "quotation mark"),
            ("time src dst\n1 2 3\n", "line 1, `time src dst`: the header"),
            ("PK\u{3}\u{4}", "zip"),
            ("1 2 3\nsrc dst t\n", "line 2, `src dst t`: the time `t` is no number"),
        ] {
            let error = refused(text);
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
        let error = refused(&format!("1 2 {}\u{7}", "z".repeat(10_000)));
        assert!(error.len() < 250 && error.contains("...") && !error.contains('\u{7}'), "{error}");
        assert!(refused("1 2 3\n\0\u{1}x\n").contains("line 2"));
    }

    #[test]
    fn the_result_does_not_depend_on_the_pieces() {
        let mut text = String::from("# head\nsrc,dst,t\n");
        for i in 0..500u64 {
            let (a, b) = (i * i % 37, i * 7 % 41 * 1_000_000_007);
            match i % 9 {
                0 => text += &format!("\n# {i}\nname{a},{b},{i}.25\n"),
                1 => text += &format!("{a},{b},{i}.5\n"),
                _ => text += &format!("{a},{b},-{i}\n"),
            }
        }
        let whole = parsed(&text);
        assert_eq!((whole.edges.len(), whole.decimals, whole.lines), (500, 2, 2 + 500 + 2 * 56));
        let broken = text.clone() + "1,2\n";
        for piece_bytes in [1, 7, 100, 1000, 1 << 20] {
            assert_eq!(parse_pieces(text.as_bytes(), None, piece_bytes, &Work::quiet()).expect("reads"), whole, "{piece_bytes}");
            let error = parse_pieces(broken.as_bytes(), None, piece_bytes, &Work::quiet()).expect_err("refused").to_string();
            assert!(error.starts_with("line 615, `1,2`: 2 columns"), "{error}");
        }
    }

    #[test]
    fn reading_can_be_cancelled() {
        let work = Work::new(&(), Cancel::new());
        work.cancel().cancel();
        assert_eq!(parse(b"1 2 3\n", None, &work).expect_err("cancelled").kind(), ErrorKind::Cancelled);
    }
}
