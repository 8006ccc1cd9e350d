/*
 * The manifest: what a program in any language needs to load a module and launch its kernel. Facts
 * of the text (version, entry, parameters, block) are read from the PTX itself and must agree with
 * the plan; the rest is the plan's.
 */
#include "mod.h"

#include "sha256.h"

#include "../../ptx/inc/gemm.plan.h"

#include <fnmatch.h>
#include <string.h>

struct manifest {
    struct module_id id;
    struct scan scan;
    const char *ptx_path;
    char sha256[HEWN_SHA256_HEX];
};

/* The order and kind of the text's parameters must be the plan's. */
static int check_text(const struct manifest *m)
{
    const struct scan *s = &m->scan;
    unsigned at = 0;

    if (strcmp(s->target, m->id.target) != 0)
        return complain(m->ptx_path, ".target is %s, want %s", s->target, m->id.target);
    if (s->block[0] != m->id.plan->threads || s->block[1] != 1 || s->block[2] != 1)
        return complain(m->ptx_path, ".maxntid is %u, %u, %u, the plan says %u, 1, 1", s->block[0],
                        s->block[1], s->block[2], m->id.plan->threads);
    for (size_t i = 0; plan_maps[i]; i++, at++)
        if (at >= s->param_count || strcmp(s->params[at].name, plan_maps[i]) != 0)
            return complain(m->ptx_path, "parameter %u is not %s", at, plan_maps[i]);
    for (size_t i = 0; plan_scalars[i].name; i++, at++)
        if (at >= s->param_count || strcmp(s->params[at].name, plan_scalars[i].name) != 0)
            return complain(m->ptx_path, "parameter %u is not %s", at, plan_scalars[i].name);
    if (at != s->param_count) return complain(m->ptx_path, "has parameters the plan lacks");
    return 0;
}

static const char *scalar_rule(const char *name)
{
    for (size_t i = 0; plan_scalars[i].name; i++)
        if (strcmp(plan_scalars[i].name, name) == 0) return plan_scalars[i].rule;
    return NULL;
}

static void write_parameters(FILE *out, const struct scan *s)
{
    fprintf(out, "  \"parameters\": [\n");
    for (unsigned i = 0; i < s->param_count; i++) {
        const struct scan_param *p = &s->params[i];
        const char *rule = scalar_rule(p->name);
        fprintf(out, "    {\"name\": \"%s\", \"type\": \"%s\", \"offset\": %u, \"size\": %u, ",
                p->name, rule ? p->type : "tensor_map", p->offset, p->size);
        fprintf(out, "\"align\": %u", p->align);
        if (rule) fprintf(out, ", \"rule\": \"%s\"", rule);
        fprintf(out, "}%s\n", i + 1 < s->param_count ? "," : "");
    }
    fprintf(out, "  ],\n  \"parameter_bytes\": %u,\n", s->param_bytes);
}

static void write_map(FILE *out, char tensor, const char *dtype, const char *dims,
                      const unsigned box[2], const char *end)
{
    fprintf(
        out,
        "    {\"name\": \"map_%c\", \"tensor\": \"%c\", \"dtype\": \"%s\", \"rank\": 3,\n"
        "     \"dims\": [%s], \"box\": [%u, %u, 1], \"element_strides\": [1, 1, 1],\n"
        "     \"interleave\": \"none\", \"swizzle\": \"128B\", \"out_of_bounds\": \"zero\"}%s\n",
        tensor + ('a' - 'A'), tensor, dtype, dims, box[0], box[1], end);
}

static void write_maps(FILE *out, const struct manifest *m)
{
    const struct plan *p = m->id.plan;
    unsigned element = strcmp(m->id.out, "f32") == 0 ? 4 : 2;
    unsigned box_a[2] = {p->tile_k, p->tile_m}, box_b[2] = {p->tile_k, p->tile_n};
    unsigned box_d[2] = {128 / element, p->d_rows};

    unsigned chunk = GEMM_D_CHUNK_BYTES / element;
    char dims_d[64];

    snprintf(dims_d, sizeof dims_d, "\"max(n - n %% %u, %u)\", \"m\", \"batch\"", chunk, chunk);
    fprintf(out, "  \"tensor_maps\": [\n");
    write_map(out, 'A', m->id.in, "\"k\", \"m\", \"step_a * (batch - 1) + 1\"", box_a, ",");
    write_map(out, 'B', m->id.in, "\"k\", \"n\", \"step_b * (batch - 1) + 1\"", box_b, ",");
    write_map(out, 'D', m->id.out, dims_d, box_d, "");
    fprintf(out, "  ],\n");
}

