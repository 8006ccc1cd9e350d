/* Readers of the simulated driver. */
#include "fuzz/fuzz.h"

#include "async/tmap.h"
#include "async/tmap_copy.h"
#include "decode/decode.h"
#include "ops/table.h"
#include "ptx/demangle.h"
#include "ptx/cubin.h"
#include "ptx/fatbin.h"
#include "ptx/join.h"
#include "ptx/lz4.h"
#include "ptx/module.h"
#include "ptx/zstd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- PTX ---- */

static void decode_entry(const struct ptx_module *m, const struct ptx_entry *entry)
{
    struct ptx_diag diag = {""};
    struct kernel *kernel = NULL;
    char name[256];
    int rc = kernel_decode(m, entry, op_binders, &kernel, &diag);

    if (rc && !*diag.text) abort(); /* refused without a reason */
    if (!rc) kernel_free(kernel);
    demangle(entry->name, name, sizeof name);
    if (!memchr(name, 0, sizeof name)) abort();
}

void fuzz_ptx(const uint8_t *data, size_t size)
{
    struct ptx_diag diag = {""};
    struct ptx_module *m = NULL;

    if (ptx_parse((const char *)data, size, &m, &diag)) {
        if (!*diag.text) abort();
        return;
    }
    for (uint32_t i = 0; i < m->entry_count; i++) decode_entry(m, &m->entries[i]);
    ptx_module_free(m);
}

void fuzz_join(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"first", "second", "third"};
    const char *texts[3];
    char *copy = malloc(size + 1), *joined = NULL, message[256] = "";
    size_t count = 0, at = 0;

    if (!copy) return;
    memcpy(copy, data, size);
    copy[size] = 0;
    for (; count < 3 && at < size; at += strlen(copy + at) + 1) texts[count++] = copy + at;
    if (count) {
        enum join_status rc =
            ptx_join(texts, names, count, size & 1, &joined, message, sizeof message);
        if (rc == JOIN_OK ? !joined : joined != NULL) abort();
        if (rc == JOIN_OK) fuzz_ptx((const uint8_t *)joined, strlen(joined));
        if (rc != JOIN_OK && rc != JOIN_NO_MEMORY && !*message) abort();
    }
    free(joined);
    free(copy);
}

/* ---- fat binaries ---- */

enum { UNPACKED_MOST = 1 << 22 }; /* what one run takes of an entry that claims more */

void fuzz_fatbin(const uint8_t *data, size_t size)
{
    struct fatbin f;
    struct fatbin_entry entry;
    char *kept = NULL;

    if (cubin_ptx((const char *)data, size, &kept) == CUBIN_OK) {
        if (strlen(kept) > size) abort();
        free(kept);
    }
    kept = NULL;
    if (cubin_names((const char *)data, size, &kept) == CUBIN_OK) {
        fuzz_ptx((const uint8_t *)kept, strlen(kept));
        free(kept);
    }
    if (fatbin_open(&f, data, size)) return;
    while (fatbin_next(&f, &entry) > 0) {
        char *text = NULL;
        if (entry.stored > size) abort();
        if (entry.bytes > UNPACKED_MOST || fatbin_unpack(&entry, &text)) continue;
        if (strlen(text) > entry.bytes) abort();
        free(text);
    }
}

typedef int decode_fn(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

static void decode(decode_fn *by, const uint8_t *data, size_t size)
{
    size_t out_size;
    uint8_t *out;

    if (size < 2) return;
    out_size = (size_t)(data[0] | data[1] << 8);
    out = malloc(out_size + 1);
    if (!out) return;
    by(data + 2, size - 2, out, out_size);
    free(out);
}

void fuzz_lz4(const uint8_t *data, size_t size)
{
    decode(lz4_decode, data, size);
}

void fuzz_zstd(const uint8_t *data, size_t size)
{
    decode(zstd_decode, data, size);
}

/* ---- tensor maps ---- */

enum { MAP_BYTES = 128 };

static void use_map(const struct tmap *t)
{
    int32_t coord[TMAP_COORDS + TMAP_OFFSETS] = {0};

    for (int i = 0; i < TMAP_COORDS; i++) coord[i] = INT32_MIN + i * 0x11111111;
    if (tmap_rows(t) && tmap_row_pitch(t) < tmap_row_bytes(t)) abort();
    (void)tmap_box_bytes(t);
    (void)tmap_signal_bytes(t);
    (void)tmap_box_span(t);
    (void)tmap_outside(t, coord);
}

/* As tensormap.replace changes a map, ten bytes each: a field, one of its numbers, a value. */
static void replace(uint8_t map[], const uint8_t *data, size_t size)
{
    enum { EDIT = 10, ORDINALS = 5 };

    for (; size >= EDIT; data += EDIT, size -= EDIT) {
        enum tmap_field field = (enum tmap_field)(data[0] % (TMAP_FIELD_FILL + 1));
        uint64_t value;
        memcpy(&value, data + 2, sizeof value);
        tmap_replace(map, field, data[1] % ORDINALS, value);
    }
}

/* 128 bytes as they are, and as the rest changes them; or a description, which comes back as it was where the rules take it. */
void fuzz_tmap(const uint8_t *data, size_t size)
{
    struct tmap t, back;
    uint8_t map[MAP_BYTES] = {0}, again[MAP_BYTES];
    char why[256] = "";

    memcpy(map, data, size < sizeof map ? size : sizeof map);
    if (tmap_decode(map, &t) && !tmap_validate(&t, 10, NULL, 0)) use_map(&t);
    if (size > sizeof map) replace(map, data + sizeof map, size - sizeof map);
    if (tmap_decode(map, &t) && !tmap_validate(&t, 10, NULL, 0)) use_map(&t);
    if (size < sizeof t) return;
    memcpy(&t, data, sizeof t);
    if (tmap_validate(&t, 10, why, sizeof why)) {
        if (!*why) abort();
        return;
    }
    use_map(&t);
    tmap_encode(&t, map);
    if (!tmap_decode(map, &back) || back.address != t.address || back.rank != t.rank) abort();
    tmap_encode(&back, again);
    if (memcmp(map, again, sizeof map) != 0) abort();
}
