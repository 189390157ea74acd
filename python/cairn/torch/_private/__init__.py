"""Wraps the private names of torch that Cairn uses. If a new version of torch changes private names, only this folder
can break.

``python/tests/torch/private`` tests the functions of this folder. The rest of ``cairn.torch`` calls them as
``_private.name``, and uses no private names of torch except pytrees (``torch.utils._pytree``) and the classes of
operators (``torch._ops``).
"""

from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import aot_eager
from torch._dynamo.exc import ShortenTraceback

from .autograd import (accumulates, autograd_is_compiled, autograd_was_compiled, backward_node, edges_of_node,
                       edges_of_writes, free_unchecked, graph_task, is_returned, keeps_graph, may_be_replaced,
                       metadata_of_node, name_of_node, nodes_made, saves_by_hooks, when_backward_ends)
from .checkpoints import saving_frame
from .descriptions import (argument_of, compiling, donate_nothing, hide_writes, input_of, input_position, is_gradient, is_mutation,
                           mutated_inputs, output_descriptions, result_of, static_inputs, unseen_writes, written_inputs)
from .distributed import (DataParallel, average, collective_store, gradients_are_copied, splits_for_ddp, wait_tensor,
                          wait_tensors)
from .drawing import only_writes
from .front_end import (RESTARTS, Code, asked_by_tracer, compile_again, compiled_code, compiled_frame, evaluates,
                        forget_tracing, left_to_python, others_compile, register_backend, runs_uncompiled, shows_frames,
                        sizes_differentiated, sizes_seen, suppresses_errors, tell_of_limits)
from .joint import (check_version, checkpoint_policy, extract, is_backward, is_primal, is_tangent, modules_of, outputs,
                    saved_by_compiled_hooks, set_side, tell_sides)
from .measuring import (AllocatorHistory, allocations, history_can_be_recorded, is_out_of_memory, kernel_settings,
                        make_workspaces, memory_profiler, process_memory, profiler_runs, quiet_allocator,
                        quiet_profiler, requested_bytes)
from .operators import overloads, qualified_name
from .optimizers import after_any_step, before_any_step, without_hooks
from .running import (as_plain_tensors, autocasts, boxed, called_boxed, compile_lock, compiling_flag, generator_states, left_alone,
                      modes_of_user, no_autocast, no_modes, set_generator_states, unbatched)
from .sizes import (DATA_SIZE, OnlyPresentSizes, bound_sizes, hint, input_sizes, is_sized_by_data, is_sym,
                    is_symbol, may_exceed_plan, pin_sizes, plan_exactly, plans_for_larger, shape_env_of,
                    sized_by_data, symbols_within)
from .tensors import (ALIGNMENT, adds_in_place, alignment_of, copy_of_input, empty_aligned, extent, holders, is_batched,
                      is_plain, is_there, is_zero_tensor, lacks_memory, negated_when_read, owns_its_memory, tensors_of_storage, weak_storage)
from .tracing import (compile_kernel, fake_like, fake_mode_of, inductor_config, replaced_tensors, trace_fake,
                      trace_functional)
