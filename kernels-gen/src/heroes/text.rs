//! A buffer of indented WGSL lines.

/// Text under construction.
#[derive(Debug, Default)]
pub(super) struct Text {
    out: String,
    depth: usize,
}

impl Text {
    /// Appends a line at the current depth; a line that ends in `{` opens a block, one that starts with `}` closes one.
    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if line.starts_with('}') {
            self.depth = self.depth.saturating_sub(1);
        }
        for _ in 0..self.depth {
            self.out.push_str("    ");
        }
        self.out.push_str(line);
        self.out.push('\n');
        if line.ends_with('{') {
            self.depth += 1;
        }
    }

    /// The finished text.
    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// `expr`, held below `limit`, where it may reach past it.
pub(super) fn clamp(expr: String, last: u32, may_exceed: bool) -> String {
    if may_exceed { format!("min({expr}, {last}u)") } else { expr }
}

/// Component of a vec4 by number.
pub(super) fn component(index: u32) -> char {
    ['x', 'y', 'z', 'w'][(index % 4) as usize]
}
