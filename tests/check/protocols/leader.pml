#include "mbarrier.pml"
#define ROUNDS 4
mbar open, passed;
inline ROUND(n)
{
    WAIT(open, n & 1);
#ifdef FIXED
    ARRIVE(passed);
    WAIT(passed, n & 1);
#endif
}
active proctype leader()
{
    byte n;
    INIT(open, 1); INIT(passed, 2);
    run peer();
    for (n : 0 .. ROUNDS - 1) {
        ARRIVE(open);
        ROUND(n)
    }
}
proctype peer()
{
    byte n;
    for (n : 0 .. ROUNDS - 1) { ROUND(n) }
}
