"""MLA by lists, hewn beside FlashMLA: decode from packed records of 656 bytes, and prefill from bf16 rows.

bench_peers.py --sparse draws on this. A Work holds one cache and several sets of lists, which together name more
bytes than L2 holds; the graphs go round among the sets. FlashMLA takes 64 or 128 heads, so 8 and 16 heads are
padded to 64 for it, as its users do.
"""
import math

import torch

import peers
import peers_hewn as hewn_c

L2_SPAN = 400 << 20
SCALE = 576**-0.5


class Work:
    """Q, the cache and sets of lists. `copies` holds the sets."""

    def __init__(self, shape, pool):
        s, self.shape, self.latent = shape, shape, True
        row = 656 if s.records else 1152
        self.host_lengths = [s.topk] * s.batch
        self.bytes = s.batch * s.queries * s.topk * row
        if s.rows * row > pool:
            raise MemoryError("more than the pool")
        torch.manual_seed(1)
        self.wide = torch.empty(s.rows, 576, dtype=torch.bfloat16, device="cuda").normal_()
        self.kv = self.packed() if s.records else self.wide
        self.q = torch.randn(s.batch, s.queries, s.heads, 576, device="cuda").bfloat16()
        self.copies = [self.lists() for _ in range(1 + L2_SPAN // self.bytes)]

    def packed(self):
        """The records, and `wide` as they read: 512 e4m3 with a scale for each 128, then 64 bf16."""
        parts = self.wide[:, :512].float().view(-1, 4, 128)
        scale = parts.abs().amax(-1, keepdim=True) / 448
        coded = (parts / scale).to(torch.float8_e4m3fn)
        self.wide[:, :512] = (coded.float() * scale).view(-1, 512).bfloat16()
        records = torch.empty(len(self.wide), 656, dtype=torch.uint8, device="cuda")
        records[:, :512] = coded.view(torch.uint8).view(-1, 512)
        records[:, 512:528] = scale.view(-1, 4).contiguous().view(torch.uint8)
        records[:, 528:] = self.wide[:, 512:].contiguous().view(torch.uint8)
        return records

    def lists(self):
        """Rows of the sequence's own part of the cache, none twice in a list."""
        s = self.shape
        part = s.rows // s.batch
        made = [torch.rand(min(512, s.queries), part, device="cuda").topk(s.topk).indices.int() + b * part
                for b in range(s.batch)]
        rows = [x.repeat(-(-s.queries // len(x)), 1)[:s.queries] for x in made]
        return torch.stack(rows).contiguous()

    def empty_out(self):
        s = self.shape
        return torch.full((s.batch, s.queries, s.heads, 512), math.nan, dtype=torch.bfloat16, device="cuda")

    def reference(self, b):
        parts = []
        for q, rows in zip(self.q[b].split(64), self.copies[0][b].long().split(64)):
            keys = self.wide[rows].float()
            score = torch.einsum("qhd,qkd->qhk", q.float(), keys) * SCALE
            parts.append(torch.einsum("qhk,qkd->qhd", score.softmax(-1), keys[..., :512]))
        return torch.cat(parts)


class Hewn(peers.HewnPlan):
    def __init__(self, work, library):
        s, self.out = work.shape, work.empty_out()
        paged = {"page_size": 64, "pages": s.rows // 64} if s.records else {"length": s.rows}
        desc = library.new("mla_desc", batch=s.batch, q_heads=s.heads, q_length=s.queries, out=hewn_c.BF16,
                           cache=int(s.records), list_width=s.topk, **paged, **{"in": hewn_c.BF16})
        self.plan = library.plan("mla", desc)
        self.space = torch.empty(max(self.plan.info.workspace, 16), dtype=torch.uint8, device="cuda")
        self.args = [library.new("mla_args", q=work.q.data_ptr(), kv=work.kv.data_ptr(), o=self.out.data_ptr(),
                                 lists=lists.data_ptr(),
                                 workspace=self.space.data_ptr() if self.plan.info.workspace else 0)
                     for lists in work.copies]


class FlashMla:
    """Its plan is made by the first call and used again."""

    def __init__(self, work):
        peers.operators("flash_mla.so")
        self.work, s = work, work.shape
        self.ops, self.plan = torch.ops.flash_mla_legacy, (None, None)
        pad = max(64 - s.heads, 0)
        self.q = torch.nn.functional.pad(work.q, (0, 0, 0, pad)) if pad else work.q
        self.kv = work.kv.view(-1, 64, 1, 656) if s.records else work.kv.view(-1, 1, 576)
        if not s.records:
            self.lists = [x.view(s.queries, 1, s.topk) for x in work.copies]

    def run(self, copy):
        w = self.work
        if not w.shape.records:
            return self.ops.sparse_prefill_fwd(self.q[0], self.kv, self.lists[copy], SCALE, 512, None, None,
                                               False, False)[0][None]
        o, _, *plan = self.ops.sparse_decode_fwd(self.q, self.kv, w.copies[copy], None, None, *self.plan, None,
                                                 None, None, 512, SCALE, None)
        if self.plan[0] is None:
            self.plan = tuple(plan)
        return o[:, :, :w.shape.heads]


def ways(library):
    return {"hewn": lambda work: Hewn(work, library), "flashmla": FlashMla}
