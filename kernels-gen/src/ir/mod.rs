//! The loop IR: one kernel as statements with effects over expressions without.
//!
//! A value has one or four *lanes*. Four lanes are four neighbouring elements handled by one invocation; which memory accesses become
//! vec4 ones follows from their indices, see [`Lanes`].

mod builder;
mod in_place;
mod print;
mod verify;

pub use builder::Builder;
pub use verify::VerifyError;

use crate::index::{Index, Var};
use crate::scalar::{BinaryOp, Literal, ReduceOp, UnaryOp};
use crate::{DType, ScalarType};

/// Index of an expression in [`Code::exprs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// Index of a buffer in [`Code::buffers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// Index of a mutable local in [`Code::locals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub u32);

/// A storage buffer: a tensor of packed elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Name of the WGSL variable.
    pub name: String,
    /// Element type in memory.
    pub dtype: DType,
    /// Whether the kernel writes it.
    pub written: bool,
}

/// Type of an expression or local: a scalar type in one or four lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// Type of each lane.
    pub scalar: ScalarType,
    /// 1 or 4.
    pub width: u8,
}

impl ValueType {
    /// WGSL name.
    pub fn wgsl(self) -> String {
        match self.width {
            1 => self.scalar.wgsl().to_string(),
            w => format!("vec{w}<{}>", self.scalar.wgsl()),
        }
    }
}

/// One index per lane.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lanes(pub Vec<Index>);

impl Lanes {
    /// Number of lanes.
    pub fn width(&self) -> u8 {
        self.0.len() as u8
    }

    /// The index of all lanes, if they agree.
    pub fn uniform(&self) -> Option<&Index> {
        self.0.iter().all(|i| *i == self.0[0]).then(|| &self.0[0])
    }

    /// The number of the vec4 that the four lanes are, if they are neighbours and start at a multiple of four.
    pub fn vec4(&self) -> Option<Index> {
        let base = self.0.first()?;
        let neighbours = self.0.len() == 4 && self.0.iter().enumerate().all(|(l, i)| *i == base.offset(l as i64));
        (neighbours && base.is_multiple_of(4)).then(|| base.div(4))
    }
}

/// An expression: a value without effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A constant.
    Literal(Literal),
    /// An index as a `u32`.
    Index(Lanes),
    /// Whether an index lies in `0..size`.
    InBounds {
        /// The index.
        index: Lanes,
        /// One past the largest value allowed.
        size: i64,
    },
    /// An element of a buffer.
    Load {
        /// The buffer.
        buffer: BufferId,
        /// Its element.
        index: Lanes,
    },
    /// The present value of a local.
    Local(LocalId),
    /// An argument of the function that is emitted, by name.
    Argument(String, ScalarType, u8),
    /// Elementwise operation.
    Unary(UnaryOp, ExprId),
    /// Elementwise operation.
    Binary(BinaryOp, ExprId, ExprId),
    /// `condition ? on_true : on_false`, lane by lane.
    Select(ExprId, ExprId, ExprId),
    /// Conversion between scalar types, as `Cast` of the tensor IR.
    Cast(ScalarType, ExprId),
    /// Wraps an integer to the range of an 8-bit type, or rounds an `f32` to a value of f16.
    Narrow(DType, ExprId),
    /// One lane repeated to four.
    Splat(ExprId),
    /// One lane of four.
    Lane(ExprId, u8),
    /// Four values of one lane as one value of four.
    Compose([ExprId; 4]),
}

