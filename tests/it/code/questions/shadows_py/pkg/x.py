def same(): pass
def first(): pass
def hidden(): pass
def late(): pass
__all__ = ["same", "first", "late"]
