# Modules: kernel text -> preprocessed text -> PTX -> cubins -> manifest -> packs, as C -> object.
# Included by the Makefile. Sets `modules` (phony), module_obj (objects for the library) and
# module_products (what ships as files).

every_module := $(shell sed -n 's|^ *X(\([a-z0-9_]*\), *\([a-z0-9_]*\)).*|\1/\2|p' \
                  $(SRC)/ptx/modules.def)
# $(call part,n,name): part n of gemm_<in>_<out>[_<variant>], attention_<in>_<qk>_<v>[_cap, _sums or _pages],
# decode_<in>_<qk>_<v>_<rows>[_e4m3][_x<heads>], mla_<in>[_<rows or record>[x<rows of a tile>][_two]], indexer_<in>_<heads>_<queries>, topk_<in>,
# grouped_<in or kind of block-scaled inputs>_<out>_<variant>[_rows], grouped_sum_<in>_<out>, w4_<in>_<format>_<width>
# or engine_<kernel>_<dtype>.
part = $(word $(1),$(subst _, ,$(2)))
family_of = $(call part,1,$(notdir $(1)))

# What is built: all of these, or those that HEWN_TARGETS and HEWN_FAMILIES name.
every_target  := $(sort $(patsubst %/,%,$(dir $(every_module))))
every_family  := $(sort $(foreach m,$(every_module),$(call family_of,$(m))))
HEWN_TARGETS  ?= $(every_target)
HEWN_FAMILIES ?= $(every_family)
# $(call chosen,VARIABLE,all there are): its words, each of which must be one of them.
chosen = $(if $(strip $($(1))),,$(error $(1) is empty: name one or more of: $(2)))$(strip \
           $(foreach w,$($(1)),$(if $(filter $(w),$(2)),$(w),$(error $(1)=$(w): not one of: $(2)))))
targets  := $(call chosen,HEWN_TARGETS,$(every_target))
families := $(call chosen,HEWN_FAMILIES,$(every_family))
of_families = $(foreach m,$(2),$(if $(filter $(1),$(call family_of,$(m))),$(m)))
module_list := $(call of_families,$(families),$(filter $(targets:%=%/%),$(every_module)))

# The real architectures of a target, and how ptxas spells each: an `f` target keeps its features
# only under an `f` spelling, and its cubin then runs on that and later parts of the family.
archs_sm_90a  := sm_90a
archs_sm_100f := sm_100 sm_103
ptxas_arch_sm_90a := sm_90a
ptxas_arch_sm_100 := sm_100f
ptxas_arch_sm_103 := sm_103f

ptxas := $(PTXAS)
# $(call cubins,target/name): the cubins of a module; none without ptxas.
cubins = $(if $(ptxas),$(foreach a,$(archs_$(patsubst %/,%,$(dir $(1)))), \
           $(BUILD)/modules/$(1).$(a).cubin))

# Modules whose texts and code have much in common share a pack, where they are compressed as one. A plan
# unpacks its module and those that precede it there: some milliseconds, so packs are not larger than this.
# Block-scaled products have a text and a pack of their own.
scaled = $(filter grouped/mx8 grouped/mx4 grouped/nv4 grouped/mw8 grouped/h16,$(call part,1,$(1))/$(call part,2,$(1)))
pack_gemm      = gemm_$(patsubst f16,bf16,$(call part,2,$(1)))_$(or $(call part,4,$(1)),plain)
pack_attention = attention$(patsubst %,_%_$(call part,4,$(1)),$(filter-out combine,$(call part,3,$(1))))
pack_decode    = $(subst 384_384,96_96,$(subst 192_192,96_96,decode$(patsubst %,_%_$(call part,4,$(1)),$(filter-out combine,$(call part,3,$(1))))))
pack_mla       = mla$(addprefix _,$(filter combine,$(call part,2,$(1))))
pack_indexer   = indexer
pack_topk      = topk
pack_grouped   = grouped_$(if $(call scaled,$(1)),scaled$(if $(filter e4m3 e2m1,$(call part,3,$(1))),_quantised),$(or $(filter sum,$(call part,2,$(1))),$(call part,4,$(1))))
pack_w4        = w4_$(call part,3,$(1))
pack_engine    = engine
pack_of        = $(dir $(1))$(call pack_$(call family_of,$(1)),$(notdir $(1)))
pack_list     := $(sort $(foreach m,$(module_list),$(call pack_of,$(m))))
$(foreach m,$(module_list),$(eval members_$(call pack_of,$(m)) += $(m)))

module_ptx      := $(module_list:%=$(BUILD)/modules/%.ptx)
module_cubins   := $(foreach m,$(module_list),$(call cubins,$(m)))
module_json     := $(module_list:%=$(BUILD)/modules/%.json)
module_obj      := $(pack_list:%=$(O)/packs/%.o) $(every_family:%=$(O)/modules/%.o)
# The engine's own kernels are no part of the library.
engine_modules  := $(filter %/engine.o,$(module_obj))
module_products := $(module_ptx) $(module_cubins) $(module_json)

