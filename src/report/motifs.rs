//! Counts of motifs as reports, and back.

use super::{Column, Report, Table};
use crate::motifs::duration::ticks_text;
use crate::motifs::exact::Count;
use crate::motifs::{
    Anchor, Comparison, Counted, Fingerprint, How, Motif, PlanTable, Prune, Replicate, Shard, ShardPart, Ties, Value as Matches,
};
use crate::{Error, Result};
use serde_json::{Map, Value};

/// Columns of the replicates of a shard.
const REPLICATES: [Column; 8] = [
    Column::new("index", "replicate"),
    Column::new("width", "width"),
    Column::new("strata", "strata"),
    Column::new("sum", "sum"),
    Column::new("squares", "squares"),
    Column::new("valid", "valid"),
    Column::new("nonzero", "non-zero"),
    Column::new("saturated", "saturated"),
];

/// Columns of a plan.
const PLAN: [Column; 11] = [
    Column::new("anchor", "anchor"),
    Column::new("w", "paths"),
    Column::new("w_pairs", "pairs"),
    Column::new("w_rows", "rows"),
    Column::new("pilots", "pilots"),
    Column::new("nonzero", "non-zero"),
    Column::new("r1", "r1"),
    Column::new("cost", "cost"),
    Column::new("score", "r1^2 x cost"),
    Column::new("chosen", "taken"),
    Column::new("dropped", "why not"),
];

/// Columns of a comparison of methods.
const COMPARISON: [Column; 9] = [
    Column::new("method", "method"),
    Column::new("estimate", "matches"),
    Column::new("std_error", "standard error"),
    Column::new("relative_error", "relative error"),
    Column::new("seconds", "s"),
    Column::new("samples", "samples"),
    Column::new("nonzero", "non-zero"),
    Column::new("saturated", "past 2^64 - 1"),
    Column::new("note", "note"),
];

/// Columns of the 36 small motifs: row and column of each, as in their names.
const GRID: [Column; 7] = [
    Column::new("row", "row"),
    Column::new("1", "1"),
    Column::new("2", "2"),
    Column::new("3", "3"),
    Column::new("4", "4"),
    Column::new("5", "5"),
    Column::new("6", "6"),
];

/// A span of ticks in the units of the graph's file: an integer where it is one.
fn units(ticks: i64, decimals: u32) -> Value {
    match decimals {
        0 => ticks.into(),
        _ => ticks_text(ticks, decimals).parse::<f64>().into_iter().map(Value::from).next().unwrap_or_default(),
    }
}

/// An integer that readers of JSON keep exactly: as text where a double would not hold it.
fn exact(value: u128) -> Value {
    match u64::try_from(value) {
        Ok(small) if small <= 1 << 53 => small.into(),
        _ => value.to_string().into(),
    }
}

impl Report {
    /// Adds delta, in units of a file of which 10^`decimals` ticks are one.
    pub fn motif_delta(&mut self, ticks: i64, decimals: u32) {
        self.field("delta", "delta", units(ticks, decimals), "units of the file");
    }

