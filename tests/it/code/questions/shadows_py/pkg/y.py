def same(): pass
def late(): pass
