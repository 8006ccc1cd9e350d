"""cuDNN's attention at the rows of tests/bench_attention.c, through PyTorch: a line `dim causal length
batch microseconds` each, medians over single launches, random data, buffers rotated past L2."""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
print("#", torch.cuda.get_device_name(), "PyTorch", torch.__version__, "cuDNN", torch.backends.cudnn.version())
for dim, heads in ((64, 32), (128, 16), (256, 8)):
    for causal in (0, 1):
        for length, batch in ((1024, 16), (4096, 4), (16384, 1)):
            size = 8 * batch * heads * length * dim
            sets = [[torch.randn(batch, heads, length, dim, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
                    for _ in range(min(16, int(200e6 / size) + 1))]
            flop = 4 * batch * heads * length * length * dim * (0.5 if causal else 1)
            count = min(200, max(15, int(0.06 / (flop / 5e14))))
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                run = lambda i: F.scaled_dot_product_attention(*sets[i % len(sets)], is_causal=bool(causal))
                for i in range(count // 4 + 2):
                    run(i)
                events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
                torch.cuda.synchronize()
                for i in range(count):
                    events[i].record()
                    run(i)
                events[count].record()
                torch.cuda.synchronize()
            times = sorted(a.elapsed_time(b) for a, b in zip(events, events[1:]))
            print(dim, causal, length, batch, 1e3 * times[count // 2], flush=True)
            del sets
