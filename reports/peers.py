"""Times attention kernels against each other on this GPU: one JSON line an implementation and shape, as
reports/README.md says.

usage: python3 peers.py [--bridge libhbmscope_bridge.so] [--shapes SHAPES.txt] [--implementations NAMES] [--in-a-row N]

PyTorch's backends (fa2, cudnn, torch_naive) and, with --bridge, hbmscope's own kernels run in one process on the same
random normal bf16 tensors. SHAPES.txt has lines "batch heads seqlen head_dim causal". Implementations take turns for
several rounds, so that none meets a cooler GPU: a round is a pause, three runs to warm up and nine timed by CUDA events,
a buffer of four times the L2 written before each. With --in-a-row it is N runs and then N more, timed together and with
nothing between them: long enough for the power limit to set the clock. median_s is the median of all timed runs; a kernel
whose output is not what cuDNN's is, within bf16, is not timed.
"""
import argparse, ctypes, json, statistics, sys, time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"fa2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "torch_naive": SDPBackend.MATH}
ROUNDS, WARM_UP, RUNS, PAUSE_S = 3, 3, 9, 0.1
AHEAD_CYCLES = 400_000  # the GPU waits so long that the host has started the work before the clock does: kernels alone count


def shapes(path):
    if path:
        with open(path) as lines:
            return [tuple(map(int, line.split())) for line in lines if line.strip()]
    result = []
    for d, heads in ((64, 32), (128, 16), (256, 8)):
        for n in (512, 1024, 2048, 4096, 8192, 16384):
            result += [(16384 // n, heads, n, d, causal) for causal in (0, 1)]
    return result


def pipelines(library):
    """hbmscope's kernels by name, and what its tile search compares: functions that start one."""
    library.hbmscope_pipeline.restype = ctypes.c_char_p
    started = {}
    for number in range(100):
        name = library.hbmscope_pipeline(number)
        if name is None:
            break

        def start(q, k, v, o, lse, causal, number=number):
            batch, heads, seqlen, head_dim = q.shape
            pointers = [ctypes.c_void_p(t.data_ptr()) for t in (q, k, v, o, lse)]
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            return library.hbmscope_start(number, batch, heads, seqlen, head_dim, causal, *pointers, stream)

        started[name.decode()] = start
    return started


def timed(work, scratch):
    for _ in range(WARM_UP):
        work()
    samples = []
    for _ in range(RUNS):
        scratch.zero_()
        torch.cuda._sleep(AHEAD_CYCLES)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        samples.append(begin.elapsed_time(end) / 1e3)
    return samples


def timed_in_a_row(work, launches):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for event in (begin, end):
        for _ in range(launches):
            work()
        event.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) / 1e3 / launches]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes")
    parser.add_argument("--bridge")
    parser.add_argument("--implementations", default="fa2,cudnn")
    parser.add_argument("--in-a-row", type=int, default=1)
    options = parser.parse_args()
    library = ctypes.CDLL(options.bridge) if options.bridge else None
    own = pipelines(library) if library else {}
    torch.manual_seed(1)
    properties = torch.cuda.get_device_properties(0)
    scratch = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    meta = {"gpu": properties.name, "versions": {"torch": torch.__version__, "cuda": torch.version.cuda,
                                                 "cudnn": torch.backends.cudnn.version()}}
    if library:
        library.hbmscope_revision.restype = ctypes.c_char_p
        meta["git"] = library.hbmscope_revision().decode()
    for batch, heads, n, d, causal in shapes(options.shapes):
        q, k, v = (torch.randn(batch, heads, n, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        o, lse = torch.empty_like(q), torch.empty(batch, heads, n, device="cuda")
        flop = 4 * batch * heads * n * n * d / (2 if causal else 1)

        def torch_backend(backend):
            with sdpa_kernel([backend]):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(causal))

        expected = torch_backend(SDPBackend.CUDNN_ATTENTION).float()
        work = {}
        for name in options.implementations.split(","):
            if name in BACKENDS:
                work[name] = lambda backend=BACKENDS[name]: torch_backend(backend)
                continue
            start = lambda name=name: own[name](q, k, v, o, lse, causal)
            o.fill_(float("nan"))
            refused = start()
            torch.cuda.synchronize()
            error = (o.float() - expected).abs().max().item()
            if refused or not error < 0.02:
                print(f"{name} {batch} {heads} {n} {d} {causal}: "
                      + (f"refused ({refused})" if refused else f"differs from cuDNN by {error}"), file=sys.stderr)
                continue
            work[name] = start
        samples = {name: [] for name in work}
        for _ in range(ROUNDS):
            for name, run in work.items():
                time.sleep(PAUSE_S)
                samples[name] += timed_in_a_row(run, options.in_a_row) if options.in_a_row > 1 else timed(run, scratch)
        for name, seconds in samples.items():
            median = statistics.median(seconds)
            print(json.dumps({
                "implementation": name,
                "shape": {"batch": batch, "num_heads": heads, "num_kv_heads": heads, "seqlen_q": n, "seqlen_kv": n,
                          "head_dim": d, "head_dim_v": d, "dtype": "bf16", "mask": {"kind": "causal" if causal else "none"}},
                "pass": "forward", "in_a_row": options.in_a_row, "median_s": median, "samples_s": seconds, "tflops": flop / median / 1e12,
                "meta": meta}), flush=True)


if __name__ == "__main__":
    main()
