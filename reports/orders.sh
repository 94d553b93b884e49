#!/usr/bin/env bash
# What the order in which CTAs start costs under a causal mask: reports/orders.sh HBMSCOPE > orders.jsonl
set -euo pipefail
hbmscope="$(realpath "$(command -v "${1:?usage: orders.sh path/to/hbmscope}")")"
folder="$(mktemp -d)" && cd "$folder"
for seqlen in 8192 65536 131072; do
  for order in ascending longest-first longest-first-interleaved; do
    "$hbmscope" run --dtype bf16 --heads 4 --seqlen "$seqlen" --causal --order "$order" --algorithm flash_v2 --json row.json >/dev/null
    tr -d '\n' <row.json
    echo
  done
done
cd /
rm -rf "$folder"
