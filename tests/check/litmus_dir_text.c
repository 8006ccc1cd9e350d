/* Litmus tests in the notation of Dat3M (litmus_dir_text.h). */
#include "litmus_dir_text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 16, CELL = 128, PARTS = 8 };

struct writer {
    struct litmus_text *l;
    char *text;
    size_t used;
    char declared[4096]; /* registers */
    char labels[2048];   /* of the thread, so far */
    const char *rows;
    uint32_t thread, threads, cta[LITMUS_THREADS];
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(w->text + w->used, ROOM - w->used, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= ROOM - w->used)
        w->failed = true;
    else
        w->used += (size_t)n;
}

static void refuse(struct writer *w, const char *what)
{
    if (!w->failed) snprintf(w->l->refused, sizeof w->l->refused, "%s", what);
    w->failed = true;
}

/* ---- names ---- */

static struct litmus_name *find(const struct litmus_text *l, const char *name)
{
    for (uint32_t i = 0; i < l->name_count; i++)
        if (!strcmp(l->names[i].name, name)) return (struct litmus_name *)&l->names[i];
    return NULL;
}

static struct litmus_name *name_of(struct litmus_text *l, const char *name)
{
    struct litmus_name *n = find(l, name);
    if (n || l->name_count == LITMUS_NAMES || strlen(name) >= LITMUS_NAME) return n;
    n = &l->names[l->name_count++];
    *n = (struct litmus_name){.place = l->place_count++};
    memcpy(n->name, name, strlen(name) + 1);
    return n;
}

/* A register of this thread, declared at its first use. */
static const char *register_of(struct writer *w, const char *name, char *out)
{
    char full[LITMUS_NAME], line[CELL];
    snprintf(full, sizeof full, "P%u:%.16s", w->thread, name);
    snprintf(out, LITMUS_NAME, "P%u_%.16s", w->thread, name);
    snprintf(line, sizeof line, ".reg .b32 %s;\n", out);
    if (!name_of(w->l, full)) refuse(w, "too many names");
    if (!strstr(w->declared, line) && strlen(w->declared) + strlen(line) < sizeof w->declared)
        memcpy(w->declared + strlen(w->declared), line, strlen(line) + 1);
    return out;
}

static const char *value_of(struct writer *w, const char *operand, char *out)
{
    if (isdigit((unsigned char)*operand) || *operand == '-') {
        snprintf(out, LITMUS_NAME, "%.20s", operand);
        return out;
    }
    return register_of(w, operand, out);
}

static const char *address_of(struct writer *w, const char *operand, char *out)
{
    const struct litmus_name *n = name_of(w->l, operand);
    if (!n) refuse(w, "too many names");
    snprintf(out, LITMUS_NAME, "[m+%u]", n ? n->place * 4 * LITMUS_STRIDE : 0);
    return out;
}

/* ---- the initial state ---- */

static void trim(char *s)
{
    size_t n;
    while (isspace((unsigned char)*s)) memmove(s, s + 1, strlen(s));
    n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1])) s[--n] = '\0';
}

/* "x = 0", "P0:r0=0", "y @ generic aliases x": one place under two names. */
static void initial(struct writer *w, char *item)
{
    char name[CELL], kind[CELL], of[CELL];
    long value = 0;
    trim(item);
    if (!*item) return;
    if (sscanf(item, "%127s @ %127s aliases %127s", name, kind, of) == 3) {
        const struct litmus_name *known = name_of(w->l, of);
        struct litmus_name *n = known ? name_of(w->l, name) : NULL;
        if (n) n->place = known->place;
        w->l->other_proxy = true;
        w->l->aliased |= !strstr(kind, "tex");
    } else if (sscanf(item, "%127[^= ] = %ld", name, &value) == 2) {
        struct litmus_name *n = name_of(w->l, name);
        if (n) n->value = (uint32_t)value;
    } else {
        refuse(w, item);
    }
}

/* ---- rows and columns ---- */

