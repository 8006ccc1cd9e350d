/*
 * sim_tensor --coverage: each form of tcgen05 that the simulator's table of operations allows (all
 * combinations of modifiers; collector usages counted by themselves), and how many cases ran it.
 */
#include "decode.h"
#include "tensor_model.h"

#include <stdlib.h>
#include <string.h>

enum { FORM = 160, FORMS_MAX = 4096 };

static struct form_count {
    char form[FORM];
    uint32_t cases;
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
        const bool collector = take_collector(form, usage);
        for (int i = 0; i <= collector; i++) {
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

/* Enters `form` with every combination of the modifiers that `mods` describes (decode.h). */
static void expand(const char *form, const char *mods)
{
    char next[FORM];
    mods += strspn(mods, " ");
    const size_t length = strcspn(mods, " ");
    if (!length) {
        if (!excluded(form)) (void)form_entry(form);
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
            (void)form_entry(next);
        else
            expand(next, mods + length);
        word += n + 1;
    }
}

static int by_form(const void *a, const void *b)
{
    return strcmp(((const struct form_count *)a)->form, ((const struct form_count *)b)->form);
}

void coverage_print(void)
{
    uint32_t covered = 0;
    if (!enabled) return;
    for (uint32_t i = 0; i < op_row_count; i++)
        if (!strncmp(op_rows[i].name, "tcgen05.", 8)) expand(op_rows[i].name, op_rows[i].mods);
    qsort(counts, count_used, sizeof counts[0], by_form);
    for (uint32_t i = 0; i < count_used; i++) {
        printf("%6u  %s\n", counts[i].cases, counts[i].form);
        covered += counts[i].cases > 0;
    }
    printf("%u of %u forms of tcgen05 have a case\n", covered, count_used);
}
