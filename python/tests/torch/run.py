"""Runs the tests of this folder. The last line of the output says how many tests passed, failed and were skipped.

usage: run.py [--few | [--here] NAME...]

NAME is a folder, such as private, or a name that `python -m unittest` takes, such as backend_test.Budgets. Without
names, all tests run. --few runs only the most basic files (FEW), without their slowest tests. --here runs all named
files in this process.

No two test files have the same name, even in different folders, and a test can import the files of every folder.
If several whole files are to run, each runs in a separate process with one thread, except for the small files of the
folder private, which share one. As many processes run at the same time as there are cores.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).parent
FOLDERS = [folder for folder in sorted(HERE.iterdir()) if any(folder.glob("*_test.py"))]
# The test files that take longest, which are started first.
LONGEST = ["backend_test", "updates_test", "step_test", "inputs_test", "refused_test", "random_test"]
FEW = ["backend_test", "caching_test", "compile_test", "fallback_test", "fuse", "memory_test", "offload_test", "private",
       "random_test", "several", "share_test", "silent", "step_test", "trainers_test"]
# The slowest tests of the files in FEW. Each takes 4 to 80 s, mostly because it compiles one model for many settings.
# Together they take longer than all other tests of these files. Only a run without --few covers them.
LEFT_OUT_OF_FEW = """
    around_test.WhatIsAround.test_a_backward_pass_under_autocast
    around_test.WhatIsAround.test_an_input_at_an_odd_address
    around_test.WhatIsAround.test_hooks_that_are_compiled_into_the_graphs_are_told
    around_test.WhatIsAround.test_modes_that_change_what_operations_give
    around_test.WhatIsAround.test_noise_like_what_hooks_give_back_laid_out_in_another_way
    around_test.WhatIsAround.test_switches_of_kernels_that_are_turned_after_the_forward_pass_are_told
    around_test.WhatIsAround.test_what_hooks_keep_elsewhere_is_the_same
    backend_test.BadInput.test_a_budget_that_cannot_be_met_says_which_can
    backend_test.BadInput.test_numbers_of_numpy_and_torch_are_numbers
    backend_test.Budgets.test_a_plan_for_any_size_holds_up_to_its_own
    backend_test.Budgets.test_a_result_that_the_tracer_has_behind_the_backward_pass
    backend_test.Budgets.test_another_shape_is_another_graph
    backend_test.Budgets.test_autocast
    backend_test.Budgets.test_batch_norm_under_autocast
    backend_test.Budgets.test_checkpoint_inside
    backend_test.Budgets.test_dynamic_shapes
    backend_test.Budgets.test_norms_of_16_bits
    backend_test.Reports.test_damaged_caches_cost_only_time
    caching_test.Fits.test_meta_tensors
    caching_test.Fits.test_optimizers
    careful_test.Careful.test_a_shape_that_depends_on_the_group
    careful_test.Careful.test_a_view_of_a_buffer_that_the_model_writes
    careful_test.Careful.test_batch_norm_of_16_bits
    careful_test.Careful.test_numbers_that_16_bits_cannot_represent
    careful_test.Careful.test_the_maximum_of_values_of_16_bits
    careful_test.Careful.test_views_of_inputs_that_others_write
    careful_test.Careful.test_what_is_computed_again_from_values_of_16_bits
    careful_test.Careful.test_what_kernels_leave_in_memory
    careful_test.Careful.test_what_the_backward_pass_compares
    compile_test.Lengths.test_few_plans_for_many_lengths
    compile_test.Numbers.test_a_chain_of_many_views
    compile_test.Sizes.test_a_size_that_is_a_remainder
    compile_test.Terminal.test_errors_are_short
    compile_test.Terminal.test_nothing_of_our_own_measuring
    draws_test.WhatDrawsOrActs.test_custom_operations_that_draw_beside_dropout
    draws_test.WhatDrawsOrActs.test_custom_operations_that_log
    draws_test.WhatDrawsOrActs.test_dropout_inside_of_cond
    fallback_test.Fallback.test_checkpoints_about_it_of_several_sizes
    fuse_test.Order.test_groups_keep_their_times
    inductor_test.Compiler.test_cache_artifacts
    inductor_test.Compiler.test_kernels_are_compiled_once
    inductor_test.Compiler.test_kernels_that_return_what_was_not_traced
    inductor_test.Inductor.test_a_step_with_its_optimizer
    inductor_test.Inductor.test_bits_and_promises_of_other_models
    inductor_test.Inductor.test_other_options
    inductor_test.Inductor.test_random_models
    inductor_test.Inductor.test_several_graphs
    inductor_test.Inductor.test_symbolic_sizes
    inputs_test.InputsThatAreWritten.test_a_result_that_is_written_is_an_error
    inputs_test.InputsThatAreWritten.test_an_input_that_is_written_after_the_forward_pass_is_an_error
    inputs_test.InputsThatAreWritten.test_inputs_that_are_said_to_change
    inputs_test.InputsThatAreWritten.test_memory_outside_of_an_input
    inputs_test.InputsThatAreWritten.test_memory_that_is_shared_later_is_told_once_for_all_sizes
    inputs_test.InputsThatAreWritten.test_parts_of_one_tensor_are_as_good_as_their_own
    inputs_test.InputsThatAreWritten.test_windows_of_an_input
    kernels_test.KernelsAsTheyWereChosen.test_batch_norm_of_16_bits_with_statistics_of_32
    kernels_test.KernelsAsTheyWereChosen.test_batch_norm_of_what_the_forward_pass_writes_then
    kernels_test.KernelsAsTheyWereChosen.test_batch_norm_with_statistics_that_are_no_buffers
    kernels_test.LayoutsOfKernels.test_layouts_that_are_not_measured
    kernels_test.LayoutsOfKernels.test_masks_of_dropout_after_a_channel_shuffle
    kernels_test.LayoutsOfKernels.test_masks_of_dropout_after_copysign
    kernels_test.LayoutsOfKernels.test_noise_like_what_is_laid_out_otherwise
    measuring_test.Measuring.test_quiet_allocator
    measuring_test.Measuring.test_quiet_profiler
    offload_test.Steps.test_compiled_autograd
    offload_test.Steps.test_convolutions
    offload_test.Steps.test_copies_as_late_as_allowed_and_poison
    offload_test.Steps.test_transformer
    several_test.StepsOfSeveralGraphs.test_a_budget_that_cannot_be_met
    several_test.StepsOfSeveralGraphs.test_a_graph_that_is_kept
    several_test.StepsOfSeveralGraphs.test_a_larger_step_that_cannot_meet_bytes
    several_test.StepsOfSeveralGraphs.test_a_plan_of_another_process
    several_test.StepsOfSeveralGraphs.test_a_reset_in_the_middle_of_a_step
    several_test.StepsOfSeveralGraphs.test_another_length_and_an_evaluation
    several_test.StepsOfSeveralGraphs.test_bits_budgets_and_promises
    several_test.StepsOfSeveralGraphs.test_bytes_that_the_first_step_exceeds
    several_test.StepsOfSeveralGraphs.test_copies_of_a_compiled_model
    several_test.StepsOfSeveralGraphs.test_forward_passes_without_a_backward_pass
    several_test.StepsOfSeveralGraphs.test_one_graph_costs_no_less
    several_test.StepsOfSeveralGraphs.test_passes_in_the_order_of_a_pipeline
    several_test.StepsOfSeveralGraphs.test_random_models
    several_test.StepsOfSeveralGraphs.test_runs_whose_backward_pass_never_comes
    several_test.StepsOfSeveralGraphs.test_several_runs_before_the_backward_passes
    share_test.Evaluations.test_a_small_part_before_the_large_ones
    share_test.LeastPeaks.test_budgets_below_the_least_are_not_met
    share_test.LeastPeaks.test_damaged_files_of_what_is_known
    step_test.Steps.test_a_larger_batch_is_planned_anew
    step_test.Steps.test_batch_norm_and_momentum
    step_test.Steps.test_hooks
    step_test.Steps.test_micro_batches
    step_test.Steps.test_modes_frozen_and_replaced_parameters
    step_test.Steps.test_numbers
    step_test.Steps.test_several_optimizers_schedules_clipping_and_averages
    step_test.Steps.test_transformer_and_adam
