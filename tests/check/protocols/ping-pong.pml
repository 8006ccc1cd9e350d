#include "mbarrier.pml"
#define TURNS 4
mbar ping, pong;
active proctype first()
{
    byte n;
    INIT(ping, 1); INIT(pong, 1);
    run second();
    for (n : 0 .. TURNS - 1) {
        ARRIVE(ping);
        WAIT(pong, n & 1)
    }
}
proctype second()
{
    byte n;
    for (n : 0 .. TURNS - 1) {
#ifdef FIXED
        WAIT(ping, n & 1);
#else
        WAIT(ping, 0);
#endif
        ARRIVE(pong)
    }
}
