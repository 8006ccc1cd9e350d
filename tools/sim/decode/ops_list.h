/* Every family's rows (no include guard: decode/optable.c and ops/table.c read it). */
#include "decode/ops_arith.def"  /* integer, float, logic, compare, select, convert: op_int.c op_logic.c op_mov.c op_setp.c op_float.c op_math.c op_cvt.c */
#include "decode/ops_memory.def" /* ld st atom red cvta mapa fences: op_mem.c op_atom.c op_fence.c op_mov.c */
#include "decode/ops_control.def" /* bra exit ret trap, warp collectives, named and cluster barriers: op_ctrl.c op_warp.c op_bar.c */
#include "decode/ops_async.def"  /* mbarrier, cp.async, bulk and tensor copies: op_mbar.c op_copy.c op_tma.c */
#include "decode/ops_tensor.def" /* wgmma, tcgen05, ldmatrix stmatrix: op_wgmma.c op_tcgen05_*.c op_matrix.c */
