/*
 * The manifest: what a program in any language needs to load a module and launch its kernel. Facts
 * of the text (version, entry, parameters, block) are read from the PTX itself and must agree with
 * the plan; the rest is the plan's.
 */
#include "mod.h"

#include "sha256.h"

#include <fnmatch.h>
#include <string.h>

static const struct writers {
    const char *text; /* a plan's */
    void (*write_problem)(FILE *out, const struct module_id *id);
    void (*write_shape)(FILE *out, const struct module_id *id);
    void (*write_limits)(FILE *out, const struct module_id *id);
} all_writers[] = {
    {"gemm", gemm_write_problem, gemm_write_shape, gemm_write_limits},
    {"gemm_few", gemm_write_problem, gemm_write_shape, gemm_write_limits},
    {"gemm_oddfew", gemm_write_problem, gemm_write_shape, gemm_write_limits},
    {"gemm_oddsmall", gemm_write_problem, gemm_write_shape, gemm_write_limits},
    {"gemm_combine", gemm_combine_write_problem, gemm_combine_write_shape,
     gemm_combine_write_limits},
    {"attention", attention_write_problem, attention_write_shape, attention_write_limits},
    {"attention_combine", attention_write_problem, attention_write_shape, attention_write_limits},
    {"decode", decode_write_problem, decode_write_shape, decode_write_limits},
    {"decode_combine", combine_write_problem, combine_write_shape, combine_write_limits},
    {"mla", mla_write_problem, mla_write_shape, mla_write_limits},
    {"mla_gather", mla_write_problem, mla_write_shape, mla_write_limits},
    {"mla_few", mla_write_problem, mla_write_shape, mla_write_limits},
    {"mla_combine", combine_write_problem, combine_write_shape, combine_write_limits},
    {"indexer", indexer_write_problem, indexer_write_shape, indexer_write_limits},
    {"topk", topk_write_problem, topk_write_shape, topk_write_limits},
    {"grouped", grouped_write_problem, grouped_write_shape, grouped_write_limits},
    {"grouped_sum", grouped_sum_write_problem, grouped_sum_write_shape, grouped_sum_write_limits},
    {"scaled", scaled_write_problem, scaled_write_shape, scaled_write_limits},
    {"w4", w4_write_problem, w4_write_shape, w4_write_limits},
    {"engine_norm", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_rope", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_attend64", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_attend128", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_multiply", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_swiglu", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_quant", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_project", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_sample", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_advance", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_route", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_place", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_latent", engine_write_problem, engine_write_shape, engine_write_limits},
    {"engine_exchange", engine_write_problem, engine_write_shape, engine_write_limits},
};

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
    const char *const *maps = m->id.plan->maps;
    const struct plan_scalar *scalars = m->id.plan->scalars;
    unsigned at = 0;

    if (strcmp(s->target, m->id.target) != 0)
        return complain(m->ptx_path, ".target is %s, want %s", s->target, m->id.target);
    if (s->block[0] != m->id.plan->threads || s->block[1] != 1 || s->block[2] != 1)
        return complain(m->ptx_path, ".maxntid is %u, %u, %u, the plan says %u, 1, 1", s->block[0],
                        s->block[1], s->block[2], m->id.plan->threads);
    for (size_t i = 0; maps[i]; i++, at++)
        if (at >= s->param_count || strcmp(s->params[at].name, maps[i]) != 0)
            return complain(m->ptx_path, "parameter %u is not %s", at, maps[i]);
    for (size_t i = 0; scalars[i].name; i++, at++)
        if (at >= s->param_count || strcmp(s->params[at].name, scalars[i].name) != 0)
            return complain(m->ptx_path, "parameter %u is not %s", at, scalars[i].name);
    if (at != s->param_count) return complain(m->ptx_path, "has parameters the plan lacks");
    return 0;
}

static const char *scalar_rule(const struct plan *plan, const char *name)
{
    for (const struct plan_scalar *s = plan->scalars; s->name; s++)
        if (strcmp(s->name, name) == 0) return s->rule;
    return NULL;
}

static void write_parameters(FILE *out, const struct plan *plan, const struct scan *s)
{
    fprintf(out, "  \"parameters\": [\n");
    for (unsigned i = 0; i < s->param_count; i++) {
        const struct scan_param *p = &s->params[i];
        const char *rule = scalar_rule(plan, p->name);
        fprintf(out, "    {\"name\": \"%s\", \"type\": \"%s\", \"offset\": %u, \"size\": %u, ",
                p->name, rule ? p->type : "tensor_map", p->offset, p->size);
        fprintf(out, "\"align\": %u", p->align);
        if (rule) fprintf(out, ", \"rule\": \"%s\"", rule);
        fprintf(out, "}%s\n", i + 1 < s->param_count ? "," : "");
    }
    fprintf(out, "  ],\n  \"parameter_bytes\": %u,\n", s->param_bytes);
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
    const struct plan *plan = m->id.plan;
    const struct writers *writers = &all_writers[0];
    const char *text = plan->decode ? "decode" : plan->text; /* MLA on sm_100f is a decode kernel */
    while (strcmp(writers->text, text) != 0) writers++;      /* plans name no other */

    fprintf(out, "{\n  \"name\": \"%s\",\n  \"family\": \"%s\",\n  \"target\": \"%s\",\n",
            m->id.name, plan->family, m->id.target);
    fprintf(out, "  \"ptx_version\": \"%s\",\n  \"entry\": \"%s\",\n", m->scan.version,
            m->scan.entry);
    writers->write_problem(out, &m->id);
    write_parameters(out, plan, &m->scan);
    writers->write_shape(out, &m->id);
    fprintf(out,
            "  \"block\": [%u, 1, 1],\n  \"cluster\": [%u, 1, 1],\n  \"dynamic_shared\": %u,\n"
            "  \"tmem_columns\": %u,\n",
            plan->threads, plan->cluster, plan->dynamic_shared, plan->tmem_columns);
    if (write_architectures(out, m, count, argv) != 0) return -1;
    writers->write_limits(out, &m->id);
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
