"""Plans the graphs of one step together, so that a budget limits the peak of the whole step.

A step becomes several graphs (*parts*) at graph breaks, if its blocks are compiled separately, or if
DistributedDataParallel splits it. While a part runs, other parts hold the values that they have saved for their
backward passes. The parts and their order are known only after a step has run. So the first step is watched (watch.py),
and then all parts are planned together (plan.py) and compiled once more. points.py finds schedules of one part that
hold less or more memory between their passes, and choose.py picks one schedule for each part.
"""
