# The headers that programs include, and braid::core and braid::torch, which they link. All other headers are internal: those that these
# include are installed with them, and may change in any version.

set(public_headers
  base/errors.h base/seeds.h
  schedule/generators.h schedule/validate.h schedule/simulate.h schedule/summary.h schedule/timeline.h
  spec/parse.h
  plan/cluster_file.h plan/predict_run.h plan/search.h
  data/length_buckets.h data/sharded_sampler.h data/token_file.h
  tokenize/tokenizer_file.h)
set(public_torch_headers
  comm/communicator.h comm/local/run_ranks.h
  launch/process_ranks.h
  ckpt/checkpoint.h
  sync/server/local_servers.h sync/server/server_client.h
  module/data_parallel.h module/module_pipeline.h module/deferred_batch_norm.h module/keyed_dropout.h)

# Sets `out` to the headers of braid/ and all that they include, as paths below the source folder.
function(braid_with_included_headers out)
  set(found "")
  list(TRANSFORM ARGN PREPEND braid/ OUTPUT_VARIABLE open)
  while(open)
    list(POP_FRONT open header)
    list(APPEND found ${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} includes REGEX "^#include \"braid/")
    list(TRANSFORM includes REPLACE "^#include \"(.*)\".*" "\\1")
    list(REMOVE_ITEM includes ${found})
    list(APPEND open ${includes})
    list(REMOVE_DUPLICATES open)
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# The target braid::NAME of these components' libraries.
function(braid_library name)
  list(TRANSFORM ARGN PREPEND braid_)
  add_library(braid_${name} INTERFACE)
  target_link_libraries(braid_${name} INTERFACE ${ARGN})
  add_library(braid::${name} ALIAS braid_${name})
endfunction()

braid_library(core schedule plan data tokenize)
if(BRAID_TORCH)
  braid_library(torch core module launch)
endif()
