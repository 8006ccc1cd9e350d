/*
 * What became of the mutants, a line each, so that a run that was stopped goes on where it was, and so that runs on
 * several machines add up:
 *
 *     KERNEL HASH INDEX FATE PROBE
 *     KERNEL HASH clean - PROBE          the kernel as it is, by that probe
 *
 * HASH is of the kernel's text and its case; a line about others is passed over. FATE is a letter (below). Reasons are looked
 * up anew.
 */
#include "mutate_session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char letters[FATES + 1] = "?f2rildous";

static uint64_t hash_of(const struct kernel *k)
{
    uint64_t h = 0xcbf29ce484222325;
    for (int part = 0; part < 2; part++)
        for (const char *c = part ? k->run : k->original; *c; c++)
            h = (h ^ (unsigned char)*c) * 0x100000001b3;
    return h;
}

static struct kernel *kernel_of(struct session *s, const char *name, uint64_t hash)
{
    for (struct kernel *k = s->kernel; k < s->kernel + s->kernels; k++)
        if (!strcmp(k->name, name)) return k->hash == hash ? k : NULL;
    return NULL;
}

/* What has a reason, or had one, by the rows of now. WAITING: it must be asked again. */
static enum fate by_reasons(struct session *s, struct kernel *k, int i, enum fate fate)
{
    struct reason *reason = reason_for(s, k, &k->mutant[i]);
    if (!reason) return fate == SURVIVED ? SURVIVED : WAITING;
    reason->used = true;
    k->result[i].reason = reason->why;
    return reason->kind == REASON_LEGAL ? LEGAL : OPEN;
}

static void take(struct session *s, struct kernel *k, int index, char letter, int probe)
{
    const char *at = strchr(letters, letter);
    for (int i = 0; i < k->mutants && at; i++) {
        struct result *r = &k->result[i];
        if (k->mutant[i].index != index) continue;
        r->fate = (enum fate)(at - letters);
        r->probe = probe;
        if (r->fate == LEGAL || r->fate == OPEN || r->fate == SURVIVED)
            r->fate = by_reasons(s, k, i, r->fate);
    }
}

int fates_open(struct session *s, const char *path)
{
    char name[NAME], what[16], letter;
    uint64_t hash;
    int probe;
    for (struct kernel *k = s->kernel; k < s->kernel + s->kernels; k++) k->hash = hash_of(k);
    s->o.fates = fopen(path, "a+");
    if (!s->o.fates) return perror(path), -1;
    rewind(s->o.fates);
    while (fscanf(s->o.fates, "%95s %" SCNx64 " %15s %c %d", name, &hash, what, &letter, &probe) ==
           5) {
        struct kernel *k = kernel_of(s, name, hash);
        if (!k || probe < 0 || probe >= PROBES) continue;
        if (!strcmp(what, "clean"))
            k->clean[probe] = true;
        else
            take(s, k, atoi(what), letter, probe);
    }
    fseek(s->o.fates, 0, SEEK_END);
    return 0;
}

void fates_add(const struct session *s, const struct kernel *k, const struct mutant *m,
               const struct result *r)
{
    if (!s->o.fates) return;
    fprintf(s->o.fates, "%s %" PRIx64 " %d %c %d\n", k->name, k->hash, m->index, letters[r->fate],
            r->probe < PROBES ? r->probe : PROBES - 1);
    fflush(s->o.fates);
}

void fates_add_clean(const struct session *s, const struct kernel *k, int probe)
{
    if (!s->o.fates) return;
    fprintf(s->o.fates, "%s %" PRIx64 " clean - %d\n", k->name, k->hash, probe);
    fflush(s->o.fates);
}
