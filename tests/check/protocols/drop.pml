#include "mbarrier.pml"
#define ROUNDS 3
mbar bar, seen;
byte rounds;
active proctype third()
{
    byte n;
    INIT(bar, 2); INIT(seen, 1);
    run stays(); run leaves();
    for (n : 0 .. ROUNDS - 1) {
        WAIT(bar, n & 1);
        assert(rounds == n + 1);
        ARRIVE(seen)
    }
}
proctype stays()
{
    byte n;
    for (n : 0 .. ROUNDS - 1) {
        atomic { rounds++; assert(bar.pending > 0); bar.pending--; SETTLE(bar) };
        WAIT(seen, n & 1)
    }
}
proctype leaves()
{
    ARRIVE_DROP(bar);
#ifndef FIXED
    ARRIVE(bar)
#endif
}