mod_obj += $(addprefix $(O)/runtime/,sha256.o unpack.o)

modules: $(module_products) $(module_obj)

without := ptxas not found: modules ship PTX only

# $(call note,words,command): the target holds these words; when they are new, the command runs.
note = $(Q)mkdir -p $(@D) && printf '%s\n' '$(1)' | cmp -s - $@ || { printf '%s\n' '$(1)' > $@; $(2); }
.PHONY: force
# Changes when the tools do, so that manifests and objects follow.
ptxas_note := $(O)/modules/ptxas
$(ptxas_note): force
	$(call note,$(ptxas),$(if $(ptxas),:,echo '$(without)'))

# A family's list of modules, which may be empty.
$(every_family:%=$(O)/modules/%.list): $(O)/modules/%.list: force
	$(call note,$(call of_families,$*,$(module_list)),:)
$(every_family:%=$(O)/modules/%.c): $(O)/modules/%.c: $(O)/modules/%.list $(mod)
	$(call say,EMBED)
	$(Q)$(mod) family $* $@ $(call of_families,$*,$(module_list))

# The modules of a family share its text; a combine kernel has its own. defines_<text>: what the text asks
# for beside ENTRY. $(call text_at,target,module): where the target has a text of the input dtype's own,
# <family>_<in>, that one.
text_of = $(if $(filter %_combine,$(1)),$(1),$(if $(filter engine,$(call part,1,$(1))),engine_$(call part,2,$(1)),$(if $(call scaled,$(1)),scaled,$(call part,1,$(1))$(if $(filter mla,$(call part,1,$(1))),$(call mla_text,$(call part,3,$(1))))$(if \
            $(filter gemm/few gemm/oddfew gemm/oddsmall gemm/glufew,$(call part,1,$(1))/$(call part,4,$(1))),_$(patsubst glufew,few,$(call part,4,$(1)))))))
mla_text = $(if $(1),$(if $(filter %x16,$(1)),_few,_gather))
text_at = $(or $(basename $(notdir $(wildcard \
            $(SRC)/ptx/$(1)/$(call part,1,$(2))_$(call part,2,$(2)).ptx))),$(call text_of,$(2)))
defines_gemm      = -DIN_TYPE=$(call part,2,$(1)) -DOUT_TYPE=$(call part,3,$(1)) \
                    -DVARIANT=$(or $(call part,4,$(1)),plain)
defines_gemm_few  = $(defines_gemm)
defines_gemm_oddfew = $(defines_gemm)
defines_gemm_oddsmall = $(defines_gemm)
defines_heads     = -DIN_TYPE=$(call part,2,$(1)) -DQK_DIM=$(call part,3,$(1)) \
                    -DV_DIM=$(call part,4,$(1))
defines_attention = $(defines_heads) -DSOFTCAPS=$(if $(filter cap,$(call part,5,$(1))),1,0) \
                    -DOCTETS=$(if $(filter pages,$(call part,5,$(1))),1,0)
defines_attention_e4m3 = $(defines_attention) -DPROMOTES=$(if $(filter sums,$(call part,5,$(1))),1,0)
defines_decode    = $(defines_heads) -DTILE_ROWS=$(call part,5,$(1)) \
                    -DKV_BYTES=$(if $(filter e4m3,$(call part,6,$(1))),1,2) \
                    -DKV_HEADS=$(or $(patsubst x%,%,$(filter x2 x4,$(call part,6,$(1)) $(call part,7,$(1)))),1)
defines_mla       = -DIN_TYPE=$(call part,2,$(1))
defines_mla_few   = $(defines_mla) -DRECORD=$(patsubst %x16,%,$(call part,3,$(1)))
defines_mla_gather = $(defines_mla) -DRECORD=$(if $(filter rows,$(call part,3,$(1))),0,$(call part,3,$(1))) \
                    $(if $(filter two,$(call part,4,$(1))),-DSECOND_CACHE)
defines_grouped   = -DIN_TYPE=$(call part,2,$(1)) -DGATHER=$(if $(call part,5,$(1)),1,0) -DOUT_TYPE=$(call part,3,$(1)) -DVARIANT=$(call part,4,$(1))
defines_grouped_sum = -DIN_TYPE=$(call part,3,$(1)) -DOUT_TYPE=$(call part,4,$(1))
defines_scaled    = -DKIND=$(call part,2,$(1)) -DOUT_TYPE=$(call part,3,$(1)) -DVARIANT=$(call part,4,$(1))
defines_indexer   = -DHEADS=$(call part,3,$(1)) -DQUERIES=$(call part,4,$(1))
defines_engine_sample = -DIN_TYPE=$(call part,3,$(1))
defines_w4        = -DIN_TYPE=$(call part,2,$(1)) -DFORMAT=$(call part,3,$(1)) -DWIDTH=$(call part,4,$(1))

