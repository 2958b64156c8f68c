//! Which columns of a text hold what.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The columns of a text of edges, such as `src,dst,_,t`: each of `src`, `dst` and `t` once, `_` for a column that is not used, and `...` at
/// the end for any further ones. Lines must have these columns, no fewer and no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Of each column: 0 source, 1 destination, 2 time, 3 not used.
    roles: Vec<u8>,
    open: bool,
}

/// Names of the roles.
pub(super) const ROLES: [&str; 4] = ["src", "dst", "t", "_"];

impl Columns {
    /// Reads a list of columns.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown name, and for one of `src`, `dst`, `t` that is
    /// missing or there twice.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |why: String| {
            Err(Error::invalid(format!(
                "columns `{text}`: {why}; give src, dst and t once each and `_` for every other column, such as src,dst,_,t, with `...` at \
                 the end where lines may have more"
            )))
        };
        let mut columns = Columns { roles: Vec::new(), open: false };
        for name in text.split(',').map(str::trim) {
            if columns.open {
                return refuse("`...` is not at the end".into());
            }
            match ROLES.iter().position(|role| *role == name) {
                Some(role) if role < 3 && columns.roles.contains(&(role as u8)) => return refuse(format!("`{name}` is there twice")),
                Some(role) => columns.roles.push(role as u8),
                None if name == "..." => columns.open = true,
                None => return refuse(format!("`{name}` is no name of a column")),
            }
        }
        match (0..3).find(|role| !columns.roles.contains(role)) {
            Some(role) => refuse(format!("`{}` is missing", ROLES[role as usize])),
            None => Ok(columns),
        }
    }

    /// Of each column, its place in [`ROLES`].
    pub(super) fn roles(&self) -> &[u8] {
        &self.roles
    }

    /// Whether a line may have that many columns.
    pub(super) fn allow(&self, count: usize) -> bool {
        count == self.roles.len() || self.open && count > self.roles.len()
    }
}

/// `src,dst,t`.
impl Default for Columns {
    fn default() -> Self {
        Columns { roles: vec![0, 1, 2], open: false }
    }
}

impl FromStr for Columns {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Columns::parse(text)
    }
}

/// The list as [`Columns::parse`] reads it.
impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.roles.iter().map(|&role| ROLES[usize::from(role)]).chain(self.open.then_some("...")).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_and_written() {
        for text in ["src,dst,t", "src,dst,_,t", "t,_,_,dst,src", "src,dst,t,..."] {
            assert_eq!(Columns::parse(text).expect("columns").to_string(), text);
        }
        assert_eq!(Columns::parse(" src, dst ,t").expect("columns"), Columns::default());
        assert!(Columns::default().allow(3) && !Columns::default().allow(2) && !Columns::default().allow(4));
        let open = Columns::parse("src,dst,t,...").expect("columns");
        assert!(open.allow(3) && open.allow(9) && !open.allow(2));
    }

    #[test]
    fn wrong_columns_are_refused_with_the_reason() {
        for (text, why) in [
            ("", "`` is no name"),
            ("src,dst", "`t` is missing"),
            ("src,src,dst,t", "`src` is there twice"),
            ("src,dst,time", "`time` is no name"),
            ("src,dst,...,t", "not at the end"),
            ("_,_,_", "`src` is missing"),
        ] {
            let error = Columns::parse(text).expect_err(text).to_string();
            assert!(error.contains(why) && error.contains("src,dst,_,t"), "{text}: {error}");
        }
    }
}
