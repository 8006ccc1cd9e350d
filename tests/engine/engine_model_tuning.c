/* A file of tuned kernels: what it names is what a model's plans take, except in invariant mode; --tune writes it. */
#include "engine_model.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 4096 };

/* A decode step of one row in e4m3 has two products of hewn_gemm: gate and up, and in bf16 the head's. */
static struct tiny model_of(void)
{
    struct tiny t = tiny_llama(9);
    t.e4m3 = true;
    return t;
}

/* The start of the head's line, up to its kernel. */
static void head_line(const struct gpu *g, char out[128])
{
    const struct tiny t = model_of();
    hewn_device_info info = {.struct_size = sizeof info};
    hewn_context_describe_device(g->context, &info, NULL);
    snprintf(out, 128, "%s %d bf16 bf16 f32 k k full 1 1 %d %d ",
             info.cc_major == 9 ? "sm_90a" : "sm_100f", info.sm_count, t.vocab, t.hidden);
}

static bool head_of_device(char out[128])
{
    struct problem p = {""};
    struct gpu gpu;
    const bool opened = gpu_open(NULL, &gpu, &p) == 0;
    CHECK(opened, "%s", p.text);
    if (opened) {
        head_line(&gpu, out);
        gpu_close(&gpu);
    }
    return opened;
}

/* A file in a folder of its own, with this text, or none. */
static bool write_table(char folder[256], char path[300], const char *text)
{
    const bool made = tiny_folder(folder, 256);
    CHECK(made, "no folder");
    snprintf(path, 300, "%s/table", folder);
    return made && (!text || tiny_text(folder, "table", text));
}

static void read_table(const char *path, char text[TEXT])
{
    FILE *f = fopen(path, "rb");
    text[0] = '\0';
    CHECK(f != NULL, "no %s", path);
    if (!f) return;
    text[fread(text, 1, TEXT - 1, f)] = '\0';
    fclose(f);
}

/* The kernel of the head's plan: "plain/1". */
static void head_kernel(const struct model *m, char out[40])
{
    hewn_gemm_plan_info info = {.struct_size = sizeof info};
    const int status = hewn_gemm_plan_describe(m->decode[0].head.plan, &info, NULL);
    CHECK_INT(status, 0);
    snprintf(out, 40, "%.24s/%u%s", info.variant, info.parts, info.slices > 1 ? "*" : "");
}

static void opened_with(const struct model_options *o, char kernel[40])
{
    const struct tiny t = model_of();
    struct world w;
    snprintf(kernel, 40, "none");
    if (world_open(&w, &t, o)) head_kernel(w.model, kernel);
    world_close(&w);
}

static void test_named(void)
{
    char folder[256] = "", path[300], line[128], text[256], plain[40], named[40], invariant[40];
    if (!test_case("a table's kernel is taken, except in invariant mode") || !head_of_device(line))
        return;
    snprintf(text, sizeof text, "# of a test\n%spair/1 2.5\n", line);
    if (write_table(folder, path, text)) {
        const struct model_options without = {.slots = 1, .chunk = 1, .invariant = true};
        const struct model_options with = {.slots = 1, .chunk = 1, .tuning = path};
        const struct model_options fixed = {
            .slots = 1, .chunk = 1, .tuning = path, .invariant = true};
        opened_with(&without, plain);
        opened_with(&with, named);
        opened_with(&fixed, invariant);
        CHECK(!strcmp(named, "pair/1"), "the head's kernel is %s", named);
        CHECK(strcmp(plain, "pair/1") != 0 && !strcmp(plain, invariant),
              "invariant: %s with a table, %s without", invariant, plain);
    }
    tiny_remove(folder);
}

static int told;
static char told_kernel[40];

static void tell(const hewn_gemm_desc *d, const hewn_gemm_tuned *t)
{
    CHECK(t->tried > 1, "%u kernels tried", t->tried);
    told++;
    if (d->in == HEWN_E4M3) return;
    CHECK_INT(d->n, model_of().vocab);
    snprintf(told_kernel, sizeof told_kernel, "%.24s/%u%s", t->variant, t->parts,
             t->slices > 1 ? "*" : "");
}

static void test_tuned(void)
{
    static const char other[] = "sm_90a 7 bf16 bf16 f32 k k full 1 9 128 64 plain/1 2.5\n";
    char folder[256] = "", path[300], line[128], text[TEXT], kernel[40];
    if (!test_case("tuning writes the head's kernel beside what the table had") ||
        !head_of_device(line))
        return;
    if (write_table(folder, path, other)) {
        const struct model_options tunes = {
            .slots = 1, .chunk = 1, .tuning = path, .tune = true, .tuned = tell};
        const struct model_options reads = {.slots = 1, .chunk = 1, .tuning = path};
        told = 0;
        opened_with(&tunes, kernel);
        CHECK(told == 2 && !strcmp(kernel, told_kernel), "%d products tuned, to %s; taken %s", told,
              told_kernel, kernel);
        read_table(path, text);
        CHECK(strstr(text, line) && strstr(text, "sm_90a 7 bf16"), "the table is\n%s", text);
        opened_with(&reads, kernel);
        CHECK(!strcmp(kernel, told_kernel), "%s was tuned, %s is taken", told_kernel, kernel);
    }
    tiny_remove(folder);
}

/* Opening fails with these words. */
static void refused(const char *what, const struct model_options *o, const char *words)
{
    const struct tiny t = model_of();
    struct problem p = {""};
    struct model *m = NULL;
    struct gpu gpu;
    struct checkpoint c = {.weights = NULL};
    char folder[256] = "";
    if (!tiny_folder(folder, sizeof folder) || !tiny_write(folder, &t) ||
        checkpoint_open(folder, &c, &p) || gpu_open(NULL, &gpu, &p)) {
        CHECK(false, "%s", p.text);
    } else {
        c.config.e4m3 = true;
        CHECK(model_open(&gpu, &c, o, &m, &p) == -1 && !m, "%s: was opened", what);
        CHECK_TEXT(p.text, words);
        gpu_close(&gpu);
    }
    if (c.weights) checkpoint_close(&c);
    tiny_remove(folder);
}

static void test_refused(void)
{
    char folder[256] = "", path[300], nowhere[340];
    if (!test_case("tables that cannot be read or written")) return;
    if (write_table(folder, path, "sm_90a 132\n")) {
        snprintf(nowhere, sizeof nowhere, "%s/no/table", folder);
        const struct model_options broken = {.slots = 1, .chunk = 1, .tuning = path};
        const struct model_options absent = {.slots = 1, .chunk = 1, .tuning = nowhere};
        const struct model_options unwritable = {
            .slots = 1, .chunk = 1, .tuning = nowhere, .tune = true, .tuned = tell};
        const struct model_options unnamed = {.slots = 1, .chunk = 1, .tune = true};
        const struct model_options invariant = {
            .slots = 1, .chunk = 1, .tuning = path, .tune = true, .invariant = true};
        refused("a broken table", &broken, "table: line 1 has 2 fields, not 14");
        refused("no table", &absent, "table: No such file or directory");
        told = 0;
        refused("no folder to write to", &unwritable,
                "table cannot be written: No such file or directory");
        CHECK(told == 0, "%d products tuned for a table that cannot be written", told);
        refused("no name", &unnamed, "tune: name the file to write with --tuning");
        refused("invariant", &invariant, "tune: invariant steps do not use a table");
    }
    tiny_remove(folder);
}

void test_tuning(void)
{
    test_named();
    test_tuned();
    test_refused();
}
