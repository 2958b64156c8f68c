//! Operations: type inference, decomposition, reference values and test cases, one file an op family.
