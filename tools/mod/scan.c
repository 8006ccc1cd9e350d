/* Reading back what a PTX text declares and what ptxas said about it. */
#include "mod.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The word after `key` (a directive with its trailing space), or an empty string. */
static void word_after(const char *text, const char *key, char *out, size_t size)
{
    const char *at = strstr(text, key);
    size_t n = 0;

    if (at) {
        at += strlen(key);
        while (n + 1 < size && at[n] && !isspace((unsigned char)at[n]) && at[n] != '(' &&
               at[n] != ',') {
            out[n] = at[n];
            n++;
        }
    }
    out[n] = '\0';
}

static unsigned type_bytes(const char *type)
{
    return (unsigned)strtoul(type + 1, NULL, 10) / 8; /* u32, b64, b8 */
}

/* ".param .align 64 .b8 map_a[128]" or ".param .u32 m" */
static int scan_param(struct scan *scan, const char *text, const char *path)
{
    struct scan_param *p = &scan->params[scan->param_count];
    unsigned align = 0, elements = 1;
    const char *bracket;

    if (scan->param_count == SCAN_PARAMS)
        return complain(path, "more than %d parameters", SCAN_PARAMS);
    if (sscanf(text, ".param .align %u .%7s %63[A-Za-z0-9_]", &align, p->type, p->name) != 3 &&
        sscanf(text, ".param .%7s %63[A-Za-z0-9_]", p->type, p->name) != 2)
        return complain(path, "cannot read the parameter at \"%.40s\"", text);
    bracket = strstr(text, p->name) + strlen(p->name);
    if (*bracket == '[') elements = (unsigned)strtoul(bracket + 1, NULL, 10);
    p->is_array = *bracket == '[';
    p->align = align ? align : type_bytes(p->type);
    p->size = type_bytes(p->type) * elements;
    if (p->size == 0 || p->align == 0) return complain(path, "parameter %s has no size", p->name);
    p->offset = (scan->param_bytes + p->align - 1) / p->align * p->align;
    scan->param_bytes = p->offset + p->size;
    scan->param_count++;
    return 0;
}

int scan_ptx(struct scan *scan, const struct text *ptx, const char *path)
{
    const char *at, *end, *block;

    memset(scan, 0, sizeof *scan);
    word_after(ptx->data, ".version ", scan->version, sizeof scan->version);
    word_after(ptx->data, ".target ", scan->target, sizeof scan->target);
    word_after(ptx->data, ".entry ", scan->entry, sizeof scan->entry);
    if (!scan->version[0] || !scan->target[0] || !scan->entry[0])
        return complain(path, "lacks .version, .target or .entry");
    at = strstr(ptx->data, ".entry ");
    end = strchr(at, ')');
    if (!end) return complain(path, "parameter list of %s does not end", scan->entry);
    while ((at = strstr(at, ".param ")) != NULL && at < end) {
        if (scan_param(scan, at, path) != 0) return -1;
        at += strlen(".param ");
    }
    block = strstr(end, ".maxntid ");
    if (!block || sscanf(block, ".maxntid %u, %u, %u", &scan->block[0], &scan->block[1],
                         &scan->block[2]) != 3)
        return complain(path, "lacks .maxntid x, y, z");
    return 0;
}

/* The number that stands before `unit`, or 0. */
static unsigned number_before(const char *text, const char *unit)
{
    const char *at = strstr(text, unit);

    if (!at) return 0;
    while (at > text && isdigit((unsigned char)at[-1])) at--;
    return (unsigned)strtoul(at, NULL, 10);
}

int scan_log(struct ptxas_log *log, const char *path)
{
    struct text text;

    memset(log, 0, sizeof *log);
    if (text_read(&text, path) != 0) return -1;
    log->registers = number_before(text.data, " registers");
    log->static_shared = number_before(text.data, " bytes smem");
    log->stack = number_before(text.data, " bytes stack frame");
    log->spill_stores = number_before(text.data, " bytes spill stores");
    log->spill_loads = number_before(text.data, " bytes spill loads");
    text_free(&text);
    if (log->registers == 0) return complain(path, "is no ptxas -v log: it names no registers");
    return 0;
}

/* ptxas exits 0 on all of these; each makes a kernel slow or means something other than written. */
int make_vet(int argc, char **argv)
{
    static const char *const refused[] = {"warning", "error", "serialized", "setmaxnreg", "(C7"};
    struct ptxas_log log;
    struct text text;
    const char *cursor, *line;
    size_t length;
    int bad = 0;

    (void)argc;
    if (scan_log(&log, argv[0]) != 0 || text_read(&text, argv[0]) != 0) return -1;
    cursor = text.data;
    while (text_line(&cursor, &line, &length)) {
        char copy[512];
        snprintf(copy, sizeof copy, "%.*s", length > 500 ? 500 : (int)length, line);
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
            if (!strstr(copy, refused[i])) continue;
            bad = complain(argv[0], "ptxas says: %s", copy);
            break;
        }
    }
    text_free(&text);
    if (log.spill_stores || log.spill_loads || log.stack)
        bad = complain(argv[0], "%u bytes of spill stores, %u of spill loads, %u of stack",
                       log.spill_stores, log.spill_loads, log.stack);
    return bad;
}
