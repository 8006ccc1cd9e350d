"""Ways to compute one attention on a GPU, each on the tensors of a Work (bench_peers.py).

A way is made once a shape, outside of what is timed: plans and graphs are made there. `way.run(copy)`
enqueues the work on the current stream with that copy of K and V, and returns O as [batch, query, head,
dimension]. A way that cannot do a shape raises while it is made, or when it runs first.
"""
import ctypes as c
import os

import torch

import peers_hewn as hewn_c

FOLDER = os.environ.get("PEERS", "/tmp/peers")
_shared = {}


def once(name, make):
    if name not in _shared:
        _shared[name] = make()
    return _shared[name]


def scratch():
    """FlashInfer's float workspace, one for all ways, because only one runs at a time."""
    return once("scratch", lambda: torch.zeros(768 << 20, dtype=torch.uint8, device="cuda"))


def stream():
    return torch.cuda.current_stream().cuda_stream


# ---- hewn


class HewnPlan:
    """A plan, the arguments of a run for each copy, and where the runs write."""

    def run(self, copy):
        self.plan.run(self.args[copy], stream())
        return self.out

    def close(self):
        torch.cuda.synchronize()
        self.plan.close()


class HewnAttention(HewnPlan):
    def __init__(self, work, library):
        self.work, s, hewn = work, work.shape, library
        self.out = work.empty_out()
        self.k_source = hewn.new(
            "attention_source", keys=hewn_c.LENGTHS, causal=int(s.queries > 1 and not s.tree),
            length=s.length, page_size=s.page, pages=work.pages, table_width=work.width,
            k_batch=0 if s.page else work.span * s.kv_heads * s.qk,
            v_batch=0 if s.page else work.span * s.kv_heads * s.v)
        fp8 = s.kv == "e4m3"
        fields = {"in": hewn_c.BF16, "out": hewn_c.BF16, "kv": hewn_c.E4M3 if fp8 else 0}
        desc = hewn.new("attention_desc", batch=s.batch, q_heads=s.heads, kv_heads=s.kv_heads, qk_dim=s.qk,
                        v_dim=s.v, q_length=s.queries, tree=int(s.tree),
                        source=hewn_c.pair(self.k_source), **fields)
        self.plan = hewn.plan("attention", desc)
        self.space = torch.empty(max(self.plan.info.workspace, 16), dtype=torch.uint8, device="cuda")
        self.sources, self.args = [], []
        for k, v in work.copies:
            at = hewn.new("attention_source_args", k=k.data_ptr(), v=v.data_ptr(),
                          lengths=work.lengths.data_ptr(),
                          table=work.table.data_ptr() if s.page else 0)
            self.sources.append(at)
            self.args.append(hewn.new(
                "attention_args", q=work.q.data_ptr(), o=self.out.data_ptr(), source=hewn_c.pair(at),
                workspace=self.space.data_ptr() if self.plan.info.workspace else 0,
                tree=work.tree_mask.data_ptr() if s.tree else 0))


class HewnMla(HewnPlan):
    def __init__(self, work, library):
        s = work.shape
        self.out = work.empty_out()
        desc = library.new("mla_desc", batch=s.batch, q_heads=s.heads, q_length=s.queries, length=s.length,
                           page_size=s.page, pages=work.pages, table_width=work.width, lengths=1,
                           causal=int(s.queries > 1), out=hewn_c.BF16, **{"in": hewn_c.BF16})
        self.plan = library.plan("mla", desc)
        self.space = torch.empty(max(self.plan.info.workspace, 16), dtype=torch.uint8, device="cuda")
        self.args = [library.new("mla_args", q=work.q.data_ptr(), kv=kv.data_ptr(), o=self.out.data_ptr(),
                                 lengths=work.lengths.data_ptr(), table=work.table.data_ptr(),
                                 workspace=self.space.data_ptr() if self.plan.info.workspace else 0)
                     for kv in work.copies]


# ---- cuDNN


