"""Logits of a lightning indexer, hewn beside DeepGEMM: decode over pages of 64 keys with their scales inside, and
prefill over plain keys.

bench_peers.py --indexer draws on this. Every query sees all keys of its sequence, so that no element of the
output is left unwritten. `copies` holds caches, of more bytes than L2 together.
"""
import ctypes
import math
import os

import torch

import peers
import peers_hewn as hewn_c

L2_SPAN = 400 << 20
PAGE, DIM = 64, 128
IN_PAGES = 1


class Work:
    def __init__(self, shape, pool):
        s, self.shape, self.latent = shape, shape, False
        self.host_lengths = [s.length] * s.batch
        self.bytes = s.batch * s.length * (DIM + 4)
        count = min(1 + L2_SPAN // self.bytes, pool // self.bytes) if s.page else 1
        if not count:
            raise MemoryError("more than the pool")
        torch.manual_seed(1)
        self.width = s.length // PAGE
        self.q = self.random(s.batch, s.queries, s.heads, DIM).to(torch.float8_e4m3fn)
        self.weights = self.random(s.batch * s.queries, s.heads)
        self.lengths = torch.full((s.batch, s.queries), s.length, dtype=torch.int32, device="cuda")
        order = torch.randperm(s.batch * self.width, device="cuda", dtype=torch.int32)
        self.table = order.view(s.batch, self.width).contiguous()
        self.copies = [self.pages() if s.page else self.plain() for _ in range(count)]

    @staticmethod
    def random(*size):
        return torch.randn(*size, device="cuda")

    def plain(self):
        s = self.shape
        return self.random(s.length, DIM).to(torch.float8_e4m3fn), torch.rand(s.length, device="cuda") + 0.5

    def pages(self):
        """A page's keys, then a scale for each."""
        count = len(self.table) * self.width
        pool = torch.empty(count, PAGE * (DIM + 4), dtype=torch.uint8, device="cuda")
        for part in pool.split(4096):
            keys = self.random(len(part), PAGE * DIM).to(torch.float8_e4m3fn)
            part[:, :PAGE * DIM] = keys.view(torch.uint8)
            part[:, PAGE * DIM:] = (torch.rand(len(part), PAGE, device="cuda") + 0.5).view(torch.uint8)
        return pool.view(count, PAGE, 1, DIM + 4)

    def keys(self, b):
        """fp32 keys and scales of sequence b."""
        if not self.shape.page:
            keys, scale = self.copies[0]
            return keys.float(), scale
        pages = self.copies[0][self.table[b].long()].flatten(1)
        keys = pages[:, :PAGE * DIM].contiguous().view(torch.float8_e4m3fn).view(-1, DIM).float()
        return keys, pages[:, PAGE * DIM:].contiguous().view(torch.float32).flatten()

    def empty_out(self):
        s = self.shape
        return torch.full((s.batch, s.queries, s.length), math.nan, device="cuda")

    def reference(self, b):
        """[query, key]; a head after the other, for the room."""
        s = self.shape
        keys, scale = self.keys(b)
        weights = self.weights.view(s.batch, s.queries, s.heads)[b]
        out = torch.zeros(s.queries, s.length, device="cuda")
        for h in range(s.heads):
            out += (self.q[b, :, h].float() @ keys.T).relu_() * weights[:, h, None]
        return out * scale


class Hewn(peers.HewnPlan):
    def __init__(self, work, library):
        s, self.out = work.shape, work.empty_out()
        paged = {"page_size": PAGE, "pages": work.table.numel(), "table_width": work.width, "scales": IN_PAGES}
        desc = library.new("indexer_desc", batch=s.batch, queries=s.queries, heads=s.heads, dim=DIM, length=s.length,
                           ends=1, **(paged if s.page else {}), **{"in": hewn_c.E4M3})
        self.plan = library.plan("indexer", desc)
        self.args = [library.new("indexer_args", q=work.q.data_ptr(), weights=work.weights.data_ptr(),
                                 out=self.out.data_ptr(), ends=work.lengths.data_ptr(), **self.cache(work, copy))
                     for copy in work.copies]

    @staticmethod
    def cache(work, copy):
        if work.shape.page:
            return {"k": copy.data_ptr(), "table": work.table.data_ptr()}
        return {"k": copy[0].data_ptr(), "k_scale": copy[1].data_ptr()}


class DeepGemm:
    """Its schedule is made once, outside of what is timed."""

    def __init__(self, work):
        self.library = __import__("deep_gemm")
        self.work, s = work, work.shape
        self.starts = torch.zeros(s.queries, dtype=torch.int32, device="cuda")
        self.ends = work.lengths.view(-1)
        if s.page:
            sms = torch.cuda.get_device_properties(0).multi_processor_count
            self.plan = self.library.get_paged_mqa_logits_metadata(work.lengths, PAGE, sms)

    def run(self, copy):
        w, s = self.work, self.work.shape
        if s.page:
            out = self.library.fp8_paged_mqa_logits(w.q, w.copies[copy], w.weights, w.lengths, w.table, self.plan,
                                                    s.length, clean_logits=False)
        else:
            out = self.library.fp8_mqa_logits(w.q[0], w.copies[copy], w.weights, self.starts, self.ends,
                                              clean_logits=False)
        return out.view(s.batch, s.queries, -1)[..., :s.length]


class DeepGemmLib:
    """The same from dg.so: DeepGEMM's kernels behind C functions, in the configurations that it chooses itself.
        int dg_plan(int batch, int queries, int *lengths, int *plan, cudaStream_t)
        int dg_paged(int heads, int queries, int batch, int pages, int width, int stride, void *q, void *k,
            void *weights, int *lengths, int *table, int *plan, float *out, cudaStream_t)
        int dg_prefill(int heads, int queries, int keys, int stride, void *q, void *k, void *k_scale,
            void *weights, int *starts, int *ends, float *out, cudaStream_t)"""

    def __init__(self, work):
        self.library = peers.once("dg.so", lambda: ctypes.CDLL(os.path.join(peers.FOLDER, "dg.so")))
        self.work, s = work, work.shape
        self.starts = torch.zeros(s.queries, dtype=torch.int32, device="cuda")
        self.plan = torch.zeros(133, 2, dtype=torch.int32, device="cuda")
        self.stride = -(-(s.length + (0 if s.page else 256)) // 256) * 256
        self.out = torch.full((s.batch * s.queries, self.stride), math.nan, device="cuda")
        if s.page:
            self.call("dg_plan", s.batch, s.queries, work.lengths, self.plan)

    def call(self, name, *args):
        args = [ctypes.c_void_p(x.data_ptr()) if torch.is_tensor(x) else x for x in args]
        status = getattr(self.library, name)(*args, ctypes.c_void_p(peers.stream()))
        if status:
            raise RuntimeError(f"{name}: status {status}")

    def run(self, copy):
        w, s = self.work, self.work.shape
        if s.page:
            self.call("dg_paged", s.heads, s.queries, s.batch, w.table.numel(), w.width, self.stride, w.q,
                      w.copies[copy], w.weights, w.lengths, w.table, self.plan, self.out)
        else:
            self.call("dg_prefill", s.heads, s.queries, s.length, self.stride, w.q, *w.copies[copy], w.weights,
                      self.starts, w.lengths, self.out)
        return self.out.view(s.batch, s.queries, -1)[..., :s.length]


def ways(library):
    return {"hewn": lambda work: Hewn(work, library), "deepgemm": DeepGemm, "dg-lib": DeepGemmLib}
