/* Memory before and after a launch: images.h. */
#include "explore/images.h"

#include <stdlib.h>
#include <string.h>

bool images_take(struct images *m, const struct mem_piece *memory, size_t count)
{
    size_t at = 0;
    m->memory = memory;
    m->count = count;
    for (size_t i = 0; i < m->count; i++) m->bytes += m->memory[i].bytes;
    m->first = malloc(2 * m->bytes + 1);
    if (!m->first) return false;
    m->result = m->first + m->bytes;
    for (size_t i = 0; i < m->count; at += m->memory[i++].bytes)
        memcpy(m->first + at, m->memory[i].at, m->memory[i].bytes);
    return true;
}

void images_restore(const struct images *m)
{
    size_t at = 0;
    for (size_t i = 0; i < m->count; at += m->memory[i++].bytes)
        memcpy(m->memory[i].at, m->first + at, m->memory[i].bytes);
}

void images_keep(const struct images *m)
{
    size_t at = 0;
    for (size_t i = 0; i < m->count; at += m->memory[i++].bytes)
        memcpy(m->result + at, m->memory[i].at, m->memory[i].bytes);
}

bool images_same(const struct images *m)
{
    size_t at = 0;
    for (size_t i = 0; i < m->count; at += m->memory[i++].bytes)
        if (memcmp(m->result + at, m->memory[i].at, m->memory[i].bytes) != 0) return false;
    return true;
}

bool images_differ(const struct images *m, uint64_t *address, uint32_t *kept, uint32_t *now)
{
    size_t at = 0;
    for (size_t i = 0; i < m->count; at += m->memory[i++].bytes) {
        const unsigned char *is = m->memory[i].at, *was = m->result + at;
        for (size_t b = 0; b < m->memory[i].bytes; b++) {
            const size_t word = b / sizeof *now * sizeof *now, rest = m->memory[i].bytes - word;
            if (is[b] == was[b]) continue;
            *address = (uint64_t)(uintptr_t)is + word;
            *kept = *now = 0;
            memcpy(kept, was + word, rest < sizeof *kept ? rest : sizeof *kept);
            memcpy(now, is + word, rest < sizeof *now ? rest : sizeof *now);
            return true;
        }
    }
    return false;
}

void images_free(struct images *m)
{
    if (m->first) images_restore(m);
    free(m->first);
    m->first = m->result = NULL;
}
