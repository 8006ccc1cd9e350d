"""PyTorch on the simulated driver: tensors live on the simulated GPU, PyTorch's own operators run on the host.

The kernels of PyTorch are machine code, which a simulator of PTX cannot run. Its allocator, its streams and its copies
are calls of the runtime library, and they work. So this mode lets everything through that launches no kernel, and
computes the rest on copies in host memory. Kernels that others launch on these tensors run on the simulator.

    import host_torch; host_torch.start()
"""
import ctypes

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

# They launch nothing. Views are let through as well.
NATIVE = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_", "record_stream",
          "is_pinned", "_pin_memory", "pin_memory", "detach_", "is_same_size", "_has_same_storage_numel")
# Of 16-bit floats, a GPU computes them in fp32 and rounds at the end; PyTorch on a host does not.
WIDE = ("native_layer_norm", "native_layer_norm_backward")
_driver = ctypes.CDLL("libcuda.so.1")


def _copy(function, to, source, size):
    """One of the driver's two copies between host and device."""
    if size:
        code = getattr(_driver, function)(ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size))
        if code:
            raise RuntimeError(f"{function}: CUDA error {code}")


def _on_gpu(value):
    return isinstance(value, torch.Tensor) and value.device.type == "cuda"


class Mirror:
    """Host copies of the storages that one operator reads or writes; tensors that share a storage share its copy."""

    def __init__(self):
        self.storages = {}
        self.tensors = {}

    def host(self, tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in self.storages:
            copy = torch.UntypedStorage(storage.nbytes())
            _copy("cuMemcpyDtoH_v2", copy.data_ptr(), storage.data_ptr(), storage.nbytes())
            self.storages[storage._cdata] = copy
        view = torch.empty(0, dtype=tensor.dtype)
        view.set_(self.storages[storage._cdata], tensor.storage_offset(), tensor.size(), tensor.stride())
        if tensor.is_conj():
            view = view.conj()
        self.tensors[id(view)] = (view, tensor)
        return view

    def write_back(self, tensor):
        storage = tensor.untyped_storage()
        _copy("cuMemcpyHtoD_v2", storage.data_ptr(), self.storages[storage._cdata].data_ptr(), storage.nbytes())

    def device(self, result):
        """The argument that an operator returned, or a new tensor on the GPU."""
        if id(result) in self.tensors:
            return self.tensors[id(result)][1]
        if not torch.ops.aten.is_non_overlapping_and_dense(result):
            result = result.contiguous()
        out = torch.empty_strided(result.size(), result.stride(), dtype=result.dtype, device="cuda")
        _copy("cuMemcpyHtoD_v2", out.data_ptr(), result.data_ptr(), result.numel() * result.element_size())
        return out


def wide(func, args, kwargs):
    flat, form = tree_flatten((args, kwargs))
    narrow = [value.dtype for value in flat if isinstance(value, torch.Tensor) and value.dtype.itemsize == 2]
    flat = [value.float() if isinstance(value, torch.Tensor) and value.dtype.itemsize == 2 else value for value in flat]
    args, kwargs = tree_unflatten(flat, form)
    result = func(*args, **kwargs)
    if not narrow:
        return result
    keep = (1, 2) if func._schema.name == "aten::native_layer_norm" else ()  # mean and deviation stay fp32
    return tuple(value if index in keep or value is None else value.to(narrow[0]) for index, value in enumerate(result))


class HostOperators(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        flat, form = tree_flatten((args, kwargs or {}))
        wanted = (kwargs or {}).get("device")
        wanted = torch.device(wanted).type if wanted is not None else None
        inputs = [value for value in flat if _on_gpu(value)]
        name = func._schema.name.split("::")[-1]
        if (not inputs and wanted != "cuda") or name in NATIVE or func.is_view:
            return func(*args, **(kwargs or {}))
        torch.cuda.synchronize()  # it also makes the context current, in threads of autograd
        mirror = Mirror()
        flat = [mirror.host(value) if _on_gpu(value) else
                torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else
                None if isinstance(value, torch.Generator) and value.device.type == "cuda" else value for value in flat]
        host_args, host_kwargs = tree_unflatten(flat, form)
        result = wide(func, host_args, host_kwargs) if name in WIDE else func(*host_args, **host_kwargs)
        for index, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = args[index] if index < len(args) else (kwargs or {}).get(argument.name)
                for tensor in tree_flatten(given)[0]:
                    if _on_gpu(tensor):
                        mirror.write_back(tensor)
        if wanted == "cpu":
            return result
        flat, form = tree_flatten(result)
        return tree_unflatten([mirror.device(value) if isinstance(value, torch.Tensor) else value for value in flat],
                              form)


def start():
    mode = HostOperators()
    mode.__enter__()
    text = torch._tensor_str._str  # it turns modes off
    torch._tensor_str._str = lambda tensor, **more: text(tensor.detach().cpu() if _on_gpu(tensor) else tensor, **more)
    return mode


if __name__ == "__main__":  # python host_torch.py PROGRAM ARGUMENT…
    import runpy
    import sys

    sys.argv = sys.argv[1:]
    start()
    runpy.run_path(sys.argv[0], run_name="__main__")