/* Column `thread` of the row at `row`; false: the row has fewer. */
static bool cell_of(const char *row, uint32_t thread, char *out)
{
    const char *end = strchr(row, ';');
    for (; thread; thread--) {
        row = strchr(row, '|');
        if (!row || row > end) return false;
        row++;
    }
    snprintf(out, CELL, "%.*s", (int)strcspn(row, "|;"), row);
    return true;
}

static const char *next_row(const char *row)
{
    row = strchr(row, ';') + 1;
    while (isspace((unsigned char)*row)) row++;
    return row;
}

/* Rows end where the condition begins, which has no semicolon. */
static bool is_row(const char *row)
{
    return strchr(row, ';') && strncmp(row, "exists", 6) && strncmp(row, "~exists", 7) &&
           strncmp(row, "forall", 6);
}

/* ---- instructions ---- */

/* Operands, separated by commas and spaces. */
static uint32_t split(char *s, const char *by, char **out)
{
    uint32_t n = 0;
    char *rest = NULL;
    for (char *p = strtok_r(s, by, &rest); p && n < PARTS; p = strtok_r(NULL, by, &rest))
        out[n++] = p;
    return n;
}

static bool is_one_of(const char *word, const char *list)
{
    const char *at = strstr(list, word);
    const size_t n = strlen(word);
    return at && n && (at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]);
}

/* ".acquire.gpu": what modifiers say of order and scope. */
static void order_of(struct writer *w, char **part, uint32_t parts, char *out, size_t room)
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 1; i < parts; i++) {
        if (is_one_of(part[i], "weak relaxed acquire release acq_rel volatile cta gpu sys"))
            at += (size_t)snprintf(out + at, room - at, ".%s", part[i]);
        else if (i + 1 < parts)
            refuse(w, part[i]);
    }
}

/* Texture and constant loads go through a cache that does not follow stores, as ld.global.nc does. */
static void load(struct writer *w, const char *order, bool cached, char **o)
{
    char r[LITMUS_NAME], v[LITMUS_NAME];
    register_of(w, o[0], r);
    if (find(w->l, o[1]))
        put(w, "ld%s.global%s.u32 %s, %s;\n", cached ? "" : order, cached ? ".nc" : "", r,
            address_of(w, o[1], v));
    else
        put(w, "mov.u32 %s, %s;\n", r, value_of(w, o[1], v));
}

static void atomic(struct writer *w, const char *order, const char *op, char **o, uint32_t n)
{
    char r[LITMUS_NAME], a[LITMUS_NAME], v[LITMUS_NAME], c[LITMUS_NAME];
    const bool bits = is_one_of(op, "exch cas and or xor"), minus = !strcmp(op, "sub");
    register_of(w, o[0], r);
    value_of(w, o[2], v);
    put(w, "atom%s.global.%s.%s %s, %s, %s%s", order, minus ? "add" : op, bits ? "b32" : "u32", r,
        address_of(w, o[1], a), minus ? "-" : "", v);
    put(w, n > 3 ? ", %s;\n" : ";\n", n > 3 ? value_of(w, o[3], c) : "");
}

/* Whether the thread has a barrier instruction, and if `id` is a number, one that may mean that number. */
static bool comes_to(const struct writer *w, uint32_t thread, const char *id)
{
    char cell[CELL], *word[PARTS];
    for (const char *row = w->rows; is_row(row); row = next_row(row)) {
        uint32_t n;
        if (!cell_of(row, thread, cell)) continue;
        n = split(cell, ", \t", word);
        if (n < 2 || strncmp(word[0], "bar.", 4) != 0) continue;
        word[0] = word[n > 2 ? 2 : 1];
        if (!isdigit((unsigned char)*id) || !isdigit((unsigned char)*word[0]) ||
            !strcmp(word[0], id))
            return true;
    }
    return false;
}

/* bar.cta.sync NUMBER; INSTANCE, NUMBER; INSTANCE, NUMBER, THREADS. Where no count is given, the model has those threads
 * take part that have such an instruction. */
