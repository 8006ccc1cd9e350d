/*
 * sim_tensor --coverage: each form of tcgen05 that the simulator's table of operations allows (all
 * combinations of modifiers; collector usages counted by themselves), each shape and variant that the
 * instruction descriptor of a tcgen05.mma can ask for (PTX ISA "Matrix Shape", "Instruction descriptor"),
 * and how many cases ran it. A run of all cases fails where one of them has none.
 */
#include "decode/decode.h"
#include "tensor_model.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { FORM = 160, FORMS_MAX = 4096 };

static struct form_count {
    char form[FORM];
    uint32_t cases;
    bool legal;
} counts[FORMS_MAX];
static uint32_t count_used;
static bool enabled;

void coverage_begin(void)
{
    enabled = true;
}

static struct form_count *form_entry(const char *form)
{
    for (uint32_t i = 0; i < count_used; i++)
        if (!strcmp(counts[i].form, form)) return &counts[i];
    if (count_used == FORMS_MAX) return NULL;
    (void)snprintf(counts[count_used].form, FORM, "%s", form);
    return &counts[count_used++];
}

/* Cuts a collector usage out of `form` into `usage`; false when there is none. */
static bool take_collector(char *form, char *usage)
{
    char *at = strstr(form, ".collector::");
    if (!at) return false;
    const size_t length = strcspn(at + 1, ".") + 1;
    (void)snprintf(usage, FORM, "%.*s of %s", (int)(length - 1), at + 1,
                   strstr(form, ".ws") ? "tcgen05.mma.ws" : "tcgen05.mma");
    memmove(at, at + length, strlen(at + length) + 1);
    return true;
}

void coverage_note(const char *text)
{
    uint8_t seen[FORMS_MAX] = {0};
    for (const char *at = enabled ? strstr(text, "tcgen05.") : NULL; at;
         at = strstr(at + 1, "tcgen05.")) {
        char form[FORM], usage[FORM];
        const size_t length = strcspn(at, " \t;\n");
        (void)snprintf(form, sizeof form, "%.*s", (int)length, at);
        const int forms = take_collector(form, usage) ? 2 : 1;
        for (int i = 0; i < forms; i++) {
            struct form_count *c = form_entry(i ? usage : form);
            if (!c || seen[c - counts]) continue;
            seen[c - counts] = 1;
            c->cases++;
        }
    }
}

/* Combinations that the ISA excludes beyond what the table's notation says. */
static bool excluded(const char *form)
{
    static const char *const pairs[][2] = {{"ld.red", ".x1."},
                                           {".s32", ".abs"},
                                           {".u32", ".abs"},
                                           {".s32", ".NaN"},
                                           {".u32", ".NaN"},
                                           {"16x128b", ".x128"},
                                           {"16x256b", ".x64"},
                                           {"16x256b", ".x128"},
                                           {"mxf8f6f4", "scale_vec::2"},
                                           {"mxf8f6f4", "scale_vec::4"},
                                           {"mxf8f6f4", "block16"},
                                           {"kind::mxf4.", "block16"},
                                           {"kind::mxf4.", "vec::1X"},
                                           {"kind::mxf4.", "vec::4X"},
                                           {"mxf4nvf4", "vec::1X"}};
    const size_t length = strlen(form);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (strstr(form, pairs[i][0]) && strstr(form, pairs[i][1])) return true;
    if (length > 8 && strstr(form, "mxf4nvf4") && !strcmp(form + length - 11, "block_scale"))
        return true;
    const char *unpack = strstr(form, ".b8x16"), *packed = strstr(form, "x16_p");
    return strstr(form, ".cp.") && (unpack != NULL) != (packed != NULL);
}

static void legal(const char *form)
{
    struct form_count *c = form_entry(form);
    if (c) c->legal = true;
}

