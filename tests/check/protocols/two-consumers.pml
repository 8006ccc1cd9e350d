#include "mbarrier.pml"
#define ITEMS 4
#ifdef FIXED
#define CONSUMERS 2
#else
#define CONSUMERS 1
#endif
mbar ready, vacant;
byte slot;
active proctype producer()
{
    byte n;
    INIT(ready, 1); INIT(vacant, CONSUMERS);
    run consumer(); run consumer();
    for (n : 0 .. ITEMS - 1) {
        WAIT(vacant, (n & 1) ^ 1);
        slot = n;
        ARRIVE(ready)
    }
}
proctype consumer()
{
    byte n;
    for (n : 0 .. ITEMS - 1) {
        WAIT(ready, n & 1);
        assert(slot == n);
        ARRIVE(vacant)
    }
}