static void barrier(struct writer *w, const char *what, char **o, uint32_t n)
{
    const char *number = o[n > 1];
    uint32_t count = 0;
    char id[LITMUS_NAME];
    for (uint32_t i = 0; i < w->threads && n < 3; i++)
        count += w->cta[i] == w->cta[w->thread] && comes_to(w, i, number);
    if (n > 2) count = (uint32_t)strtoul(o[2], NULL, 10);
    put(w, "barrier.cta.%s %s, %u;\n", what, value_of(w, number, id), 32 * count);
}

static void jump(struct writer *w, const char *how, char **o, uint32_t n)
{
    char a[LITMUS_NAME], b[LITMUS_NAME], label[CELL];
    snprintf(label, sizeof label, " %s ", o[n - 1]);
    if (strstr(w->labels, label)) w->l->loops = true;
    if (n == 3)
        put(w, "setp.%s.u32 p, %s, %s;\n@p ", how, value_of(w, o[0], a), value_of(w, o[1], b));
    put(w, "bra P%u_%s;\n", w->thread, o[n - 1]);
}

static void fence(struct writer *w, const char *full, char **part, uint32_t parts)
{
    if (parts > 1 && !strcmp(part[1], "proxy")) {
        w->l->other_proxy = true;
        if (parts > 2 && !strcmp(part[2], "alias")) put(w, "fence.proxy.alias;\n");
    } else {
        put(w, "%s;\n", full);
    }
}

static void instruction(struct writer *w, char *cell)
{
    char full[CELL], order[CELL], a[LITMUS_NAME], b[LITMUS_NAME], c[LITMUS_NAME];
    char *word[PARTS] = {0}, *part[PARTS] = {0};
    uint32_t n, parts;
    trim(cell);
    if (!*cell) return;
    if (cell[strlen(cell) - 1] == ':') {
        const size_t used = strlen(w->labels);
        cell[strlen(cell) - 1] = '\0';
        put(w, "P%u_%s:\n", w->thread, cell);
        if (used + strlen(cell) + 3 < sizeof w->labels)
            snprintf(w->labels + used, sizeof w->labels - used, " %s ", cell);
        return;
    }
    n = split(cell, ", \t", word);
    if (!n || !word[0]) return;
    snprintf(full, sizeof full, "%s", word[0]);
    parts = split(word[0], ".", part);
    n--;
    if (!parts || !part[0]) return;
    if (is_one_of(part[0], "tld suld cold sust")) w->l->other_proxy = true;
    if (is_one_of(part[0], "tld cold")) w->l->cached = true;
    order_of(w, part, is_one_of(part[0], "ld st atom red tld suld cold sust") ? parts : 0, order,
             sizeof order);
    if (is_one_of(part[0], "ld tld suld cold") && n == 2)
        load(w, order, is_one_of(part[0], "tld cold"), word + 1);
    else if (is_one_of(part[0], "st sust") && n == 2)
        put(w, "st%s.global.u32 %s, %s;\n", order, address_of(w, word[1], a),
            value_of(w, word[2], b));
    else if (!strcmp(part[0], "atom") && n >= 3)
        atomic(w, order, part[parts - 1], word + 1, n);
    else if (!strcmp(part[0], "red") && n == 2)
        atomic(w, order, part[parts - 1], (char *[]){(char[]){"none"}, word[1], word[2]}, 3);
    else if (!strcmp(part[0], "fence"))
        fence(w, full, part, parts);
    else if (!strcmp(part[0], "bar") && n)
        barrier(w, part[parts - 1], word + 1, n);
    else if (is_one_of(part[0], "beq bne goto") && n)
        jump(w, part[0][0] == 'b' ? part[0] + 1 : "", word + 1, n);
    else if (!strcmp(part[0], "add") && n == 3)
        put(w, "add.u32 %s, %s, %s;\n", register_of(w, word[1], a), value_of(w, word[2], b),
            value_of(w, word[3], c));
    else
        refuse(w, full);
}