static void write_shape(FILE *out, const struct plan *p)
{
    fprintf(out,
            "  \"tile\": {\"m\": %u, \"n\": %u, \"k\": %u},\n"
            "  \"stages\": %u,\n"
            "  \"raster_rows\": %u,\n"
            "  \"grid\": [\"min(tiles, sm_count * %u)\", \"1\", \"1\"],\n"
            "  \"block\": [%u, 1, 1],\n"
            "  \"cluster\": [%u, 1, 1],\n"
            "  \"dynamic_shared\": %u,\n"
            "  \"tmem_columns\": %u,\n",
            p->tile_m, p->tile_n, p->tile_k, p->stages, p->raster_rows, p->ctas_per_sm, p->threads,
            p->cluster, p->dynamic_shared, p->tmem_columns);
}

static int write_architectures(FILE *out, const struct manifest *m, int count, char **argv)
{
    fprintf(out, "  \"architectures\": [");
    for (int i = 0; i < count; i++) {
        struct ptxas_log log;
        const char *path = split_pair(argv[i]);
        if (!path || scan_log(&log, path) != 0) return -1;
        fprintf(out,
                "%s\n    {\"arch\": \"%s\", \"file\": \"%s.%s.cubin\", \"registers\": %u, "
                "\"static_shared\": %u, \"spill_stores\": %u, \"spill_loads\": %u}",
                i ? "," : "", argv[i], m->id.name, argv[i], log.registers, log.static_shared,
                log.spill_stores, log.spill_loads);
    }
    fprintf(out, "%s],\n", count ? "\n  " : "");
    return 0;
}

static void write_limits(FILE *out)
{
    static const char *const dims[] = {"m", "n", "k", "tiles"};

    fprintf(out, "  \"limits\": {");
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        fprintf(out, "\"%s\": [1, 2147483647], ", dims[i]);
    fprintf(out, "\"address_multiple\": 16, \"row_stride_multiple\": 16},\n");
}

/* Lines "TARGET PATTERN text": the text, where target and name match. '#' begins a comment. */
static int write_validated(FILE *out, const struct module_id *id, const char *path)
{
    struct text text;
    const char *cursor, *line, *comma = "";
    size_t length;

    if (text_read(&text, path) != 0) return -1;
    cursor = text.data;
    fprintf(out, "  \"validated_on\": [");
    while (text_line(&cursor, &line, &length)) {
        char copy[256], target[32], pattern[64];
        int where = 0;
        snprintf(copy, sizeof copy, "%.*s", length > 255 ? 255 : (int)length, line);
        if (copy[0] == '#' || sscanf(copy, "%31s %63s %n", target, pattern, &where) < 2) continue;
        if (strcmp(target, id->target) != 0 || fnmatch(pattern, id->name, 0) != 0) continue;
        fprintf(out, "%s\"%s\"", comma, copy + where);
        comma = ", ";
    }
    fprintf(out, "]\n");
    text_free(&text);
    return 0;
}

static int write_manifest(FILE *out, const struct manifest *m, const char *validated, int count,
                          char **argv)
{
    fprintf(out, "{\n  \"name\": \"%s\",\n  \"family\": \"%s\",\n  \"target\": \"%s\",\n",
            m->id.name, m->id.plan->family, m->id.target);
    fprintf(out, "  \"ptx_version\": \"%s\",\n  \"entry\": \"%s\",\n", m->scan.version,
            m->scan.entry);
    fprintf(out, "  \"formula\": \"D[b] = A[b] * transpose(B[b])\",\n");
    fprintf(out, "  \"dtypes\": {\"a\": \"%s\", \"b\": \"%s\", \"sum\": \"f32\", \"d\": \"%s\"},\n",
            m->id.in, m->id.in, m->id.out);
    write_parameters(out, &m->scan);
    write_maps(out, m);
    write_shape(out, m->id.plan);
    if (write_architectures(out, m, count, argv) != 0) return -1;
    write_limits(out);
    fprintf(out, "  \"sha256\": \"%s\",\n", m->sha256);
    if (write_validated(out, &m->id, validated) != 0) return -1;
    fprintf(out, "}\n");
    return 0;
}

int make_manifest(int argc, char **argv)
{
    const char *out_path = argv[4];
    struct manifest m;
    struct text ptx;
    FILE *out;
    int result;

    m.ptx_path = argv[2];
    if (plan_find(&m.id, argv[0], argv[1]) != 0 || text_read(&ptx, m.ptx_path) != 0) return -1;
    result = scan_ptx(&m.scan, &ptx, m.ptx_path);
    hewn_sha256(ptx.data, ptx.size, m.sha256);
    text_free(&ptx);
    if (result != 0 || check_text(&m) != 0) return -1;
    out = text_create(out_path);
    if (!out) return -1;
    result = write_manifest(out, &m, argv[3], argc - 5, argv + 5);
    return text_close(out, out_path) == 0 ? result : -1;
}