impl Expr {
    /// Calls `f` with every operand, those inside indices included.
    pub fn for_each_operand(&self, f: &mut impl FnMut(ExprId)) {
        match self {
            Expr::Literal(_) | Expr::Local(_) | Expr::Argument(..) => {}
            Expr::Index(lanes) | Expr::InBounds { index: lanes, .. } | Expr::Load { index: lanes, .. } => {
                lanes.0.iter().for_each(|i| i.for_each_data(&mut |e| f(ExprId(e))));
            }
            Expr::Unary(_, a) | Expr::Cast(_, a) | Expr::Narrow(_, a) | Expr::Splat(a) | Expr::Lane(a, _) => f(*a),
            Expr::Binary(_, a, b) => [a, b].into_iter().for_each(|e| f(*e)),
            Expr::Select(a, b, c) => [a, b, c].into_iter().for_each(|e| f(*e)),
            Expr::Compose(parts) => parts.iter().for_each(|e| f(*e)),
        }
    }
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stmt {
    /// Runs the body for each value of the variable, one after another.
    Loop {
        /// The variable; its extent is the number of iterations.
        var: Var,
        /// The body.
        body: Vec<Stmt>,
    },
    /// Runs the body where the condition (one lane) holds. No barrier may stand inside.
    If {
        /// Condition.
        condition: ExprId,
        /// The body.
        body: Vec<Stmt>,
    },
    /// Ends the innermost loop where the condition (one lane) holds. The loop may hold no barrier.
    Break {
        /// Condition.
        condition: ExprId,
    },
    /// Makes a local.
    Declare {
        /// The local.
        local: LocalId,
        /// First value.
        value: ExprId,
    },
    /// Changes a local.
    Assign {
        /// The local.
        local: LocalId,
        /// New value.
        value: ExprId,
    },
    /// Writes elements of a buffer.
    Store {
        /// The buffer.
        buffer: BufferId,
        /// Its elements.
        index: Lanes,
        /// Values, as many lanes.
        value: ExprId,
    },
    /// Combines a local (one lane) over all invocations of the workgroup; all get the result. A barrier.
    WorkgroupReduce {
        /// The local.
        local: LocalId,
        /// How to combine.
        op: ReduceOp,
    },
}

/// How the work is spread over invocations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grid {
    /// One invocation for each value of the variable.
    Invocations {
        /// The variable.
        var: Var,
    },
    /// One workgroup for each value of `group`; `lane` numbers the invocations in it.
    Workgroups {
        /// Number of the workgroup.
        group: Var,
        /// Number of the invocation in its workgroup; its extent is the workgroup size.
        lane: Var,
    },
}

impl Grid {
    /// Workgroups a dispatch needs for workgroups of `workgroup_size` invocations.
    pub fn num_workgroups(&self, workgroup_size: u32) -> u64 {
        match self {
            Grid::Invocations { var } => (var.extent.max(0) as u64).div_ceil(u64::from(workgroup_size)),
            Grid::Workgroups { group, .. } => group.extent.max(0) as u64,
        }
    }
}

/// Buffers, expressions and locals: what statements refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Code {
    /// Storage buffers, in order of their binding.
    pub buffers: Vec<Buffer>,
    /// Expressions with their types; operands have smaller ids.
    pub exprs: Vec<(Expr, ValueType)>,
    /// Types of the locals.
    pub locals: Vec<ValueType>,
    /// Whether f32 buffers that are read by four elements are declared as 64-bit words ([`Target::wide_loads`](crate::Target::wide_loads)).
    pub wide_loads: bool,
    /// Whether a workgroup's values are combined by subgroup operations first.
    pub subgroups: bool,
}

impl Code {
    /// The same code for a target.
    #[must_use]
    pub fn on(self, target: &crate::Target) -> Self {
        Code { wide_loads: target.wide_loads(), subgroups: target.subgroups, ..self }
    }
}

/// One kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// First part of the name: what the kernel does.
    pub label: String,
    /// Operations of the user's program it computes, for the header.
    pub origins: Vec<String>,
    /// Spread of the work.
    pub grid: Grid,
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// Buffers, expressions, locals.
    pub code: Code,
    /// Statements of one invocation.
    pub body: Vec<Stmt>,
    /// Floating-point operations of one dispatch.
    pub flops: u64,
    /// Bytes of the tensors one dispatch reads and writes.
    pub bytes: u64,
}

/// A WGSL function: what fills the hole of a hero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Parameters as WGSL: `k: u32`.
    pub params: Vec<String>,
    /// Variables of the code, each with the WGSL expression of the parameters it stands for.
    pub vars: Vec<(Var, String)>,
    /// Statements before the result.
    pub body: Vec<Stmt>,
    /// The results, of one type: several are an array.
    pub results: Vec<ExprId>,
}

/// Whether a loop of this body may end before its last iteration.
pub(crate) fn breaks(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        Stmt::Break { .. } => true,
        Stmt::If { body, .. } => breaks(body),
        _ => false,
    })
}

/// The most loop iterations one invocation runs through `body`, counted as [`KernelSource::max_iterations`](crate::KernelSource) says.
pub fn num_iterations(body: &[Stmt]) -> u64 {
    let one = |stmt: &Stmt| match stmt {
        Stmt::Loop { var, body } => (var.extent.max(0) as u64).saturating_mul(num_iterations(body).saturating_add(1)).saturating_add(1),
        Stmt::If { body, .. } => num_iterations(body),
        // The tree of a workgroup of at most 2^16 invocations. With subgroups of at least 8, of which each lane of one takes some: workgroups of
        // 1024 have at most 128, and their lanes 16 each.
        Stmt::WorkgroupReduce { .. } => 16 + 1,
        Stmt::Break { .. } | Stmt::Declare { .. } | Stmt::Assign { .. } | Stmt::Store { .. } => 0,
    };
    body.iter().map(one).fold(0, u64::saturating_add)
}
