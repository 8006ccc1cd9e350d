/*
 * The forms of instructions that a process ran: HEWN_SIM_FORMS=FILE. A form is an opcode with its modifiers, and
 * the special register that it reads. Each form of a kernel that was launched is appended to the file once a process.
 * tests/others/forms.py compares such files with the forms of somebody's PTX.
 */
#include "decode/decode.h"
#include "machine/exec.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORM_SIZE = 192, BUCKETS = 4096 };

struct form {
    struct form *next;
    char text[FORM_SIZE];
};

static const char *const registers[] = {
#define X(name, text) text,
    SPECIAL_REGS(X)
#undef X
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct form *buckets[BUCKETS];

static void form_of(const struct ptx_insn *in, char text[FORM_SIZE])
{
    size_t used = 0;

    text[0] = '\0';
    for (uint16_t i = 0; i < in->mod_count && used < FORM_SIZE; i++)
        used += (size_t)snprintf(text + used, FORM_SIZE - used, "%s%s", i ? "." : "", in->mods[i]);
    for (uint16_t i = 0; i < in->operand_count && used < FORM_SIZE; i++)
        if (in->operands[i].kind == OPD_SREG && in->operands[i].reg < SR_COUNT)
            used += (size_t)snprintf(text + used, FORM_SIZE - used, " %s",
                                     registers[in->operands[i].reg]);
}

/* Whether the process has not told this form yet. One that memory does not suffice for is told again. */
static bool is_new(const char *text)
{
    uint32_t hash = 5381;

    for (const char *at = text; *at; at++) hash = hash * 33 + (unsigned char)*at;
    struct form **bucket = &buckets[hash % BUCKETS];
    for (const struct form *f = *bucket; f; f = f->next)
        if (!strcmp(f->text, text)) return false;
    struct form *f = calloc(1, sizeof *f);
    if (!f) return true;
    (void)snprintf(f->text, sizeof f->text, "%s", text);
    f->next = *bucket;
    *bucket = f;
    return true;
}

void forms_note(const struct kernel *kernel)
{
    const char *path = getenv("HEWN_SIM_FORMS");
    FILE *file = path && *path ? fopen(path, "a") : NULL;
    char text[FORM_SIZE];

    if (!file) return;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < kernel->insn_count; i++) {
        if (!kernel->insns[i].src) continue;
        form_of(kernel->insns[i].src, text);
        if (is_new(text)) (void)fprintf(file, "%s\n", text);
    }
    pthread_mutex_unlock(&lock);
    (void)fclose(file);
}
