/* What the manifests of the attention modules say of their problem: ptx/inc/attention.plan.h. */
#include "mod.h"

#include "../../ptx/inc/attention.plan.h"

#include <string.h>

void attention_write_problem(FILE *out, const struct module_id *id)
{
    const struct attention_shape *shape = id->plan->attention;

    if (!shape) {
        fprintf(out, "  \"formula\": \"O = sum_s exp(lse_s - M) * O_s / "
                     "(sum_s exp(lse_s - M) + exp(sink - M)), M = max_s lse_s\",\n");
        fprintf(out,
                "  \"dtypes\": {\"part_o\": \"f32\", \"sum\": \"f32\", \"o\": \"out_type\"},\n");
        return;
    }
    fprintf(out, "  \"formula\": \"O = softmax(scale * Q * transpose(K) + mask) * V\",\n");
    fprintf(out,
            "  \"dtypes\": {\"q\": \"%s\", \"k\": \"%s\", \"p\": \"%s\", \"v\": \"%s\", "
            "\"sum\": \"f32\", \"o\": \"out_type\"},\n",
            id->in, id->in, id->in, id->in);
    fprintf(out, "  \"qk_dim\": %u,\n  \"v_dim\": %u,\n", shape->qk_dim, shape->v_dim);
}

/* `rest`: all of dims and box but dimension 0. Tensor maps have no e4m3: its bytes are plain. */
static void write_map(FILE *out, const struct module_id *id, const char *name, const char *tensor,
                      unsigned rank, unsigned columns, const char *dims, const char *box)
{
    const struct attention_shape *shape = id->plan->attention;

    fprintf(
        out,
        "    {\"name\": \"%s\", \"tensor\": \"%s\", \"dtype\": \"%s\", \"rank\": %u,\n"
        "     \"dims\": [%u, %s], \"box\": [%u, %s], \"element_strides\": [1, 1, 1, 1%s],\n"
        "     \"interleave\": \"none\", \"swizzle\": \"128B\", \"out_of_bounds\": \"zero\"}%s\n",
        name, tensor, shape->element == 1 ? "u8" : id->in, rank, columns, dims,
        shape->row_bytes / shape->element, box, rank == 5 ? ", 1" : "",
        name == id->plan->maps[ATTENTION_MAP_COUNT - 1] ? "" : ",");
}

static void write_maps(FILE *out, const struct module_id *id)
{
    static const char *const tensors[] = {"Q", "K", "V", "K", "V"};
    const struct attention_shape *shape = id->plan->attention;
    const unsigned chunk = shape->row_bytes / shape->element;
    const int octets = strstr(id->name, "_pages") != NULL; /* boxes are groups of 8 rows */

    fprintf(out, "  \"tensor_maps\": [\n");
    write_map(out, id, id->plan->maps[0], "Q", 5, shape->qk_dim,
              "\"group\", \"kv_heads\", \"q_tokens\", \"batch or 1\"",
              "\"pack\", 1, \"tokens\", 1");
    for (unsigned i = 1; i < ATTENTION_MAP_COUNT; i++) {
        char dims[160], box[64];
        unsigned source = i > 2, is_v = i % 2 == 0;
        unsigned columns = is_v ? shape->v_dim : shape->qk_dim;
        if (octets) {
            snprintf(dims, sizeof dims, "8, \"%u * kv_heads\", \"page_size_%u / 8\", \"pages\"",
                     columns / chunk, source);
            snprintf(box, sizeof box, "8, %u, \"box_%c_%u / 8\", 1",
                     columns / chunk / (is_v ? 1 : 2), is_v ? 'v' : 'k', source);
            write_map(out, id, id->plan->maps[i], tensors[i], 5, chunk, dims, box);
            continue;
        }
        snprintf(dims, sizeof dims,
                 "\"kv_len_%u, tokens or page_size_%u\", \"kv_heads\", \"batch, 1 or pages\"",
                 source, source);
        snprintf(box, sizeof box, "\"box_%c_%u\", 1, 1", is_v ? 'v' : 'k', source);
        write_map(out, id, id->plan->maps[i], tensors[i], 4, columns, dims, box);
    }
    fprintf(out, "  ],\n");
}

void attention_write_shape(FILE *out, const struct module_id *id)
{
    const struct attention_shape *shape = id->plan->attention;

    if (!shape) {
        fprintf(out, "  \"tensor_maps\": [],\n  \"grid\": [\"(rows + %d) / %d\", \"1\", \"1\"],\n",
                ATTENTION_COMBINE_ROWS - 1, ATTENTION_COMBINE_ROWS);
        return;
    }
    write_maps(out, id);
    fprintf(out,
            "  \"tile\": {\"rows\": %u, \"item_tiles\": %u, \"keys\": %d, \"box_v\": %u},\n"
            "  \"v_halves\": %u,\n"
            "  \"slots\": %u,\n"
            "  \"grid\": [\"min(items, sm_count * %u)\", \"1\", \"1\"],\n",
            shape->tile_rows, shape->item_tiles, ATTENTION_BLOCK, shape->box_v, shape->v_halves,
            shape->slots, id->plan->ctas_per_sm);
}

void attention_write_limits(FILE *out, const struct module_id *id)
{
    fprintf(out, "  \"limits\": {");
    if (id->plan->attention)
        fprintf(out,
                "\"items\": [1, 2147483647], \"kv_len\": [0, %d], \"q_len\": [1, %d], "
                "\"page_size\": [1, %d], \"splits\": [1, %d], ",
                ATTENTION_UNBOUNDED - 1, ATTENTION_UNBOUNDED - 1, ATTENTION_MAX_PAGE,
                ATTENTION_MAX_SPLITS);
    else
        fprintf(out, "\"rows\": [1, 4294967295], \"v_dim\": [32, 512], ");
    fprintf(out, "\"address_multiple\": 16, \"stride_multiple\": 16},\n");
}
