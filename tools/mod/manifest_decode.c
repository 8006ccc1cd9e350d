/* What the manifests of the decode modules say of their problem: ptx/inc/decode.plan.h. */
#include "mod.h"

#include "../../ptx/inc/decode.plan.h"

static const char *kv_type(const struct module_id *id)
{
    return id->plan->decode->element != 2 ? "e4m3" : id->in;
}

void decode_write_problem(FILE *out, const struct module_id *id)
{
    const struct decode_shape *shape = id->plan->decode;

    fprintf(out, "  \"formula\": \"O = softmax(scale * Q * transpose(K) + mask) * V\",\n");
    fprintf(out,
            "  \"dtypes\": {\"q\": \"%s\", \"k\": \"%s\", \"p\": \"%s\", \"v\": \"%s\", "
            "\"sum\": \"f32\", \"o\": \"out_type\"},\n",
            id->in, kv_type(id), id->in, kv_type(id));
    fprintf(out, "  \"qk_dim\": %u,\n  \"v_dim\": %u,\n", shape->qk_dim, shape->v_dim);
}

/* `box`: its columns. */
static void write_map(FILE *out, const struct module_id *id, const char *name, const char *tensor,
                      unsigned columns, unsigned box, const char *end)
{
    const struct decode_shape *shape = id->plan->decode;

    fprintf(out,
            "    {\"name\": \"%s\", \"tensor\": \"%s\", \"dtype\": \"%s\", \"rank\": 4,\n"
            "     \"dims\": [%u, \"kv_len, tokens or page_size\", \"kv_heads\", "
            "\"batch, 1 or pages\"], \"box\": [%u, \"box\", 1, 1], "
            "\"element_strides\": [1, 1, 1, 1],\n"
            "     \"interleave\": \"none\", \"swizzle\": \"%uB\", \"out_of_bounds\": \"zero\"}%s\n",
            name, tensor, kv_type(id), columns, box, shape->row_bytes, end);
}

void decode_write_shape(FILE *out, const struct module_id *id)
{
    const struct decode_shape *shape = id->plan->decode;
    const unsigned chunk = shape->row_bytes / (shape->element == 2 ? 2 : 1);

    fprintf(out, "  \"tensor_maps\": [\n");
    fprintf(out,
            "    {\"name\": \"%s\", \"tensor\": \"Q\", \"dtype\": \"%s\", \"rank\": 5,\n"
            "     \"dims\": [%u, \"group\", \"kv_heads\", \"q_tokens\", \"batch or 1\"], "
            "\"box\": [%d, \"pack\", 1, \"tokens\", 1], \"element_strides\": [1, 1, 1, 1, 1],\n"
            "     \"interleave\": \"none\", \"swizzle\": \"128B\", \"out_of_bounds\": \"zero\"},\n",
            id->plan->maps[0], id->in, shape->qk_dim, SWIZZLE_BYTES / 2);
    for (const char *const *map = &id->plan->maps[1]; *map; map++) {
        const size_t i = (size_t)(map - id->plan->maps);
        const unsigned columns = i % 2 ? shape->qk_dim : shape->v_dim;
        write_map(out, id, *map, i % 2 ? "K" : "V", columns,
                  i < DECODE_MAP_COUNT ? chunk : columns % chunk, map[1] ? "," : "");
    }
    fprintf(out,
            "  ],\n  \"tile\": {\"rows\": %u, \"keys\": %d},\n"
            "  \"slots\": %u,\n"
            "  \"grid\": [\"sm_count * %u\", \"1\", \"1\"],\n",
            shape->tile_rows, DECODE_BLOCK, shape->slots, id->plan->ctas_per_sm);
}

void decode_write_limits(FILE *out, const struct module_id *id)
{
    (void)id;
    fprintf(out,
            "  \"limits\": {\"units\": [0, %d], \"kv_len\": [0, %d], \"q_len\": [1, %d], "
            "\"page_size\": [1, 256], \"address_multiple\": 16, \"stride_multiple\": 16},\n",
            SPLIT_MAX_UNITS, DECODE_UNBOUNDED - 1, DECODE_UNBOUNDED - 1);
}