    /// Adds a count and how it came about.
    pub fn counted(&mut self, counted: &Counted) {
        let matches = match counted.value {
            Matches::Exact(value) => Value::from(value),
            Matches::Estimate(value) => value.into(),
            Matches::Part(_) => Value::Null,
        };
        let is_exact = matches!(counted.value, Matches::Exact(_));
        let error = if is_exact { Some(0.into()) } else { counted.std_error.map(Value::from) };
        let interval = match (is_exact, counted.ci95) {
            (true, _) => Some(Value::from(vec![matches.clone(), matches.clone()])),
            (false, interval) => interval.map(|ends| ends.to_vec().into()),
        };
        self.field("motif", "motif", counted.motif.name(), "");
        self.motif_delta(counted.delta, counted.decimals);
        self.field("ties", "ties", counted.ties.name(), "");
        self.field("method", "method", counted.method.name(), "");
        self.field("estimate", if is_exact { "matches, exactly" } else { "matches, estimated" }, matches, "");
        self.field("std_error", "standard error", error, "");
        self.field("ci95", "95 % interval", interval, "");
        self.field("samples", "paths drawn or counted", counted.samples, "");
        self.field("valid", "of which valid", counted.valid, "");
        self.field("nonzero", "of which with a match", counted.nonzero, "");
        self.field("w", "paths of the anchor", counted.w, "");
        self.field("w_pruned", "after pruning", counted.w_pruned, "");
        self.field("anchor", "anchor", counted.anchor.as_ref().map(ToString::to_string), "");
        self.field("r1", "relative deviation of a draw", counted.r1, "");
        self.field("seconds", "counting", counted.seconds, "s");
        self.field("samples_per_s", "speed", counted.samples_per_s(), "paths/s");
        self.field("saturated", "past 2^64 - 1", counted.saturated, "");
        self.field("engine", "engine", counted.engine.as_str(), "");
        self.field("prune", "pruning", counted.prune.map(Prune::name), "");
        self.field("motif_edges", "edges of the motif", counted.motif.to_string(), "");
        self.field("delta_ticks", "delta", counted.delta, "ticks");
        self.field("decimals", "decimals of times", counted.decimals, "");
        self.field("planning_seconds", "planning and numbering", counted.planning_seconds, "s");
        self.field("ended_by", "ended by", counted.ended_by.map(crate::motifs::EndedBy::name), "");
        self.list("notes", "note", &counted.notes);
        self.list("warnings", "warning", &counted.warnings);
        let Some(part) = &counted.part else { return };
        self.field("shard", "shard", part.shard.to_string(), "");
        self.field("samples_asked", "samples asked for in all shards", part.samples, "");
        self.field("graph_edges", "edges of the graph", part.graph.num_edges, "");
        self.field("graph_vertices", "vertices of the graph", part.graph.num_vertices, "");
        self.field("graph_hash", "hash of the graph", part.graph.hash.as_str(), "");
        let mut table = Table::new(&REPLICATES);
        for r in &part.replicates {
            table.row([
                r.index.into(),
                exact(r.width.into()),
                exact(r.strata.into()),
                exact(r.sum.into()),
                exact(r.squares),
                exact(r.valid.into()),
                exact(r.nonzero.into()),
                r.saturated.into(),
            ]);
        }
        self.further_table("replicates", "Replicates", table);
    }

    /// Adds lines of text: an array in JSON.
    pub fn list(&mut self, key: &'static str, label: &str, lines: &[String]) {
        self.field(key, label, lines.to_vec(), "");
    }

    /// Adds the counts of the 36 small motifs: a table of rows and columns, the sum, and whether a count is past 2^64 - 1.
    pub fn motif_grid(&mut self, counts: &[[Count; 6]; 6]) {
        let all = counts.iter().flatten();
        let sum = all.clone().fold(0u64, |sum, count| sum.saturating_add(count.value));
        self.field("sum", "matches of all", sum, "");
        self.field("saturated", "past 2^64 - 1", sum == u64::MAX || all.clone().any(|count| count.saturated), "");
        let mut table = Table::new(&GRID);
        for (row, counts) in counts.iter().enumerate() {
            table.push([Value::from(format!("G{}", row + 1))].into_iter().chain(counts.iter().map(|count| count.value.into())).collect());
        }
        self.table(table);
    }

    /// Adds what all methods found.
    pub fn motif_comparison(&mut self, comparison: &Comparison) {
        self.field("exact", "matches, exactly", comparison.exact, "");
        self.field("exact_agree", "exact methods agree", comparison.exact_agree, "");
        let mut table = Table::new(&COMPARISON);
        for row in &comparison.rows {
            let matches = match row.value {
                Some(Matches::Exact(value)) => value.into(),
                Some(Matches::Estimate(value)) => value.into(),
                _ => Value::Null,
            };
            table.row([
                row.method.name().into(),
                matches,
                row.std_error.into(),
                row.relative_error.into(),
                row.seconds.into(),
                row.samples.into(),
                row.nonzero.into(),
                row.saturated.into(),
                row.note.as_str().into(),
            ]);
        }
        self.table(table);
    }

