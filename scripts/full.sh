#!/usr/bin/env bash
# What is too long or too particular for .ci/run: packaging, and the selftest on every adapter of the machine, at its own limits and at
# WebGPU's. Writes docs/results/full.md. Needs Python 3 to read the list of adapters.
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

mkdir -p docs/results
cp "$report" docs/results/full.md
exit "$failed"
