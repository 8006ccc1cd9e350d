#include "mbarrier.pml"
#define ITEMS 4
mbar ready, vacant;
byte tile;
proctype copy(byte n) { tile = n; LAND(ready) }
active proctype producer()
{
    byte n;
    INIT(ready, 1); INIT(vacant, 1);
    run consumer();
    for (n : 0 .. ITEMS - 1) {
        ARRIVE_TX(ready);
        run copy(n);
#ifdef FIXED
        WAIT(vacant, n & 1);
#else
        WAIT(ready, n & 1);
#endif
    }
}
proctype consumer()
{
    byte n;
    for (n : 0 .. ITEMS - 1) {
        WAIT(ready, n & 1);
        assert(tile == n);
        ARRIVE(vacant)
    }
}
