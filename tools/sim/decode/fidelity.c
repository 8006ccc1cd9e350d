#include "decode/fidelity.h"

#include <stddef.h>
#include <string.h>

#define F(name, words, accuracy, evidence, note) \
    {name, words, ACCURACY_##accuracy, EVIDENCE_##evidence, note},
const struct fidelity fidelities[] = {
#include "decode/fidelity.def"
};
#undef F

const uint32_t fidelity_count = sizeof fidelities / sizeof fidelities[0];

bool fidelity_fits(const struct fidelity *claim, const char *name, const char *mods)
{
    const size_t length = strlen(claim->name);

    return !strncmp(name, claim->name, length) &&
           (!length || !name[length] || name[length] == '.') && strstr(mods, claim->words);
}

const struct fidelity *fidelity_of(const char *name, const char *mods)
{
    for (uint32_t i = 0; i < fidelity_count; i++)
        if (fidelity_fits(&fidelities[i], name, mods)) return &fidelities[i];
    return NULL;
}
