//! Inputs of graphs: drawn at random, or as a command line names them.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::compiler::Port;
use crate::error::{Error, Result};
use crate::graph::TensorType;
use crate::import::npy;
use crate::tensor::HostTensor;
use kernels_gen::DType;
use kernels_gen::threefry::Key;

/// Where an input comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Random, see [`random`].
    Random,
    /// Zeros.
    Zeros,
    /// An NPY file.
    Npy(PathBuf),
}

/// An input and where it comes from: `NAME=random`, `NAME=zeros` or `NAME=FILE.npy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSource {
    /// Name of the input.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
}

impl std::str::FromStr for NamedSource {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.rsplit_once('=').filter(|(name, source)| !name.is_empty() && !source.is_empty());
        let (name, source) = parts.ok_or_else(|| Error::invalid("give NAME=FILE.npy, NAME=random or NAME=zeros"))?;
        let source = match source {
            "random" => Source::Random,
            "zeros" => Source::Zeros,
            file => Source::Npy(file.into()),
        };
        Ok(NamedSource { name: name.into(), source })
    }
}

impl Source {
    /// Name in reports.
    pub fn name(&self) -> String {
        match self {
            Source::Random => "random".into(),
            Source::Zeros => "zeros".into(),
            Source::Npy(file) => file.display().to_string(),
        }
    }
}

/// Inputs as they are asked for, files read; those nobody names are random.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    given: Vec<(NamedSource, Option<HostTensor>)>,
}

impl Inputs {
    /// Reads the files among `sources`.
    pub fn read(sources: &[NamedSource]) -> Result<Self> {
        let mut given: Vec<(NamedSource, Option<HostTensor>)> = Vec::with_capacity(sources.len());
        for source in sources {
            if given.iter().any(|(known, _)| known.name == source.name) {
                return Err(Error::invalid(format!("input `{}` is given twice; give each once", source.name)));
            }
            let tensor = match &source.source {
                Source::Npy(file) => Some(npy::read(file)?),
                _ => None,
            };
            given.push((source.clone(), tensor));
        }
        Ok(Inputs { given })
    }

    /// Shapes of the arrays that were read, by the name of the input: they fill dimensions a model leaves open.
    pub fn shapes(&self) -> HashMap<String, Vec<usize>> {
        self.given.iter().filter_map(|(source, tensor)| Some((source.name.clone(), tensor.as_ref()?.shape().to_vec()))).collect()
    }

    /// A tensor for each of `ports`, in their order, with where it comes from.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a name that no port has and an array that is not of the
    /// port's type.
    pub fn tensors(&self, ports: &[Port], key: Key) -> Result<Vec<(Source, HostTensor)>> {
        if let Some((unknown, _)) = self.given.iter().find(|(source, _)| ports.iter().all(|p| p.name != source.name)) {
            let known = ports.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join("`, `");
            return Err(Error::invalid(format!("the model has no input `{}`; its inputs are `{known}`", unknown.name)));
        }
        let tensor = |(port, stream): (&Port, u64)| {
            let Port { name, ty, .. } = port;
            match self.given.iter().find(|(source, _)| source.name == *name) {
                None => Ok((Source::Random, random(ty, key.stream(stream))?)),
                Some((NamedSource { source, .. }, None)) if *source == Source::Zeros => {
                    Ok((Source::Zeros, HostTensor::zeros(ty.dtype, ty.shape.clone())?))
                }
                Some((_, None)) => Ok((Source::Random, random(ty, key.stream(stream))?)),
                Some((NamedSource { source, .. }, Some(tensor))) => {
                    let given = TensorType::new(tensor.dtype(), tensor.shape());
                    if given != *ty {
                        let file = source.name();
                        return Err(Error::invalid(format!(
                            "`{file}` holds {given}, input `{name}` is {ty}; store an array of that type and shape"
                        )));
                    }
                    Ok((source.clone(), tensor.clone()))
                }
            }
        };
        ports.iter().zip(0..).map(tensor).collect()
    }
}

