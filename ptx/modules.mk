# Modules: kernel text -> preprocessed text -> PTX -> cubins -> manifest -> C -> object.
# Included by the Makefile. Sets `modules` (phony), module_obj (objects for the library) and
# module_products (what ships as files).

module_list := $(shell sed -n 's|^ *X(\([a-z0-9_]*\), *\([a-z0-9_]*\)).*|\1/\2|p' \
                 $(SRC)/ptx/modules.def)
targets     := $(sort $(patsubst %/,%,$(dir $(module_list))))

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

module_ptx      := $(module_list:%=$(BUILD)/modules/%.ptx)
module_cubins   := $(foreach m,$(module_list),$(call cubins,$(m)))
module_json     := $(module_list:%=$(BUILD)/modules/%.json)
module_obj      := $(module_list:%=$(O)/modules/%.o)
module_products := $(module_ptx) $(module_cubins) $(module_json)

mod_obj += $(O)/runtime/sha256.o

modules: $(module_products) $(module_obj)

# Changes when ptxas does, so that manifests and objects follow.
ptxas_note := $(O)/modules/ptxas
.PHONY: force
$(ptxas_note): force
	$(Q)mkdir -p $(@D)
	$(Q)printf '%s\n' '$(ptxas)' | cmp -s - $@ || { printf '%s\n' '$(ptxas)' > $@; \
	  test -n '$(ptxas)' || echo 'ptxas not found: modules ship PTX only'; }

# $(call part,n,name): part n of gemm_<in>_<out>[_<variant>] or attention_<in>_<qk>_<v>. The modules of a family
# share its text; attention_combine has its own. defines_<text>: what the text asks for beside ENTRY.
part    = $(word $(1),$(subst _, ,$(2)))
text_of = $(if $(filter attention_combine,$(1)),$(1),$(call part,1,$(1)))
defines_gemm      = -DIN_TYPE=$(call part,2,$(1)) -DOUT_TYPE=$(call part,3,$(1)) \
                    -DVARIANT=$(or $(call part,4,$(1)),plain)
defines_attention = -DIN_TYPE=$(call part,2,$(1)) -DQK_DIM=$(call part,3,$(1)) \
                    -DV_DIM=$(call part,4,$(1))

# $(1) target, $(2) module.
define text_rule
$(O)/modules/$(1)/$(2).i: $(SRC)/ptx/$(1)/$(call text_of,$(2)).ptx
	$$(call say,CPP)
	$(Q)mkdir -p $$(@D)
	$(Q)$(CC) -E -undef -nostdinc -x assembler-with-cpp -MMD -MP -MF $$(@:.i=.d) -MT $$@ \
	  -DENTRY=hewn_$(2) $(call defines_$(call text_of,$(2)),$(2)) $$< -o $$@
endef
$(foreach m,$(module_list),$(eval $(call text_rule,$(patsubst %/,%,$(dir $(m))),$(notdir $(m)))))

define target_rules
$(BUILD)/modules/$(1)/%.ptx: $(O)/modules/$(1)/%.i $(mod)
	$$(call say,PTX)
	$(Q)mkdir -p $$(@D)
	$(Q)$(mod) ptx $(1) $$* $$< $(SRC) $$@

$(BUILD)/modules/$(1)/%.json: $(BUILD)/modules/$(1)/%.ptx $(SRC)/ptx/validated.txt \
    $(ptxas_note) $(mod)
	$$(call say,JSON)
	$(Q)$(mod) manifest $(1) $$* $$< $(SRC)/ptx/validated.txt $$@ \
	  $(if $(ptxas),$$(foreach a,$(archs_$(1)),$$(a)=$(O)/modules/$(1)/$$*.$$(a).log))

$(O)/modules/$(1)/%.c: $(BUILD)/modules/$(1)/%.ptx $(BUILD)/modules/$(1)/%.json $(mod)
	$$(call say,EMBED)
	$(Q)$(mod) embed $(1) $$* $$(word 1,$$^) $$(word 2,$$^) $$@ \
	  $(if $(ptxas),$$(foreach a,$(archs_$(1)),$$(a)=$(BUILD)/modules/$(1)/$$*.$$(a).cubin))
endef
$(foreach t,$(targets),$(eval $(call target_rules,$(t))))

# $(1) target, $(2) architecture. What ptxas accepts but warns of is an error: see tools/mod/scan.c.
define arch_rules
$(BUILD)/modules/$(1)/%.$(2).cubin: $(BUILD)/modules/$(1)/%.ptx $(ptxas_note) $(mod)
	$$(call say,PTXAS)
	$(Q)$(ptxas) -v -arch=$(ptxas_arch_$(2)) $$< -o $$@ > $(O)/modules/$(1)/$$*.$(2).log 2>&1 || \
	  { cat $(O)/modules/$(1)/$$*.$(2).log >&2; exit 1; }
	$(Q)$(mod) vet $(O)/modules/$(1)/$$*.$(2).log
endef
$(foreach t,$(targets),$(foreach a,$(archs_$(t)),$(eval $(call arch_rules,$(t),$(a)))))

$(foreach m,$(module_list),$(eval $(BUILD)/modules/$(m).json: $(call cubins,$(m))))

$(O)/modules/%.o: $(O)/modules/%.c $(SRC)/include/hewn.h
	$(call say,CC)
	$(Q)$(CC) $(CFLAGS_ALL) -c $< -o $@

# What ptxas said of each module: its time, registers and spills.
.PHONY: assembly
assembly: $(module_cubins)
	$(Q)awk 'FNR == 1 { n = FILENAME; sub(".*/", "", n); sub(".log", "", n) } \
	  / spill stores/ { spilled = $$5 } / registers/ { registers = $$5 } \
	  /Compile time/ { printf "%-32s %7.0f ms  %3d registers  %d bytes spilled\n", n, $$(NF - 1), registers, spilled }' \
	  $(module_cubins:$(BUILD)/modules/%.cubin=$(O)/modules/%.log)

.SECONDARY: $(module_list:%=$(O)/modules/%.i) $(module_list:%=$(O)/modules/%.c)
-include $(module_list:%=$(O)/modules/%.d)
