"""PyTorch's grouped product of bf16 on the groups that bench_grouped --bf16 printed.

    grouped_torch.py FILE

FILE is that output. torch._grouped_mm multiplies rows that follow one another without gaps. A time is that of
a launch in a graph of several, least of three; the ratio is PyTorch's time over ours.
"""
import math
import re
import sys

import torch

LAUNCHES = 8


def time_of(run):
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            run()
    best = math.inf
    for _ in range(4):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / LAUNCHES * 1e3)
    return best


def main():
    logs, least, rows = [], math.inf, []
    for line in open(sys.argv[1]):
        if line.startswith("rows: "):
            rows = [int(word) for word in line.split()[1:]]
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 9 or not re.match(r"\d+ x \d+$", cells[2]):
            continue
        n, k = (int(word) for word in cells[3].split(" x "))
        ours, chosen = float(cells[5]), cells[8]
        ends = torch.tensor(rows, device="cuda").cumsum(0).to(torch.int32)
        a = torch.randn(sum(rows), k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(len(rows), n, k, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
        theirs = time_of(lambda: torch._grouped_mm(a, b, offs=ends))
        logs.append(math.log(theirs / ours))
        least = min(least, theirs / ours)
        print(f"| {cells[1]} | {cells[2]} | {n} x {k} | {ours:.1f} {chosen} | {theirs:.1f} | "
              f"{theirs / ours:.3f} |", flush=True)
        del a, b
    print(f"PyTorch {torch.__version__}, {len(logs)} rows: {math.exp(sum(logs) / len(logs)):.3f}, "
          f"least {least:.3f}")


main()
