#include "mbarrier.pml"
#define ITEMS 4
mbar ready, vacant;
byte slot;
active proctype producer()
{
    byte n;
    INIT(ready, 1); INIT(vacant, 1);
    run consumer();
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
#ifdef FIXED
        assert(slot == n);
        ARRIVE(vacant)
#else
        ARRIVE(vacant);
        assert(slot == n)
#endif
    }
}
