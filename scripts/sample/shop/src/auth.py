"""Who a customer is."""

import secrets


class Session:
    def __init__(self, customer):
        self.customer = customer
        self.renew()

    def renew(self):
        self.token = secrets.token_hex(64)


def login(customer, password):
    return Session(customer) if password else None