/* Enters `form` with every combination of the modifiers that `mods` describes (decode.h). */
static void expand(const char *form, const char *mods)
{
    char next[FORM];
    mods += strspn(mods, " ");
    const size_t length = strcspn(mods, " ");
    if (!length) {
        if (!excluded(form)) legal(form);
        return;
    }
    const bool optional = mods[0] == '[';
    const char *word = mods + optional, *end = mods + length - optional;
    if (optional) expand(form, mods + length);
    while (word < end) {
        size_t n = strcspn(word, "|");
        if (n > (size_t)(end - word)) n = (size_t)(end - word);
        if (!strncmp(word, "collector::", 11))
            (void)snprintf(next, sizeof next, "%.*s of %s", (int)n, word,
                           strstr(form, ".ws") ? "tcgen05.mma.ws" : "tcgen05.mma");
        else
            (void)snprintf(next, sizeof next, "%s.%.*s", form, (int)n, word);
        if (!strncmp(word, "collector::", 11))
            legal(next);
        else
            expand(next, mods + length);
        word += n + 1;
    }
}

/* ---- what the instruction descriptor of a tcgen05.mma asks for ---- */

static const struct mma_kind {
    const char *name, *formats; /* formats: their codes in the descriptor */
    bool scaled, mn_major, negated, half_d;
} mma_kinds[] = {
    {"f16", "01", false, true, true, true},         {"tf32", "2", false, true, true, false},
    {"f8f6f4", "01345", false, true, true, true},   {"i8", "01", false, true, false, false},
    {"mxf8f6f4", "01345", true, true, true, false}, {"mxf4", "1", true, false, true, false},
    {"mxf4nvf4", "1", true, false, true, false}};

enum point_use { POINT_LEGAL, POINT_RAN };

/* One line of the table: `family`, then what about it. */
__attribute__((format(printf, 3, 4))) static void point(enum point_use use, const char *family,
                                                        const char *format, ...)
{
    char form[FORM];
    const int length = snprintf(form, sizeof form, "%s, ", family);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(form + length, sizeof form - (size_t)length, format, args);
    va_end(args);
    struct form_count *c = form_entry(form);
    if (!c) return;
    if (use == POINT_LEGAL)
        c->legal = true;
    else
        c->cases++;
}

void coverage_mma(const char *text, uint32_t idesc, bool a_in_tmem)
{
    const char *at = enabled ? strstr(text, "tcgen05.mma") : NULL;
    const char *kind = at ? strstr(at, "kind::") : NULL;
    char family[FORM];
    if (!kind) return;
    kind += strlen("kind::");
    const size_t length = strcspn(kind, ". ");
    (void)snprintf(family, sizeof family, "%.*s", (int)(kind + length - at), at);
    const bool scaled = !strncmp(kind, "mx", 2), fp4 = !strncmp(kind, "mxf4", 4),
               i8 = !strncmp(kind, "i8", 2);
    point(POINT_RAN, family, "M %u N %u",
          scaled ? (idesc >> 27 & 3U) << 7 : (idesc >> 24 & 31U) << 4, (idesc >> 17 & 63U) << 3);
    point(POINT_RAN, family, "A of format %u", idesc >> 7 & 7U);
    point(POINT_RAN, family, "B of format %u", idesc >> 10 & 7U);
    point(POINT_RAN, family, "A in %s memory", a_in_tmem ? "tensor" : "shared");
    if (idesc >> 13 & 1U) point(POINT_RAN, family, "A negated");
    if (idesc >> 14 & 1U) point(POINT_RAN, family, "B negated");
    if (idesc >> 15 & 1U) point(POINT_RAN, family, "A MN-major");
    if (idesc >> 16 & 1U) point(POINT_RAN, family, "B MN-major");
    if (scaled) {
        if (!(idesc >> 23 & 1U)) point(POINT_RAN, family, "scales of ue4m3");
        if (fp4 && idesc >> 31) point(POINT_RAN, family, "K 96");
        return;
    }
    if (idesc & 3U) point(POINT_RAN, family, "selector %u", idesc & 3U);
    if (idesc >> 3 & 1U) point(POINT_RAN, family, "saturated");
    if (!i8 && !(idesc >> 4 & 3U)) point(POINT_RAN, family, "D f16");
}

