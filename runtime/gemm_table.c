/* The table of hewn_gemm_tune: sorted lines, and their text. */
#include "gemm_table.h"

#include "error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 256, FIELDS = 14 };

struct hewn_gemm_table {
    struct gemm_table_line *lines; /* in the order of memcmp of their keys */
    size_t count, room;
};

static const char heading[] =
    "# hewn gemm table: target SMs A B D major_A major_B accumulate batch "
    "m n k variant/parts[*slices] microseconds\n";

/* ---- keys -- */

void hewn_gemm_table_key(const hewn_gemm_desc *d, const char *target, int sm_count,
                         struct gemm_table_key *key)
{
    memset(key, 0, sizeof *key);
    snprintf(key->target, sizeof key->target, "%s", target);
    key->sm_count = sm_count;
    key->in = d->in;
    key->in_b = d->in_b ? d->in_b : d->in;
    key->out = d->out;
    key->major_a = d->major_a;
    key->major_b = d->major_b;
    key->accumulate = hewn_dtype_size(d->in) == 1 ? d->accumulate : 0;
    key->batch = d->batch ? d->batch : 1;
    key->m = d->m, key->n = d->n, key->k = d->k;
}

/* Where the key stands or belongs. */
static size_t place_of(const hewn_gemm_table *table, const struct gemm_table_key *key)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(&table->lines[middle].key, key, sizeof *key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int has(const hewn_gemm_table *table, size_t at, const struct gemm_table_key *key)
{
    return at < table->count && !memcmp(&table->lines[at].key, key, sizeof *key);
}

const struct gemm_table_line *hewn_gemm_table_find(const hewn_gemm_desc *d, const char *target,
                                                   int sm_count)
{
    struct gemm_table_key key;
    if (!d->table || d->variant || d->parts || d->invariant) return NULL;
    hewn_gemm_table_key(d, target, sm_count, &key);
    size_t at = place_of(d->table, &key);
    return has(d->table, at, &key) ? &d->table->lines[at] : NULL;
}

int hewn_gemm_table_put(hewn_gemm_table *table, const struct gemm_table_line *line, hewn_error *err)
{
    size_t at = place_of(table, &line->key);
    if (has(table, at, &line->key)) {
        table->lines[at] = *line;
        return HEWN_OK;
    }
    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 16;
        struct gemm_table_line *more = realloc(table->lines, room * sizeof *more);
        if (!more) return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the table");
        table->lines = more, table->room = room;
    }
    memmove(&table->lines[at + 1], &table->lines[at], (table->count - at) * sizeof *table->lines);
    table->lines[at] = *line;
    table->count++;
    return HEWN_OK;
}

/* ---- text -- */

static int read_dtype(const char *text, int64_t *out)
{
    for (int i = 0; hewn_dtype_name(i); i++)
        if (!strcmp(hewn_dtype_name(i), text)) return *out = i, 1;
    return 0;
}

static int read_word(const char *text, const char *zero, const char *one, int64_t *out)
{
    *out = !strcmp(text, one);
    return *out || !strcmp(text, zero);
}

static int read_extent(const char *text, int64_t *out)
{
    char *end = NULL;
    *out = strtoll(text, &end, 10);
    return end != text && !*end && *out >= 1 && *out <= INT32_MAX;
}

static int read_name(const char *text, size_t length, char to[GEMM_TABLE_NAME])
{
    if (!length || length >= GEMM_TABLE_NAME) return 0;
    memcpy(to, text, length);
    return 1;
}

/* variant/parts, or variant/parts*slices. */
static int read_choice(char *text, struct gemm_table_line *line)
{
    char *slash = strchr(text, '/'), *star = slash ? strchr(slash, '*') : NULL;
    int64_t parts = 0, slices = 1;
    if (star) *star = '\0';
    int well = slash && read_name(text, (size_t)(slash - text), line->variant) &&
               read_extent(slash + 1, &parts) && (!star || read_extent(star + 1, &slices));
    if (star) *star = '*';
    line->parts = (uint32_t)parts, line->slices = (uint32_t)slices;
    return well;
}

static int read_time(const char *text, double *seconds)
{
    char *end = NULL;
    *seconds = 1e-6 * strtod(text, &end);
    return end != text && !*end && *seconds >= 0 && *seconds < 1e6;
}

/* Which of a line's fields is not as it must be, from 1; 0: all are well. */
static int read_fields(char *const field[FIELDS], struct gemm_table_line *line)
{
    struct gemm_table_key *key = &line->key;
    memset(line, 0, sizeof *line);
    if (!read_name(field[0], strlen(field[0]), key->target)) return 1;
    if (!read_extent(field[1], &key->sm_count)) return 2;
    if (!read_dtype(field[2], &key->in)) return 3;
    if (!read_dtype(field[3], &key->in_b)) return 4;
    if (!read_dtype(field[4], &key->out)) return 5;
    if (!read_word(field[5], "k", "mn", &key->major_a)) return 6;
    if (!read_word(field[6], "k", "mn", &key->major_b)) return 7;
    if (!read_word(field[7], "full", "fast", &key->accumulate)) return 8;
    if (!read_extent(field[8], &key->batch)) return 9;
    if (!read_extent(field[9], &key->m)) return 10;
    if (!read_extent(field[10], &key->n)) return 11;
    if (!read_extent(field[11], &key->k)) return 12;
    if (!read_choice(field[12], line)) return 13;
    return read_time(field[13], &line->seconds) ? 0 : 14;
}

