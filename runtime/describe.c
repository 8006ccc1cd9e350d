/* What a module is: its names, its manifest, its images. */
#include "error.h"
#include "module.h"
#include "structs.h"

#include <stdatomic.h>
#include <stdlib.h>

/* hewn.h gives out pointers to manifests and images that stay valid, but the library holds them
 * compressed. So a pack that is asked for is unpacked once and kept, newest first. Nothing but these two
 * functions uses it: plans and launches do not. */
struct kept {
    struct kept *next;
    const struct hewn_pack *pack;
    unsigned char bytes[];
};
static _Atomic(struct kept *) kept;

static const struct kept *find(const struct kept *list, const struct hewn_pack *pack)
{
    while (list && list->pack != pack) list = list->next;
    return list;
}

/* Puts `fresh` on the list unless another thread was faster. Returns what is on the list. */
static const struct kept *keep(struct kept *fresh)
{
    struct kept *head = atomic_load(&kept);
    do {
        const struct kept *there = find(head, fresh->pack);
        if (there) {
            free(fresh);
            return there;
        }
        fresh->next = head;
    } while (!atomic_compare_exchange_weak(&kept, &head, fresh));
    return fresh;
}

static int bytes_of(const hewn_module *module, const struct hewn_image *image,
                    const unsigned char **out, hewn_error *err)
{
    const struct hewn_pack *pack = image->pack;
    const struct kept *there = find(atomic_load(&kept), pack);
    if (!there) {
        struct kept *fresh = malloc(sizeof *fresh + pack->holds);
        enum hewn_unpacked got =
            fresh ? hewn_unpack(pack, pack->holds, fresh->bytes) : HEWN_UNPACK_NO_MEMORY;
        if (got) {
            int status = got == HEWN_UNPACK_NO_MEMORY ? HEWN_ERR_MEMORY : HEWN_ERR_IMAGE;
            free(fresh);
            return hewn_fail(err, status, "module %s (%s): %s: %s", module->name, module->target,
                             status == HEWN_ERR_MEMORY ? "out of host memory" : "corrupt image",
                             image->arch);
        }
        fresh->pack = pack;
        there = keep(fresh);
    }
    *out = there->bytes + image->offset;
    return HEWN_OK;
}

int hewn_module_describe(const hewn_module *module, hewn_module_info *out, hewn_error *err)
{
    if (!module) return hewn_fail_null(err, "module");
    const unsigned char *manifest = NULL;
    int status = bytes_of(module, &module->manifest, &manifest, err);
    if (status) return status;
    hewn_module_info info = {.name = module->name,
                             .target = module->target,
                             .entry = module->entry,
                             .sha256 = module->ptx.sha256,
                             .ptx_size = module->ptx.size,
                             .manifest = (const char *)manifest,
                             .manifest_size = module->manifest.size,
                             .image_count = module->image_count + 1,
                             .cubins = module->cubins};
    return hewn_struct_give(HEWN_STRUCT_hewn_module_info, &info, out, err);
}

int hewn_module_describe_image(const hewn_module *module, size_t index, hewn_image_info *out,
                               hewn_error *err)
{
    if (!module) return hewn_fail_null(err, "module");
    if (index > module->image_count)
        return hewn_fail(err, HEWN_ERR_ARGUMENT, "index: %zu, but module %s has %zu images", index,
                         module->name, module->image_count + 1);
    const struct hewn_image *image =
        index < module->image_count ? &module->images[index] : &module->ptx;
    const unsigned char *data = NULL;
    int status = bytes_of(module, image, &data, err);
    if (status) return status;
    hewn_image_info info = {.arch = image->arch, .data = data, .size = image->size};
    return hewn_struct_give(HEWN_STRUCT_hewn_image_info, &info, out, err);
}