# $(1) target, $(2) module.
define text_rule
$(O)/modules/$(1)/$(2).i: $(SRC)/ptx/$(1)/$(call text_at,$(1),$(2)).ptx
	$$(call say,CPP)
	$(Q)mkdir -p $$(@D)
	$(Q)$(CC) -E -undef -nostdinc -x assembler-with-cpp -MMD -MP -MF $$(@:.i=.d) -MT $$@ \
	  -DENTRY=hewn_$(2) $(call defines_$(call text_at,$(1),$(2)),$(2)) $$< -o $$@
endef
$(foreach m,$(module_list),$(eval $(call text_rule,$(patsubst %/,%,$(dir $(m))),$(notdir $(m)))))

# A text that differs in line markers and worksheet alone leaves a file .same, and keeps its cubins: a change of
# tools/mod does not assemble all kernels again.
define target_rules
$(BUILD)/modules/$(1)/%.ptx: $(O)/modules/$(1)/%.i $(mod)
	$$(call say,PTX)
	$(Q)mkdir -p $$(@D)
	$(Q)$(mod) ptx $(1) $$* $$< $(SRC) $(O)/modules/$(1)/$$*.new && rm -f $(O)/modules/$(1)/$$*.same
	$(Q)if $(foreach a,$(archs_$(1)),[ $$(@:.ptx=.$(a).cubin) -nt $$@ ] && ) \
	  diff -q -I '^# [0-9]' -I '^//@' $$@ $(O)/modules/$(1)/$$*.new > /dev/null 2>&1; then \
	  touch $(O)/modules/$(1)/$$*.same; fi; mv $(O)/modules/$(1)/$$*.new $$@

$(BUILD)/modules/$(1)/%.json: $(BUILD)/modules/$(1)/%.ptx $(SRC)/ptx/validated.txt \
    $(ptxas_note) $(mod)
	$$(call say,JSON)
	$(Q)$(mod) manifest $(1) $$* $$< $(SRC)/ptx/validated.txt $$@ \
	  $(if $(ptxas),$$(foreach a,$(archs_$(1)),$$(a)=$(O)/modules/$(1)/$$*.$$(a).log))
endef
$(foreach t,$(targets),$(eval $(call target_rules,$(t))))

# $(1) target, $(2) architecture. What ptxas accepts but warns of is an error: see tools/mod/scan.c.
define arch_rules
$(BUILD)/modules/$(1)/%.$(2).cubin: $(BUILD)/modules/$(1)/%.ptx $(ptxas_note) $(mod)
	$$(call say,PTXAS)
	$(Q)if [ -f $(O)/modules/$(1)/$$*.same ] && [ $$@ -nt $(ptxas_note) ]; then touch $$@; exit 0; fi; \
	$(ptxas) -v -arch=$(ptxas_arch_$(2)) $$< -o $$@ > $(O)/modules/$(1)/$$*.$(2).log 2>&1 || \
	  { cat $(O)/modules/$(1)/$$*.$(2).log >&2; exit 1; }; \
	$(mod) vet $(O)/modules/$(1)/$$*.$(2).log
endef
$(foreach t,$(targets),$(foreach a,$(archs_$(t)),$(eval $(call arch_rules,$(t),$(a)))))

$(foreach m,$(module_list),$(eval $(BUILD)/modules/$(m).json: $(call cubins,$(m))))

# $(1) target, $(2) pack, $(3) its members, $(4) the architectures.
comma := ,
empty :=
define pack_rule
$(O)/packs/$(1)/$(2).c: $(foreach m,$(3),$(BUILD)/modules/$(m).ptx $(BUILD)/modules/$(m).json $(call cubins,$(m))) $(mod)
	$$(call say,PACK)
	$(Q)mkdir -p $$(@D)
	$(Q)$(mod) pack $(1) $$@ $(BUILD)/modules/$(1) '$(subst $(empty) ,$(comma),$(strip $(4)))' $(notdir $(3))
endef
$(foreach p,$(pack_list),$(eval $(call pack_rule,$(patsubst %/,%,$(dir $(p))),$(notdir $(p)),$(members_$(p)),\
  $(if $(ptxas),$(archs_$(patsubst %/,%,$(dir $(p))))))))

# Bytes alone: nothing to debug.
$(module_obj): $(O)/%.o: $(O)/%.c $(SRC)/include/hewn.h $(SRC)/runtime/module.h
	$(call say,CC)
	$(Q)$(CC) $(CFLAGS_ALL) -g0 -I$(SRC)/runtime -c $< -o $@

# What ptxas said of each module: its time, registers and spills.
.PHONY: assembly
assembly: $(module_cubins)
	$(Q)awk 'FNR == 1 { n = FILENAME; sub(".*/", "", n); sub(".log", "", n) } \
	  / spill stores/ { spilled = $$5 } / registers/ { registers = $$5 } \
	  /Compile time/ { printf "%-32s %7.0f ms  %3d registers  %d bytes spilled\n", n, $$(NF - 1), registers, spilled }' \
	  $(module_cubins:$(BUILD)/modules/%.cubin=$(O)/modules/%.log)

.SECONDARY: $(module_list:%=$(O)/modules/%.i) $(module_obj:.o=.c)
-include $(module_list:%=$(O)/modules/%.d)
