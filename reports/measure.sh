#!/usr/bin/env bash
# Makes the saved runs anew on this machine's GPU: reports/measure.sh BUILD FOLDER [PART...]
# BUILD holds hbmscope, hbmscope_gpu_tests and libhbmscope_bridge.so, built with -DHBMSCOPE_TILE_SEARCH=ON; FOLDER, which is
# there, receives the files. Parts, all of them if none is named, in this order: tests ladder probe peers tiles cluster
# sustained forward naive fp8 heads orders order_times sanitizer. peers and sustained need PyTorch, sanitizer compute-sanitizer.
set -euo pipefail
usage="usage: reports/measure.sh BUILD FOLDER [PART...]"
build="$(realpath "${1:?$usage}")"
folder="$(realpath "${2:?$usage}")"
reports="$(dirname "$(realpath "${BASH_SOURCE[0]}")")"
shift 2
built() { # name
  local found
  found="$(find "$build" -name "$1" -type f -print -quit)"
  if [ -z "$found" ]; then echo "measure.sh: no $1 in $build" >&2; exit 1; fi
  echo "$found"
}
hbmscope="$(built hbmscope)"
work="$(mktemp -d)" && cd "$work"
trap 'rm -rf "$work"' EXIT
made="$work/made" && mkdir "$made" # what a part makes, until it has succeeded

run() { # args...: one line of JSON
  rm -f row.json
  "$hbmscope" run --json row.json "$@" >/dev/null && tr -d '\n' <row.json && echo
}
tests() { "$(built hbmscope_gpu_tests)" --no-colors=true >"$made/tests.txt"; }
ladder() {
  for head_dim in 64 128 256; do
    for mask in "" --causal; do
      # shellcheck disable=SC2086 # an empty mask is no argument
      run --engine auto --dtype bf16 --batch 2 --heads $((2048 / head_dim)) --seqlen 8k --head-dim "$head_dim" $mask \
        --algorithm flash_v2,flash_v3 --rungs || return
    done
  done >"$made/ladder.jsonl"
}
probe() { "$hbmscope" gpu probe --json probe.json >/dev/null && mv probe.json "$made"; }
peers() {
  python3 "$reports/peers.py" --bridge "$(built libhbmscope_bridge.so)" \
    --implementations fa2,cudnn,flash_v2,flash_v3a,flash_v3b,flash_v3c,flash_v3d,flash_v3e,flash_v3 >"$made/peers.jsonl"
}
tiles() { "$hbmscope" gpu tiles --seqlen 1k,2k,8k --json tiles.json >/dev/null && mv tiles.json "$made"; }
cluster() {
  for shape in "--heads 16 --head-dim 128 --block-kv 128" "--heads 8 --head-dim 256"; do
    # shellcheck disable=SC2086 # words
    run --engine gpu --dtype bf16 --batch 2 --seqlen 8k $shape --algorithm flash_v3 --cluster 2 || return
  done >"$made/cluster.jsonl"
}
sustained() { # short bursts, and then so many launches in a row that the power limit sets the clock
  printf '%s 0\n' "2 32 8192 64" "1 32 16384 64" "2 16 8192 128" "1 16 16384 128" "2 8 8192 256" "1 8 16384 256" >shapes.txt
  for in_a_row in 1 50; do
    # A candidate refuses the shapes of other head dims, and says so.
    python3 "$reports/peers.py" --bridge "$(built libhbmscope_bridge.so)" --shapes shapes.txt --in-a-row "$in_a_row" \
      --implementations cudnn,flash_v3,d64_192x128,d64_192x128_cluster,d128_128x176_first,d128_128x176_first_cluster,d256_128x80,d256_128x80_cluster || return
  done >"$made/sustained.jsonl"
}
forward() { bash "$reports/forward.sh" "$hbmscope" >"$made/forward.jsonl"; }
naive() { # cuBLAS runs beside it
  for head_dim in 64 128 256; do
    run --engine gpu --dtype bf16 --seqlen 8k --heads 8 --head-dim "$head_dim" --algorithm naive || return
  done >"$made/naive.jsonl"
}
fp8() { # and the same shapes in bf16
  for head_dim in 64 128 256; do
    for tokens in 1 2 8 16; do
      for mask in "" --causal; do
        for dtype in fp8 bf16; do
          # shellcheck disable=SC2086 # an empty mask is no argument
          run --engine auto --dtype "$dtype" --batch $((16 / tokens)) --heads $((2048 / head_dim)) --seqlen "${tokens}k" \
            --head-dim "$head_dim" $mask --algorithm flash_v3 || return
        done
      done
    done
  done >"$made/fp8.jsonl"
}
heads() {
  for heads in 1 2 4 8; do
    run --engine auto --dtype bf16 --algorithm flash_v3 --cluster 1 --seqlen 128k --head-dim 128 --heads "$heads" --repeats 2 || return
  done >"$made/heads.jsonl"
}
orders() { bash "$reports/orders.sh" "$hbmscope" >"$made/orders.jsonl"; }
order_times() { python3 "$reports/order_times.py" "$hbmscope" >"$made/order_times.jsonl"; }
sanitizer() { # one line a tool, shape and set of kernels, and the kernels that racecheck names
  while read -r kernels shape; do
    for tool in memcheck racecheck; do
      for algorithms in ${kernels//+/ }; do
        local args="$shape --algorithm $algorithms" code=0
        case "$args" in
          *--dtype*) ;; # which has no rungs
          *flash_v3) args="$args --dtype bf16 --rungs" ;;
          *) args="$args --dtype bf16" ;;
        esac
        # shellcheck disable=SC2086 # words
        timeout 300 compute-sanitizer --tool "$tool" "$hbmscope" run --engine gpu --hw-counters off --repeats 0 $args \
          >out.txt 2>&1 || code=$?
        echo "$tool $args rc=$code $(grep SUMMARY out.txt | tail -n 1)"
        grep -o "Race reported between.*" out.txt | sed 's/ in [^ ]*//g' | sort -u | head -n 5 | sed 's/^/  /' || true
      done
    done
  done >"$made/sanitizer.txt" <<'SHAPES'
