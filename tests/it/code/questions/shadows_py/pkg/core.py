def run(): pass
def same(): pass


class A:
    def go(self): pass


class B:
    def go(self): pass
    def only_b(self): pass


class Base:
    def stay(self): pass
