# Predicted HBM bytes against N, from lines of results that differ in N alone:
#   hbmscope sweep --seqlen 1k:64k:x2 --engine sim -o rows.jsonl
#   gnuplot -c docs/plots/traffic.gp rows.jsonl traffic.svg
# gnuplot reads tables, not JSON: python3 makes one of N and bytes, for one algorithm at a time.
table(name) = "< python3 -c 'import json; [print(r[\"shape\"][\"seqlen_kv\"], t[\"total_bytes\"])" \
  ." for r in map(json.loads, open(\"".ARG1."\"))" \
  ." for a in r[\"algorithms\"] if a[\"name\"] == \"".name."\"" \
  ." for t in a[\"traffic\"] if t[\"boundary\"] == \"l2_hbm\" and t[\"provenance\"] == \"simulated\"]'"

set terminal svg size 800,500 noenhanced
set output ARG2
set logscale x 2
set logscale y 10
set format y "%.0s %cB"
set xlabel "N"
set ylabel "bytes through HBM"
set key left top
plot for [name in "naive flash_v1 flash_v2"] table(name) with linespoints title name
