"""What a customer gets on paper."""


def receipt(order):
    return f"{order['total']}"
