#!/usr/bin/env bash
# Pages of pictures, to be opened in a browser: of the lessons' shapes and of the saved runs. reports/pages.sh HBMSCOPE FOLDER
set -euo pipefail
hbmscope="${1:?usage: pages.sh path/to/hbmscope FOLDER}"
folder="${2:?usage: pages.sh path/to/hbmscope FOLDER}"
saved="$(dirname "$0")/h200"
mkdir -p "$folder"
for lesson in lesson-4k lesson-8k lesson-8k-model lesson-m-65536; do
  "$hbmscope" scenario run "$lesson" --json - | "$hbmscope" plot - --title "Scenario $lesson" -o "$folder/$lesson.html"
done
for runs in forward ladder orders; do
  "$hbmscope" plot "$saved/$runs.jsonl" --roofs "$saved/probe.json" --title "Saved runs: h200/$runs.jsonl" -o "$folder/$runs.html"
done