class CudnnGraph:
    """cuDNN's SDPA by its graph interface: lengths of each sequence, and pages where there are any."""

    def __init__(self, work):
        import cudnn
        s, self.work, self.out = work.shape, work, work.empty_out()
        if s.tree or s.kv == "e4m3":
            raise NotImplementedError("tree masks, or bf16 queries with e4m3 keys")
        self.cudnn = cudnn
        self.handle = once("cudnn", cudnn.create_handle)
        bf16, i32 = cudnn.data_type.BFLOAT16, cudnn.data_type.INT32
        graph = cudnn.pygraph(io_data_type=bf16, intermediate_data_type=cudnn.data_type.FLOAT,
                              compute_data_type=cudnn.data_type.FLOAT, handle=self.handle)
        self.q, self.o = (x.transpose(1, 2) for x in (work.q, self.out))
        self.kv = [tuple(x.transpose(1, 2) for x in copy) for copy in work.copies]
        if not s.page:
            self.kv = [tuple(x[:, :, :s.length] for x in copy) for copy in self.kv]

        def tensor(name, like, kind):
            return graph.tensor(name=name, dim=list(like.shape), stride=list(like.stride()), data_type=kind)

        lens = work.lengths.view(-1, 1, 1, 1)
        q_lens = torch.full_like(lens, s.queries)
        q, k, v = (tensor(n, x, bf16) for n, x in zip("qkv", (self.q, *self.kv[0])))
        n_q, n_kv = tensor("n_q", q_lens, i32), tensor("n_kv", lens, i32)
        more, self.fixed = {}, {q: self.q, n_q: q_lens, n_kv: lens}
        if s.page:
            table = work.table.view(s.batch, 1, -1, 1)
            for name in ("k", "v"):
                t = tensor("table_" + name, table, i32)
                more[f"paged_attention_{name}_table"] = t
                self.fixed[t] = table
            more["paged_attention_max_seq_len_kv"] = s.length
        if s.queries > 1:
            more["use_causal_mask_bottom_right"] = True
        o, _ = graph.sdpa(q=q, k=k, v=v, name="sdpa", generate_stats=False, attn_scale=s.qk**-0.5,
                          use_padding_mask=True, seq_len_q=n_q, seq_len_kv=n_kv, **more)
        o.set_output(True).set_dim(list(self.o.shape)).set_stride(list(self.o.stride())).set_data_type(bf16)
        self.fixed[o] = self.o
        graph.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        self.k, self.v, self.graph = k, v, graph
        self.space = torch.empty(max(graph.get_workspace_size(), 16), dtype=torch.uint8, device="cuda")

    def run(self, copy):
        k, v = self.kv[copy]
        self.cudnn.set_stream(self.handle, stream())
        self.graph.execute({**self.fixed, self.k: k, self.v: v}, self.space, handle=self.handle)
        return self.out


class Sdpa:
    """cuDNN through PyTorch, for sequences of equal lengths without pages."""

    def __init__(self, work):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        s = work.shape
        if s.page or s.ragged or s.queries > 1 or s.kv == "e4m3":
            raise NotImplementedError("pages, unequal lengths or a mask")
        self.kernel = lambda: sdpa_kernel(SDPBackend.CUDNN_ATTENTION)
        self.q = work.q.transpose(1, 2)
        self.kv = [tuple(x[:, :s.length].transpose(1, 2) for x in copy) for copy in work.copies]

    def run(self, copy):
        with self.kernel():
            o = torch.nn.functional.scaled_dot_product_attention(self.q, *self.kv[copy], enable_gqa=True)
        return o.transpose(1, 2)


# ---- FlashInfer


