"""The models that are measured with PyTorch: those of the tables, and PyTorch versions of Cairn's own models.

build("gpt-6") returns the Case of a model of the tables. Models of `transformers` and `timm` are made from their
configurations, without weights. `python -m models` in bench/torch lists all models. build_cairn("gpt2", options)
returns the Case of one of Cairn's models (models/*.cpp), with the same layers, widths, initial distributions and loss.
"""

from .case import Absent, Case, parameter_count
from .language import Experts, Llama
from .of_cairn import build_cairn
from .more import MORE
from .packages import need
from .tables import MODELS, build
