/* The combine kernel of decode and MLA: what their launches share. The kernel: ptx/inc/split.plan.h. */
#include "decode.h"

#include "plan.h"

int hewn_split_combine(const hewn_context *context, const struct hewn_loaded *combine,
                       const hewn_cu_launch_config *config, struct split_combine_scalars *scalars,
                       hewn_stream stream, hewn_error *err)
{
    void *params[SPLIT_COMBINE_SCALAR_COUNT];
    size_t n = 0;
#define X(type, name, rule) params[n++] = &scalars->name;
    SPLIT_COMBINE_SCALARS(X)
#undef X
    hewn_cu_launch_config c = *config;
    c.stream = stream;
    return hewn_launch_config(context->driver, &c, combine->function, params, err);
}