/* ---- the whole ---- */

struct place {
    unsigned cta, gpu;
};

/* Puts the threads of one CTA side by side; what leads each to its part. */
static void place_threads(struct writer *w, const char *header)
{
    struct place at[LITMUS_THREADS] = {{0, 0}}, ctas[LITMUS_THREADS] = {{0, 0}};
    uint32_t warps[LITMUS_THREADS] = {0}, n = 0;
    char cell[CELL];
    while (n < LITMUS_THREADS && cell_of(header, n, cell)) {
        uint32_t c = 0;
        if (sscanf(cell, " P%*u@cta %u , gpu %u", &at[n].cta, &at[n].gpu) != 2) break;
        while (c < w->l->ctas && (ctas[c].cta != at[n].cta || ctas[c].gpu != at[n].gpu)) c++;
        if (c == w->l->ctas) ctas[w->l->ctas++] = at[n];
        w->cta[n] = c;
        put(w, "setp.eq.u32 p, cta, %u;\nsetp.eq.and.u32 p, warp, %u, p;\n@p bra P%u;\n", c,
            warps[c]++, n);
        if (32 * warps[c] > w->l->block) w->l->block = 32 * warps[c];
        n++;
    }
    put(w, "ret;\n");
    w->threads = n;
}

static void write_thread(struct writer *w, const char *rows)
{
    char cell[CELL];
    w->labels[0] = '\0';
    put(w, "P%u:\n", w->thread);
    for (uint32_t i = 0; i < w->l->name_count; i++) {
        const struct litmus_name *n = &w->l->names[i];
        char r[LITMUS_NAME];
        unsigned thread;
        if (sscanf(n->name, "P%u:", &thread) == 1 && thread == w->thread && strchr(n->name, ':')[1])
            put(w, "mov.u32 %s, %u;\n", register_of(w, strchr(n->name, ':') + 1, r), n->value);
    }
    for (const char *row = rows; is_row(row) && !w->failed; row = next_row(row))
        if (cell_of(row, w->thread, cell)) instruction(w, cell);
    for (uint32_t i = 0; i < w->l->name_count; i++) {
        const struct litmus_name *n = &w->l->names[i];
        unsigned thread;
        if (sscanf(n->name, "P%u:", &thread) == 1 && thread == w->thread && strchr(n->name, ':')[1])
            put(w, "st.global.u32 [m+%u], P%u_%s;\n", n->place * 4 * LITMUS_STRIDE, thread,
                strchr(n->name, ':') + 1);
    }
    snprintf(cell, sizeof cell, "P%u:", w->thread);
    if (name_of(w->l, cell))
        put(w, "st.global.u32 [m+%u], 1;\n", find(w->l, cell)->place * 4 * LITMUS_STRIDE);
    put(w, "ret;\n");
}

static void read_condition(struct writer *w, const char *at)
{
    struct litmus_text *l = w->l;
    l->quantifier = !strncmp(at, "forall", 6) ? LITMUS_FORALL
                    : *at == '~'              ? LITMUS_NEVER
                                              : LITMUS_EXISTS;
    if (strncmp(at, "exists", 6) && strncmp(at, "forall", 6) && strncmp(at, "~exists", 7))
        refuse(w, "no condition");
    while (*at && !isspace((unsigned char)*at) && *at != '(') at++;
    snprintf(l->condition, sizeof l->condition, "%s", at);
}

