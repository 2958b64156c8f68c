//! What numbers paths and draws from them.

use crate::error::Result;
use crate::motifs::paths::{Keys, Numbered, Paths};
use crate::motifs::{Anchor, Motif, Prune, TemporalGraph};

/// What numbers paths and draws from them. All engines give the same sums, bit for bit.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Engine {
    /// The cores of the processor.
    #[default]
    Cpu,
}

impl Engine {
    /// Name on the command line and in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Engine::Cpu => "cpu",
        }
    }

    /// Numbers the paths of an anchor; the table of units takes at most `max_bytes`.
    pub(in crate::motifs) fn number<'g>(
        &self,
        graph: &'g TemporalGraph,
        keys: &'g Keys<'g>,
        motif: &Motif,
        anchor: &Anchor,
        prune: Prune,
        max_bytes: u64,
    ) -> Result<Box<dyn Numbered + 'g>> {
        match self {
            Engine::Cpu => Ok(Box::new(Paths::new(graph, keys, motif, anchor, prune, max_bytes)?)),
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
