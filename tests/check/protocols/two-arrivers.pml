#include "mbarrier.pml"
#define ROUNDS 3
mbar both, seen;
byte rounds[2];
active proctype third()
{
    byte n;
    INIT(both, 2); INIT(seen, 1);
    run arriver(0); run arriver(1);
    for (n : 0 .. ROUNDS - 1) {
        WAIT(both, n & 1);
        assert(rounds[0] > n && rounds[1] > n);
        ARRIVE(seen)
    }
}
proctype arriver(byte me)
{
    byte n;
    for (n : 0 .. ROUNDS - 1) {
        atomic { rounds[me]++; assert(both.pending > 0); both.pending--; SETTLE(both) };
#ifdef FIXED
        WAIT(seen, n & 1);
#endif
    }
}
