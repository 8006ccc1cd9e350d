/* How close the simulator's results are to hardware's, a claim for each row of the opcode table. */
#ifndef SIM_DECODE_FIDELITY_H
#define SIM_DECODE_FIDELITY_H

#include <stdbool.h>
#include <stdint.h>

enum accuracy { ACCURACY_EXACT, ACCURACY_BOUNDED, ACCURACY_HINT, ACCURACY_TIME };
enum evidence { EVIDENCE_H200, EVIDENCE_WORDS, EVIDENCE_ISA };

/* A line of fidelity.def, which says what the words mean. */
struct fidelity {
    const char *name, *words;
    enum accuracy accuracy;
    enum evidence evidence;
    const char *note;
};

extern const struct fidelity fidelities[];
extern const uint32_t fidelity_count;

/* Whether the line is about an instruction of this name and these modifiers (struct op_row). */
bool fidelity_fits(const struct fidelity *claim, const char *name, const char *mods);
/* The line that holds for them. */
const struct fidelity *fidelity_of(const char *name, const char *mods);

#endif
