"""Plans the graphs of one step together, so that a budget limits the peak of the whole step.

A step becomes several graphs (*parts*) at graph breaks, if blocks are compiled each for itself, or if
DistributedDataParallel splits it. While a part runs, others hold what they saved for their backward passes. Which parts
run, and in which order, is known only after a step. So the first step is watched (watch.py), and then all parts are
planned together (plan.py) and compiled once more. points.py finds schedules of one part that hold less or more, and
choose.py picks one schedule for each part.
"""
