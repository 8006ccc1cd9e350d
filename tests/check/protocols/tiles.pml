#include "mbarrier.pml"
#define TILES 3
#define ITEMS 3
mbar ready, vacant;
byte slot;
active proctype producer()
{
    byte n;
    INIT(ready, 1); INIT(vacant, 1);
    run consumer();
    for (n : 0 .. TILES * ITEMS - 1) {
        WAIT(vacant, (n & 1) ^ 1);
        slot = n;
        ARRIVE(ready)
    }
}
proctype consumer()
{
    byte t, k, parity = 0;
    for (t : 0 .. TILES - 1) {
#ifndef FIXED
        parity = 0;
#endif
        for (k : 0 .. ITEMS - 1) {
            WAIT(ready, parity);
            assert(slot == t * ITEMS + k);
            ARRIVE(vacant);
            parity = parity ^ 1
        }
    }
}