""".split()
TOGETHER = "private"  # folder whose files run in one process, because importing torch takes longer than their tests
SLOW_S = 4  # the times of tests that take at least this number of seconds are printed
COUNT = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped\n")


class Result(unittest.TextTestResult):
    """Counts each test once, even if it consists of several subtests."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.failed = set()
        self.began, self.slow = 0.0, []  # slow: (seconds, name) of slow tests

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        seconds = time.monotonic() - self.began
        if seconds >= SLOW_S:
            self.slow.append((seconds, test.id()))

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.failed.add(test.id())

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.failed.add(test.id())

    def addError(self, test, error):
        super().addError(test, error)
        self.failed.add(test.id())


def each(tests):
    """Yields the single tests of a suite."""
    for test in tests:
        yield from each(test) if isinstance(test, unittest.TestSuite) else [test]


def run_here(names):
    """Runs the tests with these names in this process. Returns (passed, failed, skipped), as numbers of tests."""
    sys.path[:0] = map(str, (*FOLDERS, HERE))
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # suppresses messages of the profiler
    import torch
    torch.set_num_threads(min(2, torch.get_num_threads()))
    tests = unittest.defaultTestLoader.loadTestsFromNames(names)
    if os.environ.get("CAIRN_TORCH_FEW"):
        tests = unittest.TestSuite(test for test in each(tests) if test.id() not in LEFT_OUT_OF_FEW)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(tests)
    skipped = len({test.id() for test, _ in result.skipped} - result.failed)
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}")
    for seconds, name in sorted(result.slow, reverse=True):
        print(f"{seconds:.1f} s: {name}")
    print(f"torch {torch.__version__}")
    return result.testsRun - len(result.failed) - skipped, len(result.failed), skipped


