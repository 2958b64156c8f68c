#!/usr/bin/env bash
# Fetches ONNX's backend node tests (the package `onnx` 1.17.0 of PyPI) into target/ and runs them on the adapter. Arguments go to the runner:
# --reference interprets on the host, --table FILE writes all results. The last line is `N passed, N failed, N skipped`.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
version=1.17.0
store="$here/target/onnx-node-tests"
tests="$store/onnx/backend/test/data/node"

if ! [ -d "$tests" ]; then
  mkdir -p "$store"
  python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$store" "onnx==$version"
  python3 - "$store" <<'PYTHON'
import glob, sys, zipfile
store = sys.argv[1]
with zipfile.ZipFile(glob.glob(store + "/onnx-*.whl")[0]) as wheel:
    wheel.extractall(store, [n for n in wheel.namelist() if n.startswith("onnx/backend/test/data/node/")])
PYTHON
fi

cargo run --quiet --release --manifest-path "$here/Cargo.toml" --example onnx_node_tests -- "$tests" "$@"
