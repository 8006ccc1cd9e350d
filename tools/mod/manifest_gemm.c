/* What a GEMM module's manifest says of its problem. */
#include "mod.h"

#include "../../ptx/inc/gemm.plan.h"

#include <string.h>

/* Inputs of 8 bits: fp8 is e4m3 or e5m2. */
static int is_8bit(const struct module_id *id)
{
    return strcmp(id->in, "fp8") == 0 || strcmp(id->in, "e4m3") == 0 || strcmp(id->in, "s8") == 0;
}

static const char glu[] = "D[b] = silu(x) * y, x and y the first and the last n columns of "
                          "alpha * scale_a * scale_b * A[b] * transpose(B[b])";

void gemm_write_problem(FILE *out, const struct module_id *id)
{
    if (id->plan->gemm->glu)
        fprintf(out, "  \"formula\": \"%s\",\n", glu);
    else if (id->plan->gemm->can & GEMM_CAN_FINISH)
        fprintf(out, "  \"formula\": \"D[b] = act(alpha * scale_a * scale_b * A[b] * "
                     "transpose(B[b]) + beta * C[b] + bias)\",\n");
    else
        fprintf(out, "  \"formula\": \"D[b] = A[b] * transpose(B[b])\",\n");
    if (id->plan->gemm->variant_kind && strcmp(id->plan->gemm->variant_kind, "GATED") == 0)
        fprintf(out,
                "  \"glu\": \"mode & %d: %s; then tile_n and the rows of map_b's box are half of "
                "those given here, in a pair the box is as it is, and map_b has 2 * n rows\",\n",
                GEMM_MODE_GLU, glu);
    if (id->plan->gemm->variant_kind && strcmp(id->plan->gemm->variant_kind, "SIDES") == 0)
        fprintf(
            out,
            "  \"sides\": \"mode & %d: clusters of twice as many CTAs, of which half share loads "
            "of A; "
            "then tile_n is twice, and the rows of map_a's box are half of those given here\",\n",
            GEMM_MODE_PAIR_N);
    fprintf(out, "  \"dtypes\": {\"a\": \"%s\", \"b\": \"%s\", \"sum\": \"%s\", \"d\": \"%s\"},\n",
            id->in, id->in, strcmp(id->in, "s8") == 0 ? "s32" : "f32", id->out);
}

/* dims_mn: of an MN-major operand, NULL where there is no such thing. */
static void write_map(FILE *out, char tensor, const char *dtype, const char *dims,
                      const unsigned box[2], const char *dims_mn, unsigned tile_k, const char *end)
{
    fprintf(out,
            "    {\"name\": \"map_%c\", \"tensor\": \"%c\", \"dtype\": \"%s\", \"rank\": 3,\n"
            "     \"dims\": [%s], \"box\": [%u, %u, 1], \"element_strides\": [1, 1, 1],\n",
            tensor + ('a' - 'A'), tensor, dtype, dims, box[0], box[1]);
    if (dims_mn)
        fprintf(out, "     \"dims_mn\": [%s], \"box_mn\": [%d, %u, 1],\n", dims_mn, GEMM_MN_BOX,
                tile_k);
    fprintf(
        out,
        "     \"interleave\": \"none\", \"swizzle\": \"128B\", \"out_of_bounds\": \"zero\"}%s\n",
        end);
}

static unsigned tile_k_of(const struct module_id *id)
{
    return id->plan->gemm->row_bytes / (is_8bit(id) ? 1 : 2);
}

/* GEMM_ODD_MAPS: an entry for the eight maps of an operand, map_a0 .. map_a7. Map i has rows i, i + 8, ..; shift(i)
 * says with which element of 16 bytes row i begins. */
static void write_odd_maps(FILE *out, const struct module_id *id)
{
    fprintf(out, "  \"tensor_maps\": [\n");
    for (int i = 0; i < 2; i++) {
        char x = "ab"[i], r = "mn"[i];
        fprintf(out,
                "    {\"name\": \"map_%c0\", \"tensor\": \"%c\", \"maps\": %d, \"dtype\": \"%s\", "
                "\"rank\": 3,\n"
                "     \"dims\": [\"k + shift(i)\", \"max((%c - i + 7) / 8, 1)\", "
                "\"step_%c * (batch - 1) + 1\"], \"box\": [%d, %d, 1],\n"
                "     \"dims_mn\": [\"%c + shift(i)\", \"max((k - i + 7) / 8, 1)\", "
                "\"step_%c * (batch - 1) + 1\"], \"box_mn\": [%d, %d, 1],\n"
                "     \"element_strides\": [1, 1, 1], \"interleave\": \"none\", \"swizzle\": "
                "\"none\", \"out_of_bounds\": \"zero\"}%s\n",
                x, x + ('A' - 'a'), GEMM_ODD_CLASSES, id->in, r, x, GEMM_ODD_ROW_BYTES / 2,
                GEMM_ODD_CLASSES, r, x, GEMM_ODD_ROW_BYTES / 2, GEMM_ODD_CLASSES,
                i == 0 ? "," : "");
    }
    fprintf(out, "  ],\n");
}