    /// Adds a plan.
    pub fn motif_plan(&mut self, plan: &PlanTable) {
        self.field("anchor", "anchor taken", plan.anchor.to_string(), "");
        self.field("prune", "pruning", plan.prune.name(), "");
        self.field("method", "method", if plan.enumerates { How::Enumerate } else { How::Sample }.name(), "");
        self.field("seconds", "planning", plan.seconds, "s");
        self.list("notes", "note", &plan.notes);
        let mut table = Table::new(&PLAN);
        for row in &plan.rows {
            table.row([
                row.anchor.to_string().into(),
                row.w.into(),
                row.w_pairs.into(),
                row.w_rows.into(),
                row.pilots.into(),
                row.nonzero.into(),
                row.r1.into(),
                row.cost.into(),
                row.score.into(),
                row.chosen.into(),
                row.dropped.clone().into(),
            ]);
        }
        self.table(table);
    }
}

/// Reads the JSON that [`Report::counted`] makes.
///
/// # Errors
///
/// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) naming `name` and the key that is missing or holds something else.
pub fn counted_from_json(name: &str, text: &str) -> Result<Counted> {
    let malformed = |why: String| Error::malformed(format!("`{name}` is no report of `sublane motifs count --json`: {why}"));
    let object = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err(malformed("it is no JSON object".into())),
        Err(error) => return Err(malformed(format!("it is no JSON ({error})"))),
    };
    let is_count = object.get("command").and_then(Value::as_str).is_some_and(|command| command.starts_with("motifs "));
    if object.get("schema") != Some(&super::SCHEMA.into()) || !is_count {
        return Err(malformed(format!("its `schema` is not {} or its `command` another", super::SCHEMA)));
    }
    let read = Reader { object: &object };
    let parsed = || -> std::result::Result<Counted, String> {
        let motif = Motif::parse(&read.text("motif_edges")?).map_err(|e| e.to_string())?.renamed(read.text("motif")?);
        let named = |key: &str, name: Option<String>| match name {
            Some(name) => {
                [Prune::Off, Prune::Pairs, Prune::Rows].into_iter().find(|p| p.name() == name).map(Some).ok_or_else(|| wrong(key))
            }
            None => Ok(None),
        };
        let anchor = match read.optional_text("anchor")? {
            Some(anchor) => Some(Anchor::parse(&anchor, &motif).map_err(|e| e.to_string())?),
            None => None,
        };
        let method = How::from_name(&read.text("method")?).ok_or_else(|| wrong("method"))?;
        let replicates = read.replicates()?;
        let part = match read.optional_text("shard")? {
            Some(shard) => Some(ShardPart {
                shard: shard.parse::<Shard>().map_err(|e| e.to_string())?,
                graph: Fingerprint {
                    num_edges: read.integer("graph_edges")?,
                    num_vertices: read.integer("graph_vertices")?,
                    hash: read.text("graph_hash")?,
                },
                samples: read.integer("samples_asked")?,
                replicates,
            }),
            None => None,
        };
        let interval = read.floats("ci95")?;
        let value = match (method, &part) {
            (How::Sample, _) => Matches::Estimate(read.float("estimate")?.ok_or_else(|| wrong("estimate"))?),
            (_, Some(part)) => Matches::Part(part.replicates.iter().fold(0, |sum, r| r.sum.saturating_add(sum))),
            (_, None) => Matches::Exact(read.integer("estimate")?),
        };
        Ok(Counted {
            motif,
            delta: read.get("delta_ticks").and_then(Value::as_i64).ok_or_else(|| wrong("delta_ticks"))?,
            decimals: read.small("decimals")?,
            ties: [Ties::Order, Ties::Strict]
                .into_iter()
                .find(|t| Ok(t.name().into()) == read.text("ties"))
                .ok_or_else(|| wrong("ties"))?,
            method,
            value,
            std_error: read.float("std_error")?,
            ci95: interval,
            samples: read.integer("samples")?,
            valid: read.integer("valid")?,
            nonzero: read.integer("nonzero")?,
            w: read.optional_integer("w")?,
            w_pruned: read.optional_integer("w_pruned")?,
            anchor,
            r1: read.float("r1")?,
            seconds: read.float("seconds")?.ok_or_else(|| wrong("seconds"))?,
            planning_seconds: read.float("planning_seconds")?.ok_or_else(|| wrong("planning_seconds"))?,
            saturated: read.truth("saturated")?,
            engine: read.text("engine")?,
            prune: named("prune", read.optional_text("prune")?)?,
            seed: read.integer("seed")?,
            ended_by: match read.optional_text("ended_by")? {
                Some(name) => Some(crate::motifs::EndedBy::from_name(&name).ok_or_else(|| wrong("ended_by"))?),
                None => None,
            },
            notes: read.texts("notes")?,
            warnings: read.texts("warnings")?,
            part,
        })
    };
    parsed().map_err(malformed)
}

