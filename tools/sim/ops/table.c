/* The handlers of the instruction table, and what they add to the machine. */
#include "ops/table.h"
#include "async/async.h"
#include "async/mbar.h"
#include "ops/tcgen05.h"

#define OP(name, mods, args, min_sm, arch, flags, traits, bind, doc) bind_fn bind;
#include "decode/ops_list.h"
#undef OP

#define OP(name, mods, args, min_sm, arch, flags, traits, bind, doc) bind,
bind_fn *const op_binders[] = {
#include "decode/ops_list.h"
};
#undef OP

const struct machine_hooks op_hooks = {.warp_new = warp_async_new,
                                       .warp_reset = warp_async_reset,
                                       .warp_free = warp_async_free,
                                       .mbars_new = mbar_table_new,
                                       .mbars_reset = mbar_table_reset,
                                       .mbars_free = mbar_table_free,
                                       .cta_retire = tcgen05_retire,
                                       .advance = async_advance,
                                       .next = async_next,
                                       .offers = async_offers,
                                       .run = async_run,
                                       .group_close = async_heap_free,
                                       .awaits_load = tcgen05_awaits_load};
