#include "mbarrier.pml"
mbar ping, pong;
active proctype first()
{
    INIT(ping, 1); INIT(pong, 1);
    run second();
#ifdef FIXED
    ARRIVE(ping);
    WAIT(pong, 0)
#else
    WAIT(pong, 0);
    ARRIVE(ping)
#endif
}
proctype second()
{
    WAIT(ping, 0);
    ARRIVE(pong)
}
