"""What things cost."""

VAT = 0.19


def discount(net):
    return net * 0.95 if net > 100 else net


def vat(net):
    return net * (1 + VAT)
