"""This package has the models that are measured with PyTorch: the models of the tables, and PyTorch versions of Cairn's
own models.

build("gpt-6") returns the Case (model and inputs) of a model of the tables. Models of `transformers` and `timm` are
made from their configurations, with random weights. `python -m models` in bench/torch lists all models.
build_cairn("gpt2", options) returns the Case of one of Cairn's models (models/*.cpp), with the same layers, widths,
initial distributions and loss.
"""

from .case import Absent, Case, parameter_count
from .language import Experts, Llama
from .of_cairn import build_cairn
from .more import MORE
from .packages import need
from .tables import MODELS, build