/// Random values: floats uniform in -1..1, integers and truth values 0 or 1, which are indices into whatever has two elements.
pub fn random(ty: &TensorType, key: Key) -> Result<HostTensor> {
    let count = crate::tensor::num_elems(&ty.shape)? as u64;
    let unit = (0..count).map(|i| key.uniform(i));
    match ty.dtype {
        DType::F32 => HostTensor::new(ty.shape.clone(), unit.map(|u| 2.0 * u - 1.0).collect::<Vec<f32>>()),
        DType::F16 => HostTensor::from_f64(DType::F16, ty.shape.clone(), &unit.map(|u| f64::from(2.0 * u - 1.0)).collect::<Vec<_>>()),
        other => HostTensor::from_f64(other, ty.shape.clone(), &unit.map(|u| f64::from(u.round())).collect::<Vec<_>>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SlotId;

    #[test]
    fn sources_are_read_as_people_write_them() {
        let parse = |text: &str| text.parse::<NamedSource>();
        let source = |text: &str| parse(text).map(|s| (s.name, s.source)).expect(text);
        assert_eq!(source("x=random"), ("x".into(), Source::Random));
        assert_eq!(source("a=b:0=zeros"), ("a=b:0".into(), Source::Zeros));
        assert_eq!(source("x=in.npy"), ("x".into(), Source::Npy("in.npy".into())));
        for wrong in ["", "x", "x=", "=zeros"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_array_of_another_type_is_refused_with_both_types() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("x.npy");
        npy::write(&path, &HostTensor::new([2], vec![1i32, 2]).expect("fits")).expect("written");
        let named = |name: &str, source: &Source| NamedSource { name: name.into(), source: source.clone() };
        let npy = Source::Npy(path);
        let inputs = Inputs::read(&[named("x", &npy)]).expect("read");
        assert_eq!(inputs.shapes()["x"], [2]);
        let port = |name: &str, ty| Port { name: name.into(), ty, slot: SlotId(0) };
        let tensors = |dtype, shape: &[usize]| {
            inputs.tensors(&[port("x", TensorType::new(dtype, shape)), port("z", TensorType::new(dtype, [1]))], Key::new(0))
        };
        let sources: Vec<Source> = tensors(DType::I32, &[2]).expect("fits").into_iter().map(|(source, _)| source).collect();
        assert_eq!(sources, [npy.clone(), Source::Random]);
        for (dtype, shape) in [(DType::F32, &[2][..]), (DType::I32, &[1, 2])] {
            let message = tensors(dtype, shape).expect_err("refused").to_string();
            assert!(message.contains("i32[2]") && message.contains("input `x`"), "{message}");
        }
        let wrong = inputs.tensors(&[port("z", TensorType::new(DType::I32, [2]))], Key::new(0));
        assert!(wrong.expect_err("refused").to_string().contains("its inputs are `z`"));
        assert!(Inputs::read(&[named("x", &npy), named("x", &Source::Zeros)]).expect_err("refused").to_string().contains("twice"));
    }

    #[test]
    fn random_values_keep_their_ranges_and_follow_the_key() {
        let ty = TensorType::new(DType::F32, [1000]);
        let [a, b] = [1, 2].map(|seed| random(&ty, Key::new(seed)).expect("made"));
        assert_eq!(a, random(&ty, Key::new(1)).expect("made"));
        assert_ne!(a, b);
        assert!(a.to_f64().iter().all(|x| (-1.0..1.0).contains(x)) && a.to_f64().iter().any(|x| *x < -0.5));
        let ints = random(&TensorType::new(DType::I32, [100]), Key::new(1)).expect("made").to_f64();
        assert!(ints.contains(&0.0) && ints.contains(&1.0) && ints.iter().all(|&x| x == 0.0 || x == 1.0));
    }
}
