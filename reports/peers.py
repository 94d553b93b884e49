"""Times PyTorch's attention backends on this GPU: one JSON line an implementation and shape, as reports/README.md says.

usage: python3 peers.py [--shapes SHAPES.txt] > peers.jsonl      SHAPES.txt: lines "batch heads seqlen head_dim causal"
Random normal bf16 data; median of CUDA events; a buffer of four times the L2 is written between runs.
"""
import argparse, json, statistics, sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"fa2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "torch_naive": SDPBackend.MATH}


def shapes(path):
    if path:
        with open(path) as lines:
            return [tuple(map(int, line.split())) for line in lines if line.strip()]
    result = []
    for d, heads in ((64, 32), (128, 16), (256, 8)):
        for n in (2048, 4096, 8192, 16384):
            result += [(16384 // n, heads, n, d, causal) for causal in (0, 1)]
    return result


def median_seconds(work, scratch):
    for _ in range(3):
        work()
    samples = []
    for _ in range(15):
        scratch.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        samples.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(samples)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes")
    parser.add_argument("--implementations", default="fa2,cudnn")
    options = parser.parse_args()
    torch.manual_seed(1)
    properties = torch.cuda.get_device_properties(0)
    scratch = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    meta = {"gpu": properties.name, "versions": {"torch": torch.__version__, "cuda": torch.version.cuda,
                                                 "cudnn": torch.backends.cudnn.version()}}
    for batch, heads, n, d, causal in shapes(options.shapes):
        q, k, v = (torch.randn(batch, heads, n, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        flop = 4 * batch * heads * n * n * d / (2 if causal else 1)
        for name in options.implementations.split(","):
            with sdpa_kernel([BACKENDS[name]]):
                try:
                    seconds = median_seconds(
                        lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(causal)), scratch)
                except RuntimeError as error:
                    print(f"{name} {batch} {heads} {n} {d}: {error}", file=sys.stderr)
                    continue
            print(json.dumps({
                "implementation": name,
                "shape": {"batch": batch, "num_heads": heads, "num_kv_heads": heads, "seqlen_q": n, "seqlen_kv": n,
                          "head_dim": d, "head_dim_v": d, "dtype": "bf16", "mask": {"kind": "causal" if causal else "none"}},
                "pass": "forward", "median_s": seconds, "tflops": flop / seconds / 1e12, "meta": meta}), flush=True)


if __name__ == "__main__":
    main()