static void write_maps(FILE *out, const struct module_id *id)
{
    const struct gemm_shape *p = id->plan->gemm;
    unsigned element = strstr(id->out, "32") ? 4 : 2;
    unsigned tile_k = tile_k_of(id);
    const char *in = is_8bit(id) ? "u8" : id->in;
    unsigned box_a[2] = {tile_k, p->tile_m / p->pair_n};
    unsigned box_b[2] = {tile_k, p->tile_n / p->pair_m / (1 + p->glu)};
    unsigned box_d[2] = {128 / element, p->d_rows};

    unsigned chunk = GEMM_D_CHUNK_BYTES / element;
    char dims_d[64];

    snprintf(dims_d, sizeof dims_d, "\"max(n - n %% %u, %u)\", \"m\", \"batch\"", chunk, chunk);
    fprintf(out, "  \"tensor_maps\": [\n");
    int mn = (p->can & GEMM_CAN_MN) && !is_8bit(id);
    write_map(out, 'A', in, "\"k\", \"m\", \"step_a * (batch - 1) + 1\"", box_a,
              mn ? "\"m\", \"k\", \"step_a * (batch - 1) + 1\"" : NULL, tile_k, ",");
    write_map(out, 'B', in,
              p->glu ? "\"k\", \"2 * n\", \"step_b * (batch - 1) + 1\""
                     : "\"k\", \"n\", \"step_b * (batch - 1) + 1\"",
              box_b, mn ? "\"n\", \"k\", \"step_b * (batch - 1) + 1\"" : NULL, tile_k, ",");
    write_map(out, 'D', id->out, dims_d, box_d, NULL, 0, "");
    fprintf(out, "  ],\n");
}

void gemm_write_shape(FILE *out, const struct module_id *id)
{
    const struct gemm_shape *p = id->plan->gemm;

    unsigned cluster = id->plan->cluster;
    /* few rows without tensor memory, and small products: each CTA has its tile, or its teams */
    const int teams = strcmp(id->plan->text, "gemm_oddsmall") == 0,
              each = strcmp(id->plan->text, "gemm") != 0 && !id->plan->tmem_columns;

    if (p->odd)
        write_odd_maps(out, id);
    else
        write_maps(out, id);
    fprintf(out,
            "  \"tile\": {\"m\": %u, \"n\": %u, \"k\": %u},\n"
            "  \"stages\": %u,\n"
            "  \"raster_rows\": %u,\n",
            p->tile_m * p->pair_m, p->tile_n * p->pair_n / (1 + p->glu), tile_k_of(id), p->stages,
            p->raster_rows);
    if (p->parts > 1) /* of K, from 1 on: so many times the cluster and the grid given here */
        fprintf(out, "  \"parts\": %u,\n", p->parts);
    if (each)
        fprintf(out, "  \"grid\": [\"%s\", \"1\", \"1\"],\n",
                teams ? "(tiles + stages - 1) / stages" : "tiles");
    else if (cluster == 1)
        fprintf(out, "  \"grid\": [\"min(tiles, sm_count * %u)\", \"1\", \"1\"],\n",
                id->plan->ctas_per_sm);
    else
        fprintf(out, "  \"grid\": [\"%u * min(tiles, sm_count * %u / %u)\", \"1\", \"1\"],\n",
                cluster, id->plan->ctas_per_sm, cluster);
}

void gemm_write_limits(FILE *out, const struct module_id *id)
{
    static const char *const dims[] = {"m", "n", "k", "tiles"};

    (void)id;
    fprintf(out, "  \"limits\": {");
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        fprintf(out, "\"%s\": [1, 2147483647], ", dims[i]);
    fprintf(out, "\"address_multiple\": 16, \"row_stride_multiple\": 16},\n");
}
