//! CPU twins: what one dispatch of a hand-written kernel does to its buffers, written plainly. They are the oracles of the tests.

use crate::error::Result;

mod gemm_reference;
mod scale_add;
mod threefry_fill;

/// What a twin is called with: the words of its kernel's bindings, its parameters and the size of the dispatch.
pub struct TwinCall<'a> {
    /// Storage bindings, in order, as 32-bit words.
    pub buffers: Vec<&'a mut [u32]>,
    /// Parameter words.
    pub params: &'a [u32],
    /// Workgroups in x, y, z.
    pub workgroups: [u32; 3],
    /// Invocations of a workgroup in x, y, z.
    pub workgroup_size: [u32; 3],
}

/// The CPU twin of a hand-written kernel.
#[derive(Clone, Copy)]
pub struct Twin {
    /// Name of the kernel: the stem of its shader file and the flags of its permutation.
    pub name: &'static str,
    /// Does to the buffers what one dispatch does.
    pub run: fn(TwinCall<'_>) -> Result<()>,
}

/// Twins of the kernels in `shaders/shared`.
pub const TWINS: &[Twin] = &[gemm_reference::TWIN, scale_add::TWIN, threefry_fill::WORDS, threefry_fill::UNIFORM];

impl<'a> TwinCall<'a> {
    /// Invocations of the whole dispatch, which bound a linear index.
    pub fn num_invocations(&self) -> u64 {
        self.workgroups.iter().chain(&self.workgroup_size).map(|&n| u64::from(n)).product()
    }

    /// The storage bindings and the parameter words, or an error if there are not `B` and `P` of them.
    pub fn split<const B: usize, const P: usize>(self) -> Result<([&'a mut [u32]; B], [u32; P])> {
        let (buffers, params) = (self.buffers.len(), self.params.len());
        let wrong = || crate::Error::internal(format!("a twin takes {B} buffers and {P} parameters, {buffers} and {params} are given"));
        let words = self.params.try_into().map_err(|_| wrong())?;
        Ok((self.buffers.try_into().map_err(|_| wrong())?, words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels_gen::threefry::Key;

    fn run(name: &str, buffers: &mut [&mut [u32]], params: &[u32]) {
        let twin = TWINS.iter().find(|t| t.name == name).expect("in the table");
        let buffers = buffers.iter_mut().map(|b| &mut **b).collect();
        (twin.run)(TwinCall { buffers, params, workgroups: [1, 1, 1], workgroup_size: [256, 1, 1] }).expect("runs");
    }

    #[test]
    fn threefry_fill_draws_the_words_of_the_key_across_a_carry() {
        let key = Key::new(9).stream(4);
        let [low, high] = key.words();
        let mut out = [7u32; 6];
        run("threefry_fill", &mut [&mut out], &[5, low, high, u32::MAX, 2]);
        let first = 2 * (u64::from(u32::MAX) | 2 << 32);
        let words: Vec<u32> = (0..5).map(|n| key.word(first + n)).collect();
        assert_eq!(out[..5], words);
        assert_eq!(out[5], 7, "past the count nothing is written");
    }

    #[test]
    fn scale_add_is_what_its_name_says() {
        let mut x = [2f32, 3.0, 4.0].map(f32::to_bits);
        let mut y = [1f32, 1.0, 1.0].map(f32::to_bits);
        run("scale_add", &mut [&mut x, &mut y], &[2, 10f32.to_bits()]);
        assert_eq!(y.map(f32::from_bits), [21.0, 31.0, 1.0]);
    }
}
