"""Attention with e4m3 Q, K and V: hewn, cuDNN and FlashAttention-3 on the tensors of a Work (bench_fp8.py).

A way is made once a shape, outside of what is timed. `way.run(copy)` enqueues the work on the current stream
with that copy of the tensors and returns O as [token or sequence, query, head, dimension], in fp8 or bf16.
"""
import torch

import peers
import peers_hewn as hewn_c

E4M3 = torch.float8_e4m3fn


class Work:
    """Q, K, V of a shape, as many copies as L2 cannot hold. Tensors are [sequence, token, head, dimension]; packed
    [token, head, dimension]; K and V paged [page, token, head, dimension]. `make(size, seed)` draws fp32 values;
    what is stored times `scales` is near them."""

    def __init__(self, shape, span, make):
        self.shape, s = shape, shape
        self.q_lens, self.k_lens = list(s.q_lens), list(s.k_lens)
        self.q_max, self.k_max = max(self.q_lens), max(self.k_lens)
        batch = len(self.q_lens)
        as_i32 = lambda values: torch.tensor(values, dtype=torch.int32, device="cuda")
        ends = lambda lens: as_i32([sum(lens[:i]) for i in range(batch + 1)])
        self.cu_q, self.cu_k = ends(self.q_lens), ends(self.k_lens)
        self.lengths, self.q_lengths = as_i32(self.k_lens), as_i32(self.q_lens)
        q_rows, kv_rows = (batch, self.q_max), (batch, self.k_max)
        self.table = None
        if s.packed:
            q_rows, kv_rows = (sum(self.q_lens),), (sum(self.k_lens),)
        if s.page:
            self.width = -(-self.k_max // s.page)
            self.pages = batch * self.width
            kv_rows = (self.pages, s.page)
            order = torch.randperm(self.pages, generator=torch.Generator().manual_seed(7))
            self.table = order.to(torch.int32).view(batch, self.width).cuda()
        sizes = [(*q_rows, s.heads, s.dim)] + 2 * [(*kv_rows, s.kv_heads, s.dim)]
        one = sum(torch.Size(size).numel() for size in sizes)
        self.copies, self.scales = [], None
        for copy in range(max(1, -(-span // one))):
            stored = []
            for i, size in enumerate(sizes):
                stored.append(self.store(make(size, 3 * copy + i), i))
            self.copies.append(stored)
        self.outs = {dtype: torch.empty(*q_rows, s.heads, s.dim, dtype=dtype, device="cuda")
                     for dtype in (torch.bfloat16, E4M3)}
        self.o_scale = torch.ones(1, device="cuda")
        self.o_scale[0] = self.largest() / 224  # of outputs in e4m3, with room for rows not looked at

    def largest(self):
        """The largest value of O among a few rows."""
        b = self.k_lens.index(self.k_max)
        n = self.q_lens[b]
        ends = [slice(0, min(n, 512)), slice(max(0, n - 512), n)]
        heads = range(0, self.shape.heads, -(-self.shape.heads // 4))
        return max(self.reference(b, head, rows).abs().max() for rows in ends for head in heads)

    def store(self, values, which):
        """e4m3 of values / scale; the scale of the tensor takes its largest value to 448."""
        if self.scales is None:
            self.scales = torch.ones(3, device="cuda")
        if self.shape.scaled and not self.copies:
            self.scales[which] = values.abs().max() / 448
        return (values / self.scales[which]).to(E4M3)

    @property
    def flops(self):
        """4 * dimension a query head, query and key that it sees."""
        seen = 0
        for q, k in zip(self.q_lens, self.k_lens):
            first = k - q  # keys before the first query's own
            seen += sum(max(0, first + i + 1) for i in range(q)) if self.shape.causal else q * k
        return 4 * self.shape.dim * self.shape.heads * seen

    def sequence(self, b, copy=0):
        """Q, K, V of sequence b as they are stored, [token, head, dimension]."""
        q, k, v = self.copies[copy]
        n, m = self.q_lens[b], self.k_lens[b]
        if self.shape.packed:
            at, to = sum(self.q_lens[:b]), sum(self.k_lens[:b])
            q = q[at:at + n]
        else:
            q, to = q[b, :n], 0
        if self.shape.page:
            k, v = (x[self.table[b].long()].flatten(0, 1)[:m] for x in (k, v))
        elif self.shape.packed:
            k, v = (x[to:to + m] for x in (k, v))
        else:
            k, v = (x[b, :m] for x in (k, v))
        return q, k, v

    def output(self, o, b):
        """Sequence b of what a way returned, in fp32."""
        n = self.q_lens[b]
        at = sum(self.q_lens[:b])
        part = (o[at:at + n] if self.shape.packed else o[b, :n]).float()
        return part * self.o_scale if o.dtype == E4M3 else part

    def reference(self, b, head, rows, dtype=torch.float32):
        """Rows `rows` (a slice) of a query head of sequence b: [row, dimension]."""
        s = self.shape
        q, k, v = (x.to(dtype) * self.scales[i].to(dtype) for i, x in enumerate(self.sequence(b)))
        kv = head // (s.heads // s.kv_heads)
        score = q[rows, head] @ k[:, kv].T * s.dim**-0.5
        if s.causal:
            at = torch.arange(self.k_lens[b], device="cuda")[None] - (self.k_lens[b] - self.q_lens[b])
            score.masked_fill_(at > torch.arange(self.q_lens[b], device="cuda")[rows, None], -torch.inf)
        return torch.nan_to_num(score.softmax(-1)) @ v[:, kv]


class Hewn(peers.HewnPlan):
    def __init__(self, work, library, out=torch.bfloat16, **more):
        s, hewn, self.out = work.shape, library, work.outs[out]
        keys = hewn_c.PACKED if s.packed and not s.page else hewn_c.LENGTHS if s.page else 0
        source = hewn.new("attention_source", keys=keys, causal=int(s.causal), length=work.k_max,
                          tokens=sum(work.k_lens) if keys == hewn_c.PACKED else 0, page_size=s.page,
                          pages=work.pages if s.page else 0, table_width=work.width if s.page else 0)
        fields = {"in": hewn_c.E4M3, "out": hewn_c.BF16 if out == torch.bfloat16 else hewn_c.E4M3}
        desc = hewn.new("attention_desc", batch=len(work.q_lens), q_heads=s.heads, kv_heads=s.kv_heads,
                        qk_dim=s.dim, q_length=work.q_max, q_packed=int(s.packed),
                        q_tokens=sum(work.q_lens) if s.packed else 0, schedule=hewn_c.PREFILL,
                        source=hewn_c.pair(source), **fields, **more)
        self.plan = hewn.plan("attention", desc)
        self.space = torch.empty(max(self.plan.info.workspace, 16), dtype=torch.uint8, device="cuda")
        self.keep, self.args = [source], []
        at = [work.scales.data_ptr() + 4 * i for i in range(3)]
        lengths = {0: 0, hewn_c.LENGTHS: work.lengths.data_ptr(), hewn_c.PACKED: work.cu_k.data_ptr()}[keys]
        for q, k, v in work.copies:
            given = hewn.new("attention_source_args", k=k.data_ptr(), v=v.data_ptr(), lengths=lengths,
                             table=work.table.data_ptr() if s.page else 0)
            self.keep.append(given)
            self.args.append(hewn.new(
                "attention_args", q=q.data_ptr(), o=self.out.data_ptr(), source=hewn_c.pair(given),
                cu_q=work.cu_q.data_ptr() if s.packed else 0, q_scale=at[0], k_scale=at[1], v_scale=at[2],
                o_scale=work.o_scale.data_ptr() if out == E4M3 else 0,
                workspace=self.space.data_ptr() if self.plan.info.workspace else 0))


class FlashAttention3:
    def __init__(self, work):
        peers.operators("fa3_fp8.so")
        s, self.work, self.ops = work.shape, work, torch.ops.flash_attn_3
        self.out = work.outs[torch.bfloat16]
        batch = len(work.q_lens)
        descale = [work.scales[i].expand(batch, s.kv_heads) for i in range(3)]
        self.options = {"softmax_scale": s.dim**-0.5, "is_causal": s.causal, "num_splits": 1,
                        "q_descale": descale[0], "k_descale": descale[1], "v_descale": descale[2]}
        if s.packed:
            self.options |= {"cu_seqlens_q": work.cu_q, "max_seqlen_q": work.q_max}
            if not s.page:
                self.options |= {"cu_seqlens_k": work.cu_k, "max_seqlen_k": work.k_max}
        if s.page:
            self.options |= {"page_table": work.table, "seqused_k": work.lengths}

    def run(self, copy):
        return self.ops.fwd(*self.work.copies[copy], out=self.out, **self.options)[0]


class Cudnn:
    """cuDNN's SDPA for fp8 by its graph interface. P is scaled by 2^8, as the others do. On Hopper 9.19 has no other
    outputs than e4m3, and neither lengths nor pages."""

    def __init__(self, work):
        import cudnn
        s, self.cudnn, self.out = work.shape, cudnn, work.outs[E4M3]
        if s.packed or s.page:
            raise NotImplementedError("packed sequences or pages")
        self.handle = peers.once("cudnn", cudnn.create_handle)
        fp8, f32 = cudnn.data_type.FP8_E4M3, cudnn.data_type.FLOAT
        graph = cudnn.pygraph(io_data_type=fp8, intermediate_data_type=f32, compute_data_type=f32,
                              handle=self.handle)
        views = [[x.transpose(1, 2) for x in copy] for copy in work.copies]
        o_view = self.out.transpose(1, 2)

        def tensor(name, like, kind):
            return graph.tensor(name=name, dim=list(like.shape), stride=list(like.stride()), data_type=kind)

        one = torch.ones(1, 1, 1, 1, device="cuda")
        values = [work.scales[i].view(1, 1, 1, 1) for i in range(3)]
        values += [one / 256, one * 256, one / work.o_scale]
        names = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")
        scalars = {name: tensor(name, x, f32) for name, x in zip(names, values)}
        qkv = [tensor(n, x, fp8) for n, x in zip("qkv", views[0])]
        self.fixed = {scalars[name]: x for name, x in zip(names, values)}
        same = work.q_lens == work.k_lens
        more = {"use_causal_mask" if same else "use_causal_mask_bottom_right": True} if s.causal else {}
        o, _, amax_s, amax_o = graph.sdpa_fp8(*qkv, **scalars, attn_scale=s.dim**-0.5, generate_stats=False,
                                              name="sdpa", **more)
        o.set_output(True).set_dim(list(o_view.shape)).set_stride(list(o_view.stride())).set_data_type(fp8)
        self.fixed[o] = o_view
        for amax in (amax_s, amax_o):
            amax.set_output(True).set_dim([1, 1, 1, 1]).set_stride([1, 1, 1, 1]).set_data_type(f32)
            self.fixed[amax] = torch.zeros(1, 1, 1, 1, device="cuda")
        graph.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        self.views, self.qkv, self.graph = views, qkv, graph
        self.space = torch.empty(max(graph.get_workspace_size(), 16), dtype=torch.uint8, device="cuda")

    def run(self, copy):
        self.cudnn.set_stream(self.handle, peers.stream())
        self.graph.execute(self.fixed | dict(zip(self.qkv, self.views[copy])), self.space, handle=self.handle)
        return self.out


def ways(library):
    """`library` None: the peers alone. They never promote sums, so hewn does not either."""
    hewn = {"hewn": lambda work: Hewn(work, library, promotion=-1)} if library else {}
    return hewn | {"fa3": FlashAttention3, "cudnn": Cudnn}


def accuracy_ways(library):
    """Also hewn with outputs in e4m3, and with sums that are promoted (with dimension 256 only after 1 block)."""
    more = {}
    if library:
        more["hewn-e4m3"] = lambda work: Hewn(work, library, out=E4M3, promotion=-1)
        for n in (1, 4):
            more[f"promotion {n}"] = lambda work, n=n: Hewn(work, library, promotion=n)
    return ways(library) | more
