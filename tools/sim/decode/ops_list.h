/* Every family's rows (no include guard: decode/optable.c and ops/table.c read it). */
#include "decode/ops_arith.def"   /* integer, float, video, logic, compare, select, convert */
#include "decode/ops_memory.def"  /* loads, stores, atomics, address conversion, fences, cache hints */
#include "decode/ops_control.def" /* branches, calls, warp collectives, named and cluster barriers */
#include "decode/ops_async.def"   /* mbarriers, copies, tensor maps, cluster launch control */
#include "decode/ops_texture.def" /* textures and surfaces */
#include "decode/ops_tensor.def"  /* wgmma, tcgen05, warp-level matrices */