naive,flash_v2+flash_v3 --seqlen 300 --heads 2 --head-dim 128 --causal
naive,flash_v2+flash_v3 --seqlen 257 --heads 4 --kv-heads 2 --head-dim 72
naive,flash_v2+flash_v3 --seqlen-q 130 --seqlen-kv 200 --head-dim 256 --window 60
naive,flash_v2+flash_v3 --seqlen 200 --heads 140 --head-dim 64 --causal
naive,flash_v2+flash_v3 --seqlen 300 --heads 70 --head-dim 64
naive,flash_v2+flash_v3 --seqlen-q 300 --seqlen-kv 4200 --heads 3 --head-dim 128
naive --seqlen-q 150 --seqlen-kv 120000 --head-dim 64
naive --seqlen-q 150 --seqlen-kv 40000 --head-dim 256
naive --seqlen 300 --heads 40 --head-dim 200
flash_v3 --seqlen 200 --heads 140 --head-dim 128
flash_v3 --dtype fp8 --seqlen 300 --heads 70 --head-dim 128 --causal
flash_v3 --dtype fp8 --seqlen-q 200 --seqlen-kv 333 --heads 70 --head-dim 256
flash_v3 --seqlen-q 600 --seqlen-kv 200 --heads 60 --head-dim 128 --causal --cluster 2
flash_v3 --seqlen-q 300 --seqlen-kv 500 --heads 60 --head-dim 256 --cluster 2
SHAPES
}

if [ $# -eq 0 ]; then
  set -- tests ladder probe peers tiles cluster sustained forward naive fp8 heads orders order_times sanitizer
fi
for part in "$@"; do
  case "$part" in
    tests | ladder | probe | peers | tiles | cluster | sustained | forward | naive | fp8 | heads | orders | order_times | sanitizer) ;;
    *) echo "measure.sh: no such part: $part" >&2; exit 2 ;;
  esac
done
failed=0
for part in "$@"; do
  begin=$SECONDS code=0
  "$part" || code=$?
  echo "$part: $((SECONDS - begin)) s, exit code $code" >&2
  if [ "$code" -eq 0 ]; then mv "$made"/* "$folder"; else failed=1; fi
done
exit "$failed"