def run_apart(names):
    """Runs the tests of files in a separate process, and prints the process's output when it has ended. Returns
    (passed, failed, skipped)."""
    done = subprocess.run([sys.executable, __file__, "--here", *names], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    count = COUNT.search(done.stdout[-200:])
    print(done.stdout[:count and done.stdout.rindex(count[0])], end="", flush=True)
    # If the output contains no count of tests, the process has crashed. This counts as one failed test.
    return tuple(map(int, count.groups())) if count else (0, 1, 0)


def files_of(folder):
    """Returns the names of the test files in a folder."""
    return {file.stem for file in folder.glob("*_test.py")}


def without_folders(names):
    """Replaces each name of a folder by the names of its test files."""
    folders = {folder.name: folder for folder in FOLDERS}
    return [file for name in names for file in (sorted(files_of(folders[name])) if name in folders else [name])]


def run_files(names):
    names = sorted(names, key=lambda name: (LONGEST.index(name) if name in LONGEST else len(LONGEST), name))
    small = sorted(files_of(HERE / TOGETHER).intersection(names))
    groups = [[name] for name in names if name not in small] + ([small] if small else [])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return tuple(map(sum, zip(*pool.map(run_apart, groups))))


if __name__ == "__main__":
    files = set().union(*map(files_of, (HERE, *FOLDERS)))
    arguments = sys.argv[1:]
    is_here = arguments[:1] == ["--here"]
    given = without_folders(arguments[1:] if is_here else arguments) or files
    if given == ["--few"]:
        given = without_folders(FEW)
        os.environ["CAIRN_TORCH_FEW"] = "1"
        print(f"Left to a run without --few: {len(LEFT_OUT_OF_FEW)} tests, and {len(files) - len(given)} files")
    passed, failed, skipped = run_files(given) if len(given) > 1 and files.issuperset(given) and not is_here else run_here(given)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.exit(0 if passed > 0 and not failed else 1)