/* PTX ISA "Matrix Shape": each M with the least N, 128, and the largest. */
static void legal_shapes(const char *family, const struct mma_kind *k, uint32_t group, bool sparse,
                         bool ws)
{
    const uint32_t least = ws ? 64 : !strcmp(k->name, "i8") && group == 2 ? 32 : 8 * group;
    const uint32_t smallest = ws ? 32 : k->scaled ? (sparse ? 128 * group : 128) : 64 * group;
    for (uint32_t m = smallest; m <= 128 * group; m *= 2) {
        point(POINT_LEGAL, family, "M %u N %u", m, least);
        point(POINT_LEGAL, family, "M %u N 128", m);
        if (!(ws && sparse)) point(POINT_LEGAL, family, "M %u N 256", m);
    }
}

static void legal_mma(const struct mma_kind *k, uint32_t group, bool sparse, bool ws)
{
    const bool fp4 = k->scaled && !k->mn_major;
    char family[FORM];
    (void)snprintf(family, sizeof family, "tcgen05.mma%s%s.cta_group::%u.kind::%s", ws ? ".ws" : "",
                   sparse ? ".sp" : "", group, k->name);
    legal_shapes(family, k, group, sparse, ws);
    for (uint32_t b = 0; b < 2; b++) {
        const char operand = b ? 'B' : 'A';
        for (const char *code = k->formats; *code; code++)
            point(POINT_LEGAL, family, "%c of format %c", operand, *code);
        if (k->negated) point(POINT_LEGAL, family, "%c negated", operand);
        if (k->mn_major) point(POINT_LEGAL, family, "%c MN-major", operand);
        point(POINT_LEGAL, family, "A in %s memory", b ? "tensor" : "shared");
    }
    if (!k->negated) point(POINT_LEGAL, family, "saturated");
    if (k->half_d) point(POINT_LEGAL, family, "D f16");
    if (fp4 && !sparse) point(POINT_LEGAL, family, "K 96");
    if (!strcmp(k->name, "mxf4nvf4")) point(POINT_LEGAL, family, "scales of ue4m3");
    if (sparse && (!strcmp(k->name, "f16") || !strcmp(k->name, "tf32")))
        point(POINT_LEGAL, family, "selector 1");
}

static void enter_legal(void)
{
    for (uint32_t i = 0; i < op_row_count; i++)
        if (!strncmp(op_rows[i].name, "tcgen05.", 8)) expand(op_rows[i].name, op_rows[i].mods);
    for (size_t i = 0; i < sizeof mma_kinds / sizeof mma_kinds[0]; i++)
        for (uint32_t v = 0; v < 6; v++) /* v / 2: cta_group 1, 2, .ws */
            if (v < 4 || !mma_kinds[i].scaled)
                legal_mma(&mma_kinds[i], v / 2 == 1 ? 2 : 1, v % 2, v >= 4);
}

/* ---- results ---- */

static bool is_point(const struct form_count *c)
{
    return strstr(c->form, ", ") != NULL;
}

void coverage_check(void)
{
    if (test_filtered()) {
        test_skip("a run of all cases");
        return;
    }
    enter_legal();
    for (uint32_t i = 0; i < count_used; i++) {
        const struct form_count *c = &counts[i];
        const bool size = strstr(c->form, ", M ") != NULL; /* N between the three are no points */
        CHECK(c->cases || !c->legal, "no case of %s", c->form);
        CHECK(c->legal || size, "%u cases of %s, which is not in the table", c->cases, c->form);
    }
}

static int by_form(const void *a, const void *b)
{
    return strcmp(((const struct form_count *)a)->form, ((const struct form_count *)b)->form);
}

void coverage_print(void)
{
    uint32_t covered[2] = {0}, all[2] = {0}; /* forms, points */
    enter_legal();
    qsort(counts, count_used, sizeof counts[0], by_form);
    for (uint32_t i = 0; i < count_used; i++) {
        if (!counts[i].legal) continue;
        printf("%6u  %s\n", counts[i].cases, counts[i].form);
        all[is_point(&counts[i])]++;
        covered[is_point(&counts[i])] += counts[i].cases > 0;
    }
    printf("%u of %u forms of tcgen05 have a case, %u of %u shapes and variants of tcgen05.mma\n",
           covered[0], all[0], covered[1], all[1]);
}
