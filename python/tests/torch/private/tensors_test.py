"""Tests that cairn.torch._private recognises in the installed torch whether a tensor's memory is shared, resized,
batched or freed."""

import unittest

import torch
from cairn.torch import _private


class Memory(unittest.TestCase):
    def test_copies_are_aligned_as_what_they_are_copied_from(self):
        for first in range(20):
            tensor = torch.randn(100)[first:first + 64].view(8, 8).T
            copied = _private.copy_of_input(tensor)
            self.assertTrue(torch.equal(copied, tensor))
            self.assertEqual((copied.stride(), _private.alignment_of(copied)), (tensor.stride(), _private.alignment_of(tensor)))

    def test_is_batched(self):
        found = []

        def see(x):
            found.append((_private.is_batched(x), _private.is_plain(x)))
            return x * 2

        see(torch.ones(3))
        torch.func.vmap(see)(torch.ones(3))
        self.assertEqual(found, [(False, True), (True, False)])
        y = torch.ones(3, requires_grad=True) * 2
        y.register_hook(see)
        torch.autograd.grad(y, y, torch.eye(3), is_grads_batched=True)
        self.assertEqual(found[2:], [(True, False)])
        self.assertFalse(_private.is_batched(1))

    def test_is_there(self):
        x = torch.ones(4, 4)
        self.assertTrue(all(map(_private.is_there, (x, x.T, x[1:, 2:], x[0].expand(9, 4), torch.ones(())))))
        x.untyped_storage().resize_(48)
        self.assertFalse(_private.is_there(x))
        self.assertTrue(_private.is_there(x[:3]))

    def test_negated_when_read(self):
        x = torch.ones(3)
        y = _private.negated_when_read(x)
        self.assertTrue(y.is_neg() and y.data_ptr() == x.data_ptr())
        self.assertTrue(torch.equal(y.clone(), -x))

    def test_adds_in_place(self):
        """Tests that adds_in_place() says whether autograd will add a second gradient to the given one in place. If
        autograd does, the sum has the address of the first gradient."""
        def read(gradient):
            gradient.untyped_storage()
            return gradient

        kinds = {"new": lambda: torch.ones(3, 4), "view": lambda: torch.ones(4, 3).t(), "expanded": lambda: torch.ones(4).expand(3, 4),
                 "read": lambda: read(torch.ones(3, 4))}
        for name, make in kinds.items():
            with self.subTest(name):
                found = []

                class Given(torch.autograd.Function):
                    @staticmethod
                    def forward(ctx, x):
                        return x.sum()

                    @staticmethod
                    def backward(ctx, _):
                        gradient = make()
                        found.append((gradient.data_ptr(), _private.adds_in_place(gradient, storage_was_read=name == "read")))
                        return gradient

                x = torch.zeros(3, 4, requires_grad=True)
                (Given.apply(x) + Given.apply(x)).backward()
                (address, is_in_place), _ = found
                self.assertEqual(x.grad.tolist(), [[2.0] * 4] * 3)
                self.assertEqual(x.grad.data_ptr() == address, is_in_place)

    def test_weak_storage(self):
        x = torch.ones(3)
        found = _private.weak_storage(x.untyped_storage())
        self.assertEqual(found.cdata, x.untyped_storage()._cdata)
        y = x[:1]
        del x
        self.assertFalse(found.expired())
        del y
        self.assertTrue(found.expired())
