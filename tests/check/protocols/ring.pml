#include "mbarrier.pml"
#define ITEMS 5
mbar ready[2], vacant[2];
byte slot[2];
active proctype producer()
{
    byte n;
    INIT(ready[0], 1); INIT(ready[1], 1); INIT(vacant[0], 1); INIT(vacant[1], 1);
    run consumer();
    for (n : 0 .. ITEMS - 1) {
#ifdef FIXED
        WAIT(vacant[n & 1], ((n >> 1) & 1) ^ 1);
#endif
        slot[n & 1] = n;
        ARRIVE(ready[n & 1])
    }
}
proctype consumer()
{
    byte n;
    for (n : 0 .. ITEMS - 1) {
        WAIT(ready[n & 1], (n >> 1) & 1);
        assert(slot[n & 1] == n);
        ARRIVE(vacant[n & 1])
    }
}