char *litmus_translate(struct litmus_text *l, const char *source)
{
    struct writer *w = calloc(1, sizeof *w);
    char *body, *text = NULL, item[CELL];
    const char *at = strchr(source, '{'), *rows = at ? strchr(at, '}') : NULL;
    memset(l, 0, sizeof *l);
    if (!w || !at || !rows || !(w->text = malloc(ROOM))) {
        if (w) free(w->text);
        free(w);
        return NULL;
    }
    w->l = l;
    for (at++; at < rows; at += strcspn(at, ";}") + 1) {
        snprintf(item, sizeof item, "%.*s", (int)strcspn(at, ";}"), at);
        initial(w, item);
    }
    for (rows++; isspace((unsigned char)*rows); rows++) {}
    place_threads(w, rows);
    w->rows = rows = next_row(rows);
    for (w->thread = 0; w->thread < w->threads && !w->failed; w->thread++) write_thread(w, rows);
    for (at = rows; is_row(at); at = next_row(at)) {}
    read_condition(w, at);
    body = w->text;
    if (!w->failed && w->threads && (text = malloc(ROOM + sizeof w->declared)))
        snprintf(
            text, ROOM + sizeof w->declared,
            ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 "
            "memory)\n{\n"
            ".reg .pred p;\n.reg .b32 cta, warp, lane;\n.reg .b64 m;\n%sld.param.u64 m, [memory];\n"
            "mov.u32 cta, %%ctaid.x;\nmov.u32 lane, %%tid.x;\nshr.u32 warp, lane, 5;\nand.b32 "
            "lane, lane, 31;\n"
            "setp.ne.u32 p, lane, 0;\n@p ret;\n%s}\n",
            w->declared, body);
    free(w->text);
    free(w);
    return text;
}

void litmus_start(const struct litmus_text *l, uint32_t *memory)
{
    for (uint32_t i = 0; i < l->name_count; i++)
        if (l->names[i].value) memory[l->names[i].place * LITMUS_STRIDE] = l->names[i].value;
}

/* ---- conditions: terms, ~, /\, \/, parentheses ---- */

struct reader {
    const struct litmus_text *l;
    const uint32_t *memory;
    const char *at;
    bool unfinished; /* asks for a register of a thread that has not come to its end */
};

static bool skip(struct reader *r, const char *word)
{
    while (isspace((unsigned char)*r->at)) r->at++;
    if (strncmp(r->at, word, strlen(word)) != 0) return false;
    r->at += strlen(word);
    return true;
}

static uint32_t term(struct reader *r)
{
    char name[CELL];
    const struct litmus_name *n;
    size_t length = 0;
    while (isspace((unsigned char)*r->at)) r->at++;
    while (isalnum((unsigned char)r->at[length]) || (r->at[length] && strchr(":_-", r->at[length])))
        length++;
    snprintf(name, sizeof name, "%s%.*s", memchr(r->at, ':', length) && *r->at != 'P' ? "P" : "",
             (int)length, r->at);
    r->at += length;
    if (isdigit((unsigned char)*name) || *name == '-') return (uint32_t)strtol(name, NULL, 10);
    if (strchr(name, ':')) {
        char end[CELL];
        snprintf(end, sizeof end, "%.*s:", (int)strcspn(name, ":"), name);
        n = find(r->l, end);
        r->unfinished |= n && !r->memory[n->place * LITMUS_STRIDE];
    }
    n = find(r->l, name);
    return n ? r->memory[n->place * LITMUS_STRIDE] : 0;
}

static bool either(struct reader *r);

static bool single(struct reader *r)
{
    uint32_t left;
    bool equal;
    if (skip(r, "~")) return !single(r);
    if (skip(r, "(")) {
        const bool inner = either(r);
        skip(r, ")");
        return inner;
    }
    left = term(r);
    equal = !skip(r, "!=");
    if (equal && !skip(r, "==")) skip(r, "=");
    return (left == term(r)) == equal;
}

static bool both(struct reader *r)
{
    bool value = single(r);
    while (skip(r, "/\\")) value = single(r) && value;
    return value;
}

static bool either(struct reader *r)
{
    bool value = both(r);
    while (skip(r, "\\/")) value = both(r) || value;
    return value;
}

int litmus_holds(const struct litmus_text *l, const uint32_t *memory)
{
    struct reader r = {l, memory, l->condition, false};
    const bool value = either(&r);
    return r.unfinished ? -1 : value;
}
