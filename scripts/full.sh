#!/usr/bin/env bash
# What is too long or too particular for .ci/run: packaging, the selftest on every adapter of the machine, at its own limits and at WebGPU's,
# and the accuracy of ResNet-56 in integers, with images of the folder SUBLANE_DATA. Writes docs/results/full.md. Needs Python 3 to read JSON.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release
sublane=target/release/sublane
report=$(mktemp)
trap 'rm -f "$report"' EXIT
failed=0

{
  printf '# Full run\n\nWritten by `scripts/full.sh` at commit %s.\n' "$(git rev-parse --short HEAD)"
  printf '\n| step | result |\n|---|---|\n'
} >"$report"

# step NAME COMMAND...: runs it and adds a row.
step() {
  local name=$1 result=passed
  shift
  printf '\n== %s\n' "$name" >&2
  "$@" >&2 || { result=failed; failed=1; }
  printf '| %s | %s |\n' "$name" "$result" >>"$report"
}

step "packaging" cargo package --workspace --allow-dirty
adapters=$("$sublane" devices --json)
while IFS=$'\t' read -r index name; do
  for limits in native webgpu; do
    step "selftest on $name, limits $limits" "$sublane" selftest --adapter "$index" --limits "$limits"
  done
done < <(python3 -c 'import json, sys
for row in json.load(sys.stdin)["rows"]:
    print(row["index"], row["name"] + " (" + row["backend"] + ")", sep="\t")' <<<"$adapters")

data=${SUBLANE_DATA:-../shared/data}
# On the 9,000 images that scales were not taken from, at most 0.3 points may be lost.
integers_are_near() {
  "$sublane" bitset run "$data/models/cifar10-resnet56.onnx" --dataset "cifar10:$data/images/cifar10-test_batch.bin.gz" \
    --split calibrate:0-999,test:1000-9999 --json |
    python3 -c 'import json, sys
report = json.load(sys.stdin)
sys.exit(100 * (report["accuracy_float"] - report["accuracy"]) > 0.3)'
}
step "ResNet-56 in integers of 8 bits" integers_are_near

mkdir -p docs/results
cp "$report" docs/results/full.md
exit "$failed"
