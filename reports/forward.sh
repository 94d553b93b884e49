#!/usr/bin/env bash
# Measures the forward sweep on this machine's GPU: reports/forward.sh HBMSCOPE > forward.jsonl
# One `hbmscope run` a line: 16,384 tokens a batch and 2,048 columns over all heads, as in the FlashAttention papers; from
# 32,768 keys on fewer heads, so that S and P of the naive pipeline fit where they can.
set -euo pipefail
hbmscope="$(realpath "$(command -v "${1:?usage: forward.sh path/to/hbmscope}")")"
folder="$(mktemp -d)" && cd "$folder"
for head_dim in 64 128 256; do
  for seqlen in 512 1024 2048 4096 8192 16384 32768 65536 131072; do
    batch=$((seqlen < 16384 ? 16384 / seqlen : 1))
    heads=$((2048 / head_dim))
    if [ "$seqlen" -gt 16384 ]; then heads=$((512 / head_dim)); fi
    algorithms=naive,flash_v2,flash_v3
    if [ "$seqlen" = 8192 ] && [ "$head_dim" = 128 ]; then algorithms=naive,flash_v1,flash_v2,flash_v3; fi
    for mask in "" --causal; do
      code=0
      # shellcheck disable=SC2086 # an empty mask is no argument
      "$hbmscope" run --engine auto --dtype bf16 --batch "$batch" --heads "$heads" --seqlen "$seqlen" --head-dim "$head_dim" \
        $mask --algorithm "$algorithms" --json row.json >/dev/null || code=$?
      if [ "$code" -ne 0 ]; then echo "seqlen $seqlen, head_dim $head_dim $mask: exit code $code" >&2; continue; fi
      tr -d '\n' <row.json
      echo
    done
  done
done
cd /
rm -rf "$folder"
