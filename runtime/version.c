#include "hewn.h"

int hewn_version(void)
{
    return HEWN_VERSION_MAJOR * 10000 + HEWN_VERSION_MINOR * 100 + HEWN_VERSION_PATCH;
}
