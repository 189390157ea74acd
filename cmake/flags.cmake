# Warnings for everything built here. -ffp-contract=off and -fmad=false keep a*b+c two roundings on both machines, so
# that their results can be compared bit by bit.
# Designated initialisers leave members out on purpose.
set(cairn_warnings -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers
    $<$<BOOL:${CAIRN_WERROR}>:-Werror>)
list(JOIN cairn_warnings "," cairn_host_flags_for_nvcc)

add_compile_options(
  "$<$<COMPILE_LANGUAGE:CXX>:${cairn_warnings};-ffp-contract=off>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Xcompiler=${cairn_host_flags_for_nvcc},-ffp-contract=off>"
  "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${CAIRN_WERROR}>>:-Werror=all-warnings>")
add_library(cairn_flags INTERFACE)