class FlashInfer:
    """Paged attention; a cache without pages is a pool of pages of 16. The kernels are chosen by `backend`:
    "fa2" and "fa3" with tensor cores, "cuda" without."""

    def __init__(self, work, backend):
        s, self.work = work.shape, work
        if s.qk == 96:
            raise NotImplementedError("dimension 96: 0.7.2 faults")
        self.out = work.empty_out()
        page, table = work.as_pages()
        self.copies = [tuple(x.view(-1, page, *x.shape[2:]) for x in copy) for copy in work.copies]
        counts = [-(-n // page) for n in work.host_lengths]
        last = [n - (m - 1) * page if n else 0 for n, m in zip(work.host_lengths, counts)]
        kept = torch.arange(table.shape[1], device="cuda")[None] < torch.tensor(counts, device="cuda")[:, None]
        indptr = torch.tensor([0] + counts, dtype=torch.int64).cumsum(0).int()
        last = torch.tensor(last, dtype=torch.int32)
        kind = {"q_data_type": torch.bfloat16, "kv_data_type": work.copies[0][0].dtype}
        if backend == "cuda" and (s.queries > 1 or s.qk != s.v):
            raise NotImplementedError("one query and equal dimensions only")
        if backend == "fa3" and (s.kv == "e4m3" or s.tree or s.qk == 512):
            raise NotImplementedError("e4m3 keys, tree masks, dimension 512")
        if s.queries == 1 and s.qk == s.v:
            from flashinfer.decode import BatchDecodeWithPagedKVCacheWrapper as Wrapper
            self.wrapper = Wrapper(scratch(), "NHD", use_tensor_cores=backend != "cuda",
                                   backend="fa2" if backend == "cuda" else backend)
            self.wrapper.plan(indptr, table[kept], last, s.heads, s.kv_heads, s.qk, page, **kind)
            self.q, self.o = work.q.view(s.batch, s.heads, s.qk), self.out.view(s.batch, s.heads, s.v)
            return
        from flashinfer.prefill import BatchPrefillWithPagedKVCacheWrapper as Wrapper
        rows = torch.arange(s.batch + 1, dtype=torch.int32) * s.queries
        self.wrapper = Wrapper(scratch(), "NHD", backend=backend)
        mask = {"causal": True}
        if s.tree:
            bits, begins = work.packed_mask()
            mask = {"packed_custom_mask": bits}
        self.wrapper.plan(rows.cuda(), indptr.cuda(), table[kept], last.cuda(), s.heads, s.kv_heads, s.qk,
                          page, head_dim_vo=s.v, o_data_type=torch.bfloat16, **mask, **kind)
        if s.tree:
            self.wrapper._mask_indptr_buf = begins  # its own plan counts bits here, its kernels bytes
        self.q, self.o = work.q.view(-1, s.heads, s.qk), self.out.view(-1, s.heads, s.v)

    def run(self, copy):
        self.wrapper.run(self.q, self.copies[copy], out=self.o)
        return self.out


class FlashInferLib:
    """The same for decode, from fi.so: FlashInfer's plans and kernels behind C functions, no Python package. `cores`:
    its kernels without tensor cores. Of dimension D and e4m3 keys (E 1) or bf16 (E 0) fi.so has
        void *fi_plan_D_E(int cores, int batch, int heads, int kv_heads, int page,
            int *ends_h, int *rows_h, int *ends, int *rows, int *pages, int *last,
            void *floats, size_t, void *ints, void *ints_h, size_t, float scale, cudaStream_t)
        int fi_run_D_E(void *plan, void *q, void *k, void *v, void *o, cudaStream_t)
        void fi_free_D_E(void *plan)
    which call PrefillPlan or DecodePlan and BatchPrefillWithPagedKVCacheDispatched (CTA_TILE_Q 16, no mask) or
    BatchDecodeWithPagedKVCacheDispatched of its headers. For tree masks fi_tree.so has the same of the name `tree`,
    dimension 128 and bf16: MaskMode::kCustom, all query rows in place of `cores`, the masks and where they begin
    behind `o`."""

    def __init__(self, work, cores):
        s, self.work, self.out = work.shape, work, work.empty_out()
        name, file = (("tree", "fi_tree.so") if s.tree else (f"{s.qk}_{int(s.kv == 'e4m3')}", "fi.so"))
        if s.tree and (s.qk != 128 or cores) or s.queries > 1 and not s.tree:
            raise NotImplementedError("several queries")
        lib = once(file, lambda: c.CDLL(os.path.join(FOLDER, file)))
        if not hasattr(lib, "fi_plan_" + name):
            raise NotImplementedError("not in this build")
        if cores and (s.qk != s.v or s.qk > 256 or s.group not in (1, 2, 3, 4, 6, 8)):
            raise NotImplementedError("dimensions and groups without such kernels")
        plan, self.launch, self.free = (getattr(lib, f"fi_{x}_{name}") for x in ("plan", "run", "free"))
        plan.restype = c.c_void_p
        page, table = work.as_pages()
        counts = [-(-n // page) for n in work.host_lengths]
        last = torch.tensor([n - (m - 1) * page if n else 0 for n, m in zip(work.host_lengths, counts)])
        kept = torch.arange(table.shape[1], device="cuda")[None] < torch.tensor(counts, device="cuda")[:, None]
        ends = torch.tensor([0] + counts).cumsum(0).int()
        rows = torch.arange(s.batch + 1, dtype=torch.int32) * s.queries
        self.masks = work.packed_mask() if s.tree else ()
        self.kept = [ends, rows, ends.cuda(), rows.cuda(), table[kept].int().contiguous(), last.int().cuda()]
        ints = torch.zeros(32 << 20, dtype=torch.uint8, device="cuda")
        ints_h = once("fi ints", lambda: torch.zeros(32 << 20, dtype=torch.uint8).pin_memory())
        self.kept += [scratch(), ints, ints_h]
        at = [c.c_void_p(x.data_ptr()) for x in self.kept]
        self.plan = plan(s.batch * s.queries if s.tree else cores, s.batch, s.heads, s.kv_heads, page, *at[:7], c.c_size_t(scratch().numel()),
                         *at[7:], c.c_size_t(ints.numel()), c.c_float(s.qk**-0.5), c.c_void_p(stream()))
        torch.cuda.synchronize()
        if not self.plan:
            raise RuntimeError("no plan")

    def run(self, copy):
        at = [x.data_ptr() for x in (self.work.q, *self.work.copies[copy], self.out, *self.masks)]
        status = self.launch(*map(c.c_void_p, [self.plan, *at, stream()]))
        if status:
            raise RuntimeError(f"status {status}")
        return self.out

    def close(self):
        self.free(c.c_void_p(self.plan))


class FlashInferMla:
    def __init__(self, work, backend):
        from flashinfer.mla import BatchMLAPagedAttentionWrapper as Wrapper
        s = work.shape
        self.out = work.empty_out()
        self.o = self.out.view(-1, s.heads, 512)
        q = work.q.view(-1, s.heads, 576)
        self.q = q[..., :512], q[..., 512:]
        self.kv = [(kv[..., :512], kv[..., 512:]) for kv in work.copies]
        counts = torch.tensor([-(-n // s.page) for n in work.host_lengths], device="cuda")
        kept = torch.arange(work.width, device="cuda")[None] < counts[:, None]
        indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
        rows = torch.arange(s.batch + 1, dtype=torch.int32, device="cuda") * s.queries
        self.wrapper = Wrapper(scratch(), backend=backend)
        self.wrapper.plan(rows, indptr, work.table[kept], work.lengths, s.heads, 512, 64, s.page, s.queries > 1,
                          576**-0.5, torch.bfloat16, torch.bfloat16)

    def run(self, copy):
        self.wrapper.run(*self.q, *self.kv[copy], out=self.o)
        return self.out


# ---- FlashAttention-3, FlashMLA: operators of libraries that PyTorch loads


def operators(*files):
    for name in files:
        once(name, lambda: torch.ops.load_library(os.path.join(FOLDER, name)))


class FlashAttention3:
    """Number of splits by its own rule, from its scheduler's metadata made beforehand."""

    def __init__(self, work):
        s = work.shape
        if s.kv == "e4m3":
            raise NotImplementedError("bf16 queries with e4m3 keys")
        if s.tree:
            raise NotImplementedError("tree masks")
        more = s.qk == 96 or s.qk != s.v  # the other build has no such kernels, and this one no pages
        if more and s.page:
            raise NotImplementedError("pages at these dimensions (in the build that is here)")
        operators("fa3_more.so" if more else "fa3_paged.so")
        self.ops = torch.ops.fa3_fwd if more else torch.ops.flash_attn_3
        self.work, causal = work, s.queries > 1
        self.kv = work.copies if s.page else [tuple(x[:, :s.length] for x in kv) for kv in work.copies]
        self.options = {"seqused_k": work.lengths, "page_table": work.table if s.page else None,
                        "softmax_scale": s.qk**-0.5, "is_causal": causal, "num_splits": 0}
        reach = work.width * s.page if s.page else s.length
        self.options["scheduler_metadata"] = self.ops.get_scheduler_metadata(
            s.batch, s.queries, reach, s.heads, s.kv_heads, s.qk, s.v, torch.bfloat16, work.lengths,
            page_size=s.page or None, is_causal=causal, num_splits=0)

    def run(self, copy):
        return self.ops.fwd(self.work.q, *self.kv[copy], **self.options)[0]


class FlashMla:
    """Its plan is made by the first call and used again."""

    def __init__(self, work):
        operators("flash_mla.so")
        s, self.work = work.shape, work
        if s.page != 64:
            raise NotImplementedError("pages of 64 only")
        self.kv = [kv.view(-1, 64, 1, 576) for kv in work.copies]
        self.plan = (None, None)

    def run(self, copy):
        w = self.work
        o, _, *plan = torch.ops.flash_mla_legacy.dense_decode_fwd(
            w.q, self.kv[copy], 512, w.lengths, w.table, 576**-0.5, w.shape.queries > 1, *self.plan)
        if self.plan[0] is None:
            self.plan = tuple(plan)
        return o


def attention_ways(library):
    return {
        "hewn": lambda work: HewnAttention(work, library),
        "cudnn": CudnnGraph,
        "sdpa": Sdpa,
        "fa3": FlashAttention3,
        "fi-fa2": lambda work: FlashInfer(work, "fa2"),
        "fi-fa3": lambda work: FlashInfer(work, "fa3"),
        "fi-cuda": lambda work: FlashInfer(work, "cuda"),
        "fi-lib": lambda work: FlashInferLib(work, 0),
        "fi-lib-cores": lambda work: FlashInferLib(work, 1),
    }


def mla_ways(library):
    return {
        "hewn": lambda work: HewnMla(work, library),
        "flashmla": FlashMla,
        "fi-fa2": lambda work: FlashInferMla(work, "fa2"),
        "fi-fa3": lambda work: FlashInferMla(work, "fa3"),
    }


def library(path):
    return hewn_c.Hewn(path)
