/* The part of a checkpoint that a rank computes, where the weights are split. */
#ifndef ENGINE_RANKS_SHARD_H
#define ENGINE_RANKS_SHARD_H

#include "checkpoint.h"
#include "ranks.h"

struct shard {
    struct checkpoint checkpoint; /* heads and columns of the rank's; NULL as weights */
    struct tensor *parts;
    size_t used; /* of parts */
    bool splits; /* the layers' experts are the shard's own */
};

/*
 * By tensor: rank r has heads r * heads / count and on, the heads of K and V that these read, which
 * several ranks may share, and as many columns of the feed-forward, or of every expert. Embedding, norms,
 * routers, head, and what latent attention makes its vectors of, stay whole. The output's bias is
 * rank 0's, because the ranks' outputs are added. By context: all. The tensors' data stay `whole`'s. 0,
 * or -1 after a message that names the number that cannot be split.
 */
int shard_open(const struct checkpoint *whole, const struct ranks *r, struct shard *out,
               struct problem *p);
void shard_close(struct shard *s);

#endif
