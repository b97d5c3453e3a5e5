import sys
import time
import unittest

sys.path.insert(0, "src")
from cart import empty


class Totals(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(empty().total(), 0)

    def test_two_of_a_thing_cost_twice_as_much(self):
        cart = empty()
        cart.add("tea", 10, 2)
        self.assertAlmostEqual(cart.total(), 23.8)

    def test_cents_are_rounded(self):
        cart = empty()
        cart.add("tea", 0.33, 3)
        self.assertEqual(cart.total(), 1.18)


if __name__ == "__main__":
    unittest.main()
