"""Contains a small model with optimizers, for tests in which the plan may contain the optimizer."""

import os

import torch

WORK = 200_000
MODELS = int(os.environ.get("CAIRN_TORCH_MODELS", "24")) // 3


class Net(torch.nn.Module):
    """A model with two branches that are multiplied, a weight that is used twice, two parameters that share a gradient,
    and a parameter that nothing reads."""

    def __init__(self, width=32):
        super().__init__()
        self.query, self.key = torch.nn.Linear(width, width), torch.nn.Linear(width, width, bias=False)
        self.twice = torch.nn.Linear(width, width)
        self.scale = torch.nn.Parameter(torch.ones(()))
        self.left, self.right = torch.nn.Parameter(torch.ones(64, width)), torch.nn.Parameter(torch.ones(64, width))
        self.unused = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        x = torch.relu(self.twice(x) + (self.left + self.right))
        return self.twice(self.query(x).tanh() * self.key(x).sigmoid() * self.scale)


def net(optimizer):
    model = Net()
    x, y = torch.randn(64, 32), torch.randn(64, 32)

    def loss_of(x, y):
        return (model(x) - y).square().mean()

    return model, optimizer(model), loss_of, (x, y)


def plain(model, optimizer, loss_of, inputs):
    optimizer.zero_grad()
    loss = loss_of(*inputs)
    loss.backward()
    optimizer.step()
    return loss.detach()


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def momentum(model):
    return torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