/* One line of the text, without its end. */
static int read_line(hewn_gemm_table *table, const char *text, size_t length, size_t number,
                     hewn_error *err)
{
    char copy[LINE], *field[FIELDS], *rest = NULL;
    struct gemm_table_line line;
    int fields = 0;
    if (length >= LINE || memchr(text, 0, length))
        return hewn_fail(err, HEWN_ERR_ARGUMENT,
                         "table: line %zu is no text of fewer than %d characters", number, LINE);
    memcpy(copy, text, length);
    copy[length] = '\0';
    for (char *word = strtok_r(copy, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
        if (!fields && *word == '#') return HEWN_OK;
        if (fields < FIELDS) field[fields] = word;
        fields++;
    }
    if (!fields) return HEWN_OK;
    if (fields != FIELDS)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "table: line %zu has %d fields, not %d", number,
                         fields, FIELDS);
    int wrong = read_fields(field, &line);
    if (wrong)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "table: line %zu, field %d: \"%s\" cannot be",
                         number, wrong, field[wrong - 1]);
    return hewn_gemm_table_put(table, &line, err);
}

/* ---- the public functions -- */

int hewn_gemm_table_create(hewn_gemm_table **out, hewn_error *err)
{
    if (!out) return hewn_fail_null(err, "out");
    hewn_gemm_table *table = calloc(1, sizeof *table);
    if (!table) return hewn_fail(err, HEWN_ERR_MEMORY, "out of host memory for the table");
    *out = table;
    return HEWN_OK;
}

void hewn_gemm_table_destroy(hewn_gemm_table *table)
{
    if (table) free(table->lines);
    free(table);
}

size_t hewn_gemm_table_count(const hewn_gemm_table *table)
{
    return table ? table->count : 0;
}

/* Reads into a copy, which takes the table's place when all of the text was read. */
int hewn_gemm_table_read(hewn_gemm_table *table, const char *text, size_t length, hewn_error *err)
{
    hewn_gemm_table copy = {0};
    int status = HEWN_OK;
    size_t number = 1;
    if (!table) return hewn_fail_null(err, "table");
    if (!text && length) return hewn_fail_null(err, "text");
    for (size_t i = 0; !status && i < table->count; i++)
        status = hewn_gemm_table_put(&copy, &table->lines[i], err);
    for (size_t at = 0; !status && at < length; number++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t bytes = end ? (size_t)(end - text) - at : length - at;
        status = read_line(&copy, text + at, bytes, number, err);
        at += bytes + 1;
    }
    free(status ? copy.lines : table->lines);
    if (!status) *table = copy;
    return status;
}

static size_t format_line(const struct gemm_table_line *line, char text[LINE])
{
    static const char *const majors[] = {"k", "mn"}, *const sums[] = {"full", "fast"};
    const struct gemm_table_key *key = &line->key;
    char slices[16] = "";
    if (line->slices > 1) snprintf(slices, sizeof slices, "*%u", line->slices);
    int bytes =
        snprintf(text, LINE, "%s %lld %s %s %s %s %s %s %lld %lld %lld %lld %s/%u%s %.3f\n",
                 key->target, (long long)key->sm_count, hewn_dtype_name((int)key->in),
                 hewn_dtype_name((int)key->in_b), hewn_dtype_name((int)key->out),
                 majors[key->major_a], majors[key->major_b], sums[key->accumulate],
                 (long long)key->batch, (long long)key->m, (long long)key->n, (long long)key->k,
                 line->variant, line->parts, slices, 1e6 * line->seconds);
    return bytes < 0 ? 0 : (size_t)bytes;
}

int hewn_gemm_table_write(const hewn_gemm_table *table, char *text, size_t capacity, size_t *length,
                          hewn_error *err)
{
    size_t bytes = sizeof heading - 1;
    char line[LINE];
    if (!table) return hewn_fail_null(err, "table");
    if (!length) return hewn_fail_null(err, "length");
    if (!text && capacity) return hewn_fail_null(err, "text");
    for (size_t i = 0; i < table->count; i++) bytes += format_line(&table->lines[i], line);
    *length = bytes;
    if (bytes >= capacity)
        return hewn_fail(err, HEWN_ERR_LIMIT,
                         "capacity: %zu B do not hold the text of %zu B and a NUL", capacity,
                         bytes);
    memcpy(text, heading, sizeof heading);
    bytes = sizeof heading - 1;
    for (size_t i = 0; i < table->count; i++) {
        size_t used = format_line(&table->lines[i], line);
        memcpy(text + bytes, line, used + 1);
        bytes += used;
    }
    return HEWN_OK;
}
