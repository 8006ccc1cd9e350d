/* The combine kernel of decode and MLA: what their launches share. The kernel: ptx/inc/split.plan.h. */
#include "decode.h"

#include "plan.h"

int hewn_split_combine(const hewn_context *context, const struct hewn_loaded *combine,
                       const hewn_cu_launch_config *config, struct split_combine_scalars *scalars,
                       hewn_stream stream, hewn_error *err)
{
    struct hewn_params params;
    hewn_params_begin(&params, NULL, 0);
    hewn_params_add(&params, scalars, SPLIT_COMBINE_SCALARS(HEWN_SCALAR_SIZE));
    return hewn_plan_launch(context, combine, config, stream, &params, err);
}