fn wrong(key: &str) -> String {
    format!("its key `{key}` is missing or holds something else")
}

/// Values of a JSON object by key; an error is why there is none.
struct Reader<'a> {
    object: &'a Map<String, Value>,
}

type Read<T> = std::result::Result<T, String>;

impl Reader<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    /// `None` for null; an error where the key is missing or `take` does not take the value.
    fn optional<T>(&self, key: &str, take: impl Fn(&Value) -> Option<T>) -> Read<Option<T>> {
        match self.object.get(key) {
            Some(Value::Null) => Ok(None),
            Some(value) => take(value).map(Some).ok_or_else(|| wrong(key)),
            None => Err(wrong(key)),
        }
    }

    /// As [`Reader::optional`], for keys that not every report has.
    fn optional_text(&self, key: &str) -> Read<Option<String>> {
        match self.object.contains_key(key) {
            true => self.optional(key, |value| value.as_str().map(String::from)),
            false => Ok(None),
        }
    }

    fn text(&self, key: &str) -> Read<String> {
        self.optional_text(key)?.ok_or_else(|| wrong(key))
    }

    fn optional_integer(&self, key: &str) -> Read<Option<u64>> {
        self.optional(key, Value::as_u64)
    }

    fn integer(&self, key: &str) -> Read<u64> {
        self.optional_integer(key)?.ok_or_else(|| wrong(key))
    }

    fn small(&self, key: &str) -> Read<u32> {
        self.integer(key)?.try_into().map_err(|_| wrong(key))
    }

    fn float(&self, key: &str) -> Read<Option<f64>> {
        self.optional(key, Value::as_f64)
    }

    fn floats(&self, key: &str) -> Read<Option<[f64; 2]>> {
        self.optional(key, |value| {
            let ends: Option<Vec<f64>> = value.as_array()?.iter().map(Value::as_f64).collect();
            ends?.try_into().ok()
        })
    }

    fn truth(&self, key: &str) -> Read<bool> {
        self.optional(key, Value::as_bool)?.ok_or_else(|| wrong(key))
    }

    fn texts(&self, key: &str) -> Read<Vec<String>> {
        let texts = self.optional(key, |value| value.as_array()?.iter().map(|line| line.as_str().map(String::from)).collect())?;
        texts.ok_or_else(|| wrong(key))
    }

    fn replicates(&self) -> Read<Vec<Replicate>> {
        let Some(rows) = self.get("replicates") else { return Ok(Vec::new()) };
        let big = |row: &Value, key: &str| -> Option<u128> {
            match row.get(key)? {
                Value::String(text) => text.parse().ok(),
                value => value.as_u64().map(u128::from),
            }
        };
        let row = |row: &Value| -> Option<Replicate> {
            let integer = |key: &str| big(row, key).and_then(|n| u64::try_from(n).ok());
            Some(Replicate {
                index: integer("index")?.try_into().ok()?,
                width: integer("width")?,
                strata: integer("strata")?,
                sum: integer("sum")?,
                squares: big(row, "squares")?,
                valid: integer("valid")?,
                nonzero: integer("nonzero")?,
                saturated: row.get("saturated")?.as_bool()?,
            })
        };
        let replicates = rows.as_array().and_then(|rows| rows.iter().map(row).collect());
        replicates.ok_or_else(|| wrong("replicates"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motifs::{CountOptions, Method, TemporalGraph, count};
    use crate::progress::Work;

    fn counted(options: &CountOptions) -> Counted {
        let edges = (0..400u32).map(|i| (i * i % 7, i % 7, i64::from(i / 2))).collect();
        let graph = TemporalGraph::from_edges(edges, 7, 1).expect("builds");
        count(&graph, &Motif::parse("M4-0").expect("named"), options, &Work::quiet()).expect("counts")
    }

    #[test]
    fn counts_are_read_back_as_they_were() {
        let base = CountOptions { seed: 5, ..CountOptions::new(25) };
        for (method, shard) in [
            (Method::Auto, None),
            (Method::Exact, None),
            (Method::Samples(640), None),
            (Method::Error(0.5), None),
            (Method::Samples(640), Shard::new(2, 3).ok()),
            (Method::Samples(640), Shard::new(32, 32).ok()),
            (Method::Enumerate, Shard::new(1, 2).ok()),
        ] {
            let found = counted(&CountOptions { method, shard, ..base.clone() });
            let mut report = Report::new("motifs count", found.seed);
            report.counted(&found);
            let back = counted_from_json("here", &report.to_json().to_string()).expect("reads");
            assert_eq!(back, found);
        }
    }

    #[test]
    fn keys_are_those_that_are_promised() {
        let mut report = Report::new("motifs count", 0);
        report.counted(&counted(&CountOptions::new(25)));
        let json = report.to_json();
        let keys: Vec<&String> = json.as_object().expect("object").keys().skip(5).take(19).collect();
        let promised = "motif delta ties method estimate std_error ci95 samples valid nonzero w w_pruned anchor r1 seconds samples_per_s saturated \
                        engine prune";
        assert_eq!(keys, promised.split_whitespace().collect::<Vec<_>>());
        assert_eq!(json["delta"], 2.5);
        assert!(json["estimate"].is_u64() && json["std_error"] == 0 && json["ci95"][0] == json["estimate"]);
    }

    #[test]
    fn large_integers_are_text_and_other_files_are_refused() {
        assert_eq!((exact(1 << 53), exact(u128::MAX)), (Value::from(1u64 << 53), Value::from(u128::MAX.to_string())));
        let found = counted(&CountOptions { shard: Shard::new(1, 2).ok(), method: Method::Samples(64), ..CountOptions::new(25) });
        let mut report = Report::new("motifs count", 0);
        report.counted(&found);
        let json = report.to_json();
        for key in ["motif_edges", "method", "w", "seconds", "replicates", "seed", "graph_hash", "notes", "saturated", "ci95"] {
            let mut changed = json.clone();
            changed[key] = serde_json::json!({ "no": 1 });
            let error = counted_from_json("a.json", &changed.to_string()).expect_err(key).to_string();
            assert!(error.contains("`a.json`") && error.contains(key), "{error}");
        }
        for text in ["", "[]", "{}", "3"] {
            assert!(counted_from_json("a.json", text).is_err(), "{text}");
        }
    }
}
