"""Brings Cairn into trainers of other packages. Most trainers need nothing: if a model is compiled in place by
``model.compile(backend="cairn")``, any trainer can train it."""

from ._backend.backend import backend


def trainer_callback(budget="min", **options):
    """Returns a callback for the Trainer of Hugging Face's transformers, which compiles the model before training
    begins: ``Trainer(model, arguments, callbacks=[cairn.torch.trainer_callback("8GiB")])``. The arguments are those of
    cairn.torch.backend. The callback's ``report`` is a Report. Raises ImportError if transformers is not installed."""
    import transformers

    class CairnCallback(transformers.TrainerCallback):
        def __init__(self):
            self.backend = backend(budget, **options)

        @property
        def report(self):
            return self.backend.report

        def on_train_begin(self, args, state, control, model=None, **kwargs):
            model.compile(backend=self.backend)

    return CairnCallback()
