"""What was bought."""

from cart import Cart


def place(cart: Cart, customer):
    return {"customer": customer, "total": cart.total(), "paid": False}


def refund(order):
    order["paid"] = False
    return order
