# Builds and runs the programs of this folder with Cairn's install tree or build tree.
# Needs the variables TREE (install or build), CAIRN_BUILD, WORK, GENERATOR, CXX, BUILD_TYPE, CXX_FLAGS, HAS_CUDA.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
if(TREE STREQUAL "install")
  # The prefix differs from the configured one, because the installed package must not depend on its location.
  run(${CMAKE_COMMAND} --install ${CAIRN_BUILD} --prefix ${WORK}/prefix)
  set(where -DCMAKE_PREFIX_PATH=${WORK}/prefix)
else()
  set(where -Dcairn_DIR=${CAIRN_BUILD})
endif()

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_CXX_FLAGS=${CXX_FLAGS} ${where})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
if(HAS_CUDA)
  run(${WORK}/build/cuda_consumer)
endif()
