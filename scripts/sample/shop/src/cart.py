"""What a customer wants to buy."""

from prices import discount, vat


class Cart:
    def __init__(self):
        self.items = []

    def add(self, name, price, count=1):
        self.items.append((name, price, count))

    def total(self):
        net = sum(price * count for _, price, count in self.items)
        return vat(discount(net))


def empty():
    return Cart()
