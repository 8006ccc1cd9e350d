#include "mbarrier.pml"
#define ITEMS 4
#ifdef FIXED
#define PRODUCERS 2
#else
#define PRODUCERS 1
#endif
mbar ready, vacant;
byte slot[2];
active proctype consumer()
{
    byte n;
    INIT(ready, PRODUCERS); INIT(vacant, 1);
    run producer(0); run producer(1);
    for (n : 0 .. ITEMS - 1) {
        WAIT(ready, n & 1);
        assert(slot[0] == n && slot[1] == n);
        ARRIVE(vacant)
    }
}
proctype producer(byte half)
{
    byte n;
    for (n : 0 .. ITEMS - 1) {
        WAIT(vacant, (n & 1) ^ 1);
        slot[half] = n;
        ARRIVE(ready)
    }
}
