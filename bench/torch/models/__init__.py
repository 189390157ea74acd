"""Models are compared with PyTorch here: those of the tables in this folder, and Cairn's own.

build("gpt-6") is a Case of the tables. Models of `transformers` and `timm` are made from their configurations, without
weights. `python -m models` in bench/torch lists all.
build_cairn("gpt2", options) is a Case of models/*.cpp: the same layers, widths, initial distributions and loss.
"""

from .case import Absent, Case, parameter_count
from .language import Experts, Llama
from .of_cairn import build_cairn
from .packages import need
from .tables import MODELS, build
